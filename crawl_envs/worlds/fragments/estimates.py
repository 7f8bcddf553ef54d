"""Divergences of held copies from base versions, estimated from sketches."""

from __future__ import annotations

import numpy as np

from crawl_envs.sim.state import state_at
from crawl_envs.sim.versions import smallest_at
from crawl_envs.spaces.observations import write_copy
from crawl_envs.types import IntArray
from crawl_envs.types.compiling import compiled
from crawl_envs.types.sketches import divergence


@compiled()
def estimate_divergences(table: IntArray, sketch_size: int) -> None:
    """Replace the exact divergences of the last crawled copies by those of their sketches.

    Args:
        table: table of the state, after a step.
        sketch_size: number of smallest hashes in a sketch, >= 1.
    """
    state = state_at(table)
    for lane in range(state.lanes.shape[0]):
        record, row = state.lanes[lane], min(lane, state.spells.shape[0] - 1)
        spells, start = state.spells[row], state.spell_start[row]
        for position in range(record.slot_crawls * (not record.idle)):
            entry = state.crawl_log[lane, position]
            first, last = start[entry.page], start[entry.page + 1]
            newest = smallest_at(spells, first, last, entry.time, sketch_size)
            for slot in range(state.bases.shape[2]):
                base = state.bases[lane, entry.page, slot]
                if np.isnan(base.made):
                    break
                older = smallest_at(spells, first, last, base.made, sketch_size)
                base.divergence = divergence(older, newest, sketch_size)
            if state.shown.shape[1] > 0:
                write_copy(state, lane, entry.page)
