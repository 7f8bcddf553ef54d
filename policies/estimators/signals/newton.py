"""The maximum of the likelihood, page by page: Newton's method with an active set.

Steps are cut at the first bound, which stays active until leaving it would increase the likelihood,
and halved until they improve. The objective is convex (see
:mod:`policies.estimators.signals.likelihood`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from policies.estimators.histories import Crawls
from policies.estimators.signals.likelihood import (
    INFINITE,
    INTERIOR,
    UNDETERMINED,
    ZERO,
    choose_start,
    classify,
    curve,
    derivatives,
    objective,
)

MAX_ITERATIONS = 200
DECREMENT = 1e-14
"""Newton's squared decrement, per unit of weight below 1, before the last step."""
RIDGE = 1e-12
"""Added to the Hessian, relative to the diagonal: equal crawls make it singular."""
SINGULAR = 1e-9
"""Pivot of the scaled information below which the covariance is nan."""
HALVINGS = 60
FARTHEST = 1000.0


class Fit(NamedTuple):
    """Estimates of m pages with d = 1 + S components each.

    Attributes:
        theta: (m, d); see the states for 0, inf and nan.
        covariance: inverse of ``information`` among the interior components, nan elsewhere and
            where it is singular; (m, d, d).
        information: second derivatives of the objective, (m, d, d); 0 off the interior.
        state: of each component, (m, d) int8.
        log_likelihood: of the crawls, weighted, without the prior; (m,), <= 0.
        iterations: Newton steps, (m,).
        converged: (m,) bool.
    """

    theta: FloatArray
    covariance: FloatArray
    information: FloatArray
    state: NDArray[np.int8]
    log_likelihood: FloatArray
    iterations: IntArray
    converged: BoolArray


@compiled()
def fit_pages(crawls: Crawls, shape: FloatArray, rate: FloatArray, start: FloatArray) -> Fit:
    """Fit every page separately.

    Args:
        crawls: not checked here: entries >= 0 and finite, and some entry > 0 where the page had
            changed.
        shape: of the Gamma priors, (m, d), >= 0.
        rate: of the Gamma priors, in units of x, (m, d); > 0 where the shape is.
        start: first guess, (m, d); entries that are not positive and finite are replaced.
    """
    m, d = shape.shape
    theta = start.copy()
    covariance = np.full((m, d, d), np.nan)
    information = np.zeros((m, d, d))
    state = np.zeros((m, d), np.int8)
    log_likelihood = np.zeros(m)
    iterations = np.zeros(m, np.int64)
    converged = np.zeros(m, np.bool_)
    explained = np.zeros(max(_longest(crawls.offsets), 1), np.bool_)
    for i in range(m):
        page = Crawls(crawls.design, crawls.changed, crawls.weight, crawls.offsets[i : i + 2])
        linear = np.zeros(d)
        weight = classify(page, rate[i], state[i], explained, linear)
        choose_start(page, explained, linear, shape[i], rate[i], state[i], theta[i])
        steps, done = _newton(
            page, explained, linear, shape[i], rate[i], state[i], theta[i], information[i], weight
        )
        iterations[i], converged[i] = steps, done
        log_likelihood[i] = -curve(page, explained, theta[i], linear)
        _invert(information[i], state[i], covariance[i])
        for j in range(d):
            if state[i, j] == INFINITE:
                theta[i, j] = np.inf
            elif state[i, j] == UNDETERMINED:
                theta[i, j] = np.nan
    return Fit(theta, covariance, information, state, log_likelihood, iterations, converged)


@compiled()
def _longest(offsets: IntArray) -> int:
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest


@compiled()
def _newton(
    page: Crawls,
    explained: BoolArray,
    linear: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
    state: NDArray[np.int8],
    theta: FloatArray,
    information: FloatArray,
    weight: float,
) -> tuple[int, bool]:
    """Minimise the objective; change ``theta``, ``state`` and ``information`` in place."""
    d = len(theta)
    gradient, step, scale = np.empty(d), np.empty(d), np.empty(d)
    lower, trial = np.zeros((d, d)), theta.copy()
    tolerance = DECREMENT * min(1.0, weight + shape.sum())
    value = objective(page, explained, theta, linear, shape, rate)
    last = False
    for iteration in range(MAX_ITERATIONS):
        derivatives(page, explained, theta, linear, shape, rate, gradient, information)
        decrement = _direction(information, gradient, theta, state, scale, lower, step)
        if last or decrement <= 0.0:
            freed = _release(gradient, linear, rate, state)
            if freed < 0:
                _clear(information, state)
                return iteration, True
            decrement = _direction(information, gradient, theta, state, scale, lower, step)
        last = decrement <= tolerance
        value = _move(
            page, explained, linear, shape, rate, state, theta, step, decrement, value, trial
        )
    _clear(information, state)
    return MAX_ITERATIONS, False


@compiled()
def _direction(
    hessian: FloatArray,
    gradient: FloatArray,
    theta: FloatArray,
    state: NDArray[np.int8],
    scale: FloatArray,
    lower: FloatArray,
    step: FloatArray,
) -> float:
    """Compute Newton's step of the interior components; return its squared decrement.

    Without curvature the step is ``FARTHEST`` times the component.
    """
    for j in range(len(step)):
        if state[j] == INTERIOR and theta[j] > 0.0:
            floor = abs(gradient[j]) / (FARTHEST * theta[j])
            hessian[j, j] = max(hessian[j, j], floor)
    _factor(hessian, state, RIDGE, scale, lower)
    for j in range(len(step)):
        step[j] = -gradient[j] if state[j] == INTERIOR else 0.0
    _solve(lower, scale, step)
    decrement = 0.0
    for j in range(len(step)):
        if state[j] == INTERIOR:
            decrement -= gradient[j] * step[j]
    return decrement


@compiled()
def _release(
    gradient: FloatArray, linear: FloatArray, rate: FloatArray, state: NDArray[np.int8]
) -> int:
    """Free the component at 0 with the largest gain; return it, or -1."""
    best, freed = -1e-9, -1
    for j in range(len(gradient)):
        if state[j] == ZERO and gradient[j] < best * (linear[j] + rate[j]):
            best, freed = gradient[j] / (linear[j] + rate[j]), j
    if freed >= 0:
        state[freed] = INTERIOR
    return freed


@compiled()
def _move(
    page: Crawls,
    explained: BoolArray,
    linear: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
    state: NDArray[np.int8],
    theta: FloatArray,
    step: FloatArray,
    decrement: float,
    before: float,
    trial: FloatArray,
) -> float:
    """Move along the step, up to the first bound, halving it until the objective improves.

    Returns the new value of the objective; ``before`` is the old one.
    """
    length, bound = 1.0, -1
    for j in range(len(theta)):
        if state[j] == INTERIOR and theta[j] + length * step[j] <= 0.0:
            length = -theta[j] / step[j]
            bound = j
    if bound >= 0 and shape[bound] > 0.0:
        length, bound = 0.9 * length, -1
    slack, after = 1e-13 * (1.0 + abs(before)), before
    for _ in range(HALVINGS):
        for j in range(len(theta)):
            trial[j] = max(theta[j] + length * step[j], 0.0)
        if bound >= 0:
            trial[bound] = 0.0
        after = objective(page, explained, trial, linear, shape, rate)
        if after <= before - 1e-4 * length * decrement + slack:
            break
        length, bound = 0.5 * length, -1
    theta[:] = trial
    if bound >= 0:
        state[bound] = ZERO
    return after


@compiled()
def _factor(
    matrix: FloatArray, state: NDArray[np.int8], ridge: float, scale: FloatArray, lower: FloatArray
) -> float:
    """Compute the Cholesky factor of the interior part, scaled; return the least pivot."""
    d = len(state)
    least = 1.0
    for j in range(d):
        scale[j] = 1.0 / math.sqrt(matrix[j, j]) if matrix[j, j] > 0.0 else 1.0
        for other in range(j + 1):
            alike = 1.0 if j == other else 0.0
            if state[j] == INTERIOR and state[other] == INTERIOR:
                alike = 1.0 + ridge if j == other else matrix[j, other] * scale[j] * scale[other]
            for k in range(other):
                alike -= lower[j, k] * lower[other, k]
            if j == other:
                least = min(least, alike)
                lower[j, j] = math.sqrt(max(alike, 0.5 * RIDGE))
            else:
                lower[j, other] = alike / lower[other, other]
    return least


@compiled()
def _solve(lower: FloatArray, scale: FloatArray, vector: FloatArray) -> None:
    """Solve with the scaled factor, in place."""
    d = len(vector)
    for j in range(d):
        total = vector[j] * scale[j]
        for k in range(j):
            total -= lower[j, k] * vector[k]
        vector[j] = total / lower[j, j]
    for j in range(d - 1, -1, -1):
        total = vector[j]
        for k in range(j + 1, d):
            total -= lower[k, j] * vector[k]
        vector[j] = total / lower[j, j]
    for j in range(d):
        vector[j] *= scale[j]


@compiled()
def _clear(information: FloatArray, state: NDArray[np.int8]) -> None:
    """Set rows and columns off the interior to 0."""
    for j in range(len(state)):
        if state[j] != INTERIOR:
            information[j, :] = 0.0
            information[:, j] = 0.0


@compiled()
def _invert(information: FloatArray, state: NDArray[np.int8], covariance: FloatArray) -> None:
    """Write the inverse of the interior part; leave nan where it is singular."""
    d = len(state)
    scale, lower, column = np.empty(d), np.zeros((d, d)), np.empty(d)
    if _factor(information, state, 0.0, scale, lower) < SINGULAR:
        return
    for j in range(d):
        if state[j] != INTERIOR:
            continue
        column[:] = 0.0
        column[j] = 1.0
        _solve(lower, scale, column)
        for other in range(d):
            if state[other] == INTERIOR:
                covariance[other, j] = column[other]
