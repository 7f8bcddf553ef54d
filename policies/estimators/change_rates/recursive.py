r"""A change rate that every crawl moves by a step: stochastic approximation.

Of a page that is crawled at exponential intervals at rate p, a crawl finds a change (I = 1) with
probability Delta / (Delta + p), so I (x + p) - x is 0 on average at x = Delta alone, and falls
there with the slope p / (Delta + p). Avrachenkov, Patil and Thoppe (2020), "Change rate estimation
and optimal freshness in web page crawling", follow it:

    x <- x + eta_k (I (x + p) - x) + beta (x - x before),

with beta > 0 for heavy-ball momentum. A crawl costs constant time, and a page constant memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import per_page, real, whole
from crawl_envs.types.compiling import compiled
from policies.estimators.change_rates.page_histories import check_intervals
from policies.estimators.histories import numbers, rows_of_pages, truths


class StochasticApproximation:
    """Change rates by stochastic approximation, with or without momentum.

    Steps are eta_k = ``step`` / k^``decay`` at the k-th crawl of a page. The estimate starts at
    ``initial`` and stays positive if that is, the step is below 1 and there is no momentum, which
    is cut where it would take the estimate below 0. With a step of 1, a first crawl that finds no
    change makes the estimate 0. It is finite whatever crawls find: a page whose crawls all find
    changes rises by about eta p a crawl.

    ``stderr_`` follows the steps made, with the estimate for Delta: a step leaves the share
    1 - eta p / (Delta + p) of the error before it and adds noise of the variance eta^2 Delta p, and
    what is left of the distance to ``initial`` counts as an error. There is no likelihood. With
    momentum steps count as eta / (1 - momentum), as they do where they are small. It is nan before
    the page's first crawl, and where the estimate is 0, a bound. To look at it takes time in
    proportion to all crawls so far.

    Args:
        num_pages: m.
        crawl_rate: p of each page, > 0, (m,) or a scalar; None for crawls over time so far.
        step: eta_1, in (0, 1].
        decay: in [0, 1); 0 keeps the step, and so follows rates that change.
        momentum: beta, in [0, 1).
        initial: first guess, >= 0; (m,) or a scalar.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        num_pages: int,
        *,
        crawl_rate: ArrayLike | None = None,
        step: float = 0.5,
        decay: float = 0.75,
        momentum: float = 0.0,
        initial: ArrayLike = 1.0,
    ) -> None:
        self.num_pages = whole("num_pages", num_pages, 1)
        self.step = real("step", step, above=0.0)
        self.decay = real("decay", decay, least=0.0)
        self.momentum = real("momentum", momentum, least=0.0)
        for name, value, fits in (
            ("step", self.step, self.step <= 1.0),
            ("decay", self.decay, self.decay < 1.0),
            ("momentum", self.momentum, self.momentum < 1.0),
        ):
            if not fits:
                raise ValueError(f"{name} must be at most 1 (decay, momentum: below), got {value}")
        self.initial = per_page("initial", initial, self.num_pages)
        self.crawl_rate = None
        if crawl_rate is not None:
            self.crawl_rate = per_page("crawl_rate", crawl_rate, self.num_pages)
            if np.any(self.crawl_rate == 0.0):
                raise ValueError("crawl_rate must be > 0, got 0.0")
        self._rate: FloatArray = self.initial.copy()
        self._before: FloatArray = self.initial.copy()
        self._crawls: IntArray = np.zeros(self.num_pages, np.int64)
        self._time: FloatArray = np.zeros(self.num_pages)

    def update(
        self,
        page: ArrayLike,
        elapsed: ArrayLike,
        changed: ArrayLike,
        *,
        time: ArrayLike | None = None,
        now: float | None = None,
    ) -> None:
        """Take in crawls, those of a page in the order made.

        Args:
            page: (n,) int; a page may come several times.
            elapsed: time since the page's crawl before, >= 0, (n,); it only matters without
                ``crawl_rate``.
            changed: what was found, (n,) bool.
            time: not used, nor ``now``; they are there to be told like a :class:`HistoryEstimator`.
            now: see ``time``.

        Raises:
            ValueError: a number is negative or not finite, shapes disagree, a page is none of the
                m, or a page had changed in no time.
        """
        lengths = np.atleast_1d(numbers("elapsed", elapsed))
        found = truths("changed", np.atleast_1d(changed), len(lengths)) > 0.0
        pages, _ = rows_of_pages(np.atleast_1d(page), self.num_pages, len(lengths))
        check_intervals("elapsed", lengths, found)
        _follow(
            pages,
            lengths,
            found,
            np.zeros(self.num_pages) if self.crawl_rate is None else self.crawl_rate.copy(),
            np.array([self.step, self.decay, self.momentum]),
            self._rate,
            self._before,
            self._crawls,
            self._time,
        )

    @property
    def estimate_(self) -> FloatArray:
        """Change rate of each page, (m,)."""
        return self._rate.copy()

    @property
    def stderr_(self) -> FloatArray:
        """Spread of each page's estimate, (m,)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            speed = self._crawls / self._time if self.crawl_rate is None else self.crawl_rate
            pull = speed / (self._rate + speed)
        step = min(self.step / (1.0 - self.momentum), 1.0)
        left, noise = _left_and_noise(self._crawls, pull, step, self.decay)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.hypot(
                left * (self._rate - self.initial), np.sqrt(noise * self._rate * speed)
            )
        known = (self._crawls > 0) & (self._rate > 0.0) & np.isfinite(error)
        return np.where(known, error, np.nan)


@compiled()
def _left_and_noise(
    crawls: IntArray, pull: FloatArray, step: float, decay: float
) -> tuple[FloatArray, FloatArray]:
    """What share of a first error the steps leave, and the variance they add for noise of 1."""
    left, noise = np.ones(crawls.size), np.zeros(crawls.size)
    for i in range(crawls.size):
        for k in range(1, crawls[i] + 1):
            eta = step / k**decay
            stays = 1.0 - eta * pull[i]
            left[i] *= stays
            noise[i] = stays * stays * noise[i] + eta * eta
    return left, noise


@compiled()
def _follow(
    page: IntArray,
    elapsed: FloatArray,
    changed: BoolArray,
    crawl_rate: FloatArray,
    steps: FloatArray,
    rate: FloatArray,
    before: FloatArray,
    crawls: IntArray,
    time: FloatArray,
) -> None:
    """Move ``rate`` by each crawl; a ``crawl_rate`` of 0 is counted. The last four are changed."""
    for k in range(len(page)):
        i = page[k]
        crawls[i] += 1
        time[i] += elapsed[k]
        speed = crawl_rate[i]
        if speed == 0.0:
            if time[i] == 0.0:  # crawls at one moment say nothing
                continue
            speed = crawls[i] / time[i]
        old = rate[i]
        aim = old + speed if changed[k] else 0.0
        moved = old + steps[0] / crawls[i] ** steps[1] * (aim - old)
        rate[i] = max(moved + steps[2] * (old - before[i]), 0.0)
        before[i] = old
