r"""The marginal likelihood of crawls with the signals of one source, whose delay is exponential.

A source signals changes of page i at rate p gamma_i, after delays of distribution
F(x) = 1 - exp(-x / d); its other signals, at rate (1 - p) gamma_i, are false. Other changes come at
rate alpha_i. With H(x) = d F(x), the mean of min(delay, x), an interval between two crawls that has
length tau and signals at ages x_j after its start has

    P(no change) = exp(-alpha_i tau - p gamma_i H(tau)) prod_j (1 - p F(x_j)).

alpha_i has a Gamma distribution of shape a and mean m_i = exp(z_i . k), where z_i is 1, the log of
the page's mean interval and the log of gamma_i (both centred): frequent crawls and signals go with
frequent changes. It is integrated out by Gauss-Laguerre quadrature, whose nodes follow the page's
posterior (for a >= 3 the error is below .001 per page, for a = .7 up to .05). Six parameters are
estimated: u = sqrt(1 - p), in which the likelihood of a source without false signals is a parabola;
w = ln(1 + d / mean interval); ln a; and k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled, inlined
from policies.values.delays import EXPONENTIAL, arrived, under_way

U, W, SHAPE, MEAN = 0, 1, 2, slice(3, 6)
"""Positions of the parameters."""
NODES = 8


class Source(NamedTuple):
    """Intervals between crawls, and the signals of one source in them.

    Attributes:
        offsets: the intervals of page i are rows offsets[i] .. offsets[i + 1] - 1, (m + 1,) int64.
        elapsed: length of each interval, (n,).
        changed: whether the page changed in it, (n,) bool.
        signal_offsets: first signal of each interval, (n + 1,) int64.
        age: time of each signal after the start of its interval, (k,).
        signal_rate: gamma_i, (m,).
        covariates: z_i, (m, 3).
        time: sum of the page's intervals, (m,).
        unit: mean interval.
        timed: whether ages are known; otherwise the delay is 0.
    """

    offsets: IntArray
    elapsed: FloatArray
    changed: BoolArray
    signal_offsets: IntArray
    age: FloatArray
    signal_rate: FloatArray
    covariates: FloatArray
    time: FloatArray
    unit: float
    timed: bool


class Nodes(NamedTuple):
    """Values of alpha and the logs of their weights, (m, Q) each."""

    alpha: FloatArray
    log_weight: FloatArray


class Evaluation(NamedTuple):
    """The likelihood of m pages.

    Attributes:
        log_likelihood: (m,).
        scores: its derivatives by the six parameters, (m, 6).
        mean: posterior mean of alpha, (m,).
        variance: posterior variance of alpha, (m,).
    """

    log_likelihood: FloatArray
    scores: FloatArray
    mean: FloatArray
    variance: FloatArray


@compiled()
def conditional_parts(
    source: Source, page: int, precision: float, delay: float, parts: FloatArray
) -> None:
    """Compute ln P(no change) + alpha tau of a page's intervals, and its derivatives by p and d.

    ``parts`` has a row for each interval of the page and three columns.
    """
    first, gamma = source.offsets[page], source.signal_rate[page]
    for k in range(first, source.offsets[page + 1]):
        tau = source.elapsed[k]
        pending = gamma * under_way(EXPONENTIAL, delay, 0.0, tau)
        soon, late = arrived(EXPONENTIAL, delay, 0.0, tau)
        widening = soon - (tau / delay * late if delay > 0.0 else 0.0)
        total, by_p, by_d = -precision * pending, -pending, -precision * gamma * widening
        for j in range(source.signal_offsets[k], source.signal_offsets[k + 1]):
            age = source.age[j]
            soon, late = arrived(EXPONENTIAL, delay, 0.0, age)
            missed = 1.0 - precision * soon
            total += math.log(missed)
            by_p -= soon / missed
            if delay > 0.0:
                by_d += precision * age / (delay * delay) * late / missed
        parts[k - first, 0], parts[k - first, 1], parts[k - first, 2] = total, by_p, by_d


@inlined()
def _at_nodes(
    source: Source,
    page: int,
    alpha: FloatArray,
    parts: FloatArray,
    odds: FloatArray,
    log_l: FloatArray,
) -> None:
    """Add the log-likelihood of a page's crawls at each node to ``log_l``.

    Sets ``odds`` of no change to a change, for every interval with one and every node.
    """
    first, size = source.offsets[page], len(alpha)
    product = np.ones(size)
    for k in range(source.offsets[page + 1] - first):
        tau = source.elapsed[first + k]
        if not source.changed[first + k]:
            for q in range(size):
                log_l[q] += parts[k, 0] - alpha[q] * tau
            continue
        for q in range(size):
            y = min(parts[k, 0] - alpha[q] * tau, -1e-150)
            fresh = math.exp(y)
            stale = 1.0 - fresh if fresh < 0.99 else -math.expm1(y)
            odds[k, q] = fresh / stale
            product[q] *= stale
            if product[q] < 1e-150:
                log_l[q] += math.log(product[q])
                product[q] = 1.0
    for q in range(size):
        log_l[q] += math.log(product[q])


@compiled()
def _integrate(
    source: Source, nodes: Nodes, log_prior: FloatArray, precision: float, delay: float
) -> FloatArray:
    """Return ln L, its derivatives by p and d, and E of alpha, alpha^2 and ln alpha, (m, 6)."""
    m, size = nodes.alpha.shape
    longest = np.diff(source.offsets).max()
    parts, odds = np.empty((longest, 3)), np.empty((longest, size))
    result, weight = np.zeros((m, 6)), np.empty(size)
    for i in range(m):
        conditional_parts(source, i, precision, delay, parts)
        weight[:] = log_prior[i]
        _at_nodes(source, i, nodes.alpha[i], parts, odds, weight)
        top = weight.max()
        weight[:] = np.exp(weight - top)
        result[i, 0] = top + math.log(weight.sum())
        weight /= weight.sum()
        first = source.offsets[i]
        for k in range(source.offsets[i + 1] - first):
            factor = 1.0
            if source.changed[first + k]:
                factor = 0.0
                for q in range(size):
                    factor -= weight[q] * odds[k, q]
            result[i, 1] += factor * parts[k, 1]
            result[i, 2] += factor * parts[k, 2]
        for q in range(size):
            alpha = nodes.alpha[i, q]
            result[i, 3] += weight[q] * alpha
            result[i, 4] += weight[q] * alpha * alpha
            result[i, 5] += weight[q] * math.log(alpha)
    return result


def evaluate(source: Source, nodes: Nodes, theta: FloatArray) -> Evaluation:
    """Return the likelihood of every page."""
    u, w, a = theta[U], theta[W], math.exp(theta[SHAPE])
    prior_mean = np.exp(source.covariates @ theta[MEAN])
    rate = a / prior_mean
    log_prior = gamma_log_density(nodes.alpha, a, rate) + nodes.log_weight
    delay = source.unit * math.expm1(w) * source.timed
    parts = _integrate(source, nodes, log_prior, 1.0 - u * u, delay)
    log_l, by_p, by_d, mean, square, log_mean = parts.T
    by_log_mean = a * (mean / prior_mean - 1.0)
    by_log_a = a * (np.log(rate) + 1.0 - digamma(a) + log_mean - mean / prior_mean)
    by_w = by_d * source.unit * math.exp(w) * source.timed
    scores = np.column_stack(
        [-2.0 * u * by_p, by_w, by_log_a, by_log_mean[:, None] * source.covariates]
    )
    return Evaluation(log_l, scores, mean, np.maximum(square - mean * mean, 1e-12 * mean**2))


def gamma_log_density(x: FloatArray, shape: FloatArray | float, rate: FloatArray) -> FloatArray:
    """Return the log-density of Gamma distributions, one per row of ``x``."""
    a, r = np.broadcast_to(shape, rate.shape)[:, None], rate[:, None]
    density: FloatArray = a * np.log(r) - gammaln(a) + (a - 1.0) * np.log(x) - r * x
    return density


def place_nodes(mean: FloatArray, shape: FloatArray) -> Nodes:
    """Return Gauss-Laguerre nodes of Gamma distributions of about these shapes, (m,)."""
    grid = np.exp(np.arange(math.log(0.05), math.log(1e6), 0.1))
    nearest = np.searchsorted(grid[:-1], shape)
    j = np.arange(NODES)
    jacobi = np.zeros((len(grid), NODES, NODES))  # Golub and Welsch (1969)
    jacobi[:, j, j] = 2.0 * j + grid[:, None]
    jacobi[:, j[1:], j[:-1]] = np.sqrt(j[1:] * (j[1:] + grid[:, None] - 1.0))
    x, vectors = np.linalg.eigh(jacobi)
    shapes = grid[nearest]
    rate = shapes / mean
    alpha = x[nearest] / rate[:, None]
    log_weight = np.log(np.maximum(vectors[:, 0, :] ** 2, 1e-300))[nearest]
    return Nodes(alpha, log_weight - gamma_log_density(alpha, shapes, rate))
