r"""Estimates from the number of changes X, of crawls n, and the time T that they cover.

Sources: Cho and Garcia-Molina (2003), "Estimating frequency of change"; the last one is for crawls
at exponential intervals. For regular crawls at intervals T / n:

==========  ==========================================  ============================================
naive       X / T                                       biased down: crawls miss repeated changes,
                                                        and it saturates at n / T
improved    -ln((n - X + 0.5) / (n + 0.5)) n / T        0 at X = 0, finite at X = n
modified    ((X - 1) - X / (n ln(1 - X / n))) / T'      in T', changed intervals count from the last
                                                        change on (Last-Modified)
Poisson     X / (n + a - X) n / T                       exponential intervals: P(changed at a crawl)
                                                        = Delta / (Delta + p)
==========  ==========================================  ============================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import per_page, real, whole
from policies.estimators.change_rates.estimator import HistoryEstimator
from policies.estimators.change_rates.page_histories import Histories
from policies.estimators.histories import column, numbers, rows_of_pages, truths


def naive_rate(changes: ArrayLike, time: ArrayLike) -> FloatArray:
    """Return X / T, for changes and time >= 0 of shapes that broadcast; nan where the time is 0."""
    num_changes, length = numbers("changes", changes), numbers("time", time)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(length > 0.0, num_changes / length, np.nan)


def improved_rate(changes: ArrayLike, crawls: ArrayLike, time: ArrayLike) -> FloatArray:
    """Return -ln((n - X + 0.5) / (n + 0.5)) n / T (Cho and Garcia-Molina 2003).

    Args:
        changes: X, crawls that detected a change, <= n.
        crawls: n.
        time: T, covered by the crawls; intervals should be equal.

    Returns:
        Rates: 0 at X = 0, finite at X = n, nan where the time is 0.

    Raises:
        ValueError: a number is negative or not finite, or there are more changes than crawls.
    """
    num_changes, count, length = _counts(changes, crawls, time)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = -np.log1p(-num_changes / (count + 0.5)) * (count / length)
    return np.where(length > 0.0, rate + 0.0, np.nan)


def last_modified_rate(changes: ArrayLike, crawls: ArrayLike, time: ArrayLike) -> FloatArray:
    """Return ((X - 1) - X / (n ln(1 - X / n))) / T' (Cho and Garcia-Molina 2003).

    X / T' is the maximum likelihood estimate; the numerator corrects its bias to first order.

    Args:
        changes: X, crawls that detected a change, <= n.
        crawls: n.
        time: T', the sum of unchanged intervals, and for changed ones of the times from the last
            change to the crawl.

    Returns:
        Rates: 0 at X = 0, (n - 1) / T' at X = n (so 0 after a single crawl), nan where T' is 0.

    Raises:
        ValueError: a number is negative or not finite, or there are more changes than crawls.
    """
    num_changes, count, length = _counts(changes, crawls, time)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = num_changes / count
        log = np.log1p(-share)
        ratio = np.where(share > 0.0, share / log, -1.0)
        rate = (num_changes - 1.0 - ratio) / length
    return np.where(length > 0.0, rate + 0.0, np.nan)


def poisson_crawl_rate(
    changes: ArrayLike, crawls: ArrayLike, crawl_rate: ArrayLike, *, extra: float = 1.0
) -> FloatArray:
    """Return p X / (n + extra - X), for crawls at exponential intervals at rate p.

    The law of large numbers for X / n, which tends to Delta / (Delta + p) (Avrachenkov, Patil and
    Thoppe 2020, "Change rate estimation and optimal freshness in web page crawling").

    Args:
        changes: X, crawls that detected a change, <= n.
        crawls: n.
        crawl_rate: p, crawls per unit time, >= 0.
        extra: alpha >= 0, keeps the rate finite at X = n; with 0 it is inf there.

    Returns:
        Rates; nan without crawls.

    Raises:
        ValueError: a number is negative or not finite, or there are more changes than crawls.
    """
    num_changes, count, speed = _counts(changes, crawls, crawl_rate, "crawl_rate")
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = speed * num_changes / (count + real("extra", extra, least=0.0) - num_changes)
    return np.where(count > 0.0, rate, np.nan)


class NaiveEstimator(HistoryEstimator):
    """X / T of every page: number of changes over time.

    Biased down, because crawls miss repeated changes; 0 at X = 0, n / T at X = n, ``initial``
    without crawls. It is not smoothed. ``stderr_`` is the binomial spread sqrt(X (1 - X / n)) / T
    about the limit of the estimate, which is not the change rate; nan at X = 0 and X = n.
    Arguments as for :class:`HistoryEstimator`.
    """

    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        num_changes, count, time = history_counts(crawls)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt(num_changes * (1.0 - num_changes / count)) / time
        return naive_rate(num_changes, time), np.where(
            (num_changes > 0) & (num_changes < count), spread, np.nan
        )


class ImprovedEstimator(HistoryEstimator):
    """:func:`improved_rate` of every page, with the mean interval for uneven ones.

    Finite everywhere; 0 at X = 0, ``initial`` without crawls. ``stderr_`` is that of the Fisher
    information of n equal intervals T / n, n I^2 / (exp(I rate) - 1); nan where the rate is 0, on a
    bound. Arguments as for :class:`HistoryEstimator`.
    """

    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        num_changes, count, time = history_counts(crawls)
        rate = improved_rate(num_changes, count, time)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.sqrt(np.expm1(rate * time / count) * count) / time
        return rate, np.where(rate > 0.0, error, np.nan)


class LawOfLargeNumbers(HistoryEstimator):
    """:func:`poisson_crawl_rate` of every page: consistent for crawls at random times.

    ``stderr_`` is the spread of X / n transformed to the rate, p sqrt(q / n / (1 - q)^3) with
    q = rate / (rate + p), the Fisher information for unknown intervals; nan where the rate
    is 0 or inf.

    Args:
        num_pages: m.
        crawl_rate: p of each page, > 0, (m,) or a scalar; None for crawls over time.
        extra: alpha, >= 0; with 0 the rate is inf where all crawls detected a change.
        window: see :class:`HistoryEstimator`.
        last: see :class:`HistoryEstimator`.
        initial: see :class:`HistoryEstimator`.
    """

    def __init__(
        self,
        num_pages: int,
        *,
        crawl_rate: ArrayLike | None = None,
        extra: float = 1.0,
        window: float | None = None,
        last: int | None = None,
        initial: ArrayLike = 1.0,
    ) -> None:
        super().__init__(num_pages, window=window, last=last, initial=initial)
        self.extra = real("extra", extra, least=0.0)
        self.crawl_rate = None
        if crawl_rate is not None:
            self.crawl_rate = per_page("crawl_rate", crawl_rate, self.num_pages)

    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        num_changes, count, time = history_counts(crawls)
        with np.errstate(invalid="ignore", divide="ignore"):
            speed = self.crawl_rate
            if speed is None:
                speed = np.where(time > 0.0, count / time, 0.0)
            rate = poisson_crawl_rate(num_changes, count, speed, extra=self.extra)
            share = rate / (rate + speed)
            error = speed * np.sqrt(share / count / (1.0 - share) ** 3)
        return rate, np.where((rate > 0.0) & np.isfinite(rate), error, np.nan)


class LastModifiedEstimator:
    """:func:`last_modified_rate` of every page, from crawls with the time of the last change.

    The estimate is ``initial`` without crawls or with T' = 0; it is 0 at X = 0, and after a single
    crawl. ``stderr_`` is sqrt(X) / T', from the Fisher information X / Delta^2 of the times since
    the last change; nan at X = 0. Only counts are stored: 24 bytes per page.

    Args:
        num_pages: m.
        initial: first guess, >= 0; (m,) or a scalar.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(self, num_pages: int, *, initial: ArrayLike = 1.0) -> None:
        self.num_pages = whole("num_pages", num_pages, 1)
        self.initial = per_page("initial", initial, self.num_pages)
        self._changes, self._crawls, self._time = (np.zeros(self.num_pages) for _ in range(3))

    def update(
        self, page: ArrayLike, elapsed: ArrayLike, changed: ArrayLike, *, age: ArrayLike
    ) -> None:
        """Add crawls, in any order.

        Args:
            page: (n,) int; a page may come several times.
            elapsed: time since the page's crawl before, >= 0; (n,).
            changed: whether the page had changed, (n,) bool.
            age: time between the page's last change and the crawl, >= 0, (n,); used only where the
                page had changed, and at most ``elapsed`` there.

        Raises:
            ValueError: a number is negative or not finite, shapes disagree, a page is out of
                range, or an age exceeds ``elapsed`` where the page had changed.
        """
        lengths = np.atleast_1d(numbers("elapsed", elapsed))
        count = len(lengths)
        flags = truths("changed", np.atleast_1d(changed), count)
        pages, _ = rows_of_pages(np.atleast_1d(page), self.num_pages, count)
        given = np.atleast_1d(np.asarray(age, np.float64))
        if given.shape != (count,):
            raise ValueError(f"age must have shape ({count},), got {given.shape}")
        ages = column("age", np.where(flags > 0.0, given, 0.0), count)
        if np.any(ages > lengths):
            at = int(np.argmax(ages - lengths))
            raise ValueError(
                f"age must not exceed elapsed where changed, got {ages[at]} after {lengths[at]}"
            )
        m = self.num_pages
        self._changes += np.bincount(pages, flags, minlength=m)
        self._crawls += np.bincount(pages, minlength=m)
        self._time += np.bincount(pages, np.where(flags > 0.0, ages, lengths), minlength=m)

    @property
    def estimate_(self) -> FloatArray:
        """Change rate of each page, (m,)."""
        rate = last_modified_rate(self._changes, self._crawls, self._time)
        return np.where(np.isnan(rate), self.initial, rate)

    @property
    def stderr_(self) -> FloatArray:
        """Standard error of each page's estimate, (m,)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.sqrt(self._changes) / self._time
        return np.where((self._changes > 0.0) & (self._time > 0.0), error, np.nan)


def history_counts(crawls: Histories) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return changes, crawls and time of each page, (m,) float64 each."""
    count = np.diff(crawls.offsets)
    page = np.repeat(np.arange(len(count)), count)
    num_changes = np.bincount(page, crawls.changed.astype(np.float64), minlength=len(count))
    time = np.bincount(page, crawls.intervals.astype(np.float64), minlength=len(count))
    return np.asarray(num_changes), count.astype(np.float64), np.asarray(time)


def _counts(
    changes: ArrayLike, crawls: ArrayLike, third: ArrayLike, name: str = "time"
) -> tuple[FloatArray, FloatArray, FloatArray]:
    num_changes, count = numbers("changes", changes), numbers("crawls", crawls)
    if np.any(num_changes > count):
        excess = np.broadcast_arrays(num_changes, count)
        at = int(np.argmax(excess[0] - excess[1]))
        raise ValueError(
            f"changes must not exceed crawls, got {excess[0].flat[at]} of {excess[1].flat[at]}"
        )
    return num_changes, count, numbers(name, third)
