import math

import numpy as np
import pytest
from mpmath import log, mp, quad
from scipy import integrate, stats

from policies.estimators import empirical_bayes, signal_quality_mle
from policies.ncis.page_learner import Learner, one_source
from policies.ncis.priors import LEAST_PROBABILITY, Beliefs, update_belief


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
    predicted = update_belief(
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
    update_belief(counts, exposures, shape, rate, 2.0, np.array([3.0]), False, 0.5)
    np.testing.assert_allclose(counts, [2.0, 2.0, 5.0])
    np.testing.assert_allclose(exposures, [5.0, 6.0, 5.0])
    counts, exposures = np.zeros(3), np.zeros(3)
    update_belief(counts, exposures, shape, rate, 1e-9, np.zeros(1), True, 1.0)
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
        update_belief(
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


def test_groups_have_distributions_of_their_own():
    rng = np.random.default_rng(13)
    group = np.repeat([0, 1], 100)
    beliefs = Beliefs(group, 1, 1.0)
    for page in range(200):
        for t, n, changed in zip(*history(rng, (0.1, 1.0)[group[page]], 0, 0.3, 30), strict=True):
            beliefs.learn(page, t, np.array([float(n)]), bool(changed))
    for _ in range(20):
        beliefs.pool(np.ones(200, bool))
    slow, fast = beliefs.shape[:, 0] / beliefs.rate[:, 0]
    assert slow == pytest.approx(0.1, rel=0.35)  # drawn a little to the whole set's mean
    assert fast == pytest.approx(1.0, rel=0.15)


def test_fading_beliefs_follow_a_habit_that_changes():
    rng = np.random.default_rng(17)
    parts = [history(rng, rate, 0.0, 0.0, 300) for rate in (2.0, 0.1)]
    crawls = tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    lasting, fading = (taught([crawls], memory=memory).typical(0)[0] for memory in (math.inf, 30.0))
    assert fading < 0.3 < lasting


def test_learner_believes_the_memory_that_predicts_best():
    from crawl_envs.types import CrawlLog

    rng = np.random.default_rng(19)
    learner = Learner(np.ones(4), 1, 1.0, np.zeros(4, np.int64), (math.inf, 10.0), True)
    none = np.zeros(0, np.int64)

    def crawl(rate, crawls):
        for page in np.tile(np.arange(4), crawls):
            elapsed, signals, changed = history(rng, rate, 0.0, 0.0, 1)
            row = (np.array([page]), np.zeros(1), elapsed, signals, changed)
            learner.learn(CrawlLog(*row, none, np.zeros(0), none, np.zeros(1, np.bool_)))

    crawl(2.0, 200)
    assert learner.best == 0
    crawl(0.1, 15)
    assert learner.best == 1


def test_one_source_in_place_of_several():
    rng = np.random.default_rng(23)
    alpha, evidence = rng.exponential(size=50), rng.exponential(2.0, (3, 50))
    rate = rng.exponential(size=(3, 50))
    page = one_source(alpha, evidence, rate)
    true = (rate * (1.0 - np.exp(-evidence))).sum(axis=0)
    np.testing.assert_allclose(page.change_rate, alpha + true)
    seen = page.recall * page.change_rate
    np.testing.assert_allclose(seen, true)
    jump = np.log1p(seen / page.false_signal_rate)
    signal_rate = seen + page.false_signal_rate
    np.testing.assert_allclose(signal_rate * jump, (rate * evidence).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(page.signal_weight * jump, evidence, rtol=1e-9)


def test_a_single_source_stays_itself_and_weak_ones_are_finite():
    page = one_source(np.array([0.2]), np.array([[1.5]]), np.array([[0.8]]))
    assert page.signal_weight == 1.0
    assert page.false_signal_rate == pytest.approx(0.8 * math.exp(-1.5))
    weak = one_source(np.array([0.2]), np.array([[1e-12], [1e-13]]), np.ones((2, 1)))
    assert all(np.all(np.isfinite(field)) for field in weak)
