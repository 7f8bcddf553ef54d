"""Estimates of signal quality against general optimisers, 50 digits, and simulated truth."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from policies import estimators
from policies.estimators import GammaPrior
from policies.estimators.signal_quality import SignalFit
from tests.policies.crawl_histories import crawled
from tests.policies.estimators.prior_fits import fit_with_prior


def signal_quality(alpha, b, gamma, covariance, gamma_error):
    """Quality of the signals of a fit with these estimates and errors."""
    none = np.full(alpha.shape, np.nan)
    return SignalFit(alpha, b, gamma, none, none, gamma_error, covariance, none, none).quality()


def cost(theta, design, changed, shape=None, rate=None):
    """The objective, as written down."""
    with np.errstate(divide="ignore"):
        exponent = design @ theta
        value = exponent[~changed].sum() - np.log(-np.expm1(-exponent[changed])).sum()
        if shape is not None:
            value += rate @ theta - shape @ np.log(theta)
    return value


def slow_fit(design, changed, shape, rate):
    """The slow twin: a general optimiser with the gradient, from several starts."""

    def value_and_slope(theta):
        theta = np.maximum(theta, 1e-12)
        exponent = design @ theta
        odds = np.where(changed, 1.0 / np.expm1(np.maximum(exponent, 1e-12)), 0.0)
        slope = ~changed @ design - odds @ design + rate - shape / theta
        return cost(theta, design, changed, shape, rate), slope

    results = [
        minimize(
            value_and_slope,
            np.full(design.shape[1], start),
            jac=True,
            bounds=[(1e-12, None)] * design.shape[1],
            method="L-BFGS-B",
            options={"ftol": 1e-14, "gtol": 1e-9},
        )
        for start in (0.1, 0.5)
    ]
    return min(results, key=lambda result: result.fun)


@pytest.mark.parametrize("sources", [1, 2, 3])
@pytest.mark.parametrize("with_prior", [False, True])
def test_agrees_with_a_general_optimiser(sources, with_prior):
    rng = np.random.default_rng([3, sources])
    m, k, d = 15, 25, 1 + sources
    alpha, b = rng.gamma(1.0, 0.6, m), rng.gamma(1.0, 0.8, (sources, m))
    gamma = rng.uniform(0.2, 1.5, (sources, m))
    page, elapsed, signals, changed = crawled(rng, alpha, b, gamma, rng.exponential(1.0, (m, k)))
    prior = GammaPrior(rng.uniform(0.3, 3.0, (m, d)), rng.uniform(0.3, 3.0, (m, d)))
    result = fit_with_prior(elapsed, signals, changed, prior if with_prior else None, page)
    assert result.converged.all()
    theta = np.vstack([result.unsignalled_rate, result.evidence]).T
    design = np.vstack([elapsed, signals]).T
    compared = 0
    for i in range(m):
        if not np.isfinite(theta[i]).all():
            assert not with_prior
            continue
        own = page == i
        shape, rate = (prior.shape[i], prior.rate[i]) if with_prior else np.zeros((2, d))
        slow = slow_fit(design[own], changed[own], shape, rate)
        point = np.maximum(theta[i], 1e-12)
        mine = cost(point, design[own], changed[own], shape, rate)
        assert mine == pytest.approx(slow.fun, abs=1e-9)
        np.testing.assert_allclose(theta[i], slow.x, atol=2e-4)
        compared += 1
    assert compared > m / 5


@pytest.mark.parametrize("seed", range(20))
def test_optimality_in_fifty_digits(seed):
    """Each gradient is 0 at an interior estimate, and >= 0 on a bound."""
    rng = np.random.default_rng([5, seed])
    n = int(rng.integers(4, 30))
    elapsed = rng.exponential(10.0 ** rng.uniform(-3, 3), n)
    signals, changed = rng.poisson(1.0, n), rng.random(n) < 0.5
    if not (signals[~changed] > 0).any():
        signals[~changed] += 1
    result = estimators.signal_quality_mle(elapsed, signals, changed)
    with mpmath.workdps(50):
        theta = [mpmath.mpf(float(x[0])) for x in (result.unsignalled_rate, result.evidence)]
        for j, column in enumerate((elapsed, signals)):
            slope = size = mpmath.mpf(0)
            for tau, count, hit, x in zip(elapsed, signals, changed, column, strict=True):
                u = theta[0] * mpmath.mpf(tau) + theta[1] * int(count)
                part = -mpmath.mpf(float(x)) / mpmath.expm1(u) if hit else mpmath.mpf(float(x))
                slope, size = slope + part, size + abs(part)
            if theta[j] > 0:
                assert abs(slope) < 1e-12 * size
            else:
                assert slope > 0
    assert result.log_likelihood[0] == pytest.approx(
        -cost(
            np.array([result.unsignalled_rate[0], result.evidence[0]]),
            np.vstack([elapsed, signals]).T,
            changed,
        ),
        rel=1e-12,
    )


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    unit=st.floats(-6.0, 6.0),
    with_prior=st.booleans(),
)
def test_the_unit_of_time_does_not_matter(seed, unit, with_prior):
    rng = np.random.default_rng(seed)
    scale = 10.0**unit
    elapsed, signals = rng.exponential(1.0, 15), rng.poisson(0.8, 15)
    changed = rng.random(15) < 0.5
    prior, scaled = None, None
    if with_prior:
        prior = GammaPrior(np.array([0.7, 1.5]), np.array([0.5, 2.0]))
        scaled = GammaPrior(np.array([0.7, 1.5]), np.array([0.5 * scale, 2.0]))
    here = fit_with_prior(elapsed, signals, changed, prior)
    there = fit_with_prior(elapsed * scale, signals, changed, scaled)
    known = {"rtol": 1e-6, "atol": 1e-12}
    np.testing.assert_allclose(there.unsignalled_rate * scale, here.unsignalled_rate, **known)
    np.testing.assert_allclose(there.evidence, here.evidence, **known)
    np.testing.assert_allclose(
        there.unsignalled_rate_stderr * scale, here.unsignalled_rate_stderr, rtol=1e-5
    )
    np.testing.assert_allclose(there.quality().recall, here.quality().recall, **known)


def test_a_page_does_not_depend_on_others_or_on_order():
    rng = np.random.default_rng(8)
    m, k = 20, 12
    page, elapsed, signals, changed = crawled(
        rng, rng.random(m), rng.random((2, m)), rng.random((2, m)), rng.exponential(1.0, (m, k))
    )
    together = estimators.signal_quality_mle(elapsed, signals, changed, page=page, num_pages=m + 1)
    order = rng.permutation(m * k)
    mixed = estimators.signal_quality_mle(
        elapsed[order], signals[:, order], changed[order], page=page[order], num_pages=m + 1
    )
    np.testing.assert_allclose(mixed.evidence, together.evidence, rtol=1e-7, atol=1e-12)
    for i in range(m):
        own = page == i
        alone = estimators.signal_quality_mle(elapsed[own], signals[:, own], changed[own])
        np.testing.assert_array_equal(alone.evidence[:, 0], together.evidence[:, i])
        np.testing.assert_array_equal(alone.covariance[0], together.covariance[i])
    assert np.isnan(together.unsignalled_rate[m])
    assert np.isnan(together.signal_rate[:, m]).all()


LOG_2 = math.log(2)

CORNERS = {
    "no crawl": ([], [], [], (np.nan, np.nan)),
    "never changed": ([1, 2], [0, 1], [0, 0], (0.0, 0.0)),
    "always changed": ([1, 2], [0, 1], [1, 1], (np.inf, np.nan)),
    "no signal": ([1, 1], [0, 0], [1, 0], (LOG_2, np.nan)),
    "perfect signals": ([1, 1], [2, 0], [1, 0], (0.0, np.inf)),
    "no false signal": ([1, 1, 1], [2, 0, 0], [1, 0, 1], (LOG_2, np.inf)),
    "useless signals": ([1, 1, 1], [0, 5, 0], [1, 0, 1], (math.log(3), 0.0)),
    "all changes signalled": ([1, 9, 1], [1, 0, 1], [1, 0, 0], (0.0, LOG_2)),
    "always changed, once after no time": ([1, 0], [0, 1], [1, 1], (np.inf, np.inf)),
    "only signals": ([0, 0], [1, 1], [1, 0], (np.nan, LOG_2)),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corners(name):
    elapsed, signals, changed, theta = CORNERS[name]
    result = estimators.signal_quality_mle(elapsed, signals, np.array(changed, bool))
    assert result.unsignalled_rate[0] == pytest.approx(theta[0], rel=1e-12, nan_ok=True)
    assert result.evidence[0] == pytest.approx(theta[1], rel=1e-12, nan_ok=True)
    assert result.converged.all()
    on_bound = ~(np.isfinite(theta) & (np.array(theta) > 0.0))
    stderr = np.array([result.unsignalled_rate_stderr[0], result.evidence_stderr[0]])
    assert np.isnan(stderr[on_bound]).all()
    if not on_bound.all():
        assert (stderr[~on_bound] > 0.0).all()


def test_crawls_all_alike_have_no_variance():
    """Two parameters, one number: any point of a line is as good, and none has an error."""
    result = estimators.signal_quality_mle([1.0] * 4, [1] * 4, [True, True, False, False])
    assert result.unsignalled_rate + result.evidence == pytest.approx(LOG_2, rel=1e-9)
    assert np.isnan(result.covariance).all()
    assert result.converged.all()


@pytest.mark.parametrize("with_prior", [False, True])
def test_optimality_where_scales_differ_wildly(with_prior):
    """Eight orders of magnitude in times: the first-order conditions hold."""
    rng = np.random.default_rng(13)
    m, k = 2000, 6
    elapsed = 10.0 ** rng.uniform(-4, 4, m * k)
    signals, changed = rng.poisson(10.0 ** rng.uniform(-1, 1.5, m * k)), rng.random(m * k) < 0.6
    prior = GammaPrior(10.0 ** rng.uniform(-3, 3, (m, 2)), 10.0 ** rng.uniform(-3, 3, (m, 2)))
    page = np.repeat(np.arange(m), k)
    result = fit_with_prior(elapsed, signals, changed, prior if with_prior else None, page)
    assert result.converged.all()
    design = np.stack([elapsed, signals], axis=1).reshape(m, k, 2)
    theta = np.stack([result.unsignalled_rate, result.evidence], axis=1)
    finite = np.where(np.isfinite(theta), theta, 0.0)
    explained = (np.isinf(theta)[:, None] & (design > 0)).any(axis=2)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        odds = np.where(explained, 0.0, 1.0 / np.expm1((design * finite[:, None]).sum(axis=2)))
        share = np.where(changed.reshape(m, k), -odds, 1.0)
        parts = share[:, :, None] * design
        slope, size = parts.sum(axis=1), np.abs(parts).sum(axis=1)
        if with_prior:
            slope += prior.rate - prior.shape / theta
            size += prior.rate + prior.shape / theta
    interior, zero = np.isfinite(theta) & (theta > 0.0), theta == 0.0
    assert (np.abs(slope)[interior] < 1e-4 * size[interior]).all()
    assert np.quantile(np.abs(slope[interior]) / size[interior], 0.99) < 1e-6
    assert (slope[zero] >= -1e-6 * size[zero]).all()
    assert interior.sum() > m


def test_a_prior_stands_where_no_crawl_speaks():
    prior = GammaPrior(np.array([2.0, 3.0]), np.array([4.0, 2.0]))
    result = fit_with_prior([], [], [], prior, num_pages=2)
    np.testing.assert_allclose(result.unsignalled_rate, 0.5, rtol=1e-12)
    np.testing.assert_allclose(result.evidence, 1.5, rtol=1e-12)
    np.testing.assert_allclose(result.evidence_stderr, 1.5 / math.sqrt(3.0), rtol=1e-9)
    np.testing.assert_allclose(prior.mean, [0.5, 1.5])


@pytest.mark.slow
@pytest.mark.parametrize("sources", [1, 2])
def test_standard_errors_cover(sources):
    """95% intervals of all that is estimated hold the truth 95% of the time: 1,500 histories.

    The coverage of 1,500 has a standard error of .0056; the second-order terms at 400 crawls are
    smaller still, so within .02 is more than three of them.
    """
    rng = np.random.default_rng([11, sources])
    m, k = 1500, 400
    alpha, delta = 0.3, 1.0
    recall, precision = np.array([0.7 / sources] * sources), np.array([0.6, 0.4])[:sources]
    gamma = recall * delta / precision
    nu = gamma * (1.0 - precision)
    b = np.log(gamma / nu)
    wide = np.ones(m)
    page, elapsed, signals, changed = crawled(
        rng,
        alpha * wide,
        b[:, None] * wide,
        gamma[:, None] * wide,
        rng.exponential(0.8, (m, k)),
    )
    given_signals = signals[0] if sources == 1 else signals
    result = estimators.signal_quality_mle(elapsed, given_signals, changed, page=page)
    quality = result.quality()
    checked = {
        "alpha": (result.unsignalled_rate, result.unsignalled_rate_stderr, alpha),
        "change rate": (quality.change_rate, quality.change_rate_stderr, delta),
    }
    for s in range(sources):
        rows = {
            "b": (result.evidence, result.evidence_stderr, b[s]),
            "gamma": (result.signal_rate, result.signal_rate_stderr, gamma[s]),
            "recall": (quality.recall, quality.recall_stderr, recall[s]),
            "precision": (quality.precision, quality.precision_stderr, precision[s]),
            "nu": (quality.false_signal_rate, quality.false_signal_rate_stderr, nu[s]),
        }
        for name, (value, error, truth) in rows.items():
            shaped = [array if sources == 1 else array[s] for array in (value, error)]
            checked[f"{name} {s}"] = (*shaped, truth)
    for name, (value, error, truth) in checked.items():
        covered = np.abs(value - truth) <= 1.959964 * error
        assert abs(covered.mean() - 0.95) < 0.02, name
        assert error.mean() == pytest.approx(value.std(), rel=0.08), name


def test_quality_of_known_parameters():
    alpha, delta, recall, precision = 0.3, np.array([1.0, 2.0]), np.array([0.7, 0.85]), 0.4
    gamma = recall * delta / precision
    unknown = np.full((2, 2, 2), np.nan)
    evidence = np.full(2, -math.log(0.6))
    result = signal_quality(np.full(2, alpha), evidence, gamma, unknown, np.zeros(2))
    np.testing.assert_allclose(result.change_rate, delta, rtol=1e-12)
    np.testing.assert_allclose(result.recall, recall, rtol=1e-12)
    np.testing.assert_allclose(result.precision, precision, rtol=1e-12)
    np.testing.assert_allclose(result.false_signal_rate, gamma * 0.6, rtol=1e-12)
    assert np.isnan(result.change_rate_stderr).all()
    corners = signal_quality(
        np.array([alpha, alpha, 0.0, 0.0]),
        np.array([np.nan, np.inf, 0.5, np.nan]),
        np.array([0.0, 2.0, 1.0, 0.0]),
        np.zeros((4, 2, 2)),
        np.zeros(4),
    )
    np.testing.assert_allclose(corners.change_rate, [0.3, 2.3, -math.expm1(-0.5), 0.0])
    np.testing.assert_allclose(corners.recall, [0.0, 2.0 / 2.3, 1.0, np.nan])
    np.testing.assert_allclose(corners.precision, [np.nan, 1.0, -math.expm1(-0.5), np.nan])
    np.testing.assert_allclose(corners.false_signal_rate, [0.0, 0.0, math.exp(-0.5), 0.0])


def test_delta_method_against_differences():
    """Errors equal those of numerical derivatives, for two sources and a full covariance."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 3)) * 0.1
    covariance = root @ root.T
    point = np.array([0.4, 0.6, 1.1, 0.8, 1.7])  # alpha, b_1, b_2, gamma_1, gamma_2
    gamma_error = np.array([0.05, 0.08])

    def at(values):
        result = signal_quality(
            *(values[:1], values[1:3, None], values[3:, None], covariance[None], gamma_error)
        )
        rows = (result.recall, result.precision, result.false_signal_rate)
        return np.concatenate([result.change_rate, *(row[:, 0] for row in rows)])

    spread = np.zeros((5, 5))
    spread[:3, :3], spread[3, 3], spread[4, 4] = covariance, *(gamma_error**2)
    steps = 1e-6 * np.eye(5)
    slopes = np.array([(at(point + step) - at(point - step)) / 2e-6 for step in steps]).T
    expected = np.sqrt(np.diagonal(slopes @ spread @ slopes.T))
    result = signal_quality(
        *(point[:1], point[1:3, None], point[3:, None], covariance[None], gamma_error)
    )
    errors = (result.recall_stderr, result.precision_stderr, result.false_signal_rate_stderr)
    mine = np.concatenate([result.change_rate_stderr, *(row[:, 0] for row in errors)])
    np.testing.assert_allclose(mine, expected, rtol=1e-7)


def test_errors_are_unknown_on_a_bound():
    covariance = np.array([[[0.1, np.nan], [np.nan, np.nan]]])
    perfect = signal_quality(*(np.array(x) for x in ([0.3], [np.inf], [1.0], covariance, [0.1])))
    for name in ("change_rate", "recall", "precision", "false_signal_rate"):
        assert np.isnan(getattr(perfect, f"{name}_stderr")).all(), name
    silent = signal_quality(*(np.array(x) for x in ([0.3], [np.nan], [0.0], covariance, [np.nan])))
    assert silent.change_rate_stderr[0] == pytest.approx(math.sqrt(0.1))


def test_naive_counts_by_hand():
    signals = np.array([[0, 2, 1, 0, 0], [1, 0, 0, 0, 0]])
    changed = [True, True, False, True, False]
    result = estimators.naive_signal_quality(signals, changed, page=[0, 0, 0, 0, 1], num_pages=3)
    np.testing.assert_array_equal(result.precision, [[0.5, np.nan, np.nan], [1.0, np.nan, np.nan]])
    np.testing.assert_allclose(result.recall, [[1 / 3, np.nan, np.nan], [1 / 3, np.nan, np.nan]])
    single = estimators.naive_signal_quality(signals[0], changed)
    assert (single.precision[0], single.recall[0]) == (0.5, pytest.approx(1 / 3))


def test_estimates_tend_to_the_truth():
    """Errors fall as one over the root of the number of crawls, for one source and for two."""
    rng = np.random.default_rng(9)
    for sources in (1, 2):
        m = 40
        alpha, b = rng.uniform(0.2, 1.0, m), rng.uniform(0.2, 2.0, (sources, m))
        gamma = rng.uniform(0.3, 1.0, (sources, m))
        errors = []
        for k in (500, 8000):
            page, elapsed, signals, changed = crawled(
                rng, alpha, b, gamma, rng.exponential(1.0, (m, k))
            )
            result = estimators.signal_quality_mle(elapsed, signals, changed, page=page)
            gaps = np.vstack([result.unsignalled_rate - alpha, result.evidence - b])
            errors.append(math.sqrt((gaps**2).mean()))
        assert 2.5 < errors[0] / errors[1] < 6.5  # 4 expected
