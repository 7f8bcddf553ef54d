"""A learner that depends on all of its inputs, in compiled code and in plain Python."""

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types.compiled_policies import (
    LEARN,
    ON_BIRTH_OR_DEATH,
    ON_SIGNAL,
    SCORE,
    CompiledLearner,
    Memory,
)
from policies.base.compiled_learner import CompiledLearnerPolicy

CHANGES, SIGNALS, BORN, DIED, LAST = range(5)


@compiled(ON_BIRTH_OR_DEATH.signature)
def on_birth_or_death(memory, page, time, alive):
    pages, groups, _, _, group = memory
    pages[BORN if alive else DIED, page] += 1.0 + 0.01 * time
    pages[CHANGES, page] = 0.0
    groups[group[page], 0] += 1.0


@compiled(LEARN.signature)
def learn(memory, page, time, elapsed, signals, changed):
    pages, groups, _, shared, group = memory
    pages[CHANGES, page] += 1.0 if changed else -0.5
    pages[SIGNALS, page] = 0.1 * signals.sum() + 0.01 * elapsed
    shared[0] += time
    groups[group[page], 1] += changed


@compiled(ON_SIGNAL.signature)
def on_signal(memory, page, time, source):
    pages, _, events, shared, _ = memory
    for k in range(page.size):
        pages[SIGNALS, page[k]] += 1.0 + source[k]
        pages[LAST, page[k]] = time[k]
        events[0, int(shared[1]) % events.shape[1]] = time[k]
        shared[1] += 1.0


@compiled(SCORE.signature)
def score(memory, now, elapsed, alive, scores):
    pages, groups, _, _, group = memory
    for page in range(elapsed.size):
        rate = 1.0 + groups[group[page], 1] / (1.0 + groups[group[page], 0])
        own = np.exp(0.3 * np.tanh(pages[CHANGES, page])) + 0.2 * pages[SIGNALS, page]
        scores[page] = elapsed[page] * rate * own + 0.001 * (now - pages[LAST, page])


class CountingLearner(CompiledLearnerPolicy):
    """Crawls by what it has counted."""

    def compile(self, problem, slots, rng):
        m = problem.num_pages
        group = np.zeros(m, np.int64) if problem.group is None else problem.group.copy()
        memory = Memory(
            np.zeros((5, m)), np.zeros((group.max() + 1, 2)), np.zeros((1, 8)), np.zeros(2), group
        )
        return CompiledLearner(on_birth_or_death, learn, on_signal, score, memory)
