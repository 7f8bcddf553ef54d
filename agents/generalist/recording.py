"""Record crawls, and the belief between them, of a crawler that explores around a belief."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.generalist import history, kernels
from agents.generalist.inputs import INPUTS, write_inputs
from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.compiled_policies import LEARN, SCORE, CompiledLearner, Memory
from policies.ncis.belief import kernels as belief
from policies.ncis.belief.layout import CLASSES, EVENT_WIDTH, EVENTS

SPREAD = 0.6
"""Standard deviation of the logarithm of a random factor of the page's value, new at each crawl."""
RANDOM_SHARE = 0.03
"""Share of crawls that go to a random page."""
PAGE_STRIDE = 4
"""The belief between crawls is sampled for every fourth page."""
SAMPLES_PER_CYCLE = 10
"""Number of samples of the belief about a sampled page per cycle T."""

PAGE, TIME, EVIDENCE, RATE, FORCED, CHANGED = range(6)
"""Columns of a record of a page, before its inputs."""
NUM_COLUMNS = 6
WIDTH = NUM_COLUMNS + len(INPUTS)
CRAWLED, DECISIONS, SAMPLED, FIRST_SAMPLE, GAP, NOISE = range(history.WEIGHTS, history.WEIGHTS + 6)
"""Places in ``shared``: numbers of crawls, of decisions, and of samples; the number of the
first sample; slots between samples; then for each slot a page to crawl or -1, and a factor."""
MAX_EVIDENCE = 50.0
"""Bound of the recorded evidence, far above that of a certain change."""
FIRST_RECORD = (EVENTS + CLASSES) * EVENT_WIDTH
"""Place of the records in the flat array of events, after the events of the belief."""


@inlined()
def record(
    memory: Memory,
    number: int,
    now: float,
    elapsed: FloatArray,
    page: int,
    believed: FloatArray,
    values: FloatArray,
) -> None:
    """Write the belief about a page and its inputs to record ``number`` of the events."""
    shared, inputs = memory.shared, np.zeros((len(INPUTS), 1))
    write_inputs(memory, now, elapsed, np.array([page]), believed, values, inputs)
    row = memory.events.reshape(memory.events.size)[FIRST_RECORD + number * WIDTH :]
    row[PAGE], row[TIME] = page, now
    row[EVIDENCE], row[RATE] = min(believed[0, page], MAX_EVIDENCE), believed[2, page]
    row[FORCED] = shared[NOISE + 2 * int(shared[CRAWLED])] >= 0.0
    row[CHANGED] = 0.0
    row[NUM_COLUMNS:WIDTH] = inputs[:, 0]


@compiled(LEARN.signature)
def learn(
    memory: Memory, page: int, time: float, elapsed: float, signals: FloatArray, changed: bool
) -> None:
    """Update the belief by a crawl; record the result of one of the episode.

    After a crawl of the episode, the page has a new factor.
    """
    events, shared = memory.events, memory.shared
    slot = int(shared[CRAWLED])
    if slot < shared[DECISIONS]:
        events.reshape(events.size)[FIRST_RECORD + slot * WIDTH + CHANGED] = changed
        memory.pages[page, -1] = shared[NOISE + 1 + 2 * slot]
        shared[CRAWLED] += 1.0
    kernels.learn(memory, page, time, elapsed, signals, changed)


@compiled(SCORE.signature)
def score(
    memory: Memory, now: float, elapsed: FloatArray, alive: BoolArray, scores: FloatArray
) -> None:
    """Choose the page to crawl and record the belief about it; at times, record samples too."""
    shared, num_pages = memory.shared, elapsed.shape[0]
    believed, values, slot = np.empty((3, num_pages)), np.empty(num_pages), int(shared[CRAWLED])
    belief.write_values(memory, now, elapsed, alive, values, believed)
    best = int(shared[NOISE + 2 * slot])
    if best < 0 or not alive[best]:
        best = int(np.argmax(values * memory.pages[:, -1]))
    if not alive[best]:  # no page exists
        return
    record(memory, slot, now, elapsed, best, believed, values)
    shared[DECISIONS] = slot + 1.0
    if slot % int(shared[GAP]) == 0:
        for page in range(0, num_pages, PAGE_STRIDE):
            if not alive[page]:
                continue
            number = int(shared[FIRST_SAMPLE] + shared[SAMPLED])
            record(memory, number, now, elapsed, page, believed, values)
            shared[SAMPLED] += 1.0
    scores[:] = 0.0
    scores[best] = 1.0


class Record(NamedTuple):
    """Records of an episode: at n crawls, and k samples between crawls.

    ``crawls`` (n, NUM_COLUMNS) and ``samples`` (k, NUM_COLUMNS) float32; ``crawl_inputs`` (n, K)
    and ``sample_inputs`` (k, K) float16; ``cycle`` is T.
    """

    crawls: NDArray[np.float32]
    crawl_inputs: NDArray[np.float16]
    samples: NDArray[np.float32]
    sample_inputs: NDArray[np.float16]
    cycle: float


def recording(memory: Memory, slots: int, rng: np.random.Generator) -> CompiledLearner:
    """Return a learner that crawls by a belief with random factors, and records in its arrays."""
    num_pages = memory.pages.shape[0]
    gap = max(1, num_pages // SAMPLES_PER_CYCLE)
    samples = (slots // gap + 1) * (-(-num_pages // PAGE_STRIDE))
    rows = -(-(slots + samples) * WIDTH // EVENT_WIDTH)
    events = np.concatenate([memory.events, np.zeros((rows + 1, EVENT_WIDTH))])
    factor = np.exp(SPREAD * rng.standard_normal(num_pages))
    pages = np.concatenate([memory.pages, factor[:, None]], axis=1)
    forced = rng.random(slots + 1) < RANDOM_SHARE
    page = np.where(forced, rng.integers(num_pages, size=slots + 1), -1)
    choices = np.stack([page, np.exp(SPREAD * rng.standard_normal(slots + 1))], axis=1)
    shared = np.concatenate([memory.shared, [0.0, 0.0, 0.0, slots, gap], choices.ravel()])
    functions = kernels.on_birth_or_death, learn, kernels.on_signal, score
    return CompiledLearner(*functions, Memory(pages, memory.groups, events, shared, memory.group))


def recorded(memory: Memory) -> Record:
    """Return the crawls and samples recorded in the arrays of a learner of :func:`recording`."""
    flat = memory.events.reshape(-1)[FIRST_RECORD:]
    slots, crawls, samples = (int(memory.shared[k]) for k in (FIRST_SAMPLE, CRAWLED, SAMPLED))
    rows = flat[: (slots + samples) * WIDTH].reshape(-1, WIDTH)
    crawl_rows, sample_rows = rows[:crawls], rows[slots:]
    return Record(
        crawl_rows[:, :NUM_COLUMNS].astype(np.float32),
        crawl_rows[:, NUM_COLUMNS:].astype(np.float16),
        sample_rows[:, :NUM_COLUMNS].astype(np.float32),
        sample_rows[:, NUM_COLUMNS:].astype(np.float16),
        float(memory.shared[history.CYCLE]),
    )
