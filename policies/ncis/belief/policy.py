"""BELIEF-NCIS: an index policy on a learned belief about which pages are stale."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

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
"""Rate added to every rate of changes, per mean interval between crawls of a page; the rate of a
page without observed changes."""
CLASS_PRIOR, EVENT_PRIOR = 5.0, 1.0
"""Prior number of changes by a class of broadcasts, and by a single one."""
MIN_RATE = 1e-3
"""Least scale of a rate, per mean interval between crawls of a page."""
POOL_STEPS = 10
"""Steps of expectation maximisation per update of shared distributions after a history; one step
is too few for kinds that are never observed. Without a history it is one."""
PRIOR_ACTIVE = 10.0
"""Prior time to the stop of a page, in units of ``memory``."""


@registered()
class BeliefNCIS(CompiledLearnerPolicy):
    r"""GREEDY-NCIS on a belief about which pages are stale, learned from every crawl and signal.

    No paper has this policy. A page is believed to be fresh with probability exp(-x),
    x = alpha tau + sum_c b_c n_c (Busa-Fekete et al., section 3), where

    * alpha and the b_c are Gamma distributed, updated at every crawl in constant time, and decay;
    * pages of a group (``problem.group``: a directory, a host) share prior distributions, groups
      are shrunk towards all pages, and both are updated every m crawls for m pages, the first
      time after m / 4 (:mod:`policies.estimators.gamma_beliefs`);
    * signals to most pages of a group at one instant are one broadcast, whose weight is learned
      from the crawls of these pages (:mod:`policies.ncis.belief.broadcasts`); it does not count
      for a page with a single signal at that instant;
    * single signals, and single signals at the instant of a broadcast, are two channels;
    * a page may stop changing, at a learned hazard (:mod:`policies.ncis.belief.activity`).

    Revealed parameters are the scales of these distributions; the policy learns how far to trust
    them. The index of an active page is mu / Delta (1 - (1 + B) exp(-x)), with B the expected
    number of changes since the last crawl and Delta a cautious estimate of the change rate. Without
    a single signal to the page it is at least the first summand of V_GREEDY_NCIS (Theorem 1). So it
    equals V_GREEDY without signals, V_GREEDY_NCIS where every change is signalled, and
    V_GREEDY_NCIS before a signal; elsewhere it is close
    (:func:`policies.ncis.belief.kernels.active_value`). A page that may have stopped has a larger
    value, because one crawl makes its last version fresh for good, and a smaller one after crawls
    without a change. A page that probably stopped has the value of one that changes at a thousandth
    of its rate, so that every page with importance is crawled again
    (:func:`policies.ncis.belief.kernels.value_of`).

    Memory: 21 numbers per page for one source without groups, 59 for two sources with groups; 270
    and 416 per group.

    Args:
        history: earlier events of the same pages; every episode starts from the belief learned
            from it, instead of the revealed parameters. None for no history.
        memory: time in which the data of a page decay to 1 / e, > 0 and finite; None for the time
            of MEMORY_CRAWLS crawls of a page.
        pace_memory: ``memory`` for the rate of broadcasts; None for ``memory``.
        **promises: arguments of :class:`policies.base.promising.PromisingPolicy`.

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
        **promises: Any,
    ) -> None:
        super().__init__(**promises)
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

    def after(self, history: History) -> Self:
        """Return a copy of the policy with this history instead of its own."""
        policy = copy(self)
        policy.history, policy._replayed = history.checked(), {}
        return policy

    def beliefs(self, tracker: Tracker) -> dict[str, FloatArray]:
        """Return the belief about the pages at the current decision, by name, (m,).

        ``evidence``: x, a page is fresh with probability exp(-x); ``expected_changes``: expected
        number of changes since its last crawl; ``change_rate``: a cautious estimate of changes per
        unit of time. All assume that the page has not stopped changing, and are 0 where a page does
        not exist.
        """
        memory, num_pages = self.learner.memory, tracker.elapsed.size
        columns, now = np.empty((3, num_pages)), (tracker.time, tracker.elapsed, tracker.alive)
        kernels.write_values(memory, *now, np.empty(num_pages), columns)
        return dict(zip(("evidence", "expected_changes", "change_rate"), columns, strict=True))

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """Return a learner with the initial belief; ``slots`` and ``rng`` are not used.

        Raises:
            ValueError: the history is of other pages or sources.
        """
        functions = kernels.on_birth_or_death, kernels.learn, kernels.on_signal, kernels.score
        return CompiledLearner(*functions, self.first_memory(problem), self.promises(problem))

    def first_memory(self, problem: Problem) -> Memory:
        """Return the belief at the start of an episode, learned from the history if any.

        Raises:
            ValueError: the history is of other pages or sources.
        """
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
        columns = places_of(problem)
        memory.pages[:, columns.importance] = problem.importance
        memory.pages[:, columns.exists] = 1.0
        memory.groups[:, columns.size] = np.bincount(memory.group, minlength=len(memory.groups))
        memory.shared[layout.FLOOR] = FLOOR * problem.bandwidth / problem.num_pages
        return memory

    def _blank(self, problem: Problem) -> Memory:
        """Return a belief without data from crawls, at the revealed parameters if there are any."""
        columns, num_pages = places_of(problem), problem.num_pages
        group = np.zeros(num_pages, np.int64) if problem.group is None else problem.group.copy()
        revealed = problem.change_rate is not None and self.history is None
        scales = revealed_scales(problem, columns) if revealed else first_scales(problem, columns)
        pages = np.zeros((num_pages, columns.page_width))
        pages[:, columns.scale : columns.scale + columns.kinds] = scales
        pages[:, columns.importance], pages[:, columns.exists] = problem.importance, 1.0
        pages[:, columns.active] = 1.0
        groups = np.zeros((int(group.max()) + 1, columns.group_width))
        groups[:, : 2 * columns.kinds] = REVEALED_SHAPE if revealed else FIRST_SHAPE
        if not revealed:
            groups[:, 0] = groups[:, columns.kinds] = FIRST_RATE_SHAPE
        groups[:, columns.size] = np.bincount(group)
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
    """Return the columns of rows in a belief about the pages of a problem."""
    place: Any = layout.places_of
    return Places(*place.py_func(problem.num_sources, problem.group is not None))


def first_scales(problem: Problem, columns: Places) -> FloatArray:
    """Return scales (m, D) without parameters: FIRST_RATE changes, half a signal per interval."""
    often = problem.bandwidth / problem.num_pages
    scales = np.full((problem.num_pages, columns.kinds), 0.5 * often)
    scales[:, 0] = FIRST_RATE * often
    scales[:, 1 : 1 + columns.channels] = FIRST_EVIDENCE
    return scales


def revealed_scales(problem: Problem, columns: Places) -> FloatArray:
    """Return scales (m, D) from revealed parameters: alpha, ln(gamma / nu) and gamma, clipped."""
    assert problem.change_rate is not None
    recall, false = (
        np.atleast_2d(np.asarray(rate)) for rate in (problem.recall, problem.false_signal_rate)
    )
    signal = recall * problem.change_rate + false
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.nan_to_num(np.log(signal / false), nan=0.0, posinf=np.inf)
    min_rate = MIN_RATE * problem.bandwidth / problem.num_pages
    alpha = (1.0 - np.minimum(recall.sum(axis=0), 1.0)) * problem.change_rate
    by_source = np.clip(evidence, *EVIDENCE_RANGE), np.maximum(signal, min_rate)
    return np.concatenate(
        [
            np.maximum(alpha, min_rate)[None],
            np.tile(by_source[0], (columns.channels // columns.sources, 1)),
            np.tile(by_source[1], (columns.own // columns.sources, 1)),
        ]
    ).T
