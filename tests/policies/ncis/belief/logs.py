"""The compiled belief about staleness and its slow twin, on the same events."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import Instance, Problem
from policies import BeliefNCIS
from policies.ncis.belief import policy as belief
from policies.ncis.belief.warm_start import BIRTH, CHANGE, DEATH, SIGNAL, History
from tests.naive.belief import NaiveLearner

PAGES, BANDWIDTH = 12, 15.0
GROUP = np.repeat([0, 1, 2], (6, 4, 2))
NONE = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)


def instance(sources=1, grouped=True, pages=PAGES, bandwidth=BANDWIDTH, **given) -> Instance:
    rng = np.random.default_rng(3)
    importance = rng.uniform(0.1, 1.0, pages)
    several = (sources, pages) if sources > 1 else pages
    given = {
        "change_rate": rng.uniform(0.2, 2.0, pages),
        "recall": rng.uniform(0.1, 0.8, several) / sources,
        "false_signal_rate": rng.uniform(0.1, 1.0, several),
    } | given
    group = GROUP if grouped is True else grouped if isinstance(grouped, np.ndarray) else None
    return Instance(importance, bandwidth=bandwidth, group=group, **given)


class Learner:
    """The compiled learner of a problem."""

    def __init__(self, problem: Problem, **arguments: Any) -> None:
        self.policy = BeliefNCIS(**arguments)
        form = self.policy.compile(problem, 0, np.random.default_rng(0))
        self.memory = form.memory
        self._on_birth_or_death, self._learn, self._on_signal, self._score = map(ready, form[:4])
        self.at = belief.places_of(problem)

    def on_birth_or_death(self, page, alive, time=0.0):
        self._on_birth_or_death(self.memory, page, time, alive)

    def learn(self, page, elapsed, changed, time=0.0):
        self._learn(self.memory, page, time, elapsed, np.zeros(self.at.sources), changed)

    def on_signal(self, signals):
        page, time, source = zip(*signals, strict=True) if signals else NONE
        self._on_signal(
            self.memory, np.array(page, int), np.array(time, float), np.array(source, int)
        )

    def scores(self, now, elapsed, alive):
        scores = np.zeros(len(elapsed))
        self._score(self.memory, now, np.asarray(elapsed, float), np.asarray(alive, bool), scores)
        return scores


def naive_of(problem: Problem, memory=None, pace_memory=None, **given) -> NaiveLearner:
    """The slow twin of the learner of a problem."""
    revealed = problem.change_rate is not None
    at = belief.places_of(problem)
    scales = belief.revealed_scales(problem, at) if revealed else belief.first_scales(problem, at)
    memory = (
        belief.MEMORY_CRAWLS * problem.num_pages / problem.bandwidth if memory is None else memory
    )
    return NaiveLearner(
        problem.importance.tolist(),
        None if problem.group is None else problem.group.tolist(),
        problem.num_sources,
        problem.bandwidth,
        scales.tolist(),
        [belief.REVEALED_SHAPE] * 2 if revealed else [belief.FIRST_RATE_SHAPE, belief.FIRST_SHAPE],
        memory,
        memory if pace_memory is None else pace_memory,
        **given,
    )


def signals_between(rng, start, end, alive, group, sources):
    """Signals of single pages, broadcasts to most pages of groups, and signals beside them."""
    signals = []
    living = np.flatnonzero(alive)
    for time in np.sort(rng.uniform(start, end, rng.poisson(2.0))):
        source = int(rng.integers(sources))
        at_once = [(int(rng.choice(living)), source)] if rng.random() < 0.7 else []
        for number in rng.choice(3, rng.integers(0, 3), replace=False):
            members = [page for page in living if group[page] == number]
            kept = [page for page in members if rng.random() < 0.8]
            at_once += [(int(page), int((source + 1) % sources)) for page in kept]
        rng.shuffle(at_once)
        signals += [(page, float(time), s) for page, s in dict.fromkeys(map(tuple, at_once))]
    return signals


def random_history(rng, duration=20.0, sources=2, group=GROUP) -> History:
    """Births, changes, signals and deaths; some changes at the instants of signals."""
    alive = rng.random(PAGES) < 0.8
    alive[:2] = True
    first, living, events, time = alive.copy(), alive.copy(), [], 0.0
    while (time := time + rng.exponential(0.4)) < duration:
        order = []
        page = int(rng.integers(2, PAGES))
        if rng.random() < 0.3:
            order.append((BIRTH if not living[page] else DEATH, page))
            living[page] = not living[page]
        some = signals_between(rng, 0.0, 1.0, living, group, sources) if rng.random() < 0.7 else []
        now = [(SIGNAL + s, page) for page, at, s in some if at == some[0][1]]
        dying = {page for kind, page in order if kind == DEATH}
        born = {page for kind, page in order if kind == BIRTH}
        changed = {page for _, page in now if rng.random() < 0.4} | {int(rng.integers(2))}
        order += [(CHANGE, page) for page in sorted(changed - born - dying)] + now
        rank = {BIRTH: 0, CHANGE: 1, DEATH: 9}
        order.sort(key=lambda event: rank.get(event[0], 2))
        events += [(time, page, kind) for kind, page in order]
    time, page, kind = zip(*events, strict=True)
    return History(np.array(time), np.array(page), np.array(kind), first, duration)
