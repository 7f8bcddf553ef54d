"""What a crawler sees that explores around a belief: crawls, and the belief along some cycles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.generalist.belief import kernels, layout
from agents.generalist.belief.layout import PAGE_WIDTH, WEIGHTS
from agents.generalist.inputs import INPUTS, write_inputs
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiled_policies import CompiledLearner, Memory
from crawl_envs.types.compiling import LEARN, SCORE, compiled, inlined
from policies.ncis.belief.layout import CLASSES, EVENT_WIDTH, EVENTS, places

SPREAD = 0.6
"""Standard deviation of the logarithm of a factor of each page's value, drawn at every crawl."""
AT_RANDOM = 0.03
"""Share of crawls of random pages."""
FOLLOWED = 4
"""Every how many pages one is followed along its cycles."""
EVERY = 10
"""Times per cycle T at which pages are followed."""

PAGE, TIME, EVIDENCE, RATE, FORCED, CHANGED = range(6)
"""Columns of a record of a page, before its inputs."""
NUM_COLUMNS = 6
WIDTH = NUM_COLUMNS + len(INPUTS)
CRAWLED, SEEN, FIRST_SEEN, GAP, NOISE = range(WEIGHTS, WEIGHTS + 5)
"""Places in ``shared``: numbers of crawls and of other records; the place of the first of these;
slots between two; then for each slot a page to crawl or -1, and a factor."""

belief_learn = kernels.learn


@compiled()
def place_of(number: int) -> int:
    """Return the first place of a record in the flat array of events, after those of the belief."""
    return (EVENTS + CLASSES) * EVENT_WIDTH + number * WIDTH


@inlined()
def record(
    memory: kernels.Arrays,
    number: int,
    now: float,
    elapsed: FloatArray,
    page: int,
    believed: FloatArray,
    values: FloatArray,
) -> None:
    """Record the belief about a page now."""
    shared = memory[3]
    flat = memory[2].reshape(memory[2].size)
    first = place_of(number)
    inputs = np.zeros((len(INPUTS), 1))
    write_inputs(memory, now, elapsed, np.array([page]), believed, values, inputs)
    flat[first + PAGE], flat[first + TIME] = page, now
    flat[first + EVIDENCE], flat[first + RATE] = believed[0, page], believed[2, page]
    flat[first + FORCED] = shared[NOISE + 2 * int(shared[CRAWLED])] >= 0.0
    flat[first + CHANGED] = 0.0
    for k in range(len(INPUTS)):
        flat[first + NUM_COLUMNS + k] = inputs[k, 0]


@compiled(LEARN.signature)
def learn(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    page: int,
    time: float,
    elapsed: float,
    signals: FloatArray,
    changed: bool,
) -> None:
    """Update the belief by a crawl, record its result, and draw a new factor for the page."""
    flat, slot = events.reshape(events.size), int(shared[CRAWLED])
    flat[place_of(slot) + CHANGED] = changed
    pages[page, places(shared).page_width + PAGE_WIDTH] = shared[NOISE + 1 + 2 * slot]
    shared[CRAWLED] += 1.0
    belief_learn(
        pages, groups, events, shared, group, page, time, elapsed, signals, changed
    )  # fmt: skip


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
    """Choose a page, and record the belief about it and, at times, about those followed."""
    memory = pages, groups, events, shared, group
    believed = np.empty((3, elapsed.shape[0]))
    values, slot = np.empty(elapsed.shape[0]), int(shared[CRAWLED])
    kernels.value_all(memory, now, elapsed, alive, values, believed)
    noise = places(shared).page_width + PAGE_WIDTH
    best = int(shared[NOISE + 2 * slot])
    if best < 0:
        best = 0
        for page in range(elapsed.shape[0]):
            scores[page] = values[page] * pages[page, noise]
            if scores[page] > scores[best]:
                best = page
    record(memory, slot, now, elapsed, best, believed, values)
    if slot % int(shared[GAP]) == 0:
        for page in range(0, elapsed.shape[0], FOLLOWED):
            number = int(shared[FIRST_SEEN] + shared[SEEN])
            record(memory, number, now, elapsed, page, believed, values)
            shared[SEEN] += 1.0
    scores[:] = 0.0
    scores[best] = 1.0


class Record(NamedTuple):
    """Records of an episode: at the n crawls, and at k times along followed cycles.

    ``crawls`` (n, NUM_COLUMNS) and ``seen`` (k, NUM_COLUMNS) float32, ``crawl_inputs`` (n, K) and
    ``seen_inputs`` (k, K) float16; ``cycle`` is T.
    """

    crawls: NDArray[np.float32]
    crawl_inputs: NDArray[np.float16]
    seen: NDArray[np.float32]
    seen_inputs: NDArray[np.float16]
    cycle: float


def recording(memory: Memory, slots: int, rng: np.random.Generator) -> CompiledLearner:
    """Return a learner that explores from a described belief, and records in its arrays."""
    num_pages = memory.pages.shape[0]
    gap = max(1, num_pages // EVERY)
    seen = (slots // gap + 1) * (-(-num_pages // FOLLOWED))
    rows = -(-(slots + seen) * WIDTH // EVENT_WIDTH)
    events = np.concatenate([memory.events, np.zeros((rows + 1, EVENT_WIDTH))])
    factor = np.exp(SPREAD * rng.standard_normal(num_pages))
    pages = np.concatenate([memory.pages, factor[:, None]], axis=1)
    forced = rng.random(slots + 1) < AT_RANDOM
    choices = np.stack(
        [
            np.where(forced, rng.integers(num_pages, size=slots + 1), -1),
            np.exp(SPREAD * rng.standard_normal(slots + 1)),
        ],
        axis=1,
    )
    shared = np.concatenate([memory.shared[:WEIGHTS], [0.0, 0.0, slots, gap], choices.ravel()])
    arrays = Memory(pages, memory.groups, events, shared, memory.group)
    functions = kernels.on_birth_or_death, learn, kernels.on_signal, score
    return CompiledLearner(*functions, arrays)


def recorded(memory: Memory) -> Record:
    """Return what was recorded in the arrays of a learner of :func:`recording`."""
    flat = memory.events.reshape(-1)[(EVENTS + CLASSES) * EVENT_WIDTH :]
    slots, crawled, seen = (int(memory.shared[k]) for k in (FIRST_SEEN, CRAWLED, SEEN))
    rows = flat[: (slots + seen) * WIDTH].reshape(-1, WIDTH)
    crawls, followed = rows[:crawled], rows[slots:]
    return Record(
        crawls[:, :NUM_COLUMNS].astype(np.float32),
        crawls[:, NUM_COLUMNS:].astype(np.float16),
        followed[:, :NUM_COLUMNS].astype(np.float32),
        followed[:, NUM_COLUMNS:].astype(np.float16),
        float(memory.shared[layout.CYCLE]),
    )
