r"""The divergence of pages with several regions, as finite sums of Poisson tail probabilities.

Let region r of a page of n fragments lose x_r = c_r min(N_r, K_r) of them, N_r Poisson of mean
l_r t, all independent. With X the sum of the losses, D = 2 X / (n + X) = 2 - 2 / (1 + X/n), and

    1 / (1 + y) = int_0^inf exp(-u) exp(-u y) du,

in which the regions are factors. Gauss-Laguerre quadrature is exact to rounding, as y <= 1. Each
factor is its limit plus a sum over the updates j < K_r so far, with weights

    phi_r(j) = exp(-u c_r j / n) - exp(-u c_r K_r / n) > 0.

The product expands into a sum for every set S of regions that are still losing fragments. Their
updates occur at the rate L = sum_{r in S} l_r. Given k updates, their distribution over the regions
is multinomial and independent of time: so the sum is a_k Poisson(k; L t), with a_k the mean of the
product of the phi_r over that distribution, which falls with k. With b_k = a_k - a_{k+1} >= 0,

    D*(t) = sum_S sum_k b_k P(N > k),    U(t) = sum_S 1/L sum_k b_k (k + 1) P(N > k + 1),

N Poisson of mean L t: finite sums of positive terms, and b_k falls too. All b_k are sums of
positive terms themselves, so there is no cancellation at any t. A page of a churn region and a
static one has the single term b_0 = D*(inf): a scaled curve of holistic staleness.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.contents import Regions

NODES = 28
"""Points of the quadrature; its error is of order 9^-NODES."""

MAX_REGIONS = 8
"""Maximum number of changing regions of a page."""

MAX_TERMS = 2**16
"""Maximum number of terms of a page."""

MAX_PRODUCTS = 2**24
"""Maximum number of products in the terms of a page, per point of the quadrature."""


class Terms(NamedTuple):
    """Finite sums that give divergence and utility of m pages, g sums in total.

    Attributes:
        first: page i has the sums ``first[i]`` to ``first[i + 1] - 1``, (m + 1,) int64.
        start: sum s has the terms ``start[s]`` to ``start[s + 1] - 1``, (g + 1,) int64.
        rate: L, events per unit time, > 0, (g,).
        weight: b_k, k = 0, 1, ..., >= 0 and falling in each sum, (total,).
    """

    first: IntArray
    start: IntArray
    rate: FloatArray
    weight: FloatArray


class _Dynamic(NamedTuple):
    """Changing regions, first in each row: number, (m,); items K, share c / n, rate l, (m, G)."""

    number: IntArray
    items: IntArray
    share: FloatArray
    rate: FloatArray


class _Quadrature(NamedTuple):
    """Nodes u of the Gauss-Laguerre quadrature and their weights, shape (NODES,) each."""

    nodes: FloatArray
    shares: FloatArray


class _Work(NamedTuple):
    """Work space: a_k and b_k of all sums of a page at each node, and binomial probabilities."""

    level: FloatArray
    drop: FloatArray
    binomial: FloatArray


def region_terms(regions: Regions) -> Terms:
    """Return the finite sums that give divergence and utility of pages with known regions.

    Raises:
        ValueError: a page has more than MAX_REGIONS changing regions, or its items need more than
            MAX_TERMS or MAX_PRODUCTS.
    """
    dynamic = _dynamic(regions)
    first = np.concatenate([[0], np.cumsum((1 << dynamic.number) - 1)])
    start = np.zeros(first[-1] + 1, np.int64)
    _sum_lengths(first, dynamic.number, dynamic.items, start[1:])
    np.cumsum(start, out=start)
    terms = Terms(first, start, np.empty(first[-1]), np.empty(start[-1]))
    max_length = int(np.diff(start[first]).max())
    work = _Work(
        np.empty((max_length, NODES)), np.empty((max_length, NODES)), np.empty(dynamic.items.max())
    )
    _fill(terms, dynamic, _quadrature(), work)
    return terms


def _dynamic(regions: Regions) -> _Dynamic:
    changing = regions.rate > 0.0
    _check_sizes(regions, changing)
    items = np.where(changing, regions.items, 1)
    order = np.argsort(~changing, axis=1, kind="stable")
    rows = np.arange(regions.num_pages)[:, None]
    share = regions.size / regions.fragments[:, None]
    return _Dynamic(
        changing.sum(axis=1),
        items[rows, order],
        share[rows, order],
        regions.rate[rows, order],
    )


@functools.cache
def _quadrature() -> _Quadrature:
    from scipy.special import roots_laguerre

    nodes, shares = roots_laguerre(NODES)
    return _Quadrature(np.ascontiguousarray(nodes), np.ascontiguousarray(shares))


def _check_sizes(regions: Regions, dynamic: BoolArray) -> None:
    """Raise ValueError if a page has too many changing regions, or too many terms."""
    count = dynamic.sum(axis=1)
    spare = np.where(dynamic, regions.items - 1, 0).astype(np.float64)
    terms = 2.0**count - 1.0 + 2.0 ** np.maximum(count - 1, 0) * spare.sum(axis=1)
    largest = np.sort(np.where(dynamic, regions.items, 0), axis=1)[:, -2:].astype(np.float64)
    products = terms * largest[:, 0] if largest.shape[1] > 1 else np.zeros(len(count))
    for name, numbers, limit in (
        ("regions that change", count, MAX_REGIONS),
        ("terms, which grow with the items of its regions that change", terms, MAX_TERMS),
        ("products of terms, which grow with the same items", products, MAX_PRODUCTS),
    ):
        page = int(np.argmax(numbers))
        if numbers[page] > limit:
            raise ValueError(
                f"regions must have at most {limit} {name}, per page, got {numbers[page]:.0f} for "
                f"page {page}"
            )


@compiled()
def _sum_lengths(first: IntArray, count: IntArray, items: IntArray, lengths: IntArray) -> None:
    """Write the number of terms of each sum, (g,): 1, plus K - 1 for each region in the sum."""
    for page in range(count.size):
        for subset in range(1, 1 << count[page]):
            length = 1
            for r in range(count[page]):
                if subset >> r & 1:
                    length += items[page, r] - 1
            lengths[first[page] + subset - 1] = length


@compiled()
def _fill(terms: Terms, dynamic: _Dynamic, rule: _Quadrature, work: _Work) -> None:
    """Write the rates and weights of all sums of all pages, by increasing number of regions."""
    for page in range(dynamic.number.size):
        for subset in range(1, 1 << dynamic.number[page]):
            top = 0
            while subset >> (top + 1):
                top += 1
            low, high = _fill_one(terms, dynamic, rule, work, page, subset, top)
            gone = 0.0
            for r in range(dynamic.number[page]):
                if not subset >> r & 1:
                    gone += dynamic.items[page, r] * dynamic.share[page, r]
            still = 2.0 * rule.shares * np.exp(-rule.nodes * gone)
            begin = terms.start[terms.first[page]]
            for k in range(low, high):
                total = 0.0
                for q in range(still.size):
                    total += still[q] * work.drop[k, q]
                terms.weight[begin + k] = total


@inlined()
def _fill_one(
    terms: Terms,
    dynamic: _Dynamic,
    rule: _Quadrature,
    work: _Work,
    page: int,
    subset: int,
    top: int,
) -> tuple[int, int]:
    """Write rate, a_k and b_k of the sum for one set of regions of a page.

    The bits of ``subset`` name the regions, and ``top`` is the last one. Returns the first row of
    the sum and the row after its last.
    """
    first = terms.first[page]
    rows = terms.start[first : terms.first[page + 1] + 1] - terms.start[first]
    low, high = rows[subset - 1], rows[subset]
    level, drop = work.level[low:high], work.drop[low:high]
    rest = subset - (1 << top)
    rate = dynamic.rate[page, top]
    if rest == 0:
        terms.rate[first + subset - 1] = rate
        _fill_region(dynamic.items[page, top], dynamic.share[page, top], rule.nodes, level, drop)
        return low, high
    before = terms.rate[first + rest - 1]
    both = before + rate
    terms.rate[first + subset - 1] = both
    rest_rows = slice(rows[rest - 1], rows[rest])
    region_rows = slice(rows[subset - rest - 1], rows[subset - rest])
    _add_region(
        _Work(work.level[rest_rows], work.drop[rest_rows], work.binomial),
        _Work(work.level[region_rows], work.drop[region_rows], work.binomial),
        rate / both,
        before / both,
        level,
        drop,
    )
    return low, high


@compiled()
def _fill_region(
    items: int, share: float, nodes: FloatArray, level: FloatArray, drop: FloatArray
) -> None:
    """Write a_k = phi(k) and b_k of a sum for one region only, shape (K, nodes) each."""
    for q in range(nodes.size):
        drop[0, q] = -np.expm1(-nodes[q] * share)
        survival = np.exp(-nodes[q] * share)
        for k in range(1, items):
            drop[k, q] = drop[k - 1, q] * survival
        total = 0.0
        for k in range(items - 1, -1, -1):
            total += drop[k, q]
            level[k, q] = total


@compiled()
def _add_region(
    rest: _Work, region: _Work, share: float, rest_share: float, level: FloatArray, drop: FloatArray
) -> None:
    """Write a_k and b_k of a set of regions, from its first ones (``rest``) and its last one.

    ``share`` is the last region's share of events, and ``binomial[j]`` the probability that j of k
    events are in it, by Pascal's rule.
    """
    binomial = rest.binomial
    binomial[0] = 1.0
    for k in range(level.shape[0]):
        low = max(0, k - rest.level.shape[0] + 1)
        high = min(k, region.level.shape[0] - 1)
        if k > 0:
            for j in range(high, low - 1, -1):
                before = binomial[j - 1] * share if j > 0 else 0.0
                binomial[j] = before + (binomial[j] * rest_share if j < k else 0.0)
        level[k] = 0.0
        drop[k] = 0.0
        for j in range(low, high + 1):
            for q in range(level.shape[1]):
                alike = binomial[j] * region.level[j, q]
                level[k, q] += alike * rest.level[k - j, q]
                drop[k, q] += rest_share * alike * rest.drop[k - j, q]
                drop[k, q] += share * binomial[j] * region.drop[j, q] * rest.level[k - j, q]
