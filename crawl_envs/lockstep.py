"""One compiled call per step: every lane crawls, plays on to its next decision, and is observed.

The entry points take the table of a world's state. They return DONE, LOG_FULL when the log of
signals must grow before :func:`resume_lanes`, or the number of a lane whose action names no page,
in which case nothing has happened.
"""

from __future__ import annotations

from crawl_envs.kernels import compiled
from crawl_envs.observations import write_observations
from crawl_envs.sim.advance import advance, close_slots, crawl, restart
from crawl_envs.sim.state import State, state_at
from crawl_envs.types import BoolArray, IntArray

DONE = -1
LOG_FULL = -2


@compiled(forceinline=True)
def play(state: State) -> int:
    """Play every busy lane up to its target; then account for the slots and observe them."""
    if not advance(state):
        return LOG_FULL
    close_slots(state)
    write_observations(state)
    return DONE


@compiled(forceinline=True)
def bad_lane(crawls: IntArray, counts: IntArray, num_pages: int) -> int:
    """Return a lane that is to crawl a page outside [0, num_pages), or DONE."""
    for lane in range(counts.shape[0]):
        for position in range(counts[lane]):
            if not 0 <= crawls[lane, position] < num_pages:
                return lane
    return DONE


@compiled()
def step_lanes(table: IntArray, crawls: IntArray, counts: IntArray) -> int:
    """Crawl the first ``counts[lane]`` of ``crawls[lane]`` in all lanes but idle ones, and play."""
    state = state_at(table)
    bad = bad_lane(crawls, counts, state.last_crawl.shape[1])
    if bad != DONE:
        return bad
    crawl(state, crawls, counts)
    return play(state)


@compiled()
def restart_lanes(table: IntArray, chosen: BoolArray) -> int:
    """Start an episode in the lanes where ``chosen``, and play up to the first decision."""
    state = state_at(table)
    for lane in range(chosen.shape[0]):
        if chosen[lane]:
            restart(state, lane)
    return play(state)


@compiled()
def resume_lanes(table: IntArray) -> int:
    """Go on after LOG_FULL."""
    return play(state_at(table))
