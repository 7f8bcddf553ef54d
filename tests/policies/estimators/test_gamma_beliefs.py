"""Gamma beliefs against integration, scipy and slow twins."""

import itertools
import math

import numpy as np
import pytest
from mpmath import log, mp, quad
from scipy import integrate, special, stats

from policies.estimators import empirical_bayes, gamma_beliefs, signal_quality_mle
from policies.estimators.gamma_beliefs import LEAST_PROBABILITY, Beliefs, learn_page
from tests.naive.belief import shape_of


def quadrature(shape, rate, elapsed, signals, changed):
    """Mean and variance of alpha and b given a crawl, and its probability, by integration."""
    sides = [(shape[0], rate[0], elapsed), (shape[1], rate[1], signals)]

    def integral(side, power, decays):
        a, r, x = sides[side]
        density = stats.gamma(a, scale=1.0 / r)

        def integrand(value):
            return value**power * math.exp(-value * x * decays) * density.pdf(value)

        return integrate.quad(integrand, 0.0, density.isf(1e-15), epsabs=1e-13, limit=200)[0]

    def expected(of, power):
        fresh = integral(of, power, 1) * integral(1 - of, 0, 1)
        return integral(of, power, 0) - fresh if changed else fresh

    total = expected(0, 0)
    means = [expected(of, 1) / total for of in (0, 1)]
    spreads = [expected(of, 2) / total - means[of] ** 2 for of in (0, 1)]
    return np.array(means), np.array(spreads), total


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize(
    ("shape", "rate", "elapsed", "signals"),
    [
        ((2.0, 3.0), (1.5, 4.0), 0.7, 2.0),
        ((1.2, 1.5), (0.3, 2.0), 3.0, 0.0),
        ((4.0, 2.0), (40.0, 1.0), 0.05, 1.0),
        ((2.5, 6.0), (2.0, 3.0), 2.0, 5.0),
    ],
)
def test_crawl_moves_moments_as_integration_does(shape, rate, elapsed, signals, changed):
    shape, rate = np.array([*shape, 1.0]), np.array([*rate, 1.0])
    counts, exposures = np.zeros(3), np.zeros(3)
    predicted = learn_page(
        counts, exposures, shape, rate, elapsed, np.array([signals]), changed, 1.0
    )
    mean, spread, probability = quadrature(shape[:2], rate[:2], elapsed, signals, changed)
    after, exposure = (shape + counts)[:2], (rate + exposures)[:2]
    np.testing.assert_allclose(after / exposure, mean, rtol=1e-7)
    exact = mean / spread >= rate[:2]  # elsewhere the exposure is zero, not negative
    np.testing.assert_allclose((after / exposure**2)[exact], spread[exact], rtol=1e-6)
    np.testing.assert_array_equal(exposures[:2][~exact], 0.0)
    assert predicted == pytest.approx(math.log(max(probability, LEAST_PROBABILITY)), abs=1e-8)
    assert counts[2] == signals
    assert exposures[2] == elapsed


def test_crawl_adds_what_the_words_say_where_nothing_is_approximate():
    shape, rate = np.ones(3), np.ones(3)
    counts, exposures = np.full(3, 4.0), np.full(3, 6.0)
    learn_page(counts, exposures, shape, rate, 2.0, np.array([3.0]), False, 0.5)
    np.testing.assert_allclose(counts, [2.0, 2.0, 5.0])
    np.testing.assert_allclose(exposures, [5.0, 6.0, 5.0])
    counts, exposures = np.zeros(3), np.zeros(3)
    learn_page(counts, exposures, shape, rate, 1e-9, np.zeros(1), True, 1.0)
    np.testing.assert_allclose(counts, [1.0, 0.0, 0.0], atol=1e-6)  # a change, for certain
    np.testing.assert_allclose(exposures, [0.0, 0.0, 1e-9], atol=1e-6)


def test_beliefs_stay_finite_and_rise_with_a_change():
    rng = np.random.default_rng(5)
    shape, rate = np.array([0.3, 30.0, 1.0]), np.array([1e6, 1e-3, 1.0])
    counts, exposures = np.zeros(3), np.zeros(3)
    for _ in range(3000):
        before = (shape + counts) / (rate + exposures)
        changed = bool(rng.random() < 0.7)
        elapsed, signals = 10.0 ** rng.uniform(-12, 6), rng.poisson(10.0 ** rng.uniform(-2, 3))
        learn_page(
            counts, exposures, shape, rate, elapsed, np.array([float(signals)]), changed, 1.0
        )
        assert np.all(np.isfinite(counts))
        assert np.all(counts >= 0.0)
        assert np.all(exposures >= 0.0)
        after = (shape + counts) / (rate + exposures)
        if changed:
            assert np.all(after[:2] >= before[:2] * (1.0 - 1e-9))
        else:
            assert np.all(after[:2] <= before[:2])


def history(rng, alpha, recall_rate, false_rate, crawls):
    """Elapsed times, signals and changes of a page's crawls."""
    elapsed = rng.exponential(1.0, crawls)
    true = rng.poisson(recall_rate * elapsed)
    silent = rng.poisson(alpha * elapsed)
    return elapsed, true + rng.poisson(false_rate * elapsed), (true + silent) > 0


def taught(page_histories, **options):
    beliefs = Beliefs(np.zeros(len(page_histories), np.int64), 1, 1.0, **options)
    for page, (elapsed, signals, changed) in enumerate(page_histories):
        for t, n, change in zip(elapsed, signals, changed, strict=True):
            beliefs.learn(page, t, np.array([float(n)]), bool(change))
    return beliefs


def test_beliefs_tend_to_the_truth_as_the_maximum_of_the_likelihood_does():
    alpha, true, false = 0.3, 0.4, 0.2
    crawls = history(np.random.default_rng(7), alpha, true, false, 10_000)
    typical = taught([crawls]).typical(slice(None))[0]
    evidence = math.log((true + false) / false)
    best = signal_quality_mle(*crawls)
    np.testing.assert_allclose(typical, [alpha, evidence, true + false], rtol=0.05)
    assert typical[0] == pytest.approx(best.unsignalled_rate[0], rel=0.03)
    assert typical[1] == pytest.approx(best.evidence[0], rel=0.03)


def test_typical_is_the_exponential_of_the_mean_logarithm():
    """exp(E ln theta) by integration of ln theta over the Gamma density, with 30 digits."""
    group = np.array([0, 1, 0])
    beliefs = Beliefs(group, 1, 1.0)
    beliefs.shape[:] = [[0.3, 1.0, 2.0], [4.0, 0.7, 30.0]]
    beliefs.rate[:] = [[0.5, 2.0, 1.0], [8.0, 0.1, 20.0]]
    beliefs.counts[:] = [[0.0, 0.0, 0.0], [3.0, 0.5, 7.0], [1.5, 2.0, 0.1]]
    beliefs.exposures[:] = [[0.0, 0.0, 0.0], [6.0, 1.0, 9.0], [0.2, 4.0, 5.0]]

    def expected(a, r):
        with mp.workdps(30):
            # With theta = exp(u) / r, ln of the density of u is a u - exp(u), but for a constant.
            cuts = [-200 / a, -20 / a, log(a) - 2, log(a), log(a) + 2, log(a) + 6]
            total = quad(lambda u: mp.exp(a * u - mp.exp(u)), cuts)
            mean = quad(lambda u: u * mp.exp(a * u - mp.exp(u)), cuts) / total
            return float(mp.exp(mean) / r)

    shape = beliefs.shape[group] + beliefs.counts
    rate = beliefs.rate[group] + beliefs.exposures
    exact = [
        [expected(*pair) for pair in zip(*page, strict=True)]
        for page in zip(shape, rate, strict=True)
    ]
    np.testing.assert_allclose(beliefs.typical(slice(None)), exact, rtol=1e-10)
    np.testing.assert_array_equal(
        beliefs.typical(np.array([2, 0])), beliefs.typical(slice(None))[[2, 0]]
    )
    assert exact[0][0] < 0.2 * shape[0, 0] / rate[0, 0]  # far below the mean where little is known


def test_pages_share_the_distribution_that_they_were_drawn_from():
    rng = np.random.default_rng(11)
    rates = rng.gamma(3.0, 0.2, 400)
    histories = [history(rng, rate, 0.0, 0.0, 40) for rate in rates]
    beliefs = taught(histories)
    for _ in range(30):
        beliefs.pool(np.ones(400, bool))
    elapsed, _, changed = (np.concatenate(part) for part in zip(*histories, strict=True))
    settled = empirical_bayes(elapsed, None, changed, page=np.repeat(np.arange(400), 40)).groups
    assert beliefs.shape[0, 0] == pytest.approx(settled.shape[0, 0], rel=0.05)
    assert beliefs.shape[0, 0] / beliefs.rate[0, 0] == pytest.approx(settled.mean[0, 0], rel=0.01)
    assert settled.mean[0, 0] == pytest.approx(rates.mean(), rel=0.05)
    signalled = taught([history(rng, 0.2, 0.0, 0.5, 40) for _ in rates])
    for _ in range(30):
        signalled.pool(np.ones(400, bool))
    assert signalled.shape[0, 2] / signalled.rate[0, 2] == pytest.approx(0.5, rel=0.05)
    unpooled = taught([history(rng, 1.0, 0.0, 0.5, 40)], pooled=False)
    unpooled.pool(np.ones(1, bool))
    np.testing.assert_array_equal(unpooled.shape, 1.0)


def test_fading_beliefs_follow_a_habit_that_changes():
    rng = np.random.default_rng(17)
    parts = [history(rng, rate, 0.0, 0.0, 300) for rate in (2.0, 0.1)]
    crawls = tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    lasting, fading = (taught([crawls], memory=memory).typical(0)[0] for memory in (math.inf, 30.0))
    assert fading < 0.3 < lasting


def naive_pool(beliefs, known, smallest):
    """Distributions of groups page by page: shapes and rates, (G, K)."""
    shape, rate = beliefs.shape.copy(), beliefs.rate.copy()
    for kind in range(shape.shape[1]):
        pairs = []
        for page in np.flatnonzero(known[:, kind]):
            own = beliefs.group[page], kind
            a = beliefs.shape[own] + beliefs.counts[page, kind]
            r = beliefs.rate[own] + beliefs.exposures[page, kind]
            pairs.append((own[0], a / r, special.digamma(a) - math.log(r)))
        for group in range(len(shape)) if pairs else ():
            whole = np.mean([pair[1:] for pair in pairs], axis=0)
            own = np.array([pair[1:] for pair in pairs if pair[0] == group]).reshape(-1, 2)
            mean, log_mean = (own.sum(axis=0) + 5.0 * whole) / (len(own) + 5.0)
            mean = max(mean, smallest)
            shape[group, kind] = shape_of(math.log(mean) - log_mean)
            rate[group, kind] = shape[group, kind] / mean
    return shape, rate


@pytest.mark.parametrize("groups", [1, 3])
def test_pooled_distributions_are_those_of_the_slow_twin(groups):
    rng = np.random.default_rng(2)
    beliefs = Beliefs(np.arange(12) % groups, 2, 1.0)
    for shared in (beliefs.shape, beliefs.rate):
        shared[:] = rng.uniform(0.5, 3.0, shared.shape)
    for data in (beliefs.counts, beliefs.exposures):
        data[:] = rng.gamma(1.0, 2.0, data.shape)
    beliefs.exposures[:, 3] *= 1e9  # the smallest mean
    known = rng.random((12, 5)) < 0.7
    known[:, 1], smallest = False, np.full(5, 1e-4)
    expected = naive_pool(beliefs, known, 1e-4)
    data = beliefs.counts, beliefs.exposures, known, beliefs.group
    before = beliefs.shape[:, 1].copy()
    gamma_beliefs.pool_beliefs(*data, beliefs.shape, beliefs.rate, smallest)
    np.testing.assert_allclose(beliefs.shape, expected[0], rtol=1e-8)
    np.testing.assert_allclose(beliefs.rate, expected[1], rtol=1e-8)
    np.testing.assert_array_equal(beliefs.shape[:, 1], before)  # nobody has seen that kind
    assert beliefs.shape[:, 3] == pytest.approx(1e-4 * beliefs.rate[:, 3])


def exact_moments(shape, rate, exposure, fresh):
    """Mean and variance of theta after a change, by integration.

    Given theta, no change has the probability exp(-theta exposure) times that of the other hazards.
    """
    own = (rate / (rate + exposure)) ** shape
    others = math.exp(fresh) / own
    density = stats.gamma(shape, scale=1.0 / rate)

    def integral(power):
        def integrand(theta):
            change = 1.0 - others * math.exp(-theta * exposure)
            return theta**power * change * density.pdf(theta)

        cuts = [0.0, *density.ppf([0.01, 0.5, 0.99]), density.isf(1e-15)]
        spans = itertools.pairwise(cuts)
        return sum(integrate.quad(integrand, *span, epsabs=1e-14, limit=200)[0] for span in spans)

    total, mean = integral(0), integral(1)
    return mean / total, integral(2) / total - (mean / total) ** 2


@pytest.mark.parametrize("others", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("exposure", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("shape", "rate"), [(0.6, 2.0), (1.0, 1.0), (4.0, 0.5), (25.0, 30.0)])
def test_moments_after_a_change_are_those_of_integration(shape, rate, exposure, others):
    fresh = -shape * math.log1p(exposure / rate) - others
    result = gamma_beliefs.moments_after_change(shape, rate, exposure, fresh)
    mean, variance = exact_moments(shape, rate, exposure, fresh)
    assert result[0] == pytest.approx(mean, rel=1e-7)
    assert result[1] == pytest.approx(variance, rel=1e-5)


def test_a_change_beside_certain_changes_tells_nothing():
    mean, variance = gamma_beliefs.moments_after_change(3.0, 5.0, 0.5, -60.0)
    assert mean == pytest.approx(3.0 / 5.0, rel=1e-9)
    assert variance == pytest.approx(3.0 / 25.0, rel=1e-9)


def test_special_functions():
    x = np.geomspace(0.01, 1e4, 400)
    first = [gamma_beliefs.digamma(value) for value in x]
    second = [gamma_beliefs.trigamma(value) for value in x]
    np.testing.assert_allclose(first, special.digamma(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(second, special.polygamma(1, x), rtol=1e-10)


@pytest.mark.parametrize("shape", [0.002, 0.1, 0.3, 1.0, 5.0, 30.0, 200.0, 5000.0])
def test_shape_of_a_gamma_distribution(shape):
    with mp.workdps(50):
        gap = mp.log(shape) - mp.digamma(shape)
    assert gamma_beliefs.gamma_shape(float(gap)) == pytest.approx(shape, rel=1e-8)
    assert gamma_beliefs.gamma_shape(0.0) == gamma_beliefs.gamma_shape(-1.0) > 1e6


@pytest.mark.parametrize(
    ("shape", "least", "most"),
    [(0.3, 2.8, 2.9), (1.0, 1.12, 1.14), (4.0, 1.0, 1.01), (30.0, 1, 1.0003)],
)
def test_below_mean_lies_above_what_it_stands_for(shape, least, most):
    exact = math.exp(special.digamma(shape)) / shape
    assert least <= gamma_beliefs.below_mean(shape) / exact <= most


def test_below_mean_rises_to_1():
    result = [gamma_beliefs.below_mean(shape) for shape in np.geomspace(0.3, 1e4, 50)]
    assert np.all(np.diff(result) > 0.0)
    assert result[0] < 0.3
    assert result[-1] == pytest.approx(1.0, abs=1e-4)
