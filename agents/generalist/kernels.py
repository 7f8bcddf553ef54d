"""The compiled functions of a corrected belief: those of the belief, a history, and the score."""

from __future__ import annotations

import math

import numpy as np

from agents.generalist import history
from agents.generalist.inputs import broadcast_since, write_inputs
from agents.generalist.networks import NUM_VALUED, correct
from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiled_policies import LEARN, ON_BIRTH_OR_DEATH, ON_SIGNAL, SCORE, Memory
from policies.ncis.belief import kernels as belief
from policies.ncis.belief.layout import places


@compiled(ON_BIRTH_OR_DEATH.signature)
def on_birth_or_death(memory: Memory, page: int, time: float, alive: bool) -> None:
    """Reset a page that is born, fresh, or dies."""
    belief.on_birth_or_death(memory, page, time, alive)
    history.begin(memory.pages[page, places(memory.shared).page_width :], time)


@compiled(LEARN.signature)
def learn(
    memory: Memory, page: int, time: float, elapsed: float, signals: FloatArray, changed: bool
) -> None:
    """Update the belief and the history by a crawl."""
    pages, groups, _, shared, group = memory
    at, row, own = places(shared), pages[page], groups[group[page]]
    past, cycle, weights = row[at.page_width :], shared[history.CYCLE], np.empty(at.channels)
    belief.write_signal_weights(row, own, at, weights)
    x = belief.evidence_of(row, at, elapsed, weights)
    expected = -math.expm1(-x)
    history.weigh_hypotheses(past, shared, row[at.scale], elapsed, x, changed)
    state = history.kind_of(past, cycle, broadcast_since(row, own, at))
    for kind in (state, history.interval_kind_of(past, elapsed, cycle)):
        history.calibrate(shared, kind, expected, changed)
    history.learn_group(own[at.group_width :], expected, changed)
    history.learn_history(past, time, elapsed, expected, changed)
    belief.learn(memory, page, time, elapsed, signals, changed)


@compiled(ON_SIGNAL.signature)
def on_signal(memory: Memory, page: IntArray, time: FloatArray, source: IntArray) -> None:
    """Update the belief and the history by the signals of a step."""
    at = places(memory.shared)
    belief.on_signal(memory, page, time, source)
    for k in range(page.shape[0]):
        row, alone = memory.pages[page[k]], 0.0
        for channel in range(at.own):
            alone += row[at.signals + channel]
        if row[at.page_width + history.COUNTED] < alone:
            history.add_signal(row[at.page_width :], time[k], memory.shared[history.CYCLE])


@compiled(SCORE.signature)
def score(
    memory: Memory, now: float, elapsed: FloatArray, alive: BoolArray, scores: FloatArray
) -> None:
    """Write the crawl value of every page, corrected from a share LEAST of the largest on."""
    shared, believed = memory.shared, np.empty((3, elapsed.shape[0]))
    belief.write_values(memory, now, elapsed, alive, scores, believed)
    least = shared[history.LEAST] * scores.max()
    chosen = np.flatnonzero((scores > 0.0) & (scores >= least))
    inputs = np.zeros((NUM_VALUED, chosen.shape[0]))
    write_inputs(memory, now, elapsed, chosen, believed, scores, inputs)
    x, rate = believed[0][chosen], believed[2][chosen]
    price = correct(shared[history.WEIGHTS :], int(shared[history.HIDDEN]), inputs, x, rate)
    importance = places(shared).importance
    for k in range(chosen.shape[0]):
        scores[chosen[k]] = memory.pages[chosen[k], importance] * price[k]
