"""BELIEF-NCIS: an analytic index on a belief about who is stale now."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.types import FloatArray, IntArray, Problem
from crawl_envs.types.arguments import real
from crawl_envs.types.compiled_policies import CompiledLearner, Memory
from policies.base.compiled_learner import CompiledLearnerPolicy
from policies.ncis.belief import kernels, layout
from policies.ncis.belief import kernels as reading
from policies.ncis.belief.layout import Places
from policies.ncis.belief.warm_start import History, replay_history

FIRST_SHAPE, REVEALED_SHAPE = 1.0, 5.0
"""Shapes of the first shared distributions: how far pages are thought to be from their scales."""
FIRST_EVIDENCE = 1.0
"""What a signal is thought to tell where nothing is said: a change in about two cases of three."""
EVIDENCES = (1e-3, 10.0)
"""What a signal tells is taken to lie between these, where it is said."""
FORGETTING = 30.0
"""Crawls of a page, on average, in the time after which what was seen has faded to 1 / e."""
FLOOR = 0.05
"""Added to every rate of changes, per mean interval between crawls of a page: so many come unheard
of where nothing was ever seen."""
CLASS_PRIOR, EVENT_PRIOR = 5.0, 1.0
"""Changes that a class of broadcasts, and a single one, are thought to have been seen to make."""
LEAST_RATE = 1e-3
"""Least scale of a rate, per mean interval between crawls of a page."""


class BeliefNCIS(CompiledLearnerPolicy):
    r"""GREEDY-NCIS on a belief about who is stale now, which learns from every crawl and signal.

    No paper has this policy. Of every page it believes that it is fresh with probability exp(-x),
    x = alpha tau + sum_c b_c n_c (Busa-Fekete et al., section 3), where

    * alpha and the b_c are Gamma distributed, updated at every crawl in constant time, and fade;
    * pages of a group (``problem.group``: a directory, a host) share distributions, groups borrow
      from the whole set, and these are renewed each time as many crawls were made as pages are
      known, the first time after a quarter of that (:mod:`policies.ncis.belief.pooling`);
    * signals to most pages of a group at one instant are one broadcast, whose weight is learned
      from the crawls of all of them (:mod:`policies.ncis.belief.broadcasts`); a page that is told of
      by itself at that instant is excused from it;
    * signals that come alone, and those that come beside a broadcast, are of two kinds.

    Where parameters are revealed they are the scales of these distributions: how far to trust them
    is learned. Pages are crawled by mu / Delta (1 - (1 + B) exp(-x)), with B the number of times
    that the page was expected to change since its last crawl (:func:`policies.ncis.belief.kernels
    .score`), and Delta a cautious estimate of the rate of its changes. That is V_GREEDY where
    nothing signals and V_GREEDY_NCIS where every change is signalled; in between, pages that were
    not heard of get less than V_GREEDY_NCIS (a quarter of it for a recall of 0.8 after a mean time
    between changes, .035 for .116), and with what is revealed and true it loses about .2% to
    GREEDY-NCIS.

    The observation itself is not read, but for its shape: all is learned from the environment's
    tracker and log.

    A page takes 18 numbers where signals come from one source and there are no groups, 56 where
    they come from two and there are; a group 268 and 414.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        history: what happened to the same pages before; every episode starts from what it
            teaches, and not from what is revealed. None knows of no history.
        memory: time after which what was seen of a page has faded to 1 / e, > 0 and finite; None
            takes that of FORGETTING crawls of a page.
        pace_memory: the same of how often broadcasts come; None takes ``memory``.

    Raises:
        ValueError: as for the base class; a memory that is no number > 0; something else than a
            history, or one that is out of order; at the start of an episode, a history of other
            pages or sources.
    """

    def __init__(
        self,
        env: Any,
        *,
        history: History | None = None,
        memory: float | None = None,
        pace_memory: float | None = None,
    ) -> None:
        super().__init__(env)
        if history is not None and not isinstance(history, History):
            raise ValueError(
                f"history must be a policies.ncis.belief.History or None, got {history!r}"
            )
        self.history = None if history is None else history.checked()
        self.memory, self.pace_memory = (
            None if value is None else real(name, value, above=0.0)
            for name, value in (("memory", memory), ("pace_memory", pace_memory))
        )
        self._taught: Memory | None = None
        self._asked: tuple[int, float, bool] | None = None

    def beliefs(self, lane: int = 0) -> dict[str, FloatArray]:
        """What is believed of the pages of a lane at the decision at hand, (m,) each.

        ``evidence``: x, a page is fresh with probability exp(-x); ``expected_changes``: how often it was
        expected to change since its last crawl; ``change_rate``: changes per unit of time, with
        caution. All are 0 where a page does not exist.
        """
        assert self.core is not None
        tracker = self.core.tracker(lane)
        lane_state = self._up_to_date(tracker, lane)
        page_state = tracker.time, tracker.elapsed, tracker.alive
        found = reading.read_pages(*lane_state.learner.memory, *page_state)
        return dict(zip(("evidence", "expected_changes", "change_rate"), found, strict=True))

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """The learner that knows no more than ``problem``; ``slots`` and ``rng`` do not matter.

        Raises:
            ValueError: the history is of other pages or sources.
        """
        functions = kernels.on_birth_or_death, kernels.learn, kernels.on_signal, kernels.score
        return CompiledLearner(*functions, self.first_memory(problem))

    def first_memory(self, problem: Problem) -> Memory:
        """What is believed before an episode starts.

        Raises:
            ValueError: the history is of other pages or sources.
        """
        if self.history is None:
            return self._blank(problem)
        blank = self._blank(problem)
        asked = problem.num_sources, problem.bandwidth, problem.group is None
        known = self._taught is not None and np.array_equal(self._taught.group, blank.group)
        if not known or asked != self._asked:
            self.history.check(problem)
            replay_history(blank, self.history)
            self._taught, self._asked = blank, asked
        assert self._taught is not None
        memory = copied(self._taught)
        at = places_of(problem)
        memory.pages[:, at.importance] = problem.importance
        memory.pages[:, at.exists] = 1.0
        memory.groups[:, at.size] = np.bincount(memory.group, minlength=len(memory.groups))
        memory.shared[layout.FLOOR] = FLOOR * problem.bandwidth / problem.num_pages
        return memory

    def _blank(self, problem: Problem) -> Memory:
        """What is believed by one who has seen nothing."""
        at, num_pages = places_of(problem), problem.num_pages
        group = group_of(problem)
        told = problem.change_rate is not None and self.history is None
        scales = revealed_scales(problem, at) if told else first_scales(problem, at)
        pages = np.zeros((num_pages, at.page_width))
        pages[:, at.scale : at.scale + at.kinds] = scales
        pages[:, at.importance], pages[:, at.exists] = problem.importance, 1.0
        groups = np.zeros((int(group.max()) + 1, at.group_width))
        groups[:, : 2 * at.kinds] = REVEALED_SHAPE if told else FIRST_SHAPE
        groups[:, at.size] = np.bincount(group)
        events = np.zeros((layout.EVENTS + layout.CLASSES, layout.EVENT_WIDTH))
        memory = Memory(pages, groups, events, self._shared(problem), group)
        kernels.renew(pages, groups, memory.shared, group)
        return memory

    def _shared(self, problem: Problem) -> FloatArray:
        interval = problem.num_pages / problem.bandwidth
        memory = FORGETTING * interval if self.memory is None else self.memory
        shared = np.zeros(layout.NUM_SHARED)
        shared[layout.NUM_SOURCES] = problem.num_sources
        shared[layout.GROUPED] = problem.group is not None
        shared[layout.MEMORY] = memory
        shared[layout.PACE_MEMORY] = memory if self.pace_memory is None else self.pace_memory
        shared[layout.FLOOR] = FLOOR / interval
        shared[layout.DUE] = max(problem.num_pages // 4, 1)
        shared[layout.CLASS_PRIOR], shared[layout.EVENT_PRIOR] = CLASS_PRIOR, EVENT_PRIOR
        return shared


def copied(memory: Memory) -> Memory:
    """A copy of a memory."""
    return Memory(
        memory.pages.copy(),
        memory.groups.copy(),
        memory.events.copy(),
        memory.shared.copy(),
        memory.group.copy(),
    )


def places_of(problem: Problem) -> Places:
    """Where a belief about the pages of a problem keeps its numbers."""
    place: Any = layout.places_of
    return Places(*place.py_func(problem.num_sources, problem.group is not None))


def group_of(problem: Problem) -> IntArray:
    """The group of each page, (m,), a fresh array; a single one where nothing is said."""
    if problem.group is None:
        return np.zeros(problem.num_pages, np.int64)
    return problem.group.copy()


def first_scales(problem: Problem, at: Places) -> FloatArray:
    """Scales where nothing is told, (m, D): a change, and half a signal, per mean interval."""
    often = problem.bandwidth / problem.num_pages
    scales = np.full((problem.num_pages, at.kinds), 0.5 * often)
    scales[:, 0] = often
    scales[:, 1 : 1 + at.channels] = FIRST_EVIDENCE
    return scales


def revealed_scales(problem: Problem, at: Places) -> FloatArray:
    """Scales where parameters are told, (m, D): alpha, ln(gamma / nu) and gamma, within limits."""
    assert problem.change_rate is not None
    recall, false = (
        np.atleast_2d(np.asarray(told)) for told in (problem.recall, problem.false_signal_rate)
    )
    signal = recall * problem.change_rate + false
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.nan_to_num(np.log(signal / false), nan=0.0, posinf=np.inf)
    least = LEAST_RATE * problem.bandwidth / problem.num_pages
    alpha = (1.0 - np.minimum(recall.sum(axis=0), 1.0)) * problem.change_rate
    by_source = np.clip(evidence, *EVIDENCES), np.maximum(signal, least)
    return np.concatenate(
        [
            np.maximum(alpha, least)[None],
            np.tile(by_source[0], (at.channels // at.sources, 1)),
            np.tile(by_source[1], (at.own // at.sources, 1)),
        ]
    ).T
