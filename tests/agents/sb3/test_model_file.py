"""Model files hold all that a run needs to go on, and come back as they were."""

from __future__ import annotations

import itertools
import json
import zipfile

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import VecMonitor

import agents
from agents.runs import read_rows
from agents.sb3.algorithms import CONTRIB
from agents.sb3.arguments import TrainArguments
from agents.sb3.curve import CurveRow
from agents.sb3.lanes import make_lanes
from agents.sb3.model_file import load_model, read_description, save_model
from agents.sb3.scaled_rewards import RewardScale
from agents.sb3.training import fresh_model, train
from tests.agents.weights import same_weights

SMALL = {"num_pages": 4, "bandwidth": 4.0, "horizon": 5.0, "instance": "noisy"}


def short(**changes) -> TrainArguments:
    form = {"action": "scores", "batch": 2} if changes.get("algorithm") == "sac" else {}
    values = {"env_args": {**SMALL, **form}, "steps": 400, "lanes": 4, "width": 8, **changes}
    return TrainArguments(**values)


@pytest.mark.parametrize("network", ["pages", "mlp", "plain"])
@pytest.mark.parametrize("algorithm", agents.ALGORITHMS)
def test_a_model_is_trained_and_comes_back_with_its_optimisers(algorithm, network, tmp_path):
    if algorithm in CONTRIB:
        pytest.importorskip("sb3_contrib")
    model = train(short(algorithm=algorithm, network=network), tmp_path).model
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "curve.csv", "model.zip"}
    rows = read_rows(tmp_path / "curve.csv", CurveRow)
    assert [row.steps for row in rows] == sorted({row.steps for row in rows})
    assert 400 <= rows[-1].steps == model.num_timesteps <= 512
    assert all(0.0 <= row.mean_reward <= 1.0 for row in rows)
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(rows))
    path = tmp_path / "model.zip"
    back, arguments = load_model(path)
    assert arguments == short(algorithm=algorithm, network=network)
    for name, state in model.get_parameters().items():
        mine, theirs = state, back.get_parameters()[name]
        if "param_groups" in state:
            mine, theirs = state["state"], theirs["state"]
            assert mine
            mine = {f"{k} {key}": v for k, entry in mine.items() for key, v in entry.items()}
            theirs = {f"{k} {key}": v for k, entry in theirs.items() for key, v in entry.items()}
        assert list(mine) == list(theirs)
        assert {key: type(value) for key, value in mine.items()} == {
            key: type(value) for key, value in theirs.items()
        }
        assert all(np.array_equal(mine[key], theirs[key]) for key in mine)
    for name in ("num_timesteps", "_n_updates", "_episode_num", "_n_calls", "exploration_rate"):
        assert getattr(back, name, None) == getattr(model, name, None)
    assert back.action_space == model.action_space
    save_model(back, arguments, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("entropy", ["auto", 0.25])
def test_the_entropy_coefficient_of_sac_comes_back(entropy, tmp_path):
    arguments = short(algorithm="sac", model_args={"ent_coef": entropy, "learning_starts": 8})
    model = train(arguments, tmp_path).model
    back, _ = load_model(tmp_path / "model.zip")
    assert back.target_entropy == model.target_entropy == -4.0
    if entropy == "auto":
        assert torch.equal(back.log_ent_coef, model.log_ent_coef)
        assert back.log_ent_coef.item() != 0.0
        assert back.ent_coef_optimizer.param_groups[0]["params"][0] is back.log_ent_coef
    else:
        assert back.ent_coef_tensor == 0.25


@pytest.mark.parametrize(
    ("env_id", "env_args"),
    [
        ("CrawlNCIS-v0", {"action": "page"}),
        ("CrawlNCIS-v0", {"action": "scores", "batch": 3}),
        ("CrawlNCIS-v0", {"action": "refresh"}),
        ("CrawlHarmonic-v0", {"action": "rates"}),
        ("CrawlHarmonic-v0", {"action": "shares"}),
        ("CrawlTrace-v0", {}),
    ],
)
def test_a_model_knows_the_spaces_of_its_environment(env_id, env_args, tmp_path):
    pages = {} if env_id == "CrawlTrace-v0" else {"num_pages": 4}
    arguments = short(env_id=env_id, env_args={**pages, **env_args})
    env = make_lanes(arguments, 2, training=True)
    model = fresh_model(env, arguments)
    save_model(model, arguments, tmp_path / "model.zip")
    back, _ = load_model(tmp_path / "model.zip")
    assert back.action_space == env.action_space
    assert back.observation_space.shape == env.observation_space.shape
    assert back.observation_space.dtype == env.observation_space.dtype
    assert back.crawl_traits == model.crawl_traits
    single = gym.make("crawl_envs:" + env_id, **arguments.env_args)
    observation, _ = single.reset(seed=0)
    action, _ = agents.load(tmp_path, single).predict(observation, deterministic=True)
    assert single.action_space.contains(action)


def test_a_file_holds_a_description_and_arrays_only(tmp_path):
    train(short(), tmp_path)
    files = [tmp_path / "model.zip", *agents.catalog.SHIPPED.glob("*/model.zip")]
    for path in files:
        with zipfile.ZipFile(path) as archive:
            first, *others = archive.namelist()
            assert first == "crawl_envs_agent.json"
            assert all(name.endswith(".npy") for name in others)
            for name in others:
                with archive.open(name) as member:
                    np.lib.format.read_array(member, allow_pickle=False)
    description = read_description(tmp_path / "model.zip")
    assert description.arguments == short()
    assert description.progress["num_timesteps"] >= 400


def test_a_file_of_an_earlier_version_has_no_scale_of_rewards(tmp_path):
    model = train(short(), tmp_path).model
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(held["crawl_envs_agent.json"])
    assert description.pop("rewards") == model.reward_scale.moments()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            new = name == "crawl_envs_agent.json"
            archive.writestr(name, json.dumps(description) if new else data)
    back, _ = load_model(path)
    assert back.reward_scale.moments() == RewardScale().moments()
    assert same_weights(back, model)


def test_a_model_goes_on_only_where_it_fits(tmp_path):
    train(short(), tmp_path)
    for changes, message in (
        ({"num_pages": 5}, "num_pages=4.*, got ModelTraits.*num_pages=5"),
        ({"reveal": "importance"}, "'change_rate'.*, got ModelTraits"),
        ({"action": "refresh"}, "action_form='page'.*, got ModelTraits.*action_form='refresh'"),
    ):
        env = make_lanes(short(env_args={**SMALL, **changes}), 4, training=True)
        with pytest.raises(ValueError, match=f"env must have ModelTraits.*{message}"):
            load_model(tmp_path / "model.zip", VecMonitor(env))
    env = VecMonitor(make_lanes(short(), 4, training=True))
    assert load_model(tmp_path / "model.zip", env)[0].get_env() is env


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    model = train(short(), tmp_path).model
    path = tmp_path / "model.zip"
    before, files = path.read_bytes(), sorted(tmp_path.iterdir())

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("agents.sb3.model_file._learned", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save_model(model, short(), path)
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == files
