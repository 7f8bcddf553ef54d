r"""Estimates from counts: of changes X, of crawls n, and the time T that they cover.

They are those of Cho and Garcia-Molina (2003), "Estimating frequency of change", and one for crawls
at exponential intervals. For regular crawls at intervals T / n:

==========  ==========================================  ============================================
naive       X / T                                       biased down: crawls miss repeated changes,
                                                        and it saturates at n / T
improved    -ln((n - X + 0.5) / (n + 0.5)) n / T        0 at X = 0, finite at X = n
modified    ((X - 1) - X / (n ln(1 - X / n))) / T'      T' has, of a changed interval, only the time
                                                        since the last change (Last-Modified)
Poisson     X / (n + a - X) n / T                       intervals are exponential: a crawl finds a
                                                        change with probability Delta / (Delta + p)
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
    """X / T; changes and time >= 0, of shapes that broadcast. It is nan where the time is 0."""
    found, length = numbers("changes", changes), numbers("time", time)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(length > 0.0, found / length, np.nan)


def improved_rate(changes: ArrayLike, crawls: ArrayLike, time: ArrayLike) -> FloatArray:
    """-ln((n - X + 0.5) / (n + 0.5)) n / T (Cho and Garcia-Molina 2003).

    Args:
        changes: X, crawls that found a change, <= n.
        crawls: n.
        time: T, that they cover; intervals should be equal.

    Returns:
        Rates: 0 at X = 0, finite at X = n, nan where the time is 0.

    Raises:
        ValueError: a number is negative or not finite, or there are more changes than crawls.
    """
    found, count, length = _counts(changes, crawls, time)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = -np.log1p(-found / (count + 0.5)) * (count / length)
    return np.where(length > 0.0, rate + 0.0, np.nan)


def last_modified_rate(changes: ArrayLike, crawls: ArrayLike, time: ArrayLike) -> FloatArray:
    """((X - 1) - X / (n ln(1 - X / n))) / T' (Cho and Garcia-Molina 2003).

    X / T' is the maximum of the likelihood; the numerator takes out its bias of first order.

    Args:
        changes: X, crawls that found a change, <= n.
        crawls: n.
        time: T': of each unchanged interval its length, of each changed one the time between the
            last change and the crawl.

    Returns:
        Rates: 0 at X = 0, (n - 1) / T' at X = n (so 0 after a single crawl), nan where T' is 0.

    Raises:
        ValueError: a number is negative or not finite, or there are more changes than crawls.
    """
    found, count, length = _counts(changes, crawls, time)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = found / count
        log = np.log1p(-share)
        ratio = np.where(share > 0.0, share / log, -1.0)
        rate = (found - 1.0 - ratio) / length
    return np.where(length > 0.0, rate + 0.0, np.nan)


def poisson_crawl_rate(
    changes: ArrayLike, crawls: ArrayLike, crawl_rate: ArrayLike, *, extra: float = 1.0
) -> FloatArray:
    """Rate p X / (n + extra - X), of crawls at exponential intervals at rate p.

    The law of large numbers for X / n, which tends to Delta / (Delta + p) (Avrachenkov, Patil and
    Thoppe 2020, "Change rate estimation and optimal freshness in web page crawling").

    Args:
        changes: X, crawls that found a change, <= n.
        crawls: n.
        crawl_rate: p, crawls per unit time, >= 0.
        extra: alpha >= 0, what keeps the rate finite at X = n; without it, it is inf there.

    Returns:
        Rates; nan without crawls.

    Raises:
        ValueError: a number is negative or not finite, or there are more changes than crawls.
    """
    found, count, speed = _counts(changes, crawls, crawl_rate, "crawl_rate")
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = speed * found / (count + real("extra", extra, least=0.0) - found)
    return np.where(count > 0.0, rate, np.nan)


class NaiveEstimator(HistoryEstimator):
    """X / T of every page: changes found over time.

    Low by as much as crawls miss changes; 0 at X = 0, n / T at X = n, ``initial`` without crawls.
    It is not smoothed. ``stderr_`` is the binomial spread sqrt(X (1 - X / n)) / T about what the
    estimate tends to, which is not the change rate; nan at X = 0 and X = n.
    Arguments as of :class:`HistoryEstimator`.
    """

    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        found, count, time = history_counts(crawls)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt(found * (1.0 - found / count)) / time
        return naive_rate(found, time), np.where((found > 0) & (found < count), spread, np.nan)


class ImprovedEstimator(HistoryEstimator):
    """:func:`improved_rate` of every page, with the mean interval for uneven ones.

    Finite everywhere; 0 at X = 0, ``initial`` without crawls. ``stderr_`` is that of the Fisher
    information of n equal intervals T / n, n I^2 / (exp(I rate) - 1); nan where the rate is 0, on a
    bound. Arguments as of :class:`HistoryEstimator`.
    """

    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        found, count, time = history_counts(crawls)
        rate = improved_rate(found, count, time)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.sqrt(np.expm1(rate * time / count) * count) / time
        return rate, np.where(rate > 0.0, error, np.nan)


class LawOfLargeNumbers(HistoryEstimator):
    """:func:`poisson_crawl_rate` of every page: right where pages are crawled at random.

    ``stderr_`` is the spread of X / n carried to the rate, p sqrt(q / n / (1 - q)^3) with
    q = rate / (rate + p), the Fisher information where intervals are not known; nan where the rate
    is 0 or inf.

    Args:
        num_pages: m.
        crawl_rate: p of each page, > 0, (m,) or a scalar; None for crawls over time.
        extra: alpha, >= 0; 0 leaves the rate inf where all crawls found a change.
        window: see :class:`HistoryEstimator`, as the rest.
        last: see there.
        initial: see there.
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
        found, count, time = history_counts(crawls)
        with np.errstate(invalid="ignore", divide="ignore"):
            speed = self.crawl_rate
            if speed is None:
                speed = np.where(time > 0.0, count / time, 0.0)
            rate = poisson_crawl_rate(found, count, speed, extra=self.extra)
            share = rate / (rate + speed)
            error = speed * np.sqrt(share / count / (1.0 - share) ** 3)
        return rate, np.where((rate > 0.0) & np.isfinite(rate), error, np.nan)


class LastModifiedEstimator:
    """:func:`last_modified_rate` of every page, whose crawls tell when it last changed.

    Before any crawl, and where none took time, the estimate is ``initial``; it is 0 at X = 0, and
    after a single crawl. ``stderr_`` is sqrt(X) / T', from the Fisher information X / Delta^2 of
    the times since the last change; nan at X = 0. Counts alone are kept: memory is 24 bytes a page.

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
        """Take in crawls, in any order.

        Args:
            page: (n,) int; a page may come several times.
            elapsed: time since the page's crawl before, >= 0; (n,).
            changed: what was found, (n,) bool.
            age: time between the page's last change and the crawl, >= 0, (n,); read only where the
                page had changed, and not above ``elapsed`` there.

        Raises:
            ValueError: a number is negative or not finite, shapes disagree, a page is none of the
                m, or what changed since the crawl before is older than that crawl.
        """
        lengths = np.atleast_1d(numbers("elapsed", elapsed))
        count = len(lengths)
        found = truths("changed", np.atleast_1d(changed), count)
        pages, _ = rows_of_pages(np.atleast_1d(page), self.num_pages, count)
        given = np.atleast_1d(np.asarray(age, np.float64))
        if given.shape != (count,):
            raise ValueError(f"age must have shape ({count},), got {given.shape}")
        ages = column("age", np.where(found > 0.0, given, 0.0), count)
        if np.any(ages > lengths):
            at = int(np.argmax(ages - lengths))
            raise ValueError(
                f"age must not exceed elapsed where changed, got {ages[at]} after {lengths[at]}"
            )
        m = self.num_pages
        self._changes += np.bincount(pages, found, minlength=m)
        self._crawls += np.bincount(pages, minlength=m)
        self._time += np.bincount(pages, np.where(found > 0.0, ages, lengths), minlength=m)

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
    """Changes found, crawls and time of each page, (m,) float64 each."""
    count = np.diff(crawls.offsets)
    page = np.repeat(np.arange(len(count)), count)
    found = np.bincount(page, crawls.changed.astype(np.float64), minlength=len(count))
    time = np.bincount(page, crawls.intervals.astype(np.float64), minlength=len(count))
    return np.asarray(found), count.astype(np.float64), np.asarray(time)


def _counts(
    changes: ArrayLike, crawls: ArrayLike, third: ArrayLike, name: str = "time"
) -> tuple[FloatArray, FloatArray, FloatArray]:
    found, count = numbers("changes", changes), numbers("crawls", crawls)
    if np.any(found > count):
        excess = np.broadcast_arrays(found, count)
        at = int(np.argmax(excess[0] - excess[1]))
        raise ValueError(
            f"changes must not exceed crawls, got {excess[0].flat[at]} of {excess[1].flat[at]}"
        )
    return found, count, numbers(name, third)
