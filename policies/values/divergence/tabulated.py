"""Divergence curves from tables by age, such as averages of recorded content."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import floats, quantity
from crawl_envs.types.contents import Contents
from policies.values.divergence.curves import area_below, per_page

MAX_VERSIONS = 4096
"""Maximum number of versions of a page; all pairs of versions are compared."""


class TabulatedCurves:
    """Divergence of pages given at some ages, interpolated linearly between them from (0, 0) on.

    Numbers that fall with age are first replaced by their running maximum. Beyond the last age
    divergence is constant. Area, utility and period are exact for the interpolation. Where
    divergence is constant, so is the utility, and the period is the start of such a stretch.

    Args:
        ages: times since the last crawl, (A,), > 0 and rising.
        divergence: by page and age, (m, A), finite and >= 0; or (A,) for one page.

    Attributes:
        ages: ages with a leading 0, (A + 1,).
        table: divergence, nondecreasing, with a leading 0, (m, A + 1).
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
        """Return curves of the mean divergence between versions of a page, by their time apart.

        Versions are sampled at every whole multiple of ``interval`` in (0, ``duration``]. The
        divergence at an age is the mean Jaccard distance of all pairs of versions of this age
        difference (section 3.4, FS-S). Two versions without fragments do not differ.

        Args:
            contents: contents of the pages.
            interval: time between versions, > 0.
            duration: length of the time in which they are sampled, at least two intervals.

        Raises:
            ValueError: an argument is out of its range, or there are more than MAX_VERSIONS
                versions.
        """
        step = quantity("interval", interval, above=0.0)
        count = quantity("duration", duration, least=2.0 * step) / step * (1.0 + 1e-12)
        if count >= MAX_VERSIONS + 1:
            raise ValueError(
                f"duration must be at most {MAX_VERSIONS} intervals of {step:g}, got {duration!r}"
            )
        times = step * np.arange(1.0, int(count) + 1.0)
        return cls(times[:-1], mean_divergence(contents, times))

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return len(self.table)

    def divergence(self, elapsed: ArrayLike) -> FloatArray:
        """Return the divergence D* of pages from their copies at ``elapsed``, (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        return self._interpolate(time)[0]

    def area(self, elapsed: ArrayLike) -> FloatArray:
        """Return the integral of D* from 0 to ``elapsed``, (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        return area_below(time, *self._interpolate(time))

    def utility(self, elapsed: ArrayLike) -> FloatArray:
        """Return the utility U of a crawl at ``elapsed`` (eq. 4), (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        return self._interpolate(time)[1]

    def period(self, threshold: ArrayLike) -> FloatArray:
        """Return the least time at which the utility reaches the threshold, (m,), or inf."""
        target = per_page("threshold", threshold, self.num_pages)
        knot = np.sum(self._utility < target[:, None], axis=1)  # the first that reaches it
        periods = np.where(knot == 0, 0.0, np.inf)
        rows = np.flatnonzero((knot > 0) & (knot < self.ages.size))
        after = knot[rows]
        start, end = self.ages[after - 1], self.ages[after]
        low, high = self._utility[rows, after - 1], self._utility[rows, after]
        part = (target[rows] - low) / (high - low)
        square = start * start + part * (end - start) * (end + start)
        periods[rows] = np.minimum(np.sqrt(square), end)
        return periods

    def _interpolate(self, elapsed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return divergence D* and utility U of each page at its elapsed time, (m,) each."""
        rows = np.arange(self.num_pages)
        time = np.minimum(elapsed, self.ages[-1])
        after = np.clip(np.searchsorted(self.ages, time), 1, self.ages.size - 1)
        start, end = self.ages[after - 1], self.ages[after]
        low, high = self.table[rows, after - 1], self.table[rows, after]
        gained = (high - low) * ((time - start) / (end - start))
        utility = self._utility[rows, after - 1] + gained * (0.5 * (time + start))
        return low + gained, np.minimum(utility, self._utility[rows, after])


def mean_divergence(contents: Contents, times: FloatArray) -> FloatArray:
    """Return each page's mean Jaccard distance of versions with 1, 2, ... steps of time between.

    Args:
        contents: contents of m pages.
        times: times of the versions, rising, (V,) with V >= 2.

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
    """Return :func:`mean_divergence`; versions ``begin[s]`` to ``end[s] - 1`` contain spell s."""
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


@inlined()
def _add(table: IntArray, row: int, row_end: int, column: int, column_end: int, size: int) -> None:
    """Add differences that :func:`_sum_up` turns into ``size`` in every cell of a rectangle."""
    table[row, column] += size
    table[row_end, column] -= size
    table[row, column_end] -= size
    table[row_end, column_end] += size


@inlined()
def _sum_up(table: IntArray, count: int) -> None:
    """Replace each entry of a table by the sum of all entries above and to the left of it."""
    for a in range(count):
        run = 0
        for b in range(count):
            run += table[a, b]
            table[a, b] = run + (table[a - 1, b] if a > 0 else 0)
