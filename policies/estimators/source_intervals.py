r"""Precision, recall and delay of a source of signals, with intervals.

L-BFGS-B maximises the likelihood of :mod:`policies.estimators.source_likelihood` in a box. It is a
composite likelihood (Varin, Reid and Firth 2011): a signal may count in several intervals, and
intervals of a page are alike. The variance of the estimates follows from the slopes of pages
(sandwich), or without a delay from the curvature if that is larger.

Square roots of the shares of false signals and of missed changes, and of the delay, have intervals
of Student's t. Those of shares are at least as wide as for counts of as many signals or changes
(Clopper and Pearson 1934). A likelihood ratio decides whether a bound (no use, no missed change, no
delay) lies in the interval. It also gives the upper end of a delay or precision that may be 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv, stdtrit

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import within_domain
from policies.estimators.source_likelihood import (
    BATCH,
    DELAY,
    FALSE,
    LONGEST,
    MEAN,
    SHORTEST,
    SLOPE,
    Source,
    Value,
    evaluate,
    false_shares,
)

ROOTS = slice(0, 3)
"""Parameters with square roots in intervals and derivatives: 1 - p, 1 - p of batches, and d."""
BOX = np.array(
    [[-14, 0], [-14, 0], np.log([SHORTEST, LONGEST]), [-12, 8], [-4, 4], [-4, 4], [-4, 4], [-4, 4]]
)
PRIOR = np.array([[0, 0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1, 0.2]])
"""Means and precisions of the parameters' normal priors, which matter if pages are few."""
STEP = np.array([0.02, 0.02, *[0.05] * 6])
"""Steps of the parameters in the differences that approximate derivatives."""
TAIL, RATIO_LIMIT = 0.025, 1.92
"""Probability outside of a 95% interval on each side; log-likelihood ratio explained by chance."""
PRECISIONS = 1e-6, 0.98
"""Range of precisions in effective signals: a sure signal has infinite evidence."""


def maximise(
    source: Source, fixed: dict[int, float], start: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Return the most likely parameters of a source, and their penalised log-likelihood.

    Args:
        source: the data.
        fixed: values of some parameters.
        start: a point; None to guess from the changes without a signal.
    """
    from scipy.optimize import Bounds, minimize  # slow to import

    quiet = source.changed & (np.bincount(source.row, minlength=len(source.page)) == 0)
    rate = (quiet.sum() + 0.5) / source.elapsed.sum()
    guess = np.array([math.log(0.3), math.log(0.3), math.log(0.1), math.log(rate), 0, 1, 0.5, 0])
    box = BOX.copy()
    for parameter, value in fixed.items():
        box[parameter] = value

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        value, away = evaluate(source, theta), theta - PRIOR[0]
        return PRIOR[1] @ away**2 / 2.0 - value.pages.sum(), PRIOR[1] * away - value.slope

    begin = np.clip(guess if start is None else start, *box.T)
    end = minimize(
        loss, begin, jac=True, method="L-BFGS-B", bounds=Bounds(*box.T), options={"ftol": 1e-9}
    )
    return end.x, -float(end.fun)


def intervals(source: Source, timed: bool) -> tuple[FloatArray, FloatArray]:
    """Return estimates and 95% intervals, (3, 3), of precision, recall and delay; and parameters.

    Each row has the estimate and the two ends. Without ``timed`` there is no delay.
    """
    fixed = {} if source.batch.any() else {BATCH: 0.0}
    fixed |= {} if timed else {DELAY: BOX[DELAY, 0]}
    theta, best = maximise(source, fixed)
    value = evaluate(source, theta)
    roots, true, missed = _roots(source, theta, value), value.true.sum(), value.missed.sum()
    spread, curved, freedom = _variances(source, theta, value, fixed)

    def excess(bound: dict[int, float]) -> float:
        """Return by how much a bound's log-likelihood ratio exceeds what chance explains."""
        return best - maximise(source, fixed | bound, theta)[1] - RATIO_LIMIT

    shortest, longest = BOX[DELAY]
    far = 4.0 * np.sqrt(np.maximum(spread, curved))
    useful = 1.0 - roots[0] > far[0] or excess({FALSE: 0.0, BATCH: 0.0}) > 0.0
    lossy = roots[1] > far[1] or excess({MEAN.start: BOX[MEAN.start, 0]}) > 0.0
    late = timed and (roots[2] > far[2] or excess({DELAY: shortest}) > 0.0)
    reach = stdtrit(freedom, 1.0 - TAIL) * np.sqrt(spread if late else np.maximum(spread, curved))
    low, high = np.maximum(roots - reach, 0.0) ** 2 * [1, lossy, late], (roots + reach) ** 2
    if roots[0] < far[0] and not source.batch.any():
        low[0], high[0] = (
            math.exp(_end(lambda x: excess({FALSE: x}), theta[FALSE], x)) for x in BOX[FALSE]
        )
    number = np.array([source.signals.sum(), true + missed])
    yes, no = np.maximum([roots[:2] ** 2 * number, (1.0 - roots[:2] ** 2) * number], 1e-9)
    low[:2] = np.minimum(low[:2], betaincinv(yes, no + 1.0, TAIL))
    high[:2] = np.clip(high[:2], betaincinv(yes + 1.0, no, 1.0 - TAIL), 1.0)
    if timed and not late:
        high[2] = math.exp(_end(lambda x: excess({DELAY: x}), theta[DELAY], longest))
    if not useful and not source.batch.any():
        low[0] = math.exp(_end(lambda x: excess({FALSE: x}), theta[FALSE], BOX[FALSE, 0]))
        low[1] = missed / (missed + (1.0 - low[0]) * number[0])
    if not useful or high[2] >= LONGEST:  # such late signals look like false ones
        high[:2] = 1.0
    low, high = np.minimum(low, roots**2), np.minimum(high, LONGEST)
    shares = 1.0 - np.stack([roots**2, high, low], axis=1)[:2]
    return np.vstack([shares, [[roots[2] ** 2, low[2], high[2]]]]), theta


def _end(excess: Callable[[float], float], begin: float, bound: float) -> float:
    """Return where a log-likelihood ratio exceeds chance between ``begin`` and ``bound``, or it."""
    from scipy.optimize import brentq  # slow to import

    return float(brentq(excess, begin, bound, xtol=1e-3)) if excess(bound) > 0.0 else bound


def _variances(
    source: Source, theta: FloatArray, value: Value, fixed: dict[int, float]
) -> tuple[FloatArray, FloatArray, int]:
    """Return the variances of :func:`_roots` by slopes and by curvature, and degrees of freedom."""

    def values_at(point: FloatArray) -> FloatArray:
        theta = point.copy()
        theta[ROOTS] = 2.0 * np.log(point[ROOTS])
        value = evaluate(source, theta)
        value.slope[ROOTS] *= 2.0 / point[ROOTS]
        return np.concatenate([_roots(source, theta, value), value.slope, value.pages])

    inside = (theta > BOX[:, 0] + 1e-6) & (theta < BOX[:, 1] - 1e-6)
    inside[SLOPE] &= inside[FALSE]
    free = [j for j in range(len(theta)) if j not in fixed and (inside[j] or j < DELAY)]
    point = theta.copy()
    point[ROOTS] = np.clip(np.exp(theta[ROOTS] / 2.0), 2.0 * STEP[ROOTS], [0.98, 0.98, 2.0])
    change = np.array([values_at(point + x) - values_at(point - x) for x in np.diag(STEP)[free]])
    change /= 2.0 * STEP[free, None]
    rises, bend, scores = np.split(change, [3, 3 + len(theta)], axis=1)
    bend = np.diag(PRIOR[1, free]) - (bend[:, free] + bend[:, free].T) / 2.0
    scale = 1.0 / np.sqrt(np.maximum(abs(np.diag(bend)), 1e-12))
    values, vectors = np.linalg.eigh(bend * scale * scale[:, None])
    inverse = vectors / np.maximum(abs(values), 1e-6) @ vectors.T * scale * scale[:, None]
    moves = rises.T @ inverse @ (scores - scores.mean(axis=1, keepdims=True))
    true, missed = (x / max(x.sum(), 1e-300) for x in (value.true, value.missed))
    share = _roots(source, theta, value)[1]
    moves[1] += share * (1.0 - share**2) / 2.0 * (missed - true)
    freedom = max(len(value.pages) - len(free), 1)
    spread = (moves**2).sum(axis=1) * len(value.pages) / freedom
    return spread, ((inverse @ rises) * rises).sum(axis=0), freedom


def _roots(source: Source, theta: FloatArray, value: Value) -> FloatArray:
    """Return square roots of the shares of false signals and missed changes, and of the delay."""
    true, missed = value.true.sum(), max(value.missed.sum(), 1e-300)
    delay = math.exp(theta[DELAY]) if theta[DELAY] > BOX[DELAY, 0] else 0.0
    return np.sqrt([max(1.0 - true / source.signals.sum(), 0.0), missed / (true + missed), delay])


def effective_signals(source: Source, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each interval's evidence of a change, over that of one signal without a delay, (n,).

    Also returns by how many the true signals of batches fall short of those expected at the
    precision of the other signals, (n,).
    """
    precision = np.clip(1.0 - false_shares(source, theta)[0], *PRECISIONS)[source.page]
    batch = np.clip(-math.expm1(theta[BATCH]), *PRECISIONS)
    number = np.bincount(source.row, source.batch, len(precision))
    less = number * (1.0 - np.minimum(batch / precision, 1.0))
    return within_domain(evaluate(source, theta).evidence / -np.log1p(-precision)), less
