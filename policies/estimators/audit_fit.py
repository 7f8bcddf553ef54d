"""The maximum of the likelihood of an audit, and its errors.

The ascent is scoring: the information is the sum of outer products of pages' scores. Weak normal
priors keep the parameters finite that nothing determines. The covariance is the sandwich of second
derivatives and pages' scores, since intervals of a page are not independent.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray
from policies.estimators.audit_likelihood import (
    SHAPE,
    Evaluation,
    Nodes,
    Source,
    U,
    W,
    evaluate,
    place_nodes,
)

LOW = np.array([1e-6, math.log1p(1e-3), -3.0, -60.0, -5.0, -5.0])
HIGH = np.array([1.0, math.log1p(3.0), 6.0, 60.0, 5.0, 5.0])
"""Bounds of the parameters. At the lower ones, 1 - p and d count as 0: the smallest ages are no
evidence of a delay."""
PRIOR = np.array([0.0, 0.1, 0.25, 1e-4, 1.0, 1.0])
"""Precision of the normal priors, of mean 0."""
FARTHEST = 0.5
"""Longest step of a parameter: the nodes are near the posteriors before it."""
PASSES = 40
DECREMENT = 3e-3
"""Gain of the log-likelihood, expected or made, below which the ascent ends: .08 errors."""
FEWEST_PAGES = 60
"""Pages below which the information is taken from second derivatives, not from pages' scores."""
OBVIOUS = 6.0
"""Standard errors from a limit beyond which it is not tried."""
STEP = np.array([1e-4, 1e-2, 1e-4, 1e-4, 1e-4, 1e-4])
"""Differences of parameters for second derivatives; in delays, one that spans many ages."""


class Maximum(NamedTuple):
    """The maximum of the likelihood.

    Attributes:
        theta: the parameters, (6,).
        gradient: not 0 on a bound, (6,).
        inverse: inverse of the information, (6, 6).
        variance: of the parameters; on a bound, as if there were none; (6,).
        evaluation: at ``theta``.
        unsignalled: posterior mean number of changes without a signal, (m,).
        by_unsignalled: derivatives of their sum, (6,).
        converged: whether the ascent ended.
        gain_by_delay: of the log-likelihood over a delay of 0; inf if obvious.
        gain_by_precision: the same over a precision of 0.
    """

    theta: FloatArray
    gradient: FloatArray
    inverse: FloatArray
    variance: FloatArray
    evaluation: Evaluation
    unsignalled: FloatArray
    by_unsignalled: FloatArray
    converged: bool
    gain_by_delay: float = math.inf
    gain_by_precision: float = math.inf


def maximise(source: Source, theta: FloatArray | None = None) -> Maximum:
    """Return the maximum of the marginal likelihood, climbing from ``theta`` if it is given."""
    page = np.repeat(np.arange(len(source.signal_rate)), np.diff(source.offsets))
    changes = np.bincount(page, source.changed)
    exposed = np.bincount(page, source.elapsed * np.where(source.changed, 0.5, 1.0))
    crawls = np.diff(source.offsets)
    first = (changes.sum() + 0.5) / exposed.sum()
    if theta is None:
        theta = np.array([math.sqrt(0.5), math.log1p(0.1), 0.0, math.log(first), 0.0, 0.0])
    mean = (1.0 + changes) / (1.0 / first + exposed)
    nodes = place_nodes(mean, 1.0 + changes * (crawls - changes + 1.0) / (crawls + 1.0))
    best = _ascend(source, nodes, theta, np.zeros(6, bool))
    top = _with_errors(source, best)
    undelayed, useless = (_gain(source, best, top, at) for at in ({W: LOW[W]}, {U: 1.0, W: LOW[W]}))
    return top._replace(gain_by_delay=undelayed, gain_by_precision=useless)


def _gain(source: Source, best: _Climb, top: Maximum, limits: dict[int, float]) -> float:
    """Return the gain of the log-likelihood over a limit of the first parameter named.

    Far from the limit it is not computed. The nodes are kept for comparison, and the shape with
    them: they do not suit a much narrower distribution.
    """
    j = next(iter(limits))
    if (best.theta[j] - limits[j]) ** 2 > OBVIOUS**2 * top.variance[j]:
        return math.inf
    theta, held = best.theta.copy(), np.zeros(6, bool)
    held[SHAPE] = True
    for position, value in limits.items():
        theta[position], held[position] = value, True
    return max(0.0, best.value - _ascend(source, best.nodes, theta, held).value)


def _slopes(
    source: Source, nodes: Nodes, theta: FloatArray, found: Evaluation
) -> tuple[FloatArray, FloatArray]:
    """Return minus the second derivatives, (6, 6), and of sum alpha_i T_i, (6,)."""
    hessian, by_mean = np.zeros((6, 6)), np.zeros(6)
    for j in range(6):
        if j == W and not source.timed:
            continue
        near = theta.copy()
        near[j] += STEP[j] if theta[j] + STEP[j] <= HIGH[j] else -STEP[j]
        there = evaluate(source, nodes, near)
        hessian[j] = (found.scores - there.scores).sum(axis=0) / (near[j] - theta[j])
        by_mean[j] = ((there.mean - found.mean) * source.time).sum() / (near[j] - theta[j])
    return (hessian + hessian.T) / 2.0, by_mean


def _inverse(information: FloatArray) -> FloatArray:
    """Return the inverse of a matrix, its eigenvalues made positive, after scaling."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(information)), 1e-12))
    values, vectors = np.linalg.eigh(information * scale * scale[:, None])
    inverse: FloatArray = (vectors / np.maximum(np.abs(values), 1e-8)) @ vectors.T
    return inverse * scale * scale[:, None]


class _Climb(NamedTuple):
    """The end of an ascent: parameters, nodes, penalised log-likelihood, convergence."""

    theta: FloatArray
    nodes: Nodes
    value: float
    converged: bool


def _ascend(source: Source, nodes: Nodes, theta: FloatArray, held: BoolArray) -> _Climb:
    """Climb by scoring within the bounds, halving steps until they improve.

    Nodes follow the posteriors if no parameter is ``held``.
    """
    found, value = _penalised(source, nodes, theta)
    for _ in range(PASSES):
        if not held.any():
            nodes = place_nodes(found.mean, found.mean**2 / found.variance)
            found, value = _penalised(source, nodes, theta)
        step, expected = _step(source, nodes, theta, found, held)
        if expected < DECREMENT:
            return _Climb(theta, nodes, value, True)
        length = min(1.0, FARTHEST / max(abs(step).max(), 1e-300))
        before = value
        while length > 1e-6:
            near = np.clip(theta + length * step, LOW, HIGH)
            found, value = _penalised(source, nodes, near)
            if value > before:
                break
            length /= 2.0
        else:
            return _Climb(theta, nodes, before, False)
        theta = near
        if value - before < DECREMENT:
            return _Climb(theta, nodes, value, True)
    return _Climb(theta, nodes, value, False)


def _penalised(source: Source, nodes: Nodes, theta: FloatArray) -> tuple[Evaluation, float]:
    found = evaluate(source, nodes, theta)
    return found, float(found.log_likelihood.sum() - PRIOR @ theta**2 / 2.0)


def _step(
    source: Source, nodes: Nodes, theta: FloatArray, found: Evaluation, held: BoolArray
) -> tuple[FloatArray, float]:
    """Return the step of scoring, (6,), and the gain to be expected of it."""
    gradient = found.scores.sum(axis=0) - PRIOR * theta
    free = ((theta > LOW) | (gradient > 0.0)) & ((theta < HIGH) | (gradient < 0.0)) & ~held
    free[W] &= source.timed
    if len(found.mean) < FEWEST_PAGES:
        information, _ = _slopes(source, nodes, theta, found)
    else:
        information = found.scores.T @ found.scores
    step = np.zeros(6)
    inner = (information + np.diag(PRIOR))[np.ix_(free, free)]
    step[free] = _inverse(inner) @ gradient[free]
    return step, float(gradient @ step)


def _with_errors(source: Source, best: _Climb) -> Maximum:
    """Return the maximum, with errors from pages' scores; if pages are few, from curvature.

    A source without false signals has scores of 0 by u, and its error is from curvature too.
    """
    found = evaluate(source, best.nodes, best.theta)
    hessian, by_unsignalled = _slopes(source, best.nodes, best.theta, found)
    information = hessian + np.diag(PRIOR)
    inverse = _inverse(information)
    of_delay = inverse[W, W]
    if best.theta[W] <= LOW[W] or not source.timed:  # the other errors are those of a known delay
        others = np.delete(np.arange(6), W)
        inverse = np.zeros((6, 6))
        inverse[np.ix_(others, others)] = _inverse(information[np.ix_(others, others)])
    variance = np.diag(inverse).copy()
    if len(found.mean) >= FEWEST_PAGES:
        scores = found.scores @ inverse
        variance = np.where(best.theta > LOW, (scores**2).sum(axis=0), variance)
    variance[W] = max(variance[W], of_delay)
    gradient = found.scores.sum(axis=0) - PRIOR * best.theta
    unsignalled = found.mean * source.time
    return Maximum(
        best.theta,
        gradient,
        inverse,
        variance,
        found,
        unsignalled,
        by_unsignalled,
        best.converged,
    )
