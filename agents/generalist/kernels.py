"""The compiled functions of a belief whose crawl values two networks correct."""

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
    """Update the belief about a page and its history by the result of a crawl."""
    pages, groups, _, shared, group = memory
    columns, row, group_row = places(shared), pages[page], groups[group[page]]
    past, cycle = row[columns.page_width :], shared[history.CYCLE]
    weights = np.empty(columns.channels)
    belief.write_signal_weights(row, group_row, columns, weights)
    x = belief.evidence_of(row, columns, elapsed, weights)
    expected = -math.expm1(-x)
    history.weigh_hypotheses(past, shared, row[columns.scale], elapsed, x, changed)
    state = history.kind_of(past, cycle, broadcast_since(row, group_row, columns))
    for kind in (state, history.interval_kind_of(past, elapsed, cycle)):
        history.calibrate(shared, kind, expected, changed)
    history.learn_group(group_row[columns.group_width :], expected, changed)
    history.learn_history(past, time, elapsed, expected, changed)
    belief.learn(memory, page, time, elapsed, signals, changed)


@compiled(ON_SIGNAL.signature)
def on_signal(memory: Memory, page: IntArray, time: FloatArray, source: IntArray) -> None:
    """Update the belief and the history by the signals of a step."""
    columns = places(memory.shared)
    belief.on_signal(memory, page, time, source)
    for k in range(page.shape[0]):
        row, num_signals = memory.pages[page[k]], 0.0
        for channel in range(columns.own):
            num_signals += row[columns.signals + channel]
        if row[columns.page_width + history.COUNTED] < num_signals:
            history.add_signal(row[columns.page_width :], time[k], memory.shared[history.CYCLE])


@compiled(SCORE.signature)
def score(
    memory: Memory, now: float, elapsed: FloatArray, alive: BoolArray, scores: FloatArray
) -> None:
    """Write every page's crawl value; networks correct values above MIN_SHARE of the largest."""
    shared, believed = memory.shared, np.empty((3, elapsed.shape[0]))
    belief.write_values(memory, now, elapsed, alive, scores, believed)
    min_value = shared[history.MIN_SHARE] * scores.max()
    selected = np.flatnonzero((scores > 0.0) & (scores >= min_value))
    inputs = np.zeros((NUM_VALUED, selected.shape[0]))
    write_inputs(memory, now, elapsed, selected, believed, scores, inputs)
    x, rate = believed[0][selected], believed[2][selected]
    price = correct(shared[history.WEIGHTS :], int(shared[history.HIDDEN]), inputs, x, rate)
    importance = places(shared).importance
    for k in range(selected.shape[0]):
        scores[selected[k]] = memory.pages[selected[k], importance] * price[k]
