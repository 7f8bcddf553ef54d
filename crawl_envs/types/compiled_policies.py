"""Compiled forms of policies: values, a sequence, thresholds, rates, or a learner."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numba import types

from crawl_envs.compiled import BoolArray, FloatArray, IntArray
from crawl_envs.compiled.promises import NO_PROMISES
from crawl_envs.types.problem import Problem

UNDEFINED = "the index of every page must be a number, got NaN for page {}"
"""Message of the error about an index that is NaN."""


class CompiledIndex(NamedTuple):
    """An index policy: crawl the alive page of the largest value.

    ``value`` is a compiled function of type ``crawl_envs.compiled.compiling.VALUE`` that does not
    decrease in elapsed time or in signals; ``parameters`` is its table, one row per page, (m, P).
    Signals within ``delay_window`` after a crawl of their page are not counted. ``signal_weight``,
    of type ``crawl_envs.compiled.compiling.SIGNAL_WEIGHT``, returns the weight of each other
    signal, >= 0, from its source and age: the time from its page's last crawl to its arrival, inf
    if unknown. None is a weight of 1. ``promises``, (m, 3), says when pages are due whatever their
    values (:func:`crawl_envs.compiled.promises.value_of`), (0, 3) for never.
    """

    value: Any
    parameters: FloatArray
    delay_window: float = 0.0
    signal_weight: Any = None
    promises: FloatArray = NO_PROMISES


RESPONSE_DUE = 1.0 - 1e-9
"""Smallest account of a page that counts as 1, because sums of shares are rounded."""


class CompiledSequence(NamedTuple):
    """A fixed sequence of crawls, optionally with crawls in response to signals.

    ``pages`` (int64) has one page per slot. With ``answered``, (m,) in [0, 1], signals have
    priority: every signal adds the share of its page to the page's account, and a page whose
    account reaches 1 is crawled in the next free slot, in the order of the signals, and 1 is
    subtracted from its account. The sequence continues in the remaining slots, and repeats.
    None is no response to signals.
    """

    pages: IntArray
    answered: FloatArray | None = None


class ThresholdRule(NamedTuple):
    """Crawl every page when its state reaches a threshold, from a time on.

    A page's state is the total weight of signals since its last crawl plus, for timed pages, the
    elapsed time; with time-equivalents as weights it is the effective elapsed time. Each cycle of
    a page, from one crawl to the next, has one threshold.

    Attributes:
        start: start time of the rule.
        threshold: threshold of the state, > 0 or inf (never), (m,).
        later_threshold: second threshold, at least as large, (m,).
        later_share: probability that a cycle has the later threshold, in [0, 1], (m,).
        signal_weight: weight of a signal, >= 0 or inf, by source and page, (S, m).
        timed: whether elapsed time counts, (m,).
    """

    start: float
    threshold: FloatArray
    later_threshold: FloatArray
    later_share: FloatArray
    signal_weight: FloatArray
    timed: BoolArray


class CompiledThresholds(NamedTuple):
    """A policy that crawls each page at the time when the page's state reaches a threshold.

    Crawls are not bound to slots; their long-run rate is the bandwidth. ``rules`` apply one after
    another, sorted by start, the first at 0. ``seed``, in [0, 2**64), starts the random choices
    between two thresholds.
    """

    rules: tuple[ThresholdRule, ...]
    seed: int


class RateRule(NamedTuple):
    """Crawl rates and chances of a crawl at a signal that apply from a time on.

    Attributes:
        start: start time of the rule.
        rates: rate of Poisson crawls of each page, per unit time, >= 0, (m,).
        chances: probability of an immediate crawl on a signal of each page, in [0, 1], (m,).
    """

    start: float
    rates: FloatArray
    chances: FloatArray


class CompiledRates(NamedTuple):
    """A policy of Poisson crawls at given rates, and of crawls at given shares of the signals.

    Crawls are not bound to slots; their long-run rate follows from the rates. ``rules`` apply one
    after another, sorted by start, the first at 0. Random numbers are the episode's.
    """

    rules: tuple[RateRule, ...]


class Memory(NamedTuple):
    """State of a learner: arrays that its compiled functions read and write.

    Attributes:
        pages: K numbers per page, (K, m).
        groups: numbers per group of pages, (G, L).
        events: ring buffer of past events, (E, C).
        shared: constants, counters, the weights of a network, (W,).
        group: group of each page, (m,).
    """

    pages: FloatArray
    groups: FloatArray
    events: FloatArray
    shared: FloatArray
    group: IntArray


_TABLE, _ROW = types.float64[:, ::1], types.float64[::1]
_named: Any = types.NamedTuple
MEMORY = _named((_TABLE, _TABLE, _TABLE, _ROW, types.int64[::1]), Memory)
"""Type of a :class:`Memory`."""

ON_BIRTH_OR_DEATH = types.FunctionType(
    types.void(MEMORY, types.int64, types.float64, types.boolean)
)
"""Type of the update at births and deaths: ``on_birth_or_death(memory, page, time, alive)``."""

LEARN = types.FunctionType(
    types.void(MEMORY, types.int64, types.float64, types.float64, _ROW, types.boolean)
)
"""Type of the update after a crawl: ``learn(memory, page, time, elapsed, signals, changed)``."""

ON_SIGNAL = types.FunctionType(types.void(MEMORY, types.int64[::1], _ROW, types.int64[::1]))
"""Type of the update by the signals of a step: ``on_signal(memory, page, time, source)``."""

SCORE = types.FunctionType(types.void(MEMORY, types.float64, _ROW, types.boolean[::1], _ROW))
"""Type of the scores of all pages: ``score(memory, now, elapsed, alive, scores)``."""

AGE_ROUNDING = 1e-9
"""Relative tolerance of a time computed as now minus elapsed; if that is later than the last crawl
of a page, the page was born since."""


class CompiledLearner(NamedTuple):
    """A learning policy: crawl the alive page of the largest score.

    ``on_birth_or_death``, ``learn``, ``on_signal`` and ``score`` are compiled functions of the
    types ON_BIRTH_OR_DEATH, LEARN, ON_SIGNAL and SCORE. They are called in this order with
    ``memory`` at every decision and at the episode's start. Scores are finite numbers.
    ``promises`` are as for :class:`CompiledIndex`.
    """

    on_birth_or_death: Any
    learn: Any
    on_signal: Any
    score: Any
    memory: Memory
    promises: FloatArray = NO_PROMISES


Compiled: TypeAlias = (
    CompiledIndex | CompiledSequence | CompiledThresholds | CompiledRates | CompiledLearner
)


@runtime_checkable
class CompilablePolicy(Protocol):
    """A policy with a compiled form."""

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """Return the policy's compiled form for ``slots`` crawls; ``rng`` makes random choices."""
