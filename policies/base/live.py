"""Pages without an environment: a tracker that logs advance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import deepcopy

import numpy as np

from crawl_envs.types import BoolArray, CrawlLog, Problem, Tracker
from crawl_envs.types.arguments import quantity
from crawl_envs.types.copies import Copies, Sketches
from crawl_envs.types.offer_features import OfferFeatures

CRAWLS_PER_PAGE = 100.0
"""Mean number of crawls of a page in the default horizon."""
ROUNDING = 1e-12
"""Relative rounding error of a number of slots or epochs."""


class LivePages:
    """The pages of a tracker without an environment; logs alone advance it.

    Its ``tracker()`` equals that of an environment after the same logs. Policies start on it:
    ``policy.start(pages)``.

    Args:
        problem: the pages, their known parameters, and the bandwidth.
        alive: the pages that exist at time 0, (m,) bool; None for all. They count as crawled then.
        horizon: length of the schedules of policies that plan ahead, which then repeat, and of
            what others explore; None for 100 crawls per page.
        seed: of random choices; a whole number, or a generator, which is copied.
        sketches: sketches of all pages at time 0, for policies that compare fragments.

    Attributes:
        problem: may be replaced by one with other parameters of the same pages; policies read it
            when they start.
        offers: features of shopping offers on the current day, None if the pages are none.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        alive: BoolArray | None = None,
        horizon: float | None = None,
        seed: int | np.random.Generator = 0,
        sketches: Sketches | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise ValueError(f"problem must be a Problem, got {type(problem).__name__}")
        m, s = problem.num_pages, problem.num_sources
        if horizon is None:
            horizon = CRAWLS_PER_PAGE * m / problem.per_cost().bandwidth
        self.problem, self.sketches = problem, sketches
        self.horizon = quantity("horizon", horizon, above=0.0)
        self._rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
        self.time = 0.0
        self.offers: OfferFeatures | None = None
        self._log = empty_log(s)
        self._alive = np.ones(m, np.bool_) if alive is None else np.array(alive, np.bool_)
        if self._alive.shape != (m,):
            raise ValueError(f"alive must have shape ({m},), got {self._alive.shape}")
        self._last_crawl = np.zeros(m)
        self._signals = np.zeros((s, m), np.int64)
        self._changed = np.full(m, -1, np.int8)
        self._sizes = np.zeros(m, np.int64) if sketches is None else np.diff(sketches.start)
        self._bases: np.ndarray | None = None

    def last_log(self) -> CrawlLog:
        """Return the log of the last :meth:`advance`; an empty one before that."""
        return self._log

    def rng(self) -> np.random.Generator:
        """Return a new generator for random choices, in the same state at every call."""
        return deepcopy(self._rng)

    def num_slots(self, epoch: float | None = None) -> int:
        """Return the number of crawls in the horizon, or of epochs if a length is given."""
        if epoch is not None:
            return math.floor(self.horizon / epoch * (1.0 + ROUNDING))
        crawls, start, rate = 0.0, 0.0, self.problem.bandwidth
        for time, next_rate in (*self.problem.bandwidth_steps, (self.horizon, 0.0)):
            end = min(time, self.horizon)
            crawls, start, rate = crawls + max(end - start, 0.0) * rate, max(start, end), next_rate
        return max(math.floor(crawls * (1.0 + ROUNDING)), 1)

    def first_sketch(self) -> Sketches:
        """Return the sketches of all pages at time 0; ValueError if there are none."""
        if self.sketches is None:
            raise ValueError("sketches must be given to LivePages of pages with fragments")
        return self.sketches

    def tracker(self) -> Tracker:
        """Return what is known of the pages now, as new arrays."""
        copies = None
        if self.sketches is not None:
            bases = np.empty((2, 0, self._alive.size)) if self._bases is None else self._bases
            copies = Copies(self._sizes.copy(), *bases.copy())
        return Tracker(
            problem=self.problem,
            episode=0,
            time=self.time,
            elapsed=np.where(self._alive, self.time - self._last_crawl, 0.0),
            signals=(self._signals if len(self._signals) > 1 else self._signals[0]).copy(),
            changed=self._changed.copy(),
            alive=self._alive.copy(),
            offers=self.offers,
            copies=copies,
        )

    def advance(
        self,
        log: CrawlLog,
        time: float,
        *,
        births: Mapping[int, float] | None = None,
        deaths: Iterable[int] = (),
    ) -> None:
        """Update what is known of the pages by the crawls and signals up to a time.

        Args:
            log: the crawls, and the signals that arrived since the last call, in order of time.
            time: the current time, not before that of the last call.
            births: time of birth of each page born since, by page.
            deaths: the pages that ceased to exist since, and do not exist now.

        Raises:
            ValueError: a time that lies before the last one, an event after ``time``, or a page or
                source that does not exist; nothing is changed in this case.
        """
        births, deaths = dict(births or {}), list(deaths)
        self._check(log, time, births, deaths)
        self.time, self._log = float(time), log
        for page, birth in births.items():
            self._clear(page)
            self._alive[page], self._last_crawl[page] = True, birth
        begun = self._last_crawl[log.signal_page]
        counts = self._alive[log.signal_page] & (log.signal_time >= begun)
        np.add.at(self._signals, (log.signal_source[counts], log.signal_page[counts]), 1)
        self._crawl(log)
        for page in deaths:
            self._clear(page)
            self._alive[page] = False

    def _check(
        self, log: CrawlLog, time: float, births: Mapping[int, float], deaths: list[int]
    ) -> None:
        """Raise ValueError unless log, time, births and deaths suit :meth:`advance`."""
        if not self.time <= time < math.inf:
            raise ValueError(f"time must be finite and >= {self.time}, got {time!r}")
        num_sources, m = self._signals.shape
        pages = {"births": list(births), "deaths": deaths, "log": [*log.page, *log.signal_page]}
        times = {"births": list(births.values()), "log": [*log.time, *log.signal_time]}
        for name, numbers in pages.items():
            within = np.array(numbers, np.int64)
            if np.any((within < 0) | (within >= m)):
                raise ValueError(f"{name} must have pages in [0, {m}), got {within}")
        for name, instants in times.items():
            values = np.array(instants, np.float64)
            if not np.all((values >= 0.0) & (values <= time)):
                raise ValueError(f"{name} must have times in [0, {time}], got {values}")
        sources = log.signal_source
        if sources.size and not 0 <= sources.min() <= sources.max() < num_sources:
            raise ValueError(f"log must have sources in [0, {num_sources}), got {sources.max()}")
        if np.atleast_2d(log.signals).shape != (num_sources, log.page.size):
            raise ValueError(
                f"log must have signals of {num_sources} sources for its {log.page.size} crawls, "
                f"got shape {log.signals.shape}"
            )

    def _crawl(self, log: CrawlLog) -> None:
        """Update what is known of the pages by the crawls of a log."""
        newer = self._alive[log.page] & (log.time >= self._last_crawl[log.page])
        pages = log.page[newer]
        for total, answered in zip(self._signals, np.atleast_2d(log.signals), strict=True):
            np.subtract.at(total, pages, answered[newer])
        self._changed[pages] = log.changed[newer]
        np.maximum.at(self._last_crawl, pages, log.time[newer])
        if log.divergence is not None and log.age is not None and log.sketch is not None:
            if self._bases is None:
                shape = 2, log.divergence.shape[1], self._alive.size
                self._bases = np.full(shape, np.nan)
            self._bases[0][:, pages] = log.divergence[newer].T
            self._bases[1][:, pages] = log.age[newer].T
            self._sizes[pages] = np.diff(log.sketch.start)[newer]

    def _clear(self, page: int) -> None:
        self._signals[:, page] = 0
        self._changed[page] = -1
        if self._bases is not None:
            self._bases[:, :, page] = np.nan


def empty_log(num_sources: int = 1) -> CrawlLog:
    """Return a log without crawls and signals."""
    whole_numbers, times = np.zeros(0, np.int64), np.zeros(0)
    return CrawlLog(
        page=whole_numbers,
        time=times,
        elapsed=times,
        signals=np.zeros((num_sources, 0) if num_sources > 1 else 0, np.int64),
        changed=np.zeros(0, np.bool_),
        signal_page=whole_numbers,
        signal_time=times,
        signal_source=whole_numbers,
    )


def is_complete(log: CrawlLog, tracker: Tracker) -> bool:
    """Return whether a log contains all events of the episode so far, as its first log does."""
    logged = np.zeros_like(np.atleast_2d(tracker.signals))
    np.add.at(logged, (log.signal_source, log.signal_page), 1)
    return log.page.size == 0 and bool(np.all(np.atleast_2d(tracker.signals) <= logged))
