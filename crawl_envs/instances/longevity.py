"""Pages made of static, churn and scroll regions, as in Olston and Pandey (2008).

Their two sets of 10,000 URLs are not public. What the paper tells of them is met by the constants
here; what it does not tell is judgement, and is said to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.instances.misspecified.occurrences import arrivals
from crawl_envs.instances.synthetic import FALSE_SIGNAL_RANGE, MOST_PAGES, RECALL_BETA
from crawl_envs.sim.tape import CODE_STRIDE, REQUEST, Tape
from crawl_envs.types import FloatArray, Problem, Reveal
from crawl_envs.types.arguments import bandwidth_function, whole
from crawl_envs.types.regions import Regions
from crawl_envs.worlds.fragments.contents import Contents
from crawl_envs.worlds.fragments.regions import FragmentLaw, draw

CRAWLS_PER_PAGE = 0.1
"""Crawls per day and page where no bandwidth is given: the middle of the paper's range."""

PageSignals: TypeAlias = Literal["none", "partial", "noisy"]


class RegionPages(FragmentLaw):
    """Pages that consist of regions, each updated by a Poisson process of its own.

    The change rate of a page is that of the updates of all its regions. An update is signalled with
    the page's recall, whatever the region; false signals are Poisson.

    Args:
        importance: weight of each page, >= 0, (m,) or a scalar (W of eq. 1).
        regions: of the m pages.
        recall: probability in [0, 1] that an update emits a signal, (m,) or a scalar.
        false_signal_rate: rate of signals with no update behind them, >= 0, likewise.
        bandwidth: crawls per day, > 0; in the form ``refresh`` decisions per day.
        bandwidth_steps: later changes of it, as (time, bandwidth) pairs.

    Raises:
        ValueError: as for :class:`crawl_envs.types.Instance`; several sources of signals.
    """

    regions: Regions

    def __init__(
        self,
        importance: ArrayLike,
        regions: Regions,
        recall: ArrayLike = 0.0,
        false_signal_rate: ArrayLike = 0.0,
        *,
        bandwidth: float,
        bandwidth_steps: Sequence[Sequence[float]] = (),
    ) -> None:
        if not isinstance(regions, Regions):
            raise ValueError(f"regions must be Regions, got {type(regions).__name__}")
        super().__init__(
            importance,
            regions.change_rate,
            recall,
            false_signal_rate,
            bandwidth=bandwidth,
            bandwidth_steps=bandwidth_steps,
        )
        if self.num_sources != 1:
            raise ValueError(f"recall must be of 1 source of signals, got {self.num_sources}")
        object.__setattr__(self, "regions", regions)

    def problem(self, reveal: Reveal = "parameters") -> Problem:
        """The part of the instance that a tracker is told, with the regions where revealed."""
        regions = self.regions if reveal == "parameters" else None
        return replace(super().problem(reveal), regions=regions)

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return about how many spells, changes, signals and requests an episode has."""
        moving = self.regions.rate > 0.0
        items = np.where(moving, self.regions.items, 1).sum()
        rates = self.change_rate.sum() + self.false_signal_rate.sum()
        return float(items + (2.0 * rates + requests * self.importance.sum()) * horizon)

    def draw(self, rng: np.random.Generator, horizon: float) -> tuple[Tape, Contents]:
        """Draw an episode; see :class:`crawl_envs.worlds.fragments.regions.FragmentLaw`."""
        return draw(self, self.regions, rng, horizon)

    def draw_tape(self, rng: np.random.Generator, horizon: float) -> Tape:
        """Draw the changes and signals of an episode, and Poisson requests, as other worlds do."""
        tape, _ = self.draw(rng, horizon)
        request_time, request_page = arrivals(rng, self.importance, horizon)
        time = np.concatenate((tape.time, request_time))
        code = np.concatenate((tape.code, request_page * CODE_STRIDE + REQUEST))
        order = np.argsort(time, kind="stable")
        return Tape(time[order], code[order], tape.alive)


@dataclass(frozen=True)
class PageLaw:
    """How the pages of a set are drawn; lengths are fragments, times are days.

    Attributes:
        dynamic: share of the pages that are not all static.
        median_size: median number of fragments of a page; sizes are log-normal.
        share: Beta law of the share of a dynamic page's fragments that are not static.
        scrolls: chance that a dynamic page has a scroll region; beside it, ``churns`` is the chance
            that it also has a churn region. Pages without a scroll region have a churn region.
        churns: see above; then both have a part that is uniform in [0, 1].
        fast: share of the churn regions that no crawl can follow, with log-normal rates.
        fast_rate: median updates per day of those.
        slow_rate: median of the others.
        scroll_rate: median updates per day of scroll regions.
        spread: standard deviations of the logarithms of size and of the three rates.
        mean_items: mean number of items of a scroll region; 2 plus a geometric number.
    """

    dynamic: float
    median_size: float
    share: tuple[float, float]
    scrolls: float
    churns: float
    fast: float
    fast_rate: float
    slow_rate: float
    scroll_rate: float
    spread: tuple[float, float, float, float]
    mean_items: float


LAWS: dict[str, PageLaw] = {
    "quality": PageLaw(
        dynamic=0.5,
        median_size=200.0,
        share=(0.35, 1.4),
        scrolls=0.49,
        churns=0.65,
        fast=0.45,
        fast_rate=3.0,
        slow_rate=0.05,
        scroll_rate=0.2,
        spread=(0.7, 0.6, 1.5, 1.2),
        mean_items=4.0,
    ),
    "random": PageLaw(
        dynamic=0.7,
        median_size=200.0,
        share=(0.6, 0.9),
        scrolls=0.5,
        churns=0.6,
        fast=0.55,
        fast_rate=3.0,
        slow_rate=0.05,
        scroll_rate=0.2,
        spread=(0.7, 0.6, 1.5, 1.2),
        mean_items=4.0,
    ),
}
LIE_SCALE = 0.25
"""False signals per day are drawn from U(0.1, 0.6) times this: the scroll regions' typical rate."""
MOST_ITEMS = 50
SIZES = (20, 2000)
"""Least and largest number of fragments of a page."""
HIGHEST_RATE = 12.0
"""Updates per day of a region: none is updated more often than every two hours on average."""


def _rates(
    rng: np.random.Generator, median: FloatArray | float, spread: FloatArray | float, count: int
) -> FloatArray:
    """Draw log-normal rates, at most HIGHEST_RATE."""
    drawn: FloatArray = median * np.exp(spread * rng.standard_normal(count))
    return np.minimum(drawn, HIGHEST_RATE)


def draw_regions(law: PageLaw, num_pages: int, rng: np.random.Generator) -> Regions:
    """Draw the regions of a set of pages: of each page a static, a churn and a scroll region."""
    size_spread, fast_spread, slow_spread, scroll_spread = law.spread
    dynamic = rng.random(num_pages) < law.dynamic
    total = law.median_size * np.exp(size_spread * rng.standard_normal(num_pages))
    total = np.clip(np.rint(total), *SIZES).astype(np.int64)
    share = rng.beta(*law.share, num_pages)
    moving = np.maximum(np.rint(share * total), 1.0) * dynamic
    has_scroll = rng.random(num_pages) < law.scrolls
    has_churn = ~has_scroll | (rng.random(num_pages) < law.churns)
    part = np.where(has_scroll, np.where(has_churn, rng.random(num_pages), 1.0), 0.0)
    items = 2 + rng.geometric(1.0 / (law.mean_items - 1.0), num_pages) - 1
    items = np.minimum(items, MOST_ITEMS)
    scrolling = part * moving
    items = np.maximum(np.minimum(items, scrolling.astype(np.int64)), 1)
    item_size = np.rint(scrolling / items).astype(np.int64)
    churning = np.maximum(np.rint(moving).astype(np.int64) - items * item_size, 0)
    static = np.maximum(total - churning - items * item_size, 0)
    fast = rng.random(num_pages) < law.fast
    churn_rate = _rates(
        rng,
        np.where(fast, law.fast_rate, law.slow_rate),
        np.where(fast, fast_spread, slow_spread),
        num_pages,
    )
    scroll_rate = _rates(rng, law.scroll_rate, scroll_spread, num_pages)
    ones = np.ones(num_pages, np.int64)
    return Regions(
        np.stack((ones, ones, items), axis=1),
        np.stack((static, churning, item_size), axis=1),
        np.stack((np.zeros(num_pages), churn_rate, scroll_rate), axis=1),
    )


@dataclass(frozen=True)
class LongevitySet:
    """A generator of a set of pages; call it with a NumPy generator for an instance.

    Args:
        name: one of LAWS.
        num_pages: number of pages, m >= 1.
        bandwidth: crawls per day, > 0.
        bandwidth_steps: later changes of it, as (time, bandwidth) pairs.
        signals: ``none``, ``partial`` (recall from Beta(1/4, 1/4)) or ``noisy`` (and false signals
            at rates from LIE_SCALE times U(0.1, 0.6) per day), as in Busa-Fekete et al. (2025).
            On one seed the pages are the same.

    Raises:
        ValueError: an argument outside its range.
    """

    name: str
    num_pages: int
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    signals: PageSignals = "none"

    def __post_init__(self) -> None:
        if self.name not in LAWS:
            raise ValueError(f"instance must be one of {tuple(LAWS)}, got {self.name!r}")
        whole("num_pages", self.num_pages, 1, MOST_PAGES)
        bandwidth_function(self.bandwidth, self.bandwidth_steps)
        if self.signals not in get_args(PageSignals):
            raise ValueError(
                f"signals must be one of {get_args(PageSignals)} for instance {self.name!r}, got "
                f"{self.signals!r}"
            )

    def __call__(self, rng: np.random.Generator) -> RegionPages:
        """Draw an instance of uniform importance."""
        regions = draw_regions(LAWS[self.name], self.num_pages, rng)
        recall, lies = np.zeros(self.num_pages), np.zeros(self.num_pages)
        if self.signals != "none":
            recall = rng.beta(*RECALL_BETA, self.num_pages)
        if self.signals == "noisy":
            lies = LIE_SCALE * rng.uniform(*FALSE_SIGNAL_RANGE, self.num_pages)
        return RegionPages(
            np.ones(self.num_pages),
            regions,
            recall,
            lies,
            bandwidth=self.bandwidth,
            bandwidth_steps=self.bandwidth_steps,
        )


def longevity_set(
    name: str,
    num_pages: int,
    bandwidth: float | None = None,
    bandwidth_steps: Sequence[Sequence[float]] = (),
    signals: str | None = None,
) -> LongevitySet:
    """Return the generator of that name; without a bandwidth it has CRAWLS_PER_PAGE for each page.

    Raises:
        ValueError: an argument outside its range.
    """
    if bandwidth is None:
        bandwidth = CRAWLS_PER_PAGE * whole("num_pages", num_pages, 1, MOST_PAGES)
    rate, steps = bandwidth_function(bandwidth, bandwidth_steps)
    kind = "none" if signals is None else signals
    return LongevitySet(name, num_pages, rate, steps, kind)  # type: ignore[arg-type]  # checked
