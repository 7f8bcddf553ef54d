"""A policy that takes over a crawled collection knows what one knows that has crawled it itself."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs.envs.lane import Lane
from crawl_envs.evaluation import play
from tests.environments import NCIS, OFFERS, assert_same
from tests.worlds import stepped

HARMONIC, LONGEVITY, TRACE = "CrawlHarmonic-v0", "CrawlLongevity-v0", "CrawlTrace-v0"
SEED, M = 3, 8
HIDDEN = {"num_pages": M, "bandwidth": 8.0, "reveal": "importance"}
CASES = [
    (NCIS, "LearningGreedyNCIS", {**HIDDEN, "instance": "noisy"}),
    (NCIS, "BeliefNCIS", {**HIDDEN, "instance": "noisy"}),
    (NCIS, "BeliefNCIS", {"num_pages": M, "bandwidth": 8.0, "instance": "sources"}),
    (NCIS, "GreedyNCISDelayed", {"num_pages": M, "bandwidth": 8.0, "instance": "delayed"}),
    (NCIS, "LearningGreedyNCIS", {**HIDDEN, "instance": "bursty", "action": "scores", "batch": 1}),
    (HARMONIC, "LambdaLearnAndCrawl", {**HIDDEN, "action": "page"}),
    (HARMONIC, "NutchAdaptive", {**HIDDEN, "action": "page"}),
    (LONGEVITY, "LearningLongevity", {**HIDDEN, "signals": "noisy"}),
    (LONGEVITY, "CurveFitting", {**HIDDEN, "sketch_size": 5}),
    (OFFERS, "ContextualBandit", {"num_pages": M, "bandwidth": 8.0, "action": "page"}),
]


def scored(env, action):
    """The action of a page in the form of an environment."""
    if env.unwrapped.action_form != "scores":
        return action
    return np.where(np.arange(M) == action, 1.0, -1.0).astype(np.float32)


def state_of(policy):
    """The arrays that the policy of the only lane, its belief or its memory holds, by name."""
    learned = policy.of_lane()
    parts = [learned, *(getattr(learned, name, None) for name in ("learner", "belief"))]
    named = {}
    for part in [*parts, getattr(parts[1], "memory", None)]:
        named |= part._asdict() if hasattr(part, "_asdict") else getattr(part, "__dict__", {})
    return {name: one for name, one in named.items() if isinstance(one, np.ndarray)}


@pytest.mark.parametrize(("id", "name", "arguments"), CASES)
def test_a_learner_believes_what_it_would_if_it_had_crawled_itself(id, name, arguments):
    """The round takes 8 / 8 = 1 unit of time."""
    warm = gym.make(id, horizon=2.0, start="crawled", **arguments)
    mine = policies.make(name, warm)
    observation, _ = warm.reset(seed=SEED)
    mine.predict(observation)

    cold = gym.make(id, horizon=3.0, **arguments)
    other = policies.make(name, cold)
    cold.reset(seed=SEED)
    other.update()
    for page in range(M):
        cold.step(scored(cold, page))
        other.update()
    other.predict(cold.unwrapped.current_observation())
    assert_same(state_of(mine), state_of(other))
    assert state_of(mine)

    one, two = warm.unwrapped.tracker(), cold.unwrapped.tracker()
    for field in ("time", "elapsed", "signals", "changed"):
        assert np.array_equal(getattr(one, field), getattr(two, field))
    over, crawled = False, cold.unwrapped.ledger().crawls
    while not over:
        action, _ = mine.predict(warm.unwrapped.current_observation())
        expected, _ = other.predict(cold.unwrapped.current_observation())
        assert np.array_equal(action, expected)
        _, reward, _, over, _ = warm.step(action)
        _, owed, _, ended, _ = cold.step(expected)
        assert reward == owed
        assert over == ended
    assert warm.unwrapped.ledger().crawls == 16 == cold.unwrapped.ledger().crawls - crawled


def test_rates_are_learned_from_the_round():
    """Without complete pages, whose action would be a probability: 8 crawls in two epochs of 1."""
    arguments = {**HIDDEN, "bandwidth": 4.0, "instance": "uniform"}
    warm = gym.make(HARMONIC, horizon=3.0, start="crawled", **arguments)
    cold = gym.make(HARMONIC, horizon=5.0, **arguments)
    mine, other = (policies.make("LambdaLearnAndCrawl", env) for env in (warm, cold))
    observation, _ = warm.reset(seed=SEED)
    cold.reset(seed=SEED)
    for _ in range(2):
        other.update()
        cold.step(np.full(M, 0.5))
    for _ in range(3):
        action, _ = mine.predict(observation)
        expected, _ = other.predict(cold.unwrapped.current_observation())
        assert np.array_equal(action, expected)
        assert mine.of_lane().estimate().tolist() == other.of_lane().estimate().tolist()
        observation = warm.step(action)[0]
        cold.step(expected)
    assert np.ptp(mine.of_lane().estimate()) > 0.0


@pytest.mark.parametrize("signals", ["directory", "both"])
def test_births_and_deaths_in_the_round_are_known(signals):
    """Pages of the trace are born and die in the days before the window."""
    arguments = {"signals": signals, "bandwidth": 2.0, "reveal": "importance"}
    warm = gym.make(TRACE, window=[100.0, 110.0], start="crawled", **arguments)
    before = warm.unwrapped.lanes.world.state.alive_at_start
    cold = gym.make(TRACE, window=[100.0 - before.sum() / 2.0, 110.0], **arguments)
    mine, other = (policies.make("BeliefNCIS", env) for env in (warm, cold))
    observation, _ = warm.reset(seed=SEED)
    cold.reset(seed=SEED)
    assert not np.array_equal(before, warm.unwrapped.tracker().alive)
    for page in np.flatnonzero(before).tolist():
        other.update()
        cold.step(page)
    for _ in range(20):
        action, _ = mine.predict(observation)
        assert action == other.predict(cold.unwrapped.current_observation())[0]
        assert_same(state_of(mine), state_of(other))
        observation = warm.step(action)[0]
        cold.step(action)
    assert play(warm, mine, SEED) == play(warm, mine, SEED, compiled=False)


def test_an_oracle_among_learners_reads_the_truth_of_now():
    """The only arm of a bandit: it acts like the oracle alone."""
    arguments = {"num_pages": M, "bandwidth": 8.0, "horizon": 2.0, "start": "crawled"}
    pages = []
    for arms in (None, {"truth": policies.FragmentDynamic()}):
        env = gym.make(LONGEVITY, **arguments)
        policy = policies.make("FragmentDynamic", env)
        if arms is not None:
            policy = policies.make("Exp3", env, arms=arms)
        pages.append(stepped(env, policy, seed=SEED))
    assert pages[0] == pages[1]
    assert len(set(pages[0])) > 2


def test_lanes_of_a_batch_learn_alike():
    """Also after autoresets, and in a copy of the environment."""
    arguments = {**HIDDEN, "instance": "noisy", "horizon": 1.0, "start": "crawled"}
    batch = gym.make_vec(NCIS, num_envs=2, autoreset_mode="SameStep", **arguments)
    single = gym.make(NCIS, **arguments)
    many, one = policies.make("BeliefNCIS", batch), policies.make("BeliefNCIS", single)
    rows, (row, _) = batch.reset(seed=[SEED + 1, SEED])[0], single.reset(seed=SEED)
    for step in range(20):
        actions, action = many.predict(rows)[0], one.predict(row)[0]
        assert actions[1] == action
        if step == 9:
            batch, single = copy.deepcopy(batch), pickle.loads(pickle.dumps(single))
            many, one = policies.make("BeliefNCIS", batch), policies.make("BeliefNCIS", single)
            many.predict(rows)
            one.predict(row)
        rows, (row, _, _, over, _) = batch.step(actions)[0], single.step(action)
        if over:
            row, _ = single.reset()
    assert isinstance(batch.unwrapped.views[1], Lane)
    assert batch.unwrapped.views[1].ledger() == single.unwrapped.ledger()


def test_the_ledger_starts_at_the_take_over():
    """m = 8, R = 8: at 9/8, page k was crawled at (k + 1) / 8; an eighth has passed since 1."""
    env = gym.make(NCIS, **HIDDEN, instance="noisy", horizon=2.0, start="crawled").unwrapped
    env.reset(seed=SEED)
    tracker, ledger, log = env.tracker(), env.ledger(), env.last_log()
    assert tracker.time == 1.125
    assert tracker.elapsed.tolist() == [1.125 - (k + 1) / 8 for k in range(M)]
    assert (log.page.tolist(), log.time.tolist()) == (
        [*range(M)],
        [(k + 1) / 8 for k in range(M)],
    )
    assert set(tracker.changed) <= {0, 1}
    assert tracker.changed.tolist() == log.changed.tolist()
    assert ledger.time == 0.125
    assert ledger.alive_time == pytest.approx(0.125 * env.instance.importance.sum(), rel=1e-12)
    names = ("crawls", "wasted", "changes_found", "denied", "spend")
    assert [getattr(ledger, name) for name in names] == [0] * 5
    assert ledger.signals == np.sum(log.signal_time > 1.0) < log.signal_page.size
    assert {field.name for field in fields(ledger)} >= set(names)
    assert env.num_slots() == 16
    assert env.lanes.steps_per_episode() == 16


@pytest.mark.parametrize(
    ("id", "arguments", "words"),
    [
        (NCIS, {"start": "warm"}, ("start", "fresh, crawled", "'warm'")),
        (NCIS, {"bandwidth_steps": [[1.0, 5.0]]}, ("bandwidth_steps", "((1.0, 5.0),)", "fresh")),
        (TRACE, {"window": [3.0, 60.0]}, ("window", "3", "bandwidth", "start='fresh'")),
        (TRACE, {"cost_spread": 0.5}, ("cost_spread", "0.5", "start='fresh'")),
    ],
)
def test_what_cannot_be_crawled_first_is_an_error(id, arguments, words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (words of the message follow)
        gym.make(id, **{"start": "crawled", **arguments})
    assert all(word in str(caught.value) for word in words)
