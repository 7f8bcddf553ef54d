"""The learner of staleness against its slow twin, along random logs."""

import numpy as np
import pytest

from policies.ncis.belief import kernels, layout
from policies.ncis.belief.warm_start import replay_history
from tests.policies.ncis.belief.logs import (
    BANDWIDTH,
    GROUP,
    PAGES,
    Learner,
    instance,
    naive_of,
    random_history,
    signals_between,
)


def play_both(problem, rng, crawls, mortal=True, **memories):
    """Tell a learner and its twin the same, and compare their scores at every decision."""
    fast, slow = Learner(problem, **memories), naive_of(problem, **memories)
    group = GROUP if problem.group is None else problem.group
    alive, last, now = np.ones(PAGES, bool), np.zeros(PAGES), 0.0
    for _ in range(crawls):
        before, now = now, now + rng.exponential(1.0 / BANDWIDTH)
        page, changed = int(rng.choice(np.flatnonzero(alive))), bool(rng.random() < 0.4)
        for learner in (fast, slow):
            learner.learn(page, before - last[page], changed)
        last[page] = before
        if mortal and rng.random() < 0.15:
            page = int(rng.integers(2, PAGES))
            alive[page] = not alive[page]
            last[page] = now
            for learner in (fast, slow):
                learner.on_birth_or_death(page, bool(alive[page]))
        signals = signals_between(rng, before, now, alive, group, problem.num_sources)
        for learner in (fast, slow):
            learner.on_signal(signals)
        elapsed = np.where(alive, now - last, 0.0)
        expected = [slow.score(k, now, elapsed[k]) if alive[k] else 0.0 for k in range(PAGES)]
        np.testing.assert_allclose(
            fast.scores(now, elapsed, alive), expected, rtol=1e-9, atol=1e-11
        )
    result = np.empty((3, PAGES))
    kernels.write_values(fast.memory, now, elapsed, alive, np.empty(PAGES), result)
    living = np.flatnonzero(alive)
    for page in living:
        own = slow.evidence(page, elapsed[page]), slow.expected_changes(page, elapsed[page])
        expected = *own, slow.change_rate(page, now)
        np.testing.assert_allclose(result[:, page], expected, rtol=1e-9)
    np.testing.assert_array_equal(result[:, ~alive], 0.0)
    return fast, slow


@pytest.mark.parametrize("reveal", ["importance", "parameters"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("sources", [1, 2])
def test_scores_are_those_of_the_twin(sources, grouped, reveal):
    problem = instance(sources, grouped).problem(reveal)
    rng = np.random.default_rng([sources, grouped, reveal == "importance"])
    fast, slow = play_both(problem, rng, 300, memory=4.0, pace_memory=2.0)
    number = sum(len(row["broadcasts"]) for row in slow.groups)
    assert fast.memory.shared[layout.EVENT] == number
    assert number > 100 if grouped else number == 0
    weights = [item["weight"] for row in slow.groups for item in row["broadcasts"]]
    assert not grouped or max(weights) / min(weights) > 2.0


def test_scores_are_those_of_the_twin_without_arguments():
    problem = instance(2).problem("importance")
    fast, _ = play_both(problem, np.random.default_rng(9), 200, mortal=False)
    interval = PAGES / BANDWIDTH
    assert fast.memory.shared[layout.MEMORY] == pytest.approx(30.0 * interval)
    assert fast.memory.shared[layout.PACE_MEMORY] == fast.memory.shared[layout.MEMORY]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("grouped", [False, True])
def test_warm_start_is_that_of_the_twin(grouped, seed):
    problem = instance(2, grouped).problem("importance")
    history = random_history(np.random.default_rng(seed))
    fast = Learner(problem, memory=10.0, pace_memory=3.0)
    steps = 1 + seed % 3
    fast.memory.shared[layout.POOL_STEPS] = steps
    slow = naive_of(problem, 10.0, 3.0, steps=steps)
    replay_history(fast.memory, history)
    slow.replay_history(history)
    assert fast.memory.shared[layout.CRAWLS] == slow.crawls > 100
    assert {0, 1, 2, 3, 4} == {*history.kind.tolist()}
    for now in (0.3, 2.0):
        elapsed = np.linspace(0.1, 1.0, PAGES) * now
        expected = [slow.score(page, now, elapsed[page]) for page in range(PAGES)]
        result = fast.scores(now, elapsed, np.ones(PAGES, bool))
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-11)
