"""A policy that learns the divergence of pages from crawls and signals."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import CrawlLog, IntArray, Tracker
from crawl_envs.types.arguments import whole
from policies.base.policy import Pages
from policies.base.registry import registered
from policies.estimators.divergence.posterior import DivergencePosterior
from policies.estimators.divergence.profiles import Footprint
from policies.longevity.refreshing import RefreshPolicy, Urgency

TICKS = 8.0
"""Assumed decisions per interval between crawls of a page if there is no budget."""


@registered(family="fragments")
class LearningLongevity(RefreshPolicy):
    r"""Refreshes a page by its expected utility, learned from its crawls, signals and other pages.

    This policy is not from a paper. It uses eq. 4 of Olston and Pandey (2008), as their policies
    do, but averages the utility over the posterior of all curves of their model
    (:class:`.DivergencePosterior`) instead of fitting one curve, with a prior learned from all
    pages. So a page is explored while curves of large utility are probable. No argument sets the
    amount of exploration: it depends on the constants of the prior and the likelihood, ``STATIC``,
    ``SINGLE``, ``SHARE_POWER`` and ``OLDER`` of :mod:`policies.estimators.divergence.posterior`,
    and ``SMEAR`` of :mod:`policies.estimators.divergence.shapes`. ``OLDER`` and ``SMEAR`` were
    compared at 0.1 crawls per page and day on simulated pages similar to those of the sets
    ``quality`` and ``random``, ``STATIC`` and ``SHARE_POWER`` on ``random`` itself; three of these
    were tried on recorded pages too. ``SINGLE`` was not compared. So results of this policy on
    these sets are not independent of them.

    With signals: each update of a page, at the rate L, is signalled with probability r, its recall,
    and a signal is true with probability p = r L / (r L + nu). After time t and n signals,
    N ~ Poisson((1 - r) L t) + Binomial(n, p) updates were missed. With d_k the mean divergence
    after k updates, the utility of a crawl is

        U = (E[N] E[d_N] - E[sum of d_k over k < N]) / L.

    It is exact up to 4 signals (``MAX_CERTAIN``). Each further signal counts as Poisson(p)
    updates, which overstates the uncertainty: if every update is signalled, the utility after 7
    signals is up to 13% too low (a scroll of 8 items), after 16 up to 19% (one of 16), and 3% on
    average over the tabulated shapes and shares.

    Without signals this is eq. 4; if every update is signalled, it is n d_n / L less the mean area
    under n updates; for pages that are either stale or fresh it is the utility of
    :class:`policies.ncis.belief.BeliefNCIS`. Recall and false-signal rate are those of the problem
    if it reveals them. Otherwise they are learned, from the first signal on
    (:class:`policies.estimators.divergence.posterior.QualityPosterior`).

    A page takes at most ``memory`` times 7 + 5 h bytes, with h base versions, and 161 more.

    Args:
        threshold: T; see :class:`policies.longevity.refreshing.RefreshPolicy`.
        memory: number of stored crawls per page, >= 1.

    Raises:
        ValueError: an argument is out of its range; pages have no fragments.
    """

    learns = reads_log = True
    methods = ("first_sketch",)

    def __init__(self, *, threshold: float | None = None, memory: int = 24) -> None:
        super().__init__(threshold=threshold)
        self.memory = whole("memory", memory, 1)

    def start(self, pages: Pages) -> None:
        """Begin without observations, and learn from the first log."""
        tracker = pages.tracker()
        if tracker.copies is None:
            raise ValueError(f"tracker must have copies for {self.name}, got None")
        problem = tracker.problem.pooled()
        of_budget = self.form.action != "refresh"
        interval = TICKS / problem.bandwidth
        if of_budget:
            interval = problem.num_pages / problem.per_cost().bandwidth
        copies = tracker.copies.divergence.shape[0]
        self.belief = DivergencePosterior(
            problem.num_pages, interval, copies=copies, memory=self.memory
        )
        if problem.recall is not None and problem.false_signal_rate is not None:
            self.belief.set_quality(problem.recall, problem.false_signal_rate)
        self.update(pages.last_log(), tracker)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Learn from the crawls of a log, and set the numbers of signals since last crawls."""
        signals = summed(log.signals)
        for n in range(log.page.size):
            assert log.divergence is not None
            assert log.age is not None
            crawl = int(log.page[n]), float(log.elapsed[n]), int(signals[n]), bool(log.changed[n])
            self.belief.learn(*crawl, log.divergence[n], log.age[n])
        self.belief.set_signals(summed(tracker.signals))

    def _urgency(self, tracker: Tracker) -> Urgency:
        return Urgency(tracker.problem.importance * self.belief.utility(tracker.elapsed))

    def footprint(self) -> Footprint:
        """Return the bytes of memory per page."""
        return self.belief.footprint()


def summed(signals: IntArray) -> IntArray:
    """Return the numbers of signals, summed over all sources, (n,)."""
    total: IntArray = np.atleast_2d(signals).sum(axis=0)
    return total
