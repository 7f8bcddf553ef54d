"""Clones do what their teachers do, and go on from where they were stopped."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import agents
import policies
from agents.cloning.train import CloneArguments, Round, _Cloning, clone, returns
from agents.runs import read_rows
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import mean_rewards
from agents.sb3.lanes import make_lanes
from agents.sb3.training import train
from tests.agents.weights import same_weights

FEW = {"num_pages": 6, "bandwidth": 6.0, "horizon": 6.0, "instance": "noisy"}
BRIEF = {"rounds": 3, "every": 2, "updates": 20, "minibatch": 32}


def arguments_of(**changes) -> TrainArguments:
    plain = {"env_args": FEW, "lanes": 4, "width": 8, "learning_rate": 3e-3}
    return TrainArguments(**{**plain, **changes})


def agreement(agent, teacher: str, arguments: TrainArguments) -> float:
    """The share of decisions on states of fresh episodes in which the clone is its teacher."""
    env = make_lanes(arguments, 16, training=False)
    policy = policies.make(teacher, env)
    env.seed(10_000)
    observations, same = env.reset(), []
    for _ in range(env.num_slots(0) - 1):
        action, _ = policy.predict(observations)
        own, _ = agent.predict(observations, deterministic=True)
        same.append((own == action).reshape(16, -1).all(1).mean())
        observations, *_ = env.step(action)
    return float(np.mean(same))


def test_a_clone_is_nearly_its_teacher(tmp_path):
    arguments = arguments_of(lanes=32, width=16)
    cloning = CloneArguments(teacher="GreedyNCIS", rounds=4, updates=250, every=1)
    agent = clone(arguments, cloning, tmp_path)
    assert agreement(agent, "GreedyNCIS", arguments) > 0.75
    mine = mean_rewards(lambda env: agent, arguments)
    teachers = mean_rewards(lambda env: policies.make("GreedyNCIS", env), arguments)
    blind = mean_rewards(lambda env: policies.make("Greedy", env), arguments)
    assert mine.mean() > 0.99 * teachers.mean()
    assert mine.mean() > blind.mean()  # it has learned to use signals
    rows = read_rows(tmp_path / "rounds.csv", Round)
    assert [row.number for row in rows] == [0, 1, 2, 3]
    assert rows[-1].agreement > 0.7 > 0.5 > rows[0].agreement
    assert rows[-1].loss < rows[0].loss
    larger = {**FEW, "num_pages": 40, "bandwidth": 40.0, "horizon": 3.0}
    many = arguments_of(env_args=larger)

    def mean(build):
        return mean_rewards(build, many, episodes=8).mean()

    teacher = mean(lambda env: policies.make("GreedyNCIS", env))
    assert mean(lambda env: agents.load(tmp_path, env)) > 0.98 * teacher


def test_the_top_pages_are_cloned_in_order(tmp_path):
    form = {**FEW, "action": "scores", "batch": 2}
    arguments = arguments_of(env_args=form, lanes=16, width=16)
    agent = clone(arguments, CloneArguments(rounds=2, updates=150, every=1), tmp_path)
    by_chance = 1.0 / 30.0
    assert agreement(agent, "GreedyNCIS", arguments) > 10.0 * by_chance


def test_the_critic_learns_what_follows(tmp_path):
    # all is fresh at first, and then less and less, since there are few crawls
    decaying = {"num_pages": 30, "bandwidth": 10.0, "horizon": 4.0, "instance": "noisy"}
    arguments = arguments_of(env_args=decaying, lanes=32, gamma=0.5, width=16)
    agent = clone(arguments, CloneArguments(rounds=2, updates=200, every=1), tmp_path)
    env = make_lanes(arguments, 64, training=False)
    env.seed(10_000)
    observations, values, rewards = env.reset(), [], []
    for _ in range(env.num_slots(0) - 1):
        with torch.no_grad():
            values.append(agent.model.policy.predict_values(torch.tensor(observations))[:, 0])
        action, _ = agent.predict(observations, deterministic=True)
        observations, reward, *_ = env.step(action)
        rewards.append(reward)
    followed = returns(agent.model.reward_scale.scaled(np.array(rewards)), 0.5)[:-10]
    wrong = np.square(followed - np.array(values)[:-10]).mean()
    assert wrong < 0.7 * followed.var()  # better than the best constant


def test_a_run_that_was_stopped_starts_anew_and_a_finished_one_is_kept(tmp_path, monkeypatch):
    cloning = CloneArguments(**BRIEF)
    whole = clone(arguments_of(), cloning, tmp_path / "whole")

    def stopped(self, number, tick):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_Cloning, "_learn", stopped)
        with pytest.raises(KeyboardInterrupt):
            clone(arguments_of(), cloning, tmp_path / "parts")
    assert not (tmp_path / "parts" / "model.zip").exists()
    again = clone(arguments_of(), cloning, tmp_path / "parts", resume=True)
    assert same_weights(again.model, whole.model)
    names = {path.name for path in (tmp_path / "parts").iterdir()}
    assert names == {"model.zip", "config.json", "clone.json", "rounds.csv"}
    assert len(read_rows(tmp_path / "parts" / "rounds.csv", Round)) == BRIEF["rounds"]
    monkeypatch.setattr(_Cloning, "go", stopped)
    kept = clone(arguments_of(), cloning, tmp_path / "parts", resume=True)
    assert same_weights(kept.model, whole.model)


def test_training_goes_on_from_a_clone_at_another_size(tmp_path):
    agent = clone(arguments_of(), CloneArguments(**BRIEF), tmp_path / "clone")
    larger = {**FEW, "num_pages": 9, "bandwidth": 18.0}
    start = str(tmp_path / "clone")
    tuned = train(
        arguments_of(env_args=larger, start=start, steps=64, rollout=16, learning_rate=1e-12),
        tmp_path / "tuned",
    )
    assert same_weights(agent.model, tuned.model, tolerance=1e-6)
    own, after = (each.model.reward_scale for each in (agent, tuned))
    played = 4 * 36  # steps of the first round
    assert own.rewards.count == pytest.approx(played, abs=0.1)
    assert after.rewards.count == pytest.approx(played + tuned.model.num_timesteps, abs=0.1)


def test_returns_are_discounted_sums():
    rng = np.random.default_rng(0)
    rewards, gamma = rng.random((7, 3)), 0.5
    tail = rewards[-2:].mean(0) / (1.0 - gamma)
    for step, row in enumerate(returns(rewards, gamma)):
        expected = gamma ** (7 - step) * tail
        for later in range(step, 7):
            expected = expected + gamma ** (later - step) * rewards[later]
        np.testing.assert_allclose(row, expected, rtol=1e-6)
    np.testing.assert_allclose(returns(rewards, 0.0), rewards, rtol=1e-6)


def test_a_policy_of_fragments_is_cloned(tmp_path):
    world = {"num_pages": 6, "horizon": 6.0}
    arguments = arguments_of(env_id="CrawlLongevity-v0", env_args=world)
    agent = clone(arguments, CloneArguments(teacher="FragmentStatic", **BRIEF), tmp_path)
    assert "age_0" in agent.features


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teacher": "Nobody"}, "teacher 'Nobody' is unknown"),
        ({"rounds": 0}, "rounds must be an integer >= 1, got 0"),
        ({"every": 1.5}, "every must be an integer >= 1, got 1.5"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        CloneArguments(**changes)


def test_runs_that_do_not_fit_are_refused(tmp_path):
    cloning = CloneArguments(**BRIEF)
    with pytest.raises(ValueError, match="algorithm of a clone must be one of a2c, maskableppo"):
        clone(arguments_of(algorithm="dqn"), cloning, tmp_path)
    with pytest.raises(ValueError, match="reveal='parameters'"):
        clone(arguments_of(env_args={**FEW, "reveal": "importance"}), cloning, tmp_path)
    for form in ("rates", "shares"):
        rates = arguments_of(env_id="CrawlHarmonic-v0", env_args={"num_pages": 4, "action": form})
        with pytest.raises(ValueError, match=f"got '{form}'"):
            clone(rates, cloning, tmp_path)
    assert not (tmp_path / "model.zip").exists()
    clone(arguments_of(), CloneArguments(**{**BRIEF, "rounds": 1}), tmp_path)
    with pytest.raises(ValueError, match="holds an agent already"):
        clone(arguments_of(), cloning, tmp_path)
    with pytest.raises(ValueError, match="rounds must be 1 as in the run to resume"):
        clone(arguments_of(), cloning, tmp_path, resume=True)
    with pytest.raises(ValueError, match="seed must be 0 as in the run to resume, got 1"):
        clone(arguments_of(seed=1), CloneArguments(**BRIEF), tmp_path, resume=True)
    (tmp_path / "clone.json").unlink()
    with pytest.raises(ValueError, match="holds an agent that is no clone"):
        clone(arguments_of(), cloning, tmp_path, resume=True)
