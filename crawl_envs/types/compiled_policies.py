"""What compiled code can run of a policy: values, a sequence, thresholds, or rates."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from crawl_envs.types.problem import BoolArray, FloatArray, IntArray, Policy, Problem


class CompiledIndex(NamedTuple):
    """An index policy that compiled code can run: crawl the alive page of the largest value.

    ``value`` is a compiled function of the type ``crawl_envs.types.compiling.VALUE`` that does not
    decrease in elapsed time or in signals; ``parameters`` its table, one row per page, (m, P).
    Signals that arrive within ``delay_window`` of a crawl of their page are not counted. ``signal_weight``,
    of the type ``crawl_envs.types.compiling.HEED``, says what each of the others counts, >= 0, by its
    source and by its age: the time from its page's last crawl to its arrival, infinite where that
    is not known. None counts each as 1.
    """

    value: Any
    parameters: FloatArray
    delay_window: float = 0.0
    signal_weight: Any = None


RESPONSE_DUE = 1.0 - 1e-9
"""What an account of answered signals must hold for 1: sums of shares are rounded."""


class CompiledSequence(NamedTuple):
    """A policy whose crawls are known beforehand, but for those that signals call for.

    ``pages`` (int64) holds one for every slot. With ``answered``, (m,) in [0, 1], signals come
    first: every signal of a page adds that share to the page's account, and a page whose account
    reaches 1 is crawled in the next slot that is free, in the order of the signals, whereupon only
    what is below 1 stays on its account; the sequence goes on in the slots that are left, and
    starts over where it ends. None answers none.
    """

    pages: IntArray
    answered: FloatArray | None = None


class ThresholdRule(NamedTuple):
    """When every page is crawled, from a time on: as soon as its state reaches a threshold.

    A page's state is what the signals since its last crawl count and, where the page is timed, the
    time since then, both in the same unit; with the signals' time-equivalents it is the effective
    elapsed time. Each cycle of a page, from one crawl to the next, has one threshold.

    Attributes:
        start: the time from which on the rule holds.
        threshold: what the state must reach, > 0; inf is never reached, (m,).
        later_threshold: another one, at least as large, (m,).
        later_share: the probability that a cycle ends at the later one instead, in [0, 1], (m,).
        signal_weight: what a signal counts, >= 0, inf included, by source and page, (S, m).
        timed: whether elapsed time counts, (m,).
    """

    start: float
    threshold: FloatArray
    later_threshold: FloatArray
    later_share: FloatArray
    signal_weight: FloatArray
    timed: BoolArray


class CompiledThresholds(NamedTuple):
    """A policy that crawls each page at the instant at which its state reaches a threshold.

    It is not bound to slots: crawls come when they are due, in the long run as many as the
    bandwidth allows. ``rules`` hold one after the other, in order of their starts, the first of
    which is 0; ``rng`` is the seed, in [0, 2**64), of the choices between two thresholds.
    """

    rules: tuple[ThresholdRule, ...]
    rng: int


class RateRule(NamedTuple):
    """At which rate pages are crawled at random instants, from a time on.

    Attributes:
        start: the time from which on the rule holds.
        rates: crawls per unit of time, a Poisson process for each page, >= 0, (m,).
        chances: the probability that a signal of a page is answered by a crawl at once, in
            [0, 1], (m,).
    """

    start: float
    rates: FloatArray
    chances: FloatArray


class CompiledRates(NamedTuple):
    """A policy that crawls at random instants, at given rates and on given shares of the signals.

    It is not bound to slots; in the long run it crawls as often as its rates say. ``rules`` hold
    one after the other, in order of their starts, the first of which is 0. The coins are those of
    the episode.
    """

    rules: tuple[RateRule, ...]


class Memory(NamedTuple):
    """What a learner remembers of an episode: arrays that its compiled functions read and write.

    Attributes:
        pages: numbers kept of each page, (K, m).
        groups: numbers kept of each group of pages, (G, L).
        events: numbers kept of past events, a ring, (E, C).
        shared: constants, counters, the weights of a network, (W,).
        group: the group of each page, (m,).
    """

    pages: FloatArray
    groups: FloatArray
    events: FloatArray
    shared: FloatArray
    group: IntArray


AGE_ROUNDING = 1e-9
"""Relative error that is granted to a time found as now minus elapsed: a page whose elapsed time
began later than at its last crawl was born since."""


class CompiledLearner(NamedTuple):
    """A policy that learns while it crawls: crawl the alive page of the largest score.

    ``on_birth_or_death``, ``learn``, ``on_signal`` and ``score`` are compiled functions of the types of these names
    in :mod:`crawl_envs.types.compiling`; at every decision they are called in this order with ``memory``,
    as at the episode's start. Scores may be any finite numbers.
    """

    on_birth_or_death: Any
    learn: Any
    on_signal: Any
    score: Any
    memory: Memory


Compiled: TypeAlias = (
    CompiledIndex | CompiledSequence | CompiledThresholds | CompiledRates | CompiledLearner
)


@runtime_checkable
class CompilablePolicy(Policy, Protocol):
    """A policy that can also run as compiled code."""

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> Compiled:
        """The compiled form for ``problem`` over ``slots`` crawls; ``rng`` for random choices."""
