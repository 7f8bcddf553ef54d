"""A policy that fits a divergence curve to the results of a page's refreshes.

Olston and Pandey (2008), sections 4.1, 4.2 and 4.5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import flag, real, whole
from policies.base.policy import Pages
from policies.base.registry import registered
from policies.estimators.divergence.curve_fit import Shapes, fit_observations, shapes
from policies.estimators.divergence.profiles import (
    ChangeProfiles,
    Footprint,
    ProfileArrays,
    combine,
)
from policies.longevity.refreshing import (
    RefreshPolicy,
    Urgency,
    check_warm_up,
    first_turns,
    learning_period,
    longest_wait,
)
from policies.values.divergence.one_region import region_period, region_utilities

MIN_OBSERVATIONS = 4
"""With fewer observations than this, an earlier fit to more observations is used."""


class FittedCurves(NamedTuple):
    """The divergence curves fitted to pages, (m,) each.

    ``fitted`` is the number of observations in a fit, and ``period`` the time at which the utility
    of a curve reaches the threshold.
    """

    items: IntArray
    share: FloatArray
    rate: FloatArray
    fitted: IntArray
    period: FloatArray


@registered(paper="Longevity", family="fragments")
class CurveFitting(RefreshPolicy):
    """Refreshes a page when the utility of its fitted curve has reached the threshold.

    After each refresh of a page its change profiles are combined, the closest curve of churn or
    scroll is fitted, and the refresh period is the time at which the utility of that curve, times
    importance, is ``threshold`` (sections 4.1 and 4.2). It is at most ``learning`` times the number
    of copies of the page so far, including the first copy, and with ``risk`` at most
    risk * threshold / importance, as a divergence is at most 1 (section 4.5).

    With a budget, pages past the longest wait that learning or risk allows come first, then those
    with the largest utility by their curves.

    Until ``warm_up`` pages are refreshed every ``learning`` times their number of copies, after
    that by their curves alone, as in the paper's comparison of policies (section 5.3).

    While a new profile has fewer than 4 observations, the last curve fitted to more is used.

    Args:
        threshold: T; see :class:`policies.longevity.refreshing.RefreshPolicy`.
        histories: profiles per page, h >= 1.
        length: observations per profile, >= 1.
        learning: l > 0, in units of time; None for 1, and with a budget for half the mean interval
            between refreshes of a page, m / (2 bandwidth).
        risk: rho >= 1; None for no bound. It needs a threshold.
        warm_up: in units of time, > 0; None for the paper's own rule at all times.
        sketch_size: number of smallest hashes stored per base version, >= 1; None for all.
        stagger: whether to stagger the first refreshes of pages, see
            :func:`policies.longevity.refreshing.first_turns`.

    Raises:
        ValueError: an argument is out of its range; pages have no fragments.
    """

    learns = reads_log = True
    methods = ("first_sketch",)

    def __init__(
        self,
        *,
        threshold: float | None = None,
        histories: int = 5,
        length: int = 12,
        learning: float | None = None,
        risk: float | None = None,
        warm_up: float | None = None,
        sketch_size: int | None = None,
        stagger: bool = True,
    ) -> None:
        super().__init__(threshold=threshold)
        self.histories = whole("histories", histories, 1)
        self.length = whole("length", length, 1)
        self.learning, self.warm_up = check_warm_up(learning, warm_up)
        self.risk = None if risk is None else real("risk", risk, least=1.0)
        if risk is not None and threshold is None:
            raise ValueError(f"risk needs a threshold, got risk {risk!r} and threshold None")
        self.sketch_size = None if sketch_size is None else whole("sketch_size", sketch_size, 1)
        self.stagger = flag("stagger", stagger)

    def footprint(self) -> Footprint:
        """Return the bytes of state per page; as in the paper, without the fitted curve."""
        profiles = self.profiles.footprint()
        stored = sum(array.nbytes for array in (*self.curves, self.crawls)) / self.crawls.size
        return Footprint(profiles.stored + stored, profiles.counted)

    def start(self, pages: Pages) -> None:
        """Begin an episode with the profiles of the pages' first copies, and no curves."""
        tracker = pages.tracker()
        num_pages = tracker.elapsed.size
        sizes = self.histories, self.length, self.sketch_size
        self.profiles = ChangeProfiles.of_episode(tracker, pages.first_sketch(), *sizes)
        self.crawls = np.ones(num_pages, np.int64)  # copies, the first included
        self.curves = FittedCurves(
            items=np.ones(num_pages, np.int64),
            share=np.zeros(num_pages),
            rate=np.zeros(num_pages),
            fitted=np.zeros(num_pages, np.int64),
            period=np.full(num_pages, np.inf),
        )

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Add the crawls of a log to the profiles, and fit curves of the crawled pages."""
        pages = self.profiles.learn(log)
        np.add.at(self.crawls, pages, 1)
        threshold = 0.0 if self.threshold is None else self.threshold
        weights = tracker.problem.per_cost().importance
        fit_pages(pages, self.profiles.arrays, shapes(), threshold, weights, self.curves)

    def _urgency(self, tracker: Tracker) -> Urgency:
        learning = learning_period(self.learning, self.crawls, tracker.problem, self.form.action)
        utility = np.zeros(tracker.elapsed.size)
        turns = first_turns(tracker) if self.stagger else np.ones(utility.size)
        if self.warm_up is not None and tracker.time <= self.warm_up:
            return Urgency(utility, tracker.elapsed / (learning * turns))
        bound = learning if self.warm_up is None else math.inf
        wait = turns * longest_wait(bound, self._risk_bound(tracker))
        if self.threshold is not None and self.form.action == "refresh":
            wait = longest_wait(wait, turns * self.curves.period)
            return Urgency(utility, tracker.elapsed / wait)
        region_utilities(*self.curves[:3], tracker.elapsed, utility)
        return Urgency(tracker.problem.importance * utility, tracker.elapsed / wait)

    def _risk_bound(self, tracker: Tracker) -> FloatArray | float:
        """Return the longest waits that lose at most risk times threshold, (m,), or inf."""
        if self.risk is None or self.threshold is None:
            return math.inf
        with np.errstate(divide="ignore"):
            wait: FloatArray = self.risk * self.threshold / tracker.problem.importance
        return wait


@compiled()
def fit_pages(
    pages: IntArray,
    profiles: ProfileArrays,
    shapes: Shapes,
    threshold: float,
    importance: FloatArray,
    curves: FittedCurves,
) -> None:
    """Fit divergence curves of pages, (n,), and set their periods unless ``threshold`` is 0."""
    items, share, rate, fitted, period = curves
    size = profiles.age.shape[1] * profiles.age.shape[2]
    ages, values, counts = np.empty(size), np.empty(size), np.empty(size)
    for page in pages:
        count = combine(profiles, page, ages, values, counts)
        if count == 0 or count < min(MIN_OBSERVATIONS, fitted[page]):
            continue
        observed = ages[:count], values[:count]
        items[page], share[page], rate[page], _ = fit_observations(*observed, shapes)
        fitted[page] = count
        if threshold > 0.0:
            period[page] = np.inf
            if importance[page] > 0.0:
                wanted = threshold / importance[page]
                period[page] = region_period(items[page], share[page], rate[page], wanted)
