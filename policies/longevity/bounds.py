"""A policy that doubles or halves the refresh periods of pages by bounds on their divergence.

Olston and Pandey (2008), sections 4.1, 4.3 and 4.5.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import flag, real, whole
from policies.base.policy import Pages
from policies.base.registry import registered
from policies.estimators.divergence.profiles import (
    MAX_DIVERGENCE,
    SAME_AGE,
    ChangeProfiles,
    Footprint,
    ProfileArrays,
    at_first_copy,
    bounds_of_page,
)
from policies.longevity.refreshing import (
    RefreshPolicy,
    Urgency,
    first_turns,
)

FIRST_SHARE = 0.1
"""With a budget, the first threshold is the loss from this divergence over a mean interval."""
GAIN = 0.3
"""Change of the log threshold per m refreshes at a demand of e times the budget."""


@registered(paper="Longevity", family="fragments")
class DivergenceBounds(RefreshPolicy):
    """Refreshes a page at the end of its period, which bounds on its utility double or halve.

    At each refresh, with s the time since the page's reference time (section 4.3), the upper and
    lower bounds on divergence of its profiles give bounds on the utility at s. If the upper bound
    is below the threshold, the period becomes 2 s. If the lower bound has reached it, the period is
    halved and the reference time is now. Otherwise the period is unchanged. Utility is multiplied
    by importance, and the period is at most risk * threshold / importance, because a divergence is
    at most 1 (section 4.5). So a static page is refreshed every risk * threshold / importance, as
    in the paper: every 10 T for its risk of 10, which costs more for smaller T.

    The first period is threshold / importance: no utility can reach the threshold earlier. With
    ``stagger`` a page's first refresh may be earlier; it does not change the period.

    With a budget, pages are ranked by the share of their period that has passed, and the threshold
    follows the budget. It rises while the periods of all pages demand more refreshes per unit time
    than the bandwidth, else it falls: over m refreshes by 0.3 times log(demand / bandwidth), which
    is clipped to [-1, 1].

    Args:
        threshold: T; see :class:`policies.longevity.refreshing.RefreshPolicy`.
        histories: profiles per page, h >= 1.
        length: observations per profile, >= 1.
        risk: rho >= 1.
        sketch_size: number of smallest hashes stored per base version, >= 1; None for all.
        stagger: whether to stagger the first refreshes of pages, see
            :func:`policies.longevity.refreshing.first_turns`.
    """

    learns = reads_log = True
    methods = ("first_sketch",)

    def __init__(
        self,
        *,
        threshold: float | None = None,
        histories: int = 5,
        length: int = 12,
        risk: float = 10.0,
        sketch_size: int | None = None,
        stagger: bool = True,
    ) -> None:
        super().__init__(threshold=threshold)
        self.histories = whole("histories", histories, 1)
        self.length = whole("length", length, 1)
        self.risk = real("risk", risk, least=1.0)
        self.sketch_size = None if sketch_size is None else whole("sketch_size", sketch_size, 1)
        self.stagger = flag("stagger", stagger)

    def footprint(self) -> Footprint:
        """Return the bytes of memory per page."""
        profiles = self.profiles.footprint()
        arrays = self.reference, self.period, self.cut_short
        stored = sum(array.nbytes for array in arrays) / self.period.size
        return Footprint(profiles.stored + stored, profiles.counted)

    def periods(self) -> FloatArray:
        """Return the refresh periods of all pages, (m,); inf for pages of no importance."""
        return self.period.copy()

    def start(self, pages: Pages) -> None:
        """Begin an episode with the profiles of the pages' first copies and their first periods."""
        tracker = pages.tracker()
        num_pages = tracker.elapsed.size
        sizes = self.histories, self.length, self.sketch_size
        self.profiles = ChangeProfiles.of_episode(tracker, pages.first_sketch(), *sizes)
        problem = tracker.problem.per_cost()
        importance = problem.importance
        self.limit = self.threshold  # T, which changes if there is a budget
        if self.limit is None or self.form.action != "refresh":
            mean_interval = num_pages / problem.bandwidth
            weight = float(importance[importance > 0.0].mean()) if importance.any() else 1.0
            self.limit = FIRST_SHARE * weight * mean_interval
        with np.errstate(divide="ignore"):
            self.period = self.limit / importance  # phi
        # t_R; NaN for a page that does not exist yet
        self.reference = np.where(tracker.alive, tracker.time - tracker.elapsed, np.nan)
        # pages whose first wait is shortened
        self.cut_short = at_first_copy(tracker) if self.stagger else np.zeros(num_pages, np.bool_)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Add the crawls of a log to the profiles, and set new periods of the crawled pages."""
        assert self.limit is not None
        problem = tracker.problem.per_cost()
        pages = self.profiles.learn(log)
        reset_periods(
            *(pages, log.time, log.elapsed, self.profiles.arrays, self.limit, self.risk),
            *(problem.importance, self.reference, self.period, self.cut_short),
        )
        if self.form.action != "refresh" and pages.size:
            cost = tracker.problem.cost
            costs = 1.0 if cost is None else cost[tracker.alive]
            demand = float((costs / self.period[tracker.alive]).sum())
            if demand > 0.0:
                strain = math.log(demand / tracker.problem.bandwidth)
                share = GAIN * pages.size / self.period.size
                self.limit *= math.exp(share * min(max(strain, -1.0), 1.0))

    def _urgency(self, tracker: Tracker) -> Urgency:
        turns = first_turns(tracker) if self.stagger else 1.0
        passed = tracker.elapsed / (turns * self.period)
        if self.form.action == "refresh":
            return Urgency(np.zeros(passed.size), passed)
        return Urgency(passed)


@compiled()
def reset_periods(
    pages: IntArray,
    times: FloatArray,
    elapsed: FloatArray,
    profiles: ProfileArrays,
    threshold: float,
    risk: float,
    importance: FloatArray,
    reference: FloatArray,
    period: FloatArray,
    cut_short: BoolArray,
) -> None:
    """Set new periods and reference times of pages that were just refreshed, (n,), in order.

    ``cut_short``, (m,), marks pages whose first wait is shortened. It is cleared; a page with it
    keeps a period that has not ended.
    """
    for k in range(pages.size):
        page = pages[k]
        if np.isnan(reference[page]):  # born after the start
            reference[page] = times[k] - elapsed[k]
        since = times[k] - reference[page]
        if importance[page] <= 0.0 or since <= 0.0:
            continue
        wanted = threshold / importance[page]
        early = cut_short[page] and since < period[page] * (1.0 - SAME_AGE)
        cut_short[page] = False
        if early:
            continue
        _, _, low, high = bounds_of_page(profiles, page, since)
        if high < wanted:
            period[page] = 2.0 * since
        elif low >= wanted * (1.0 - SAME_AGE):
            reference[page] = times[k]
            period[page] *= 0.5
        period[page] = min(period[page], risk * wanted / MAX_DIVERGENCE)
