"""Agents train, learn, repeat themselves, and come back from disk as they were."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.vec_env import VecMonitor

import agents
import policies
from agents.algorithms import algorithm_class
from agents.arguments import TrainArguments, make_lanes
from agents.bridge import CrawlVecEnv
from agents.comparison import mean_rewards
from agents.curve import read_curve
from agents.loading import save_model
from agents.networks import PageScaling
from agents.training import train

SMALL = {"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0, "instance": "noisy"}
HEAVY = {
    "env_args": {"num_pages": 3, "bandwidth": 3.0, "horizon": 20.0},
    "instance": {"importance": [1.0, 18.0, 1.0], "change_rate": [2.0, 2.0, 2.0], "bandwidth": 3.0},
}
"""One page has most of the importance, and changes so fast that it is worth every crawl."""


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def short(**changes) -> TrainArguments:
    return TrainArguments(**{"env_args": SMALL, "steps": 2000, "lanes": 8, **changes})


def observations_of(arguments: TrainArguments, seed: int = 3):
    env = make_lanes(arguments, 16, training=False)
    env.seed(seed)
    env.reset()
    for page in range(4):
        observations, *_ = env.step(np.full(16, page))
    return observations


@pytest.mark.parametrize("algorithm", agents.ALGORITHMS)
@pytest.mark.parametrize("network", ["pages", "plain"])
def test_algorithms_train_without_warnings(algorithm, network, tmp_path):
    if algorithm == "maskableppo":
        pytest.importorskip("sb3_contrib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = train(short(algorithm=algorithm, network=network), tmp_path)
    assert 2000 <= agent.model.num_timesteps <= 2000 + 8 * 64
    rows = read_curve(tmp_path / "curve.csv")
    assert [row.steps for row in rows] == sorted({row.steps for row in rows})
    assert rows[-1].steps == agent.model.num_timesteps
    assert all(0.0 <= row.mean_reward <= 1.0 for row in rows)
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(rows))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "curve.csv",
        "model.zip",
    ]


@pytest.mark.parametrize("kind", [PPO, A2C, DQN])
def test_stable_baselines_runs_on_the_bridge_without_this_package(kind):
    vector = gym.make_vec("crawl_envs:CrawlNCIS-v0", num_envs=4, autoreset_mode="SameStep", **SMALL)
    extra = {"n_steps": 32} if kind is PPO else {}
    model = kind("MlpPolicy", VecMonitor(CrawlVecEnv(vector)), device="cpu", seed=0, **extra)
    model.learn(500)
    assert model.num_timesteps >= 500


@pytest.mark.parametrize("form", [{"action": "scores", "batch": 2}, {"action": "refresh"}])
def test_pages_are_scored_for_other_actions_too(form, tmp_path):
    agent = train(short(env_args={**SMALL, **form}), tmp_path)
    means = mean_rewards(lambda env: agent, agent.arguments, episodes=4)
    assert means.shape == (4,)
    assert np.all((means > 0.0) & (means <= 1.0))
    env = gym.make("crawl_envs:CrawlNCIS-v0", **SMALL, **form)
    observation, _ = env.reset(seed=0)
    env.step(agents.load(tmp_path, env).predict(observation)[0])


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_seed_gives_the_same_agent_every_time(algorithm, tmp_path):
    arguments = short(algorithm=algorithm)
    one, two = train(arguments, tmp_path / "1"), train(arguments, tmp_path / "2")
    observations = observations_of(arguments)
    np.testing.assert_array_equal(
        one.predict(observations, deterministic=True)[0],
        two.predict(observations, deterministic=True)[0],
    )
    first, second = one.model.policy.state_dict(), two.model.policy.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = train(short(algorithm=algorithm, seed=1), tmp_path / "3").model.policy.state_dict()
    assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("network", ["pages", "mlp", "plain"])
def test_ppo_learns_which_page_matters(network, tmp_path):
    arguments = TrainArguments(**HEAVY, steps=24_000, network=network)
    agent = train(arguments, tmp_path)
    learned = mean_rewards(lambda env: agent, arguments)
    random = mean_rewards(lambda env: policies.make("RandomCrawl", env), arguments)
    best = mean_rewards(lambda env: policies.make("Greedy", env), arguments)
    assert np.all(learned > random)
    assert learned.mean() > random.mean() + 0.8 * (best.mean() - random.mean())


@pytest.mark.slow
def test_scoring_pages_beats_round_robin_on_instances_never_seen(tmp_path):
    env_args = {"num_pages": 20, "bandwidth": 5.0, "horizon": 40.0, "instance": "noisy"}
    arguments = TrainArguments(env_args=env_args, steps=100_000)
    agent = train(arguments, tmp_path)
    learned = mean_rewards(lambda env: agent, arguments)
    in_turn = mean_rewards(lambda env: policies.make("RoundRobin", env), arguments)
    gain = learned - in_turn
    assert gain.mean() > 3.0 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_a_loaded_agent_is_the_one_saved(tmp_path):
    arguments = short(algorithm="ppo")
    agent = train(arguments, tmp_path)
    env = gym.make("crawl_envs:CrawlNCIS-v0", **SMALL)
    loaded = agents.load(tmp_path, env)
    assert loaded.arguments == arguments
    observations = observations_of(arguments)
    for deterministic in (True, False):
        torch.manual_seed(0)
        expected, _ = agent.predict(observations, deterministic=deterministic)
        torch.manual_seed(0)
        actions, state = loaded.predict(observations, "kept", None, deterministic)
        np.testing.assert_array_equal(actions, expected)
        assert state == "kept"
    observation, _ = env.reset(seed=0)
    action, _ = loaded.predict(observation, deterministic=True)
    assert env.action_space.contains(np.int64(action))
    env.step(action)


def test_a_run_resumes_from_what_it_saved(tmp_path):
    arguments = TrainArguments(**HEAVY, steps=2048, lanes=8)
    for folder in ("a", "b"):
        train(arguments, tmp_path / folder)
    before = read_curve(tmp_path / "a" / "curve.csv")
    longer = TrainArguments(**HEAVY, steps=4096, lanes=8)
    one = train(longer, tmp_path / "a", resume=True)
    two = train(longer, tmp_path / "b", resume=True)
    assert one.model.num_timesteps == 4096
    first, second = one.model.policy.state_dict(), two.model.policy.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    rows = read_curve(tmp_path / "a" / "curve.csv")
    assert rows[: len(before)] == before
    assert rows[-1].steps == 4096
    assert rows[len(before)].seconds >= before[-1].seconds
    assert agents.load(tmp_path / "a").arguments.steps == 4096
    again = train(longer, tmp_path / "a", resume=True)
    assert again.model.num_timesteps == 4096
    assert read_curve(tmp_path / "a" / "curve.csv") == rows


def test_an_interrupt_saves_what_was_learned(tmp_path, monkeypatch):
    def interrupt(self, *args, **kwargs):
        raise KeyboardInterrupt

    arguments = short()
    with monkeypatch.context() as patch:
        patch.setattr(PPO, "train", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(arguments, tmp_path)
    assert agents.load(tmp_path).model.num_timesteps == 512
    assert read_curve(tmp_path / "curve.csv")[-1].steps == 512
    assert train(arguments, tmp_path, resume=True).model.num_timesteps >= 2000


def test_a_run_is_not_overwritten_nor_resumed_as_another(tmp_path):
    train(short(), tmp_path)
    before = (tmp_path / "model.zip").read_bytes()
    with pytest.raises(ValueError, match="holds an agent already"):
        train(short(), tmp_path)
    with pytest.raises(ValueError, match=r"gamma must be 0.95 as in the run to resume, got 0.9"):
        train(short(gamma=0.9), tmp_path, resume=True)
    assert (tmp_path / "model.zip").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"algorithm": "sarsa"},
            "algorithm must be one of a2c, dqn, maskableppo, ppo, got 'sarsa'",
        ),
        ({"env_id": "CartPole-v1"}, "env_id must be one of .*CrawlNCIS-v0.*, got 'CartPole-v1'"),
        ({"steps": 0}, "steps must be an integer >= 1, got 0"),
        ({"steps": 1.5}, "steps must be an integer >= 1, got 1.5"),
        ({"lanes": 0}, "lanes must be an integer >= 1, got 0"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"network": "deep"}, "network must be one of pages, mlp, plain, got 'deep'"),
        ({"learning_rate": 0.0}, "learning_rate must be finite and > 0, got 0.0"),
        ({"gamma": 1.0}, r"gamma must lie in \[0, 1\), got 1.0"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        TrainArguments(**changes)


def test_maskableppo_says_what_it_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    with pytest.raises(ValueError, match="'maskableppo' needs the package sb3-contrib"):
        algorithm_class("maskableppo")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env_args": {"pages": 3}}, "pages must be one of the arguments .*, got 3"),
        ({"env_args": {"num_pages": 0}}, "num_pages must be an integer in .*, got 0"),
        ({"algorithm": "dqn", "env_args": {"action": "scores"}}, "dqn needs env_args with action"),
        ({"instance": {"weight": 1.0}}, "instance does not fit Instance: .*'weight'"),
        ({"instance": {"importance": [1], "change_rate": 1, "bandwidth": 1}}, "100 pages"),
        ({"env_args": {"delay": {1, 2}}}, "env_args and instance must hold plain values|delay"),
    ],
)
def test_arguments_that_do_not_fit_make_no_folder(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(TrainArguments(**changes), tmp_path / "out")
    assert not (tmp_path / "out" / "model.zip").exists()


def test_arguments_survive_json():
    arguments = short(instance={"importance": [1.0] * 4, "change_rate": 1.0, "bandwidth": 2.0})
    assert TrainArguments.from_json(arguments.to_json()) == arguments
    with pytest.raises(ValueError, match="arguments must be among"):
        TrainArguments.from_json(json.dumps({"colour": "red"}))


def test_files_that_are_no_agents_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no model.zip in .*nowhere"):
        agents.load(tmp_path / "nowhere")
    agent = train(short(), tmp_path / "good")
    whole = (tmp_path / "good" / "model.zip").read_bytes()
    folder = tmp_path / "bad"
    folder.mkdir()
    path = folder / "model.zip"
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="is not an agent of this suite"):
        agents.load(folder)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is not an agent of this suite"):
        agents.load(folder)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    with pytest.raises(ValueError, match=r"is damaged in|is not an agent"):
        agents.load(folder)
    agent.model.save(path)
    with pytest.raises(ValueError, match="is not an agent of this suite"):
        agents.load(folder)
    save_model(agent.model, short(algorithm="dqn"), path)
    with pytest.raises(ValueError, match="cannot be loaded"):
        agents.load(folder)


def test_an_agent_says_where_it_does_not_fit(tmp_path):
    train(short(), tmp_path)
    for changes, message in (
        ({"num_pages": 5}, r"trained on \(4, 7\) observations"),
        ({"reveal": "importance"}, "observations of elapsed"),
        ({"action": "refresh"}, "trained on actions Discrete"),
    ):
        env = gym.make("crawl_envs:CrawlNCIS-v0", **{**SMALL, **changes})
        with pytest.raises(ValueError, match=message):
            agents.load(tmp_path, env)
    longer = gym.make_vec("crawl_envs:CrawlNCIS-v0", num_envs=2, **{**SMALL, "horizon": 9.0})
    agents.load(tmp_path, longer)


def test_scaling_is_free_of_units():
    features = ("elapsed", "signals", "changed", "importance", "change_rate", "recall")
    rows = torch.tensor([[[3.0, 2.0, -1.0, 4.0, 0.5, 0.3], [1.0, 0.0, 1.0, 2.0, 0.1, 1.0]]])
    in_hours = rows * torch.tensor([24.0, 1.0, 1.0, 7.0, 1.0 / 24.0, 1.0])
    scaled = PageScaling(features, 2.0)(rows)
    torch.testing.assert_close(scaled, PageScaling(features, 48.0)(in_hours))
    expected = [np.log1p(1.5), np.log1p(2.0), -1.0, np.log1p(4 / 3), np.log1p(1.0), 0.3]
    torch.testing.assert_close(scaled[0, 0], torch.tensor(expected, dtype=torch.float32))
    assert torch.isfinite(PageScaling(features, 1e-3)(torch.full((1, 2, 6), 1e6))).all()
    assert torch.isfinite(PageScaling(features, 1e-3)(torch.zeros((1, 2, 6)))).all()


def test_importing_agents_imports_no_torch():
    code = (
        "import sys, agents; agents.names(); print({'torch', 'stable_baselines3'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_shipped_agents_are_loaded_by_name(tmp_path, monkeypatch):
    train(short(), tmp_path / "run")
    shipped = tmp_path / "trained"
    shutil.copytree(tmp_path / "run", shipped / "small")
    monkeypatch.setattr(agents, "SHIPPED", shipped)
    monkeypatch.setattr("agents.loading.SHIPPED", shipped)
    assert agents.names() == ("small",)
    assert agents.load("small").name == "ppo"
