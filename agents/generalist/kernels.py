"""The compiled score of a belief corrected by the two networks."""

from __future__ import annotations

import numpy as np

from agents.generalist.belief.kernels import candidates, value_all
from agents.generalist.belief.layout import HIDDEN, LEAST, WEIGHTS
from agents.generalist.inputs import write_inputs
from agents.generalist.networks import NUM_VALUED, correct
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import SCORE, compiled
from policies.ncis.belief.layout import places


@compiled(SCORE.signature)
def score(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    now: float,
    elapsed: FloatArray,
    alive: BoolArray,
    scores: FloatArray,
) -> None:
    """Write the crawl value of every page, corrected where it is a candidate."""
    memory = pages, groups, events, shared, group
    believed = np.empty((3, elapsed.shape[0]))
    value_all(memory, now, elapsed, alive, scores, believed)
    chosen = candidates(scores, shared[LEAST])
    inputs = np.zeros((NUM_VALUED, chosen.shape[0]))
    write_inputs(memory, now, elapsed, chosen, believed, scores, inputs)
    x, rate = believed[0][chosen], believed[2][chosen]
    price = correct(shared[WEIGHTS:], int(shared[HIDDEN]), inputs, x, rate)
    at = places(shared)
    for k in range(chosen.shape[0]):
        scores[chosen[k]] = pages[chosen[k], at.importance] * price[k]
