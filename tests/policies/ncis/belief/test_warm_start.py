"""Warm starts of a belief from recorded histories."""

import math
import re
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from policies import BeliefNCIS
from policies.ncis.belief import layout
from policies.ncis.belief.warm_start import CHANGE, SIGNAL, History, replay_history
from tests.policies.ncis.belief.logs import PAGES, Learner, instance, random_history

FOREVER = 1e12


def history_of(events, duration, alive=True, pages=PAGES):
    """A history of (time, page, kind), in any order except among events of one instant."""
    time, page, kind = zip(*sorted(events, key=lambda event: event[0]), strict=True)
    living = np.broadcast_to(np.asarray(alive, bool), pages).copy()
    return History(np.array(time, float), np.array(page), np.array(kind), living, duration)


def warm_started(history, sources=1, grouped=False, **arguments):
    learner = Learner(
        instance(sources, grouped).problem("importance"), **({"memory": FOREVER} | arguments)
    )
    replay_history(learner.memory, history)
    return learner


def believed(learner, kind):
    return learner.memory.pages[:, learner.at.believed + kind]


def homogeneous(share, signals=60):
    """Every page is signalled at its own instants, and changes only at a share of them."""
    events = []
    for page in range(PAGES):
        for number in range(signals):
            time = 1.0 + number + page / PAGES
            events.append((time, page, SIGNAL))
            if number % 10 < 10 * share:
                events.append((time, page, CHANGE))
    return history_of(events, signals + 2.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_evidence_is_that_of_the_share_of_changes(share):
    learner = warm_started(homogeneous(share, 300))
    np.testing.assert_allclose(believed(learner, 1), -math.log(1.0 - share), rtol=0.03)
    np.testing.assert_allclose(believed(learner, 2), 1.0, rtol=0.06)  # a signal a day


@pytest.mark.parametrize("rate", [0.02, 0.3, 2.0])
def test_changes_that_come_at_their_own_times_teach_their_rate(rate):
    rng = np.random.default_rng(4)
    duration = 400.0 / rate
    events = [
        (time, page, CHANGE)
        for page in range(PAGES)
        for time in rng.uniform(0.0, duration, rng.poisson(rate * duration))
    ]
    learned = believed(warm_started(history_of(events, duration)), 0)
    np.testing.assert_allclose(learned, rate, rtol=0.15)
    np.testing.assert_allclose(learned.mean(), rate, rtol=0.05)


def test_changes_and_signals_of_one_instant_in_any_order():
    events = [(1.0, 0, CHANGE), (1.0, 0, SIGNAL), (1.0, 0, SIGNAL + 1), (2.0, 0, SIGNAL + 1)]
    orders = [
        events,
        [events[1], events[0], events[2], events[3]],
        [events[2], events[1], events[0], events[3]],
    ]
    result = [warm_started(history_of(order, 3.0), 2).memory.pages for order in orders]
    for other in result[1:]:
        np.testing.assert_allclose(other, result[0], rtol=1e-12)


def test_afterwards_every_page_is_fresh_and_time_begins_at_0():
    history = random_history(np.random.default_rng(5), duration=50.0)
    learner = warm_started(history, 2, grouped=True, pace_memory=3.0)
    at, memory = learner.at, learner.memory
    np.testing.assert_array_equal(memory.pages[:, at.signals : at.before], 0.0)
    np.testing.assert_array_equal(
        memory.pages[:, at.before], memory.groups[memory.group, at.broadcasts]
    )
    assert np.all(memory.groups[:, at.paced] <= 0.0)
    scores = learner.scores(0.0, np.zeros(PAGES), np.ones(PAGES, bool))
    np.testing.assert_allclose(scores, 0.0, atol=1e-12)


PLAIN = History([1.0, 2.0], [0, 1], [CHANGE, SIGNAL], [True, True], 5)
"""Of lists."""


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        ({"alive": [True] * 3}, "3"),
        ({"kind": [SIGNAL, SIGNAL + 1]}, "sources"),
    ],
)
def test_histories_of_other_pages_or_sources(spoiled, message):
    env = gym.make("CrawlNCIS-v0", num_pages=2, bandwidth=2.0, horizon=2.0)
    env.reset(seed=0)
    policy = BeliefNCIS(history=PLAIN._replace(**spoiled))
    with pytest.raises(ValueError, match=f"history.*{message}"):
        policy.compile(env.unwrapped.problem, 0, None)


def test_every_episode_starts_from_what_was_learned():
    env = gym.make("CrawlNCIS-v0", num_pages=PAGES, bandwidth=12.0, horizon=2.0)
    env.reset(seed=0)
    problem = env.unwrapped.problem
    history = random_history(np.random.default_rng(8), sources=1)
    policy = BeliefNCIS(history=history, memory=10.0)
    first, second = (policy.compile(problem, 0, None).memory for _ in range(2))
    first.pages[:] = -1.0
    first.groups[:] = -1.0
    assert second.pages.min() >= 0.0
    again = policy.compile(problem, 0, None).memory
    for one, other in zip(second, again, strict=True):
        np.testing.assert_array_equal(one, other)
    blank = BeliefNCIS(memory=10.0).compile(problem, 0, None).memory
    assert not np.array_equal(blank.groups, again.groups)
    for changed in ({"bandwidth": 24.0}, {"num_sources": 2}):
        other = replace(problem, **{"change_rate": None, "recall": None, **changed})
        kept, rebuilt = (
            each.compile(other, 0, None).memory
            for each in (policy, BeliefNCIS(history=history, memory=10.0))
        )
        for one, expected in zip(kept, rebuilt, strict=True):
            np.testing.assert_array_equal(one, expected)
    at = layout.places_of.py_func(1, False)
    np.testing.assert_array_equal(again.pages[:, at.importance], problem.importance)


@pytest.mark.parametrize("name", ["memory", "pace_memory"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, True, "x", [1.0]])
def test_memories_are_positive(name, value):
    message = f"{name} must be finite and > 0, got {value!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        BeliefNCIS(**{name: value})


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        ({"page": [0.0, 1.0]}, "page must be an array of int64, got dtype float64"),
        ({"kind": np.array([2.0, 3.0])}, "kind must be an array of int64, got dtype float64"),
        ({"page": [True, False]}, "page must be an array of int64, got dtype bool"),
        ({"time": ["a", "b"]}, "time must be an array of float64"),
        ({"time": [[1.0, 2.0]]}, "time must be an array of float64"),
        ({"time": [[1.0], [1.0, 2.0]]}, "time must be an array"),
        ({"alive": [1, 1]}, "alive must be an array of bool, got dtype int64"),
        ({"alive": None}, "alive must be an array of bool"),
        ({"page": [0, 2]}, r"page must be in \[0, 2\), got 0 to 2"),
        ({"kind": [CHANGE, -1]}, "kind must be >= 0, got -1 to 2"),
        ({"kind": [CHANGE]}, "must have a time, page and kind for each event"),
        ({"page": [-1, 1]}, r"page must be in \[0, 2\), got -1 to 1"),
        ({"time": [1.0, 6.0]}, r"time must not decrease and lie in \[0, 5\]"),
        ({"time": [2.0, 1.0]}, "time must not decrease"),
        ({"time": [math.nan, 1.0]}, "time must not decrease"),
        ({"time": [1.0]}, "must have a time, page and kind for each event"),
        ({"duration": 0.0}, "duration must be finite and > 0, got 0.0"),
        ({"duration": math.inf}, "duration must be finite and > 0, got inf"),
        ({"duration": "5"}, "duration must be finite and > 0, got '5'"),
        ({"duration": True}, "duration must be finite and > 0, got True"),
    ],
)
def test_histories_are_looked_at_when_a_policy_is_made(spoiled, message):
    with pytest.raises(ValueError, match=f"history {message}"):
        BeliefNCIS(history=PLAIN._replace(**spoiled))


@pytest.mark.parametrize("given", [tuple(PLAIN), "days", np.zeros(3)])
def test_a_history_is_one(given):
    with pytest.raises(ValueError, match=r"must be a policies\.ncis\.belief\.History or None"):
        BeliefNCIS(history=given)


def test_lists_and_views_teach_what_arrays_do():
    env = gym.make("CrawlNCIS-v0", num_pages=2, bandwidth=2.0, horizon=2.0)
    env.reset(seed=0)
    of_arrays = History(
        np.array([1.0, 2.0]), np.array([0, 1]), np.array([CHANGE, SIGNAL]), np.ones(2, bool), 5.0
    )
    sparse = (np.repeat(array, 2)[::2] for array in of_arrays[:4])
    small = PLAIN._replace(
        time=np.array([1, 2], np.float32), page=np.array([0, 1], np.uint8), kind=(CHANGE, SIGNAL)
    )
    problem = env.unwrapped.problem
    expected = BeliefNCIS(history=of_arrays).compile(problem, 0, None).memory
    for given in (PLAIN, History(*sparse, 5.0), small):
        result = BeliefNCIS(history=given).compile(problem, 0, None).memory
        for one, other in zip(result, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_history_without_events():
    env = gym.make("CrawlNCIS-v0", num_pages=2, bandwidth=2.0, horizon=2.0)
    env.reset(seed=0)
    policy = BeliefNCIS(history=History([], [], [], [True, True], 5.0))
    assert np.isfinite(policy.compile(env.unwrapped.problem, 0, None).memory.pages).all()


def test_what_is_changed_afterwards_is_not_learned():
    times = np.array([1.0, 2.0])
    policy = BeliefNCIS(history=PLAIN._replace(time=times))
    times[:] = 4.0
    assert policy.history.time.tolist() == [1.0, 2.0]
