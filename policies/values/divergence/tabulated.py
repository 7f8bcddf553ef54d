"""Divergence curves that are known at some ages, among them the averages of recorded content."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import floats, quantity
from crawl_envs.types.compiling import compiled
from crawl_envs.worlds.fragments.contents import Contents
from policies.values.divergence.curves import area_below, per_page

MOST_VERSIONS = 4096
"""Versions of a page that are compared, each with each."""


class TabulatedCurves:
    """Divergence that is given at some ages, with straight lines from (0, 0) and between them.

    What is given is made nondecreasing first: each number is replaced by the largest up to it.
    Beyond the last age divergence is constant. Area, utility and period are exact for these lines;
    on stretches where divergence is constant so is the utility, and the period is where they begin.

    Args:
        ages: times since the last crawl, (A,), > 0 and rising.
        divergence: by page and age, (m, A), finite and >= 0; or (A,) for a page.

    Attributes:
        ages: with 0 in front, (A + 1,).
        table: divergence, nondecreasing, with 0 in front, (m, A + 1).
        ceiling: U(inf), (m,): the utility at the last age.

    Raises:
        ValueError: shapes disagree, ages do not rise from above 0, or a number is negative or not
            finite.
    """

    def __init__(self, ages: ArrayLike, divergence: ArrayLike) -> None:
        times, table = floats("ages", ages), np.atleast_2d(floats("divergence", divergence))
        if times.ndim != 1 or times.size == 0:
            raise ValueError(f"ages must have shape (A,) with A >= 1, got {times.shape}")
        if table.ndim != 2 or len(table) == 0 or table.shape[1] != times.size:
            raise ValueError(
                f"divergence must have shape (m, {times.size}), a column per age, got {table.shape}"
            )
        knots = np.concatenate([[0.0], times])
        if not (np.isfinite(knots).all() and np.all(np.diff(knots) > 0.0)):
            raise ValueError(f"ages must be finite, rise, and be > 0, got {times}")
        good = np.isfinite(table) & (table >= 0.0)
        if not good.all():
            raise ValueError(f"divergence must be finite and >= 0, got {table[~good][0]}")
        self.ages = knots
        self.table = np.zeros((len(table), knots.size))
        np.maximum.accumulate(table, axis=1, out=self.table[:, 1:])
        self._utility = np.zeros_like(self.table)
        steps = np.diff(self.table, axis=1) * (0.5 * (knots[1:] + knots[:-1]))
        np.cumsum(steps, axis=1, out=self._utility[:, 1:])
        self.ceiling: FloatArray = self._utility[:, -1].copy()

    @classmethod
    def of_contents(cls, contents: Contents, interval: float, duration: float) -> Self:
        """Average divergence between versions of each page, by the time between them (section 3.4).

        Versions are taken at every whole multiple of ``interval`` in (0, ``duration``]; the
        divergence after an age is the mean of the Jaccard distance over all pairs of versions that
        are so far apart, as for FS-S. Two versions without a fragment do not differ.

        Args:
            contents: what the pages say.
            interval: time from version to version, > 0.
            duration: time in which they are taken, two intervals or more.

        Raises:
            ValueError: an argument is out of its range, or there are more than MOST_VERSIONS
                versions.
        """
        step = quantity("interval", interval, above=0.0)
        count = quantity("duration", duration, least=2.0 * step) / step * (1.0 + 1e-12)
        if count >= MOST_VERSIONS + 1:
            raise ValueError(
                f"duration must be at most {MOST_VERSIONS} intervals of {step:g}, got {duration!r}"
            )
        times = step * np.arange(1.0, int(count) + 1.0)
        return cls(times[:-1], mean_divergence(contents, times))

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return len(self.table)

    def divergence(self, elapsed: ArrayLike) -> FloatArray:
        """Divergence D*, (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        return self._at(time)[0]

    def area(self, elapsed: ArrayLike) -> FloatArray:
        """Integral of D* from 0 to ``elapsed``, (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        return area_below(time, *self._at(time))

    def utility(self, elapsed: ArrayLike) -> FloatArray:
        """What a crawl is worth, (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        return self._at(time)[1]

    def period(self, threshold: ArrayLike) -> FloatArray:
        """Least time at which the utility reaches the threshold, (m,); inf where it never does."""
        worth = per_page("threshold", threshold, self.num_pages)
        knot = np.sum(self._utility < worth[:, None], axis=1)  # the first that reaches it
        periods = np.where(knot == 0, 0.0, np.inf)
        rows = np.flatnonzero((knot > 0) & (knot < self.ages.size))
        after = knot[rows]
        start, end = self.ages[after - 1], self.ages[after]
        low, high = self._utility[rows, after - 1], self._utility[rows, after]
        part = (worth[rows] - low) / (high - low)
        square = start * start + part * (end - start) * (end + start)
        periods[rows] = np.minimum(np.sqrt(square), end)
        return periods

    def _at(self, elapsed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """D* and U, (m,) each."""
        rows = np.arange(self.num_pages)
        time = np.minimum(elapsed, self.ages[-1])
        after = np.clip(np.searchsorted(self.ages, time), 1, self.ages.size - 1)
        start, end = self.ages[after - 1], self.ages[after]
        low, high = self.table[rows, after - 1], self.table[rows, after]
        gained = (high - low) * ((time - start) / (end - start))
        utility = self._utility[rows, after - 1] + gained * (0.5 * (time + start))
        return low + gained, np.minimum(utility, self._utility[rows, after])


def mean_divergence(contents: Contents, times: FloatArray) -> FloatArray:
    """Mean Jaccard distance of versions of each page that are 1, 2, ... apart in ``times``.

    Args:
        contents: what m pages say.
        times: when versions are taken, rising, (V,) with V >= 2.

    Returns:
        (m, V - 1), in [0, 1].
    """
    begin = np.searchsorted(times, contents.birth, side="right")
    end = np.searchsorted(times, contents.death, side="right")
    return _mean_divergence(contents.start, contents.earlier, contents.size, begin, end, times.size)


@compiled()
def _mean_divergence(
    start: IntArray,
    earlier: IntArray,
    size: IntArray,
    begin: IntArray,
    end: IntArray,
    versions: int,
) -> FloatArray:
    """Spell s is in the versions ``begin[s]`` to ``end[s] - 1``."""
    means = np.zeros((start.size - 1, versions - 1))
    shared = np.empty((versions + 1, versions + 1), np.int64)
    for page in range(start.size - 1):
        shared[:] = 0
        for spell in range(start[page], start[page + 1]):
            before = spell
            while before >= 0 and begin[spell] < end[spell]:
                if begin[before] < end[before]:
                    _add(shared, begin[before], end[before], begin[spell], end[spell], size[spell])
                before = earlier[before]
        _sum_up(shared, versions)
        for gap in range(1, versions):
            total = 0.0
            for a in range(versions - gap):
                both = shared[a, a + gap]
                either = shared[a, a] + shared[a + gap, a + gap] - both
                if either > 0:
                    total += (either - both) / either
            means[page, gap - 1] = total / (versions - gap)
    return means


@compiled()
def _add(table: IntArray, top: int, bottom: int, left: int, right: int, size: int) -> None:
    """Add to the corners of a rectangle what :func:`_sum_up` spreads over it."""
    table[top, left] += size
    table[bottom, left] -= size
    table[top, right] -= size
    table[bottom, right] += size


@compiled()
def _sum_up(table: IntArray, count: int) -> None:
    """Replace each entry by the sum of all above and to the left of it."""
    for a in range(count):
        run = 0
        for b in range(count):
            run += table[a, b]
            table[a, b] = run + (table[a - 1, b] if a > 0 else 0)
