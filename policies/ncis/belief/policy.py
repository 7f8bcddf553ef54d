"""BELIEF-NCIS: an analytic index on a belief about which pages are stale."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.types import FloatArray, Problem, Tracker
from crawl_envs.types.arguments import real
from crawl_envs.types.compiled_policies import CompiledLearner, Memory
from policies.base.compiled_learner import CompiledLearnerPolicy
from policies.base.registry import registered
from policies.ncis.belief import kernels, layout
from policies.ncis.belief.layout import Places
from policies.ncis.belief.warm_start import History, replay_history

FIRST_SHAPE, REVEALED_SHAPE = 1.0, 5.0
"""Shapes of the initial shared distributions, without and with revealed parameters."""
FIRST_RATE, FIRST_RATE_SHAPE = 0.1, 0.3
"""Initial unsignalled changes per mean interval between crawls, and the shape of their
distribution: most pages change seldom, and some often."""
FIRST_EVIDENCE = 1.0
"""Initial evidence of a signal if not revealed: a change in about two cases of three."""
EVIDENCE_RANGE = (1e-3, 10.0)
"""Range to which the revealed evidence of a signal is clipped."""
MEMORY_CRAWLS = 30.0
"""Mean number of crawls of a page in the time in which its data decay to 1 / e."""
FLOOR = 0.05
"""Added to every rate of changes, per mean interval between crawls of a page: the rate assumed for
a page without observed changes."""
CLASS_PRIOR, EVENT_PRIOR = 5.0, 1.0
"""Prior number of changes by a class of broadcasts, and by a single one."""
LEAST_RATE = 1e-3
"""Least scale of a rate, per mean interval between crawls of a page."""
POOL_STEPS = 10
"""Steps of expectation maximisation at each update of shared distributions after a history: one
does not reach the distributions of kinds that are never observed. Without a history it is one."""
PRIOR_ACTIVE = 10.0
"""Time in which one page is assumed to stop, in ``memory``."""


@registered()
class BeliefNCIS(CompiledLearnerPolicy):
    r"""GREEDY-NCIS on a belief about which pages are stale, learned from every crawl and signal.

    No paper has this policy. A page is believed to be fresh with probability exp(-x),
    x = alpha tau + sum_c b_c n_c (Busa-Fekete et al., section 3), where

    * alpha and the b_c are Gamma distributed, updated at every crawl in constant time, and decay;
    * pages of a group (``problem.group``: a directory, a host) share prior distributions, groups
      are shrunk towards the whole set, and both are updated every m crawls for m pages, the first
      time after m / 4 (:mod:`policies.estimators.gamma_beliefs`);
    * signals to most pages of a group at one instant are one broadcast, whose weight is learned
      from the crawls of all of them (:mod:`policies.ncis.belief.broadcasts`); it does not count
      for a page with a signal of its own at that instant;
    * signals that come alone, and signals at the instant of a broadcast, are two channels;
    * a page may stop changing, at a hazard that its group learns, and then tells nothing of its
      rate before (:mod:`policies.ncis.belief.activity`).

    Revealed parameters are the scales of these distributions: how far to trust them is learned. The
    index of an active page is mu / Delta (1 - (1 + B) exp(-x)), with B the expected number of
    changes since the last crawl and Delta a cautious estimate of the change rate; without a signal
    to the page alone it is at least the first summand of V_GREEDY_NCIS (Theorem 1). So it equals
    V_GREEDY without signals, V_GREEDY_NCIS where every change is signalled, and V_GREEDY_NCIS
    before a signal; elsewhere it is near (:func:`policies.ncis.belief.kernels.active_value`). That
    a page may have stopped raises the value of its last version, which one crawl makes fresh for
    good, and lowers its value after crawls without a change; a page that is believed to have
    stopped keeps the value of one that changes at a thousandth of its rate, so that no page with
    importance is left uncrawled for ever (:func:`policies.ncis.belief.kernels.value_of`).

    Memory: 21 numbers per page for one source without groups, 59 for two sources with groups; 270
    and 416 per group.

    Args:
        history: earlier events of the same pages; every episode starts from the belief learned
            from it, instead of the revealed parameters. None for no history.
        memory: time in which the data of a page decay to 1 / e, > 0 and finite; None for that of
            MEMORY_CRAWLS crawls of a page.
        pace_memory: the same for the rate of broadcasts; None for ``memory``.

    Raises:
        ValueError: as for the base class; a memory that is not a number > 0; a history of another
            type, or out of order; at the start of an episode, a history of other pages or sources.
    """

    def __init__(
        self,
        *,
        history: History | None = None,
        memory: float | None = None,
        pace_memory: float | None = None,
    ) -> None:
        if history is not None and not isinstance(history, History):
            raise ValueError(
                f"history must be a policies.ncis.belief.History or None, got {history!r}"
            )
        self.history = None if history is None else history.checked()
        self.memory, self.pace_memory = (
            None if value is None else real(name, value, above=0.0)
            for name, value in (("memory", memory), ("pace_memory", pace_memory))
        )
        self._replayed: dict[tuple[int, float, bool], Memory] = {}  # one entry, of all lanes

    allows_costs = True

    def beliefs(self, tracker: Tracker) -> dict[str, FloatArray]:
        """Return the belief about the pages at the current decision, (m,) each.

        ``evidence``: x, a page is fresh with probability exp(-x); ``expected_changes``: expected
        number of changes since its last crawl; ``change_rate``: a cautious estimate of changes per
        unit of time. All are those of a page that has not stopped changing, and 0 where a page does
        not exist.
        """
        memory, num_pages = self.learner.memory, tracker.elapsed.size
        columns, now = np.empty((3, num_pages)), (tracker.time, tracker.elapsed, tracker.alive)
        kernels.write_values(memory, *now, np.empty(num_pages), columns)
        return dict(zip(("evidence", "expected_changes", "change_rate"), columns, strict=True))

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """Return the initial learner of ``problem``; ``slots`` and ``rng`` are not used.

        Raises:
            ValueError: the history is of other pages or sources.
        """
        functions = kernels.on_birth_or_death, kernels.learn, kernels.on_signal, kernels.score
        return CompiledLearner(*functions, self.first_memory(problem))

    def first_memory(self, problem: Problem) -> Memory:
        """Return the belief at the start of an episode.

        Raises:
            ValueError: the history is of other pages or sources.
        """
        self.require(problem)
        problem = problem.per_cost()
        blank = self._blank(problem)
        if self.history is None:
            return blank
        kind = problem.num_sources, problem.bandwidth, problem.group is None
        learned = self._replayed.get(kind)
        if learned is None or not np.array_equal(learned.group, blank.group):
            self.history.check(problem)
            replay_history(blank, self.history)
            self._replayed.clear()
            self._replayed[kind] = learned = blank
        memory = Memory(**{name: array.copy() for name, array in learned._asdict().items()})
        at = places_of(problem)
        memory.pages[:, at.importance] = problem.importance
        memory.pages[:, at.exists] = 1.0
        memory.groups[:, at.size] = np.bincount(memory.group, minlength=len(memory.groups))
        memory.shared[layout.FLOOR] = FLOOR * problem.bandwidth / problem.num_pages
        return memory

    def _blank(self, problem: Problem) -> Memory:
        """Return the belief without any data."""
        at, num_pages = places_of(problem), problem.num_pages
        group = np.zeros(num_pages, np.int64) if problem.group is None else problem.group.copy()
        revealed = problem.change_rate is not None and self.history is None
        scales = revealed_scales(problem, at) if revealed else first_scales(problem, at)
        pages = np.zeros((num_pages, at.page_width))
        pages[:, at.scale : at.scale + at.kinds] = scales
        pages[:, at.importance], pages[:, at.exists] = problem.importance, 1.0
        pages[:, at.active] = 1.0
        groups = np.zeros((int(group.max()) + 1, at.group_width))
        groups[:, : 2 * at.kinds] = REVEALED_SHAPE if revealed else FIRST_SHAPE
        if not revealed:
            groups[:, 0] = groups[:, at.kinds] = FIRST_RATE_SHAPE
        groups[:, at.size] = np.bincount(group)
        events = np.zeros((layout.EVENTS + layout.CLASSES, layout.EVENT_WIDTH))
        memory = Memory(pages, groups, events, self._shared(problem), group)
        kernels.renew(pages, groups, memory.shared, group)
        return memory

    def _shared(self, problem: Problem) -> FloatArray:
        interval = problem.num_pages / problem.bandwidth
        memory = MEMORY_CRAWLS * interval if self.memory is None else self.memory
        shared = np.zeros(layout.NUM_SHARED)
        shared[layout.NUM_SOURCES] = problem.num_sources
        shared[layout.GROUPED] = problem.group is not None
        shared[layout.MEMORY] = memory
        shared[layout.PACE_MEMORY] = memory if self.pace_memory is None else self.pace_memory
        shared[layout.FLOOR] = FLOOR / interval
        shared[layout.DUE] = max(problem.num_pages // 4, 1)
        shared[layout.POOL_STEPS] = 1 if self.history is None else POOL_STEPS
        shared[layout.PRIOR_ACTIVE] = PRIOR_ACTIVE * memory
        shared[layout.CLASS_PRIOR], shared[layout.EVENT_PRIOR] = CLASS_PRIOR, EVENT_PRIOR
        return shared


def places_of(problem: Problem) -> Places:
    """Return the columns of a belief about the pages of a problem."""
    place: Any = layout.places_of
    return Places(*place.py_func(problem.num_sources, problem.group is not None))


def first_scales(problem: Problem, at: Places) -> FloatArray:
    """Return scales without parameters, (m, D): FIRST_RATE changes, half a signal per interval."""
    often = problem.bandwidth / problem.num_pages
    scales = np.full((problem.num_pages, at.kinds), 0.5 * often)
    scales[:, 0] = FIRST_RATE * often
    scales[:, 1 : 1 + at.channels] = FIRST_EVIDENCE
    return scales


def revealed_scales(problem: Problem, at: Places) -> FloatArray:
    """Return scales from revealed parameters, (m, D): alpha, ln(gamma / nu), gamma, clipped."""
    assert problem.change_rate is not None
    recall, false = (
        np.atleast_2d(np.asarray(rate)) for rate in (problem.recall, problem.false_signal_rate)
    )
    signal = recall * problem.change_rate + false
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.nan_to_num(np.log(signal / false), nan=0.0, posinf=np.inf)
    least = LEAST_RATE * problem.bandwidth / problem.num_pages
    alpha = (1.0 - np.minimum(recall.sum(axis=0), 1.0)) * problem.change_rate
    by_source = np.clip(evidence, *EVIDENCE_RANGE), np.maximum(signal, least)
    return np.concatenate(
        [
            np.maximum(alpha, least)[None],
            np.tile(by_source[0], (at.channels // at.sources, 1)),
            np.tile(by_source[1], (at.own // at.sources, 1)),
        ]
    ).T
