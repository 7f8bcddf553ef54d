"""Cho and Garcia-Molina's policy: refreshes by estimated change rates, for holistic staleness.

It is a baseline in Olston and Pandey (2008), section 5.3.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from crawl_envs.types import CrawlLog, FloatArray, Tracker
from crawl_envs.types.arguments import flag, one_of, within_domain
from policies.base.policy import Pages
from policies.base.registry import registered
from policies.estimators import CrawlHistories, improved_rate
from policies.estimators.change_rates import fit_histories
from policies.estimators.divergence.profiles import Footprint
from policies.estimators.histories import MAX_CRAWLS
from policies.longevity.refreshing import (
    RefreshPolicy,
    Urgency,
    check_warm_up,
    first_turns,
    learning_period,
)
from policies.values.divergence.curves import HolisticCurves

Estimator: TypeAlias = Literal["improved", "mle"]
MIN_REFRESHES = 2
"""Without a warm-up, pages with fewer refreshes are on the learning schedule."""


@registered(paper="Longevity", family="fragments")
class ChoGarciaMolina(RefreshPolicy):
    """Refreshes a page when its expected gain in holistic staleness has reached the threshold.

    Change rates are estimated from the results of refreshes. The utility is that of a page that
    changes completely at that rate, U = (1 - (1 + r t) exp(-r t)) / r: with known rates this is the
    allocation of Cho and Garcia-Molina, "Effective page refresh policies for web crawlers"
    (appendix A).

    The estimators are from their "Estimating frequency of change" (2003): ``improved`` is
    -ln((n - X + 0.5) / (n + 0.5)) / I, with I the mean interval, and ``mle`` is the maximum of the
    likelihood for uneven intervals, which is 0 if no refresh found a change and infinite if all
    did. Pages of rate 0 or infinity have utility 0 and are only refreshed with spare budget.

    Until ``warm_up`` pages are refreshed every ``learning`` times their number of copies, see
    :class:`policies.longevity.curve_fitting.CurveFitting`; with a budget the most overdue page
    comes first.

    Args:
        threshold: T; see :class:`policies.longevity.refreshing.RefreshPolicy`.
        learning: l > 0, in units of time; None as in :class:`.CurveFitting`.
        warm_up: in units of time, > 0; None: estimates are used from a page's third refresh on.
        estimator: ``improved`` or ``mle``.
        stagger: whether to stagger the first refreshes of pages, see
            :func:`policies.longevity.refreshing.first_turns`.

    Raises:
        ValueError: an argument is out of its range.
    """

    learns = reads_log = True

    def __init__(
        self,
        *,
        threshold: float | None = None,
        learning: float | None = None,
        warm_up: float | None = None,
        estimator: Estimator = "improved",
        stagger: bool = True,
    ) -> None:
        super().__init__(threshold=threshold)
        self.learning, self.warm_up = check_warm_up(learning, warm_up)
        one_of("estimator", estimator, Estimator)
        self.estimator = estimator
        self.stagger = flag("stagger", stagger)

    def footprint(self) -> Footprint:
        """Return the bytes of state per page; two counts and a time count as 12."""
        arrays = self.crawls, self.changes, self.time, self.rate
        stored = sum(array.nbytes for array in arrays)
        if self.histories is not None:
            stored += self.histories.nbytes
        return Footprint(stored / self.rate.size, 12.0)

    def change_rates(self) -> FloatArray:
        """Return the estimated change rates, (m,); 0 before the first refresh."""
        return self.rate.copy()

    def start(self, pages: Pages) -> None:
        """Begin an episode without observations of any page."""
        num_pages = pages.tracker().elapsed.size
        self.crawls, self.changes = np.zeros((2, num_pages), np.int64)
        self.time, self.rate = np.zeros((2, num_pages))  # between crawls; of changes
        self.histories: CrawlHistories | None = None
        if self.estimator == "mle":
            self.histories = CrawlHistories(
                num_pages, MAX_CRAWLS, elapsed=np.float64, changed=np.bool_
            )

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Estimate the change rates of the crawled pages from the crawls of a log."""
        used = log.elapsed > 0.0
        pages, elapsed, changed = log.page[used], log.elapsed[used], log.changed[used]
        np.add.at(self.crawls, pages, 1)
        np.add.at(self.changes, pages, changed)
        np.add.at(self.time, pages, elapsed)
        if self.histories is not None:
            self.histories.append(pages, elapsed=elapsed, changed=changed)
            rates = fit_histories(self.histories.intervals(pages)).change_rate
        else:
            rates = improved_rate(self.changes[pages], self.crawls[pages], self.time[pages])
        self.rate[pages] = within_domain(rates)

    def _urgency(self, tracker: Tracker) -> Urgency:
        wait = learning_period(self.learning, 1 + self.crawls, tracker.problem, self.form.action)
        learning = tracker.elapsed / (first_turns(tracker) * wait if self.stagger else wait)
        if self.warm_up is not None and tracker.time <= self.warm_up:
            return Urgency(np.zeros(learning.size), learning)
        curves = HolisticCurves(self.rate)
        utility = tracker.problem.importance * curves.utility(tracker.elapsed)
        if self.warm_up is None:
            return Urgency(utility, np.where(self.crawls < MIN_REFRESHES, learning, 0.0))
        return Urgency(utility)
