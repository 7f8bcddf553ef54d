"""Pages without an environment: the description that a policy needs, and a tracker fed by logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import fields

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, CrawlLog, Problem, Tracker
from crawl_envs.types.arguments import quantity, whole
from crawl_envs.types.copies import Copies, Sketches
from crawl_envs.types.offer_features import OfferFeatures

CRAWLS_PER_PAGE = 100.0
"""Mean number of crawls of a page in the horizon, if none is given."""


class Description:
    """What a policy reads of an environment beside trackers and logs, where there is none.

    A policy built with it, or with a problem alone, gets trackers and logs from the caller.

    Args:
        problem: the pages, their known parameters, and the bandwidth.
        action_form: ``page``, ``scores``, ``refresh``, ``rates`` or ``shares``.
        batch: crawls per decision in the form ``scores``.
        epoch: time between two decisions in the last two forms.
        horizon: length of the schedules of policies that plan ahead, which then repeat, and of
            what others explore; None for 100 crawls per page.
        seed: of random choices; a whole number, or a generator, which is copied.
        sketches: sketches of all pages at time 0, for policies that compare fragments.

    """

    num_lanes = 1

    def __init__(
        self,
        problem: Problem,
        *,
        action_form: str = "page",
        batch: int = 1,
        epoch: float = 1.0,
        horizon: float | None = None,
        seed: int | np.random.Generator = 0,
        sketches: Sketches | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise ValueError(f"problem must be a Problem, got {type(problem).__name__}")
        self.problem, self.action_form = problem, action_form
        self.batch = whole("batch", batch, 1)
        self.epoch = quantity("epoch", epoch, above=0.0)
        usual = CRAWLS_PER_PAGE * problem.num_pages / problem.bandwidth
        self.horizon = quantity("horizon", usual if horizon is None else horizon, above=0.0)
        self._rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
        self.sketches = sketches
        names = (field.name for field in fields(Problem))
        known = (name for name in names if getattr(problem, name) is not None)
        self.features = ("elapsed", *known)
        self._tracker: Tracker | None = None
        self._log: CrawlLog | None = None

    def tracker(self, lane: int = 0) -> Tracker:
        """Return the tracker of the last call of the policy."""
        if self._tracker is None:
            raise ValueError("without an environment, trackers are given to start or choose")
        return self._tracker

    def last_log(self, lane: int = 0) -> CrawlLog:
        """Return the log of the last update; an empty one before that."""
        return empty_log(self.problem.num_sources) if self._log is None else self._log

    def note(self, tracker: Tracker, log: CrawlLog | None, name: str) -> None:
        """Keep the tracker and log of a call; ValueError if they are of other pages."""
        if tracker.elapsed.size != self.problem.num_pages:
            raise ValueError(
                f"tracker must have the {self.problem.num_pages} pages that {name} was built for, "
                f"got {tracker.elapsed.size}"
            )
        if log is None and self._tracker is not None and self._tracker.time == tracker.time:
            log = self._log
        self._tracker, self._log = tracker, log

    def rng(self, lane: int = 0) -> np.random.Generator:
        """Return a new generator for random choices, the same at every call."""
        return deepcopy(self._rng)

    def num_slots(self, lane: int = 0) -> int:
        """Return the number of crawls in the horizon; of epochs in ``rates`` and ``shares``."""
        if self.action_form in ("rates", "shares"):
            return math.floor(self.horizon / self.epoch * (1.0 + 1e-12))
        crawls, start, rate = 0.0, 0.0, self.problem.bandwidth
        for time, later in (*self.problem.bandwidth_steps, (self.horizon, 0.0)):
            end = min(time, self.horizon)
            crawls, start, rate = crawls + max(end - start, 0.0) * rate, max(start, end), later
        return max(math.floor(crawls * (1.0 + 1e-12)), 1)

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Do nothing: no budget is enforced."""

    def first_sketch(self, lane: int = 0) -> Sketches:
        """Return the sketches of all pages at time 0; ValueError if there are none."""
        if self.sketches is None:
            raise ValueError("sketches must be given in the description of pages with fragments")
        return self.sketches


class LivePages(Description):
    """The tracker of real pages: it is advanced by logs alone.

    Its ``tracker()`` equals that of an environment after the same logs. It is also the description
    that a policy is built with: ``policies.make("GreedyNCIS", pages)``.

    Args:
        problem: as for :class:`Description`.
        alive: the pages that exist at time 0, (m,) bool; None for all. They count as crawled then.
        **settings: the other arguments of :class:`Description`.

    Attributes:
        problem: may be replaced by one with other parameters of the same pages; policies read it
            when they start.
        offers: features of shopping offers on the current day, None if the pages are none.
    """

    def __init__(
        self, problem: Problem, *, alive: BoolArray | None = None, **settings: object
    ) -> None:
        super().__init__(problem, **settings)  # type: ignore[arg-type]  # checked there
        m, s = problem.num_pages, problem.num_sources
        self.time = 0.0
        self.offers: OfferFeatures | None = None
        self._alive = np.ones(m, np.bool_) if alive is None else np.array(alive, np.bool_)
        if self._alive.shape != (m,):
            raise ValueError(f"alive must have shape ({m},), got {self._alive.shape}")
        self._last_crawl = np.zeros(m)
        self._signals = np.zeros((s, m), np.int64)
        self._changed = np.full(m, -1, np.int8)
        self._sizes = np.zeros(m, np.int64)
        if self.sketches is not None:
            self._sizes = np.diff(self.sketches.start)
        self._bases: np.ndarray | None = None

    def tracker(self, lane: int = 0) -> Tracker:
        """Return the current knowledge, as new arrays."""
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
        """Take in the crawls and signals up to a time.

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
        self.time = float(time)
        for page, birth in births.items():
            self._clear(page)
            self._alive[page], self._last_crawl[page] = True, birth
        begun = self._last_crawl[log.signal_page]
        known = self._alive[log.signal_page] & (log.signal_time >= begun)
        np.add.at(self._signals, (log.signal_source[known], log.signal_page[known]), 1)
        self._crawl(log)
        for page in deaths:
            self._clear(page)
            self._alive[page] = False

    def _check(
        self, log: CrawlLog, time: float, births: Mapping[int, float], deaths: list[int]
    ) -> None:
        """Raise ValueError unless :meth:`advance` can take its arguments."""
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
            at = np.array(instants, np.float64)
            if not np.all((at >= 0.0) & (at <= time)):
                raise ValueError(f"{name} must have times in [0, {time}], got {at}")
        sources = log.signal_source
        if sources.size and not 0 <= sources.min() <= sources.max() < num_sources:
            raise ValueError(f"log must have sources in [0, {num_sources}), got {sources.max()}")
        if np.atleast_2d(log.signals).shape != (num_sources, log.page.size):
            raise ValueError(
                f"log must have signals of {num_sources} sources, got shape {log.signals.shape}"
            )

    def _crawl(self, log: CrawlLog) -> None:
        """Take in the crawls of a log."""
        made = self._alive[log.page] & (log.time >= self._last_crawl[log.page])
        pages = log.page[made]
        for total, answered in zip(self._signals, np.atleast_2d(log.signals), strict=True):
            np.subtract.at(total, pages, answered[made])
        self._changed[pages] = log.changed[made]
        np.maximum.at(self._last_crawl, pages, log.time[made])
        if log.divergence is not None and log.age is not None and log.sketch is not None:
            if self._bases is None:
                shape = 2, log.divergence.shape[1], self._alive.size
                self._bases = np.full(shape, np.nan)
            self._bases[0][:, pages] = log.divergence[made].T
            self._bases[1][:, pages] = log.age[made].T
            self._sizes[pages] = np.diff(log.sketch.start)[made]

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
    """Return whether a log contains all events so far, as the first of an episode does."""
    logged = np.zeros_like(np.atleast_2d(tracker.signals))
    np.add.at(logged, (log.signal_source, log.signal_page), 1)
    return log.page.size == 0 and bool(np.all(np.atleast_2d(tracker.signals) <= logged))
