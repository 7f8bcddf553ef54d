"""Combined profiles, and the fit of divergence curves, as whole arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policies.estimators.divergence.curve_fit import fit_observations, shapes
from policies.estimators.divergence.profiles import combine


class FittedCurve(NamedTuple):
    """A curve of one region with K items, its share and rate, and the sum of squares left."""

    items: int
    share: float
    rate: float
    residual: float


def combined(profiles, page):
    """Ages and divergences of a page's combined profile."""
    ages, values, counts = np.empty((3, profiles.arrays.age[page].size))
    count = combine(profiles.arrays, page, ages, values, counts)
    return ages[:count], values[:count]


def fit_curve(ages, divergence):
    ages, divergence = np.array(ages, float), np.array(divergence, float)
    return FittedCurve(*fit_observations(ages, divergence, shapes()))
