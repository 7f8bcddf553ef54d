r"""Bounds on divergence and utility from change profiles alone.

Olston and Pandey (2008), section 4.3 and figure 7. The only assumption is that divergence does not
fall. Then, between two observations, the upper bound is the later one (an immediate jump) and the
lower bound the earlier one. If observations fall nevertheless, the bounds are the larger and the
smaller one.

The bounds of several profiles are averaged at every age, over the profiles that extend to it. Past
the last observation of the longest profile the upper bound is 1 and the lower one that observation.

With s the time since the reference time, U(s) = s D(s) - int_0^s D grows with D(s) under a given
upper bound on D before s, as D <= D(s) there. So

    U_min = s D_low(s) - int_0^s min(D_up, D_low(s)),      U_max = s D_up(s) - int_0^s D_low.

If the divergence at s was observed, D_low(s) = D_up(s), and these are the paper's
s D(s) - A_max and s D(s) - A_min.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.estimators.divergence.profiles import SAME_AGE, HeldProfiles

MOST = 1.0
"""The greatest divergence, D_max."""


class UtilityBounds(NamedTuple):
    """Bounds on the utility and on the area under the divergence curve.

    Attributes:
        least_area: A_min.
        most_area: A_max.
        least: U_min.
        most: U_max.
    """

    least_area: float
    most_area: float
    least: float
    most: float


def utility_bounds(profiles: list[tuple[ArrayLike, ArrayLike]], elapsed: float) -> UtilityBounds:
    """Return bounds on the utility of a refresh.

    Args:
        profiles: pairs of ages, > 0 and rising, and divergences, in [0, 1], (k,) each.
        elapsed: s, time since the reference time, > 0.

    Raises:
        ValueError: a profile's arrays differ in shape, or a number is outside its range.
    """
    longest = max((len(np.atleast_1d(ages)) for ages, _ in profiles), default=1)
    count = np.zeros((1, max(len(profiles), 1)), np.int64)
    age = np.zeros((*count.shape, max(longest, 1)))
    divergence = np.zeros_like(age)
    base = np.full(count.shape, np.nan)
    for slot, (ages, values) in enumerate(profiles):
        times, divergences = np.atleast_1d(np.asarray(ages, float)), np.atleast_1d(values)
        good = times.shape == divergences.shape and np.all(np.diff(times, prepend=0.0) > 0.0)
        if not good or not np.all((divergences >= 0.0) & (divergences <= 1.0)):
            raise ValueError(
                "profiles must have rising ages > 0 and as many divergences in [0, 1], got "
                f"{ages!r}, {values!r}"
            )
        base[0, slot], count[0, slot] = 0.0, times.size
        age[0, slot, : times.size], divergence[0, slot, : times.size] = times, divergences
    if not elapsed > 0.0:
        raise ValueError(f"elapsed must be > 0, got {elapsed!r}")
    empty = np.zeros_like(count)
    kept = HeldProfiles(base, count, age, divergence, empty, empty, empty)
    return UtilityBounds(*(float(number) for number in bounds_of_page(kept, 0, float(elapsed))))


@compiled()
def step_bounds(kept: HeldProfiles, page: int, age: float) -> tuple[float, float]:
    """Return the averaged lower and upper bound on the divergence at ``age``.

    At the age of an observation both are that observation.
    """
    low = high = last = reach = 0.0
    number = 0
    for slot in range(kept.base.shape[1]):
        many = kept.filled[page, slot]
        if np.isnan(kept.base[page, slot]) or many == 0:
            continue
        ages, values = kept.age[page, slot], kept.divergence[page, slot]
        if ages[many - 1] > reach:
            reach, last = ages[many - 1], values[many - 1]
        if ages[many - 1] < age * (1.0 - SAME_AGE):
            continue
        k = 0
        while ages[k] < age * (1.0 - SAME_AGE):
            k += 1
        number += 1
        if ages[k] <= age * (1.0 + SAME_AGE):
            low += values[k]
            high += values[k]
        else:
            before = values[k - 1] if k > 0 else 0.0
            low += min(before, values[k])
            high += max(before, values[k])
    if number == 0:
        return last, MOST
    return low / number, high / number


@compiled()
def breaks(kept: HeldProfiles, page: int, elapsed: float) -> FloatArray:
    """Return the ages, ascending from 0 to ``elapsed``, between which the bounds are constant."""
    ages = np.empty(2 + kept.age.shape[1] * kept.age.shape[2])
    ages[0], ages[1] = 0.0, elapsed
    number = 2
    for slot in range(kept.base.shape[1]):
        if np.isnan(kept.base[page, slot]):
            continue
        for k in range(kept.filled[page, slot]):
            if kept.age[page, slot, k] < elapsed:
                ages[number] = kept.age[page, slot, k]
                number += 1
    return np.sort(ages[:number])


@compiled()
def bounds_of_page(
    kept: HeldProfiles, page: int, elapsed: float
) -> tuple[float, float, float, float]:
    """Return A_min, A_max, U_min and U_max of a page, ``elapsed`` after the reference time."""
    low, high = step_bounds(kept, page, elapsed)
    ages = breaks(kept, page, elapsed)
    least_area = most_area = cut_area = 0.0
    for k in range(ages.size - 1):
        width = ages[k + 1] - ages[k]
        if width <= SAME_AGE * ages[k + 1]:
            continue
        lower, upper = step_bounds(kept, page, 0.5 * (ages[k] + ages[k + 1]))
        least_area += width * lower
        most_area += width * upper
        cut_area += width * min(upper, low)
    return least_area, most_area, elapsed * low - cut_area, elapsed * high - least_area
