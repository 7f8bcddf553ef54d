"""The distributions that the pages of a group share, updated from the beliefs about the pages."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import compiled, inlined
from policies.ncis.belief.hazards import renew_page
from policies.ncis.belief.layout import Places

SHAPES = (0.3, 30.0)
"""Range to which the shapes of shared distributions are clipped."""
PSEUDO_PAGES = 5.0
"""Number of pseudo-pages, with the average of the whole set, that are added to each group."""
SMALLEST = 1e-4
"""Least mean of a shared distribution, in units of the scales."""


@compiled()
def shape_of(gap: float) -> float:
    """Return the shape a of the Gamma distribution with ln E - E ln = ln a - digamma(a) = gap.

    Newton's method from a rational start, with the slope from the series of the trigamma function
    (Minka 2002, "Estimating a Gamma distribution").
    """
    gap = max(gap, 1e-12)
    shape = (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    for _ in range(6):
        excess = math.log(shape) - digamma(shape) - gap
        slope = shape * shape * (1.0 / shape - trigamma(shape))
        shape = 1.0 / (1.0 / shape + excess / slope)
    return min(max(shape, SHAPES[0]), SHAPES[1])


@compiled()
def digamma(x: float) -> float:
    """Return the logarithmic derivative of the Gamma function, x > 0, to about 1e-12."""
    total = 0.0
    while x < 8.0:
        total -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return total + math.log(x) - 0.5 / x - series


@inlined()
def trigamma(x: float) -> float:
    """Return the second logarithmic derivative of the Gamma function, x > 0, to about 1e-10."""
    total = 0.0
    while x < 8.0:
        total += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return total + 1.0 / x + 0.5 * y + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))


@compiled()
def pool(pages: FloatArray, groups: FloatArray, group: IntArray, at: Places) -> None:
    """Update the distributions of all groups and the estimates of all pages.

    One step of expectation maximisation: the Gamma distribution nearest to the beliefs about the
    group's crawled pages and its pseudo-pages.
    """
    count, num_groups = at.kinds, groups.shape[0]
    for kind in range(count):
        means, logs, sizes = np.zeros(num_groups), np.zeros(num_groups), np.zeros(num_groups)
        for number in range(group.shape[0]):
            page, own = pages[number], groups[group[number]]
            if page[count + kind] + page[kind] > 0.0:
                shape, rate = own[kind] + page[kind], own[count + kind] + page[count + kind]
                means[group[number]] += shape / rate
                logs[group[number]] += digamma(shape) - math.log(rate)
                sizes[group[number]] += 1.0
        total = sizes.sum()
        if total > 0.0:
            mean, log = means.sum() / total, logs.sum() / total
            for number in range(num_groups):
                size = sizes[number] + PSEUDO_PAGES
                own_mean = max((means[number] + PSEUDO_PAGES * mean) / size, SMALLEST)
                own_log = (logs[number] + PSEUDO_PAGES * log) / size
                shape = shape_of(math.log(own_mean) - own_log)
                groups[number, kind], groups[number, count + kind] = shape, shape / own_mean
    renew_all(pages, groups, group, at)


@inlined()
def renew_all(pages: FloatArray, groups: FloatArray, group: IntArray, at: Places) -> None:
    """Update the estimates of all pages."""
    for number in range(group.shape[0]):
        renew_page(pages[number], groups[group[number]], at)
