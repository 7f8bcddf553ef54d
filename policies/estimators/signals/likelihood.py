r"""The likelihood of the results of crawls, and its derivatives, page by page.

A crawl gives the time ``tau`` since the crawl before, the number of signals ``n_s`` meanwhile from
each source, and whether the page had changed. With x = (tau, n_1, .., n_S) and
theta = (alpha, b_1, .., b_S), b_s = ln(gamma_s / nu_s) = alpha beta_s,

    P(no change) = exp(-theta . x)

(Busa-Fekete et al., eq. 1; their Appendix E prints it as the probability of a change). The
objective, minimised over theta >= 0, is

    sum over unchanged: theta . x  -  sum over changed: ln(1 - exp(-theta . x))
    + sum over components: rate_j theta_j - shape_j ln theta_j,

each crawl times its weight. It is convex. The last line is a Gamma prior of ln theta: its mode in
logarithms, which for counts of a Poisson process is the posterior mean of theta; shape = rate = 0
is no prior. Components of theta that are infinite or not determined by any crawl are found before
the minimisation (:func:`classify`).

=================  ==============================================================================
state              of a component of theta
=================  ==============================================================================
``INTERIOR``       positive and finite, with a variance
``ZERO``           0: the likelihood falls from there on
``INFINITE``       inf: the likelihood has no maximum (no crawl with it was unchanged)
``UNDETERMINED``   nan: neither crawls nor a prior determine it
=================  ==============================================================================
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.compiling import compiled
from policies.estimators.histories import Crawls

INTERIOR, ZERO, INFINITE, UNDETERMINED = 0, 1, 2, 3


@compiled()
def classify(
    page: Crawls,
    rate: FloatArray,
    state: NDArray[np.int8],
    explained: BoolArray,
    linear: FloatArray,
) -> float:
    """Set the state of each component, and which changes an infinite one explains.

    ``linear`` becomes the sum of x over the unchanged crawls. Returns the weight of the changes
    that remain to be explained.
    """
    begin, end = page.offsets[0], page.offsets[1]
    d = len(state)
    for j in range(d):
        changed_amount, state[j] = 0.0, INTERIOR
        for k in range(begin, end):
            amount = page.weight[k] * page.design[k, j]
            if page.changed[k]:
                changed_amount += amount
            else:
                linear[j] += amount
        if linear[j] == 0.0 and rate[j] == 0.0:
            state[j] = INFINITE if changed_amount > 0.0 else UNDETERMINED
            if j > 0 and state[0] == INFINITE:
                state[j] = UNDETERMINED
    weight = 0.0
    for k in range(begin, end):
        explained[k - begin] = page.weight[k] == 0.0
        for j in range(d):
            if state[j] == INFINITE and page.design[k, j] > 0.0:
                explained[k - begin] = True
        if page.changed[k] and not explained[k - begin]:
            weight += page.weight[k]
    return weight


@compiled()
def choose_start(
    page: Crawls,
    explained: BoolArray,
    linear: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
    state: NDArray[np.int8],
    theta: FloatArray,
) -> None:
    """Choose the start: changes counted once each, halfway through their intervals.

    Components without changes are set to 0.
    """
    d = len(state)
    begin, end = page.offsets[0], page.offsets[1]
    for j in range(d):
        if state[j] != INTERIOR:
            theta[j] = 0.0
            continue
        changes, changed_amount = 0.0, 0.0
        for k in range(begin, end):
            if page.changed[k] and not explained[k - begin] and page.design[k, j] > 0.0:
                changes += page.weight[k]
                changed_amount += page.weight[k] * page.design[k, j]
        if changes == 0.0 and shape[j] == 0.0:
            state[j], theta[j] = ZERO, 0.0
        elif not (theta[j] > 0.0 and math.isfinite(theta[j])):
            theta[j] = (changes / d + shape[j]) / (linear[j] + rate[j] + 0.5 * changed_amount)


@compiled()
def _exponent(design: FloatArray, k: int, theta: FloatArray) -> float:
    """Return theta . x of a crawl; components that are not finite are stored as 0."""
    total = 0.0
    for j in range(len(theta)):
        total += theta[j] * design[k, j]
    return total


@compiled()
def curve(
    page: Crawls,
    explained: BoolArray,
    theta: FloatArray,
    linear: FloatArray,
) -> float:
    """Return minus the log-likelihood."""
    value = 0.0
    for j in range(len(theta)):
        value += linear[j] * theta[j]
    begin = page.offsets[0]
    for k in range(begin, page.offsets[1]):
        if page.changed[k] and not explained[k - begin]:
            value -= page.weight[k] * math.log(-math.expm1(-_exponent(page.design, k, theta)))
    return value


@compiled()
def objective(
    page: Crawls,
    explained: BoolArray,
    theta: FloatArray,
    linear: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
) -> float:
    """Return the objective."""
    value = curve(page, explained, theta, linear)
    for j in range(len(theta)):
        if shape[j] > 0.0:
            value += rate[j] * theta[j] - shape[j] * math.log(theta[j])
        else:
            value += rate[j] * theta[j]
    return value


@compiled()
def derivatives(
    page: Crawls,
    explained: BoolArray,
    theta: FloatArray,
    linear: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> None:
    """Compute first and second derivatives of the objective."""
    d = len(theta)
    hessian[:] = 0.0
    for j in range(d):
        gradient[j] = linear[j] + rate[j]
        if shape[j] > 0.0:
            gradient[j] -= shape[j] / theta[j]
            hessian[j, j] = shape[j] / (theta[j] * theta[j])
    begin = page.offsets[0]
    for k in range(begin, page.offsets[1]):
        if not page.changed[k] or explained[k - begin]:
            continue
        odds = 1.0 / math.expm1(_exponent(page.design, k, theta))
        slope, bend = page.weight[k] * odds, page.weight[k] * odds * (1.0 + odds)
        for j in range(d):
            x = page.design[k, j]
            gradient[j] -= slope * x
            for other in range(j + 1):
                hessian[j, other] += bend * x * page.design[k, other]
    for j in range(d):
        for other in range(j):
            hessian[other, j] = hessian[j, other]
