"""A policy that learns how pages diverge, from crawls and signals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crawl_envs.types import CrawlLog, IntArray, Tracker
from crawl_envs.types.arguments import whole
from policies.estimators.divergence.counts import OBSERVATION_BYTES, Footprint
from policies.estimators.divergence.posterior import DivergencePosterior
from policies.longevity.refreshing import RefreshPolicy, RefreshState, Urgency, fragment_core

TICKS = 8.0
"""Decisions in what is taken for a typical interval between crawls where there is no budget."""


@dataclass
class BeliefState(RefreshState):
    """One lane's episode, with what is believed of its pages."""

    belief: DivergencePosterior


class LearningLongevity(RefreshPolicy[BeliefState]):
    r"""Refreshes a page by the utility that its crawls, its signals and the other pages suggest.

    No paper has this policy. It goes by eq. 4 of Olston and Pandey (2008), as their own do, but
    averages the utility over all curves of their model that could have led to what was seen
    (:class:`policies.estimators.divergence.posterior.DivergencePosterior`) instead of fitting one, and learns
    from all pages how likely each curve is. So a page is explored as long as curves of much utility
    are left to it, and no argument says how much is invested in learning. What stands in its place
    are the constants of the prior and the likelihood: ``STATIC``, ``SINGLE``, ``SHARE_POWER`` and
    ``OLDER`` of :mod:`.posterior`, ``SMEAR`` of :mod:`.shape_tables`. ``OLDER`` and ``SMEAR`` were
    compared at 0.1 crawls per page and day on simulated pages that resemble those of the sets
    ``quality`` and ``random``, ``STATIC`` and ``SHARE_POWER`` on ``random`` itself; three of
    these were tried on recorded pages too. No comparison of ``SINGLE`` is known. So what this
    policy shows on these sets is not independent of them.

    With signals: of the updates of a page at the rate L each is signalled with probability r, its
    recall, and a signal is true with probability p = r L / (r L + nu). After time t and n signals N
    ~ Poisson((1 - r) L t) + Binomial(n, p) updates were missed. With d_k the mean divergence after
    k updates, a crawl is worth

        U = (E[N] E[d_N] - E[sum of d_k over k < N]) / L.

    It is exact up to 4 signals (``TOLD``). Each signal beyond these is taken to tell of Poisson(p)
    updates, which is too little certain: where every update is signalled, the utility after 7
    signals comes out up to 13% too low (a scroll of 8 items), after 16 up to 19% (one of 16), and
    3% on average over the shapes and shares that are considered.

    Without signals that is eq. 4; where every update is signalled, it is n d_n / L less the area
    that n updates make on average; and of a page that is stale or fresh it is that of
    :class:`policies.ncis.belief.BeliefNCIS`. Recall and false-signal rate are taken from the problem
    where it reveals them. Else they are learned, once signals come
    (:class:`policies.estimators.divergence.signal_quality.SignalQuality`).

    A page takes ``memory`` times 7 + 5 h bytes, with h base versions, and 161 more.

    Args:
        env: an environment of pages with fragments, single or vector, wrapped or not.
        threshold: T; see :class:`policies.longevity.refreshing.RefreshPolicy`.
        memory: crawls of each page that are remembered, >= 1.

    Raises:
        ValueError: ``env`` has no fragments; an argument out of its range.
    """

    def __init__(self, env: Any, *, threshold: float | None = None, memory: int = 24) -> None:
        super().__init__(env, threshold=threshold)
        fragment_core(self.name, self.core)
        self.memory = whole("memory", memory, 1)

    def _begin(self, tracker: Tracker, lane: int) -> BeliefState:
        assert tracker.copies is not None
        problem = tracker.problem.pooled()
        of_budget = self.action_form != "refresh"
        interval = (problem.num_pages if of_budget else TICKS) / problem.bandwidth
        copies = tracker.copies.divergence.shape[0]
        belief = DivergencePosterior(problem.num_pages, interval, copies=copies, memory=self.memory)
        if problem.recall is not None and problem.false_signal_rate is not None:
            belief.tell_quality(problem.recall, problem.false_signal_rate)
        return BeliefState(tracker.episode, math.nan, belief)

    def _learn(self, lane_state: BeliefState, log: CrawlLog, tracker: Tracker) -> None:
        assert log.divergence is not None
        assert log.age is not None
        heard = summed(log.signals)
        for n in range(log.page.size):
            lane_state.belief.learn(
                int(log.page[n]),
                float(log.elapsed[n]),
                int(heard[n]),
                bool(log.changed[n]),
                log.divergence[n],
                log.age[n],
            )
        lane_state.belief.on_signal(summed(tracker.signals))

    def _urgency(self, lane_state: BeliefState, tracker: Tracker, lane: int) -> Urgency:
        return Urgency(tracker.problem.importance * lane_state.belief.utility(tracker.elapsed))

    def footprint(self, lane: int = 0) -> Footprint:
        """Bytes of state per page in a lane."""
        belief = self._seated(lane).belief
        past = belief.histories
        kept = np.minimum(past.count, self.memory).mean()
        counted = OBSERVATION_BYTES * kept * max(past.age.shape[2], 1)
        of_page = belief.curves[0].nbytes + 8 + 8 + 8 + 8 + 1
        return Footprint(self.memory * past.bytes_per_observation + of_page, float(counted))


def summed(signals: IntArray) -> IntArray:
    """Signals of all sources together, (n,)."""
    total: IntArray = np.atleast_2d(signals).sum(axis=0)
    return total
