r"""Maximum likelihood of the results of crawls with signals, for every page.

A crawl gives the time ``tau`` since the crawl before, the number of signals ``n_s`` meanwhile from
each source, and whether the page had changed. With x = (tau, n_1, .., n_S) and
theta = (alpha, b_1, .., b_S), b_s = ln(gamma_s / nu_s) = alpha beta_s,

    P(no change) = exp(-theta . x)

(Busa-Fekete et al., eq. 1; their Appendix E prints it as the probability of a change). The
objective, minimised over theta >= 0, is

    sum over unchanged: theta . x  -  sum over changed: ln(1 - exp(-theta . x))
    + sum over components: rate_j theta_j - shape_j ln theta_j.

It is convex. The last line is a Gamma prior of ln theta: its mode in logarithms, which for counts
of a Poisson process is the posterior mean of theta; shape = rate = 0 is no prior.

Infinite components (no crawl with them was unchanged) and undetermined ones come first; the changes
that an infinite component explains are left out. Newton's method minimises over the others. Steps
are cut at the first bound, which stays active until leaving it would decrease the objective, and
halved until they improve.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray

INTERIOR, ZERO, INFINITE, UNDETERMINED = 0, 1, 2, 3
"""States of a component of theta."""

MAX_ITERATIONS = 200
DECREMENT = 1e-14
"""Newton's squared decrement below which the next step is the last, per crawl below 1."""
RIDGE = 1e-12
"""Added to the Hessian's diagonal, relative to it: equal crawls make the Hessian singular."""
SINGULAR = 1e-9
"""Pivot of the scaled information below which the covariance is nan."""
HALVINGS = 60
FARTHEST = 1000.0
"""Longest step of a component without curvature, relative to it."""


class Crawls(NamedTuple):
    """Results of crawls with the time and signals before them, grouped by page.

    Attributes:
        design: time since the crawl before, and signals of each source since then; (n, d).
        changed: whether the page had changed, (n,) bool.
        offsets: the crawls of page i are rows offsets[i] .. offsets[i + 1] - 1; (m + 1,) int64.
    """

    design: FloatArray
    changed: BoolArray
    offsets: IntArray


class Page(NamedTuple):
    """Constants of the objective of one page, from its crawls and its prior.

    Attributes:
        hits: x of the changes that no infinite component explains, (n, d).
        slope: sum of x over the unchanged crawls plus the rate of the prior, (d,).
        shape: of the prior, (d,).
    """

    hits: FloatArray
    slope: FloatArray
    shape: FloatArray


class Fit(NamedTuple):
    """Estimates of theta = (alpha, b_1, .., b_S), d = 1 + S components, for m pages.

    Attributes:
        theta: (m, d); 0 where the likelihood falls from there on, inf where it has no maximum, nan
            where crawls and prior do not determine it.
        covariance: inverse of the second derivatives of the objective among the positive, finite
            components; nan elsewhere and where they are singular; (m, d, d).
        log_likelihood: of the crawls, without the prior; (m,), <= 0.
        converged: (m,) bool.
    """

    theta: FloatArray
    covariance: FloatArray
    log_likelihood: FloatArray
    converged: BoolArray


@compiled()
def fit_pages(crawls: Crawls, shape: FloatArray, rate: FloatArray, start: FloatArray) -> Fit:
    """Estimate theta = (alpha, b_1, .., b_S) of every page separately, from its crawls.

    Args:
        crawls: entries >= 0 and finite, and some entry > 0 where the page had changed.
        shape: shapes of the Gamma priors, (m, d), >= 0.
        rate: rates of the Gamma priors, in units of x, (m, d); > 0 where the shape is.
        start: first guess, (m, d); entries that are not positive and finite are replaced.
    """
    m, d = shape.shape
    theta, covariance = start.copy(), np.full((m, d, d), np.nan)
    log_likelihood = np.zeros(m)
    converged = np.zeros(m, np.bool_)
    state = np.zeros(d, np.int8)
    for i in range(m):
        rows = slice(crawls.offsets[i], crawls.offsets[i + 1])
        page = _read(crawls.design[rows], crawls.changed[rows], shape[i], rate[i], state)
        _choose_start(page, state, theta[i])
        converged[i] = _minimise(page, state, theta[i], covariance[i])
        bare = Page(page.hits, page.slope - rate[i], np.zeros(d))
        log_likelihood[i] = -_objective(bare, theta[i])
        for j in range(d):
            if state[j] == INFINITE:
                theta[i, j] = np.inf
            elif state[j] == UNDETERMINED:
                theta[i, j] = np.nan
    return Fit(theta, covariance, log_likelihood, converged)


@compiled()
def _read(
    design: FloatArray,
    changed: BoolArray,
    shape: FloatArray,
    rate: FloatArray,
    state: NDArray[np.int8],
) -> Page:
    """Return the objective of a page, and write the state of each component to ``state``."""
    n, d = design.shape
    slope = rate.copy()
    for k in range(n):
        if not changed[k]:
            slope += design[k]
    for j in range(d):
        state[j] = INTERIOR if slope[j] > 0.0 else UNDETERMINED
        if slope[j] == 0.0:
            for k in range(n):  # at a crawl after no time, evidence explains a change, not the rate
                explains = j == 0 or state[0] != INFINITE or design[k, 0] == 0.0
                if design[k, j] > 0.0 and explains:
                    state[j] = INFINITE
    hits = np.empty((n, d))
    count = 0
    for k in range(n):
        unexplained = changed[k]
        for j in range(d):
            unexplained = unexplained and not (state[j] == INFINITE and design[k, j] > 0.0)
        if unexplained:
            hits[count] = design[k]
            count += 1
    return Page(hits[:count], slope, shape)


@inlined()
def _choose_start(page: Page, state: NDArray[np.int8], theta: FloatArray) -> None:
    """Write a first theta, as if each change came once, halfway through its interval."""
    d = len(state)
    for j in range(d):
        changes = np.count_nonzero(page.hits[:, j])
        if state[j] == INTERIOR and changes == 0 and page.shape[j] == 0.0:
            state[j] = ZERO
        if state[j] != INTERIOR:
            theta[j] = 0.0
        elif not (theta[j] > 0.0 and math.isfinite(theta[j])):
            total = page.slope[j] + 0.5 * page.hits[:, j].sum()
            theta[j] = (changes / d + page.shape[j]) / total


@inlined()
def _exponent(hits: FloatArray, k: int, theta: FloatArray) -> float:
    """Return theta . x of change k; infinite and undetermined components are stored as 0."""
    total = 0.0
    for j in range(len(theta)):
        total += theta[j] * hits[k, j]
    return total


@inlined()
def _objective(page: Page, theta: FloatArray) -> float:
    hits, slope, shape = page
    value = 0.0
    for j in range(len(theta)):
        value += slope[j] * theta[j]
        if shape[j] > 0.0:
            value -= shape[j] * math.log(theta[j])
    for k in range(len(hits)):
        value -= math.log(-math.expm1(-_exponent(hits, k, theta)))
    return value


@compiled()
def _derivatives(page: Page, theta: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None:
    """Write the first and second derivatives of the objective to ``gradient`` and ``hessian``."""
    (hits, slope, shape), d = page, len(theta)
    hessian[:] = 0.0
    gradient[:] = slope
    for j in range(d):
        if shape[j] > 0.0:
            gradient[j] -= shape[j] / theta[j]
            hessian[j, j] = shape[j] / (theta[j] * theta[j])
    for k in range(len(hits)):
        odds = 1.0 / math.expm1(_exponent(hits, k, theta))
        bend = odds * (1.0 + odds)
        for j in range(d):
            gradient[j] -= odds * hits[k, j]
            for i in range(j + 1):
                hessian[j, i] += bend * hits[k, j] * hits[k, i]
    for j in range(d):
        for i in range(j):
            hessian[i, j] = hessian[j, i]


@inlined()
def _minimise(
    page: Page, state: NDArray[np.int8], theta: FloatArray, covariance: FloatArray
) -> bool:
    """Minimise the objective of a page over theta >= 0; return whether it converged.

    Changes ``theta`` and ``state``, and writes the covariance of the interior components.
    """
    d = len(theta)
    gradient, step, trial = np.empty(d), np.empty(d), np.empty(d)
    hessian, inverse = np.empty((d, d)), np.empty((d, d))
    tolerance = DECREMENT * min(1.0, len(page.hits) + page.shape.sum())
    value = _objective(page, theta)
    settled, done = False, False
    for _ in range(MAX_ITERATIONS):
        _derivatives(page, theta, gradient, hessian)
        done = settled and not _release(gradient, page.slope, state)
        if done:
            break
        decrement = _newton_step(gradient, hessian, theta, state, inverse, step)
        settled = decrement <= tolerance
        value = _move(page, state, theta, step, decrement, value, trial)
    if _invert(hessian, state, 0.0, inverse) >= SINGULAR:
        for j in range(d):
            for i in range(d):
                if state[j] == INTERIOR and state[i] == INTERIOR:
                    covariance[j, i] = inverse[j, i]
    return done


@inlined()
def _newton_step(
    gradient: FloatArray,
    hessian: FloatArray,
    theta: FloatArray,
    state: NDArray[np.int8],
    inverse: FloatArray,
    step: FloatArray,
) -> float:
    """Write Newton's step of the interior components to ``step``; return its squared decrement."""
    d = len(step)
    for j in range(d):
        if state[j] == INTERIOR and theta[j] > 0.0:
            floor = abs(gradient[j]) / (FARTHEST * theta[j])
            hessian[j, j] = max(hessian[j, j], floor)
    _invert(hessian, state, RIDGE, inverse)
    decrement = 0.0
    for j in range(d):
        step[j] = 0.0
        for i in range(d):
            step[j] -= inverse[j, i] * gradient[i]
        decrement -= gradient[j] * step[j]
    return decrement


@inlined()
def _release(gradient: FloatArray, slope: FloatArray, state: NDArray[np.int8]) -> bool:
    """Free the component at 0 whose increase lowers the objective most; return whether any does."""
    best, freed = -1e-9, -1
    for j in range(len(gradient)):
        if state[j] == ZERO and gradient[j] < best * slope[j]:
            best, freed = gradient[j] / slope[j], j
    if freed >= 0:
        state[freed] = INTERIOR
    return freed >= 0


@inlined()
def _move(
    page: Page,
    state: NDArray[np.int8],
    theta: FloatArray,
    step: FloatArray,
    decrement: float,
    before: float,
    trial: FloatArray,
) -> float:
    """Move theta along ``step`` up to the first bound, halving it until the objective improves.

    Returns the objective there; ``before`` is its value at the start.
    """
    length, bound = 1.0, -1
    for j in range(len(theta)):
        if state[j] == INTERIOR and theta[j] + length * step[j] <= 0.0:
            length, bound = -theta[j] / step[j], j
    if bound >= 0 and page.shape[bound] > 0.0:
        length, bound = 0.9 * length, -1
    slack, after = 1e-13 * (1.0 + abs(before)), before
    for _ in range(HALVINGS):
        for j in range(len(theta)):
            trial[j] = max(theta[j] + length * step[j], 0.0)
        if bound >= 0:
            trial[bound] = 0.0
        after = _objective(page, trial)
        if after <= before - 1e-4 * length * decrement + slack:
            break
        length, bound = 0.5 * length, -1
    theta[:] = trial
    if bound >= 0:
        state[bound] = ZERO
    return after


@inlined()
def _invert(
    matrix: FloatArray, state: NDArray[np.int8], ridge: float, inverse: FloatArray
) -> float:
    """Write the inverse of the interior part of ``matrix``, and return the least pivot.

    The part is scaled to a diagonal of 1 plus ``ridge``. All other rows and columns of the inverse
    are 0.
    """
    d = len(state)
    scale = np.zeros(d)
    for j in range(d):
        if state[j] == INTERIOR:
            scale[j] = 1.0 / math.sqrt(matrix[j, j]) if matrix[j, j] > 0.0 else 1.0
    min_pivot = 1.0
    for j in range(d):
        for i in range(d):
            inverse[j, i] = matrix[j, i] * scale[j] * scale[i]
        inverse[j, j] += ridge if scale[j] > 0.0 else 1.0
    for p in range(d):
        min_pivot = min(min_pivot, inverse[p, p])
        pivot = max(inverse[p, p], 0.5 * RIDGE)
        inverse[p, p] = 1.0
        for column in range(d):
            inverse[p, column] /= pivot
        for row in range(d):
            if row != p:
                factor = inverse[row, p]
                inverse[row, p] = 0.0
                for column in range(d):
                    inverse[row, column] -= factor * inverse[p, column]
    for j in range(d):
        for i in range(d):
            inverse[j, i] *= scale[j] * scale[i]
    return min_pivot
