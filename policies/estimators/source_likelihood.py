r"""The likelihood of the crawls of pages with the signals of one source, and its maximum.

An interval of length tau between two crawls of page i, with signals at ages x_j, has

    P(no change) = exp(-alpha_i tau - p_i g_i H(tau)) prod_j (1 - p_i F(x_j)).

p_i is the precision, g_i the rate of signals in the page's other intervals. Delays are exponential
of mean d: F(x) = 1 - exp(-x / d), H(x) = d F(x). In a silence of the source no signal comes, and H
grows by its length. alpha_i is integrated out: it has a Gamma distribution of shape a and mean
exp(z_i . k), where z_i is 1, the log of the page's mean interval and the log of its rate of
signals. The odds of a false signal are tan^2 theta exp(-c z_i3): the precision depends on the rate
of signals too, because false signals may come at one rate on all pages.

Newton's method finds the maximum over theta, sqrt(d), ln a, k and c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.estimators.gamma_prior import gamma_log_density, gamma_nodes
from policies.estimators.signal_likelihood import Crawls, log_likelihood_at
from policies.values.delays import EXPONENTIAL, arrived, under_way

FALSE, DELAY, SHAPE, MEAN, SLOPE = 0, 1, 2, slice(3, 6), 6
"""Positions of the parameters theta, sqrt(d), ln a, k and c."""
PRIOR = np.array([0.0, 1.0, 0.25, 1e-2, 1.0, 1.0, 1.0])
"""Precision of normal priors of mean 0, which keep finite what the crawls do not determine."""
SIZE = len(PRIOR)
STEP = np.diag([1e-4, 0.05, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3])
"""Differences of parameters for derivatives; in delays, one that spans many ages."""
FARTHEST = np.array([0.2, 0.2, 1.0, 1.0, 1.0, 1.0, 1.0])
PASSES, DECREMENT, GROWTH, CLOSE = 25, 3e-3, 1.2, 0.3
"""Longest step; number of steps; gain of the log-likelihood to be expected at which they end (.08
standard errors), its growth from step to step, since nodes that move may keep it up, and the gain
up to which they have converged if no step improves: small delays make kinks at signals' ages."""
AWAY = (0.0, 0.1, 0.2, 0.4)
FLOOR = np.array([1e-3, 0.03, *[-math.inf] * 5])
"""Values that are tried before parameter 1 or 2 is 0, where the slope is always 0; and values below
which they are 0: the smallest ages are no evidence of a delay."""
PRECISIONS = 1e-6, 0.98
"""Range of precisions in effective signals: a sure signal has infinite evidence."""


class Source(NamedTuple):
    """Intervals between crawls of m pages and the signals of one source; unit: mean interval."""

    offsets: IntArray  # the intervals of page i are rows offsets[i] .. offsets[i + 1] - 1, (m + 1,)
    elapsed: FloatArray  # length of each interval, (n,)
    silent: FloatArray  # length of its part in which the source was silent, (n,)
    changed: BoolArray  # whether the page changed in it, (n,)
    signal_offsets: IntArray  # first signal of each interval, (n + 1,)
    age: FloatArray  # time of each signal after the start of its interval, (k,)
    timed: bool  # whether the ages are known; otherwise signals have no delay
    other_rate: FloatArray  # g, (n,)
    covariates: FloatArray  # z_i, (m, 3)
    time: FloatArray  # sum of the page's intervals, less silences, (m,)
    signals: FloatArray  # number of the page's signals, (m,)


@compiled()
def evidence_of(source: Source, precision: FloatArray, delay: float) -> FloatArray:
    """Return -ln P(no change) - alpha tau of every interval, (n,), by precisions of pages, (m,)."""
    result = np.empty(len(source.elapsed))
    for i in range(len(precision)):
        for k in range(source.offsets[i], source.offsets[i + 1]):
            heard = max(source.elapsed[k] - source.silent[k], 0.0)
            pending = under_way(EXPONENTIAL, delay, 0.0, heard) + source.silent[k]
            result[k] = precision[i] * source.other_rate[k] * pending
            for j in range(source.signal_offsets[k], source.signal_offsets[k + 1]):
                soon, _ = arrived(EXPONENTIAL, delay, 0.0, source.age[j])
                result[k] -= math.log(max(1.0 - precision[i] * soon, 1e-12))
    return result


def delay_of(source: Source, theta: FloatArray) -> float:
    """Return the mean delay."""
    return float(theta[DELAY]) ** 2 if source.timed else 0.0


def false_ratios(source: Source, theta: FloatArray) -> FloatArray:
    """Return the share of false signals of each page over sin^2 theta, (m,)."""
    odds = np.exp(np.clip(theta[SLOPE] * source.covariates[:, 2], -50.0, 50.0))
    ratio: FloatArray = 1.0 / (math.sin(theta[FALSE]) ** 2 + math.cos(theta[FALSE]) ** 2 * odds)
    return ratio


def precisions_of(source: Source, theta: FloatArray) -> FloatArray:
    """Return the precision of each page, (m,)."""
    return np.clip(1.0 - math.sin(theta[FALSE]) ** 2 * false_ratios(source, theta), 0.0, 1.0)


def effective_signals(fits: Sequence[tuple[Source, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Return the evidence of each interval over that of a prompt signal of the first part, (n,).

    Also returns the false signals of other parts in each interval: how many less their true ones
    are than if they had the precision of the first part, (n,).

    Args:
        fits: parts of the signals of a source, each with its parameters.
    """
    evidence, false = np.zeros((2, len(fits[0][0].elapsed)))
    first = np.clip(precisions_of(*fits[0]), *PRECISIONS)
    for source, theta in fits:
        precision = np.clip(precisions_of(source, theta), *PRECISIONS)
        evidence += evidence_of(source, precision, delay_of(source, theta))
        worse = np.repeat(1.0 - np.minimum(precision / first, 1.0), np.diff(source.offsets))
        false += np.diff(source.signal_offsets) * worse
    return evidence / np.repeat(-np.log1p(-first), np.diff(source.offsets)), false


def posterior(
    source: Source, nodes: tuple[FloatArray, FloatArray], theta: FloatArray
) -> FloatArray:
    """Return every page's marginal log-likelihood, and mean and variance of its alpha, (3, m)."""
    alpha, log_weight = nodes
    shape, mean = math.exp(theta[SHAPE]), np.exp(source.covariates @ theta[MEAN])
    evidence = evidence_of(source, precisions_of(source, theta), delay_of(source, theta))
    design = np.column_stack([source.elapsed, evidence])
    weight = log_likelihood_at(Crawls(design, source.changed, source.offsets), alpha)
    weight += gamma_log_density(alpha, shape, shape / mean) + log_weight
    top = weight.max(axis=1)
    weight = np.exp(weight - top[:, None])
    total = weight.sum(axis=1)
    mean, square = (weight * alpha).sum(axis=1) / total, (weight * alpha**2).sum(axis=1) / total
    return np.stack([top + np.log(total), mean, np.maximum(square - mean**2, 1e-12 * mean**2)])


def climb(source: Source) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return the maximum with its :func:`derivatives`; None if it is not found.

    Newton's method; quadrature nodes follow the posteriors of the pages.
    """
    guess = (source.changed.sum() + 0.5) / (source.elapsed @ np.where(source.changed, 0.5, 1.0))
    theta = np.array([math.pi / 4.0, 0.3, 0.0, math.log(guess), 0.0, 0.0, 0.0])
    changes = 1.0 + np.add.reduceat(source.changed, source.offsets[:-1], dtype=np.float64)
    nodes = gamma_nodes(changes, changes / (1.0 / guess + source.time))

    def value_at(theta: FloatArray) -> float:
        return float(posterior(source, nodes, theta)[0].sum() - PRIOR @ theta**2 / 2.0)

    for number in range(PASSES):
        _, mean, variance = posterior(source, nodes, theta)
        nodes = gamma_nodes(mean**2 / variance, mean)
        value, (columns, inverse) = value_at(theta), derivatives(source, nodes, theta)
        slope = columns[:, :SIZE].sum(axis=0) - PRIOR * theta
        step, gain = inverse @ slope, slope @ inverse @ slope / 2.0
        step *= min(1.0, (FARTHEST / np.maximum(abs(step), 1e-300)).min())
        trials, least = [theta + step / 2.0**k for k in range(10)], value
        trials = [np.where(x < FLOOR, stop, x) for x in trials for stop in (0.0, theta)]
        if gain < DECREMENT * GROWTH**number:
            kinks = [j for j in (FALSE, DELAY) if theta[j] < AWAY[1]]
            trials = [np.where(np.arange(SIZE) == j, x, theta) for j in kinks for x in AWAY]
            least = value + DECREMENT
        near = next((x for x in trials if value_at(x) > least), None)
        if near is None:
            return (theta, columns, inverse) if gain < CLOSE else None
        theta = near
    return None


def derivatives(
    source: Source, nodes: tuple[FloatArray, FloatArray], theta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return derivatives by differences: columns of pages, (m, 24), and inverse second ones.

    Columns are the first derivatives of a page's log-likelihood (7), its number of signals, that of
    its false signals over sin^2 theta with its derivatives (8), and the expected number of its
    changes without a signal with its derivatives (8). Second derivatives, (7, 7), are minus those
    of the penalised sum, and made positive definite.
    """
    size, here = np.diag(STEP), posterior(source, nodes, theta)
    above, below = (
        np.stack([posterior(source, nodes, theta + side * step) for step in STEP])
        for side in (1.0, -1.0)
    )
    slopes = (above - below) / (2.0 * size[:, None, None])
    minus = np.diag((2.0 * here - above - below)[:, 0].sum(axis=1) / size**2 + PRIOR)
    for i in range(SIZE):
        for j in range(i):
            bend = above[i] + above[j] - here - posterior(source, nodes, theta + STEP[i] + STEP[j])
            if j == DELAY or i == DELAY:  # long steps need both sides
                bend += below[i] + below[j] - here
                bend = (bend - posterior(source, nodes, theta - STEP[i] - STEP[j])) / 2.0
            minus[i, j] = minus[j, i] = bend[0].sum() / (size[i] * size[j])
    scale = 1.0 / np.sqrt(np.maximum(abs(np.diag(minus)), 1e-12))
    values, vectors = np.linalg.eigh(minus * scale * scale[:, None])
    inverse = vectors / np.maximum(abs(values), 1e-6) @ vectors.T * scale * scale[:, None]
    ratios = np.array([false_ratios(source, theta + x) for x in (*(0.0 * STEP[:1]), *STEP)])
    ratios[1:] = (ratios[1:] - ratios[0]) / size[:, None]
    unsignalled = np.vstack([here[1], slopes[:, 1]]) * source.time
    columns = [slopes[:, 0], source.signals, ratios * source.signals, unsignalled]
    return np.vstack(columns).T, inverse
