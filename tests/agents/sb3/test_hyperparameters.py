"""Recommended settings are complete, fit their classes, and are read as RL-Zoo reads them."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest
import yaml
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import LinearSchedule

import agents
import crawl_envs
from agents.sb3 import hyperparameters, zoo
from agents.sb3.algorithms import ACTIONS, CONTRIB, algorithm_class, network_arguments
from agents.sb3.arguments import TrainArguments
from agents.sb3.building import schedule_arguments
from agents.sb3.lanes import recommended

FORMS = {"sac": {"action": "scores"}, "CrawlHarmonic-v0": {"action": "page"}}
CELLS = [
    (algorithm, env_id)
    for algorithm in agents.ALGORITHMS
    for env_id in ("CrawlNCIS-v0", "CrawlHarmonic-v0", "CrawlTrace-v0")
]


@pytest.mark.parametrize(("algorithm", "env_id"), CELLS)
def test_a_zoo_can_build_the_model(algorithm, env_id):
    """Train as RL-Zoo does with an entry, briefly, on two environments."""
    if algorithm in CONTRIB:
        pytest.importorskip("sb3_contrib")
    entry = yaml.safe_load((hyperparameters.FOLDER / f"{algorithm}.yml").read_text())[env_id]
    lanes, steps = entry.pop("n_envs"), entry.pop("n_timesteps")
    assert lanes in (64, 128)
    assert steps >= 100_000
    if "." in entry["policy"]:
        module, _, name = entry["policy"].rpartition(".")
        entry["policy"] = getattr(importlib.import_module(module), name)
    entry["policy_kwargs"] = eval(entry["policy_kwargs"])
    rate = str(entry["learning_rate"])
    if rate.startswith("lin_"):
        entry["learning_rate"] = LinearSchedule(float(rate.removeprefix("lin_")), 0.0, 1.0)
    small = {"n_steps": 4, "batch_size": 8, "buffer_size": 100, "learning_starts": 4}
    entry.update({name: value for name, value in small.items() if name in entry})
    form = FORMS.get(algorithm, FORMS.get(env_id, {}))
    env = make_vec_env("crawl_envs:" + env_id, n_envs=2, seed=0, env_kwargs=form)
    model = algorithm_class(algorithm)(env=env, seed=0, device="cpu", **entry)
    model.learn(12)
    assert model.num_timesteps >= 12
    env.close()


@pytest.mark.parametrize("algorithm", agents.ALGORITHMS)
def test_entries_use_words_of_the_algorithms_class(algorithm):
    if algorithm in CONTRIB:
        pytest.importorskip("sb3_contrib")
    taken = set(inspect.signature(algorithm_class(algorithm)).parameters)
    file = yaml.safe_load((hyperparameters.FOLDER / f"{algorithm}.yml").read_text())
    entry = hyperparameters.settings(algorithm)
    for other in file.values():  # one rule for all ids
        assert {**other, "policy_kwargs": entry["policy_kwargs"]} == entry
    for env_id in crawl_envs.FAMILIES:
        assert set(entry) - {"n_envs", "n_timesteps"} <= taken
        rest = set(hyperparameters.model_arguments(algorithm))
        kept = {"policy", "policy_kwargs"} | set(hyperparameters.WORDS) & set(entry)
        assert rest | kept == set(entry)
        assert not rest & kept
        form = {"action": ACTIONS.get(algorithm, "page")}
        arguments = recommended(algorithm, env_id, steps=5, width=7, env_args=form)
        assert (arguments.algorithm, arguments.env_id) == (algorithm, env_id)
        assert (arguments.steps, arguments.width) == (5, 7)
        assert arguments.lanes == entry["n_envs"]
        if arguments.train_pages == 20 and form == {"action": "page"}:
            assert arguments.gamma == entry["gamma"] == 0.95
        assert arguments.learning_rate == entry["learning_rate"]
        assert arguments.rollout == entry.get("n_steps", TrainArguments().rollout)


@pytest.mark.parametrize("algorithm", agents.ALGORITHMS)
def test_a_run_of_the_recommended_size_has_the_recommended_schedule(algorithm):
    entry = hyperparameters.settings(algorithm)
    arguments = TrainArguments(algorithm=algorithm, **hyperparameters.defaults(algorithm))
    result = schedule_arguments(arguments, observation_bytes=40)
    for name, value in hyperparameters.model_arguments(algorithm).items():
        assert result[name] == value, name
    assert result.get("n_steps") == entry.get("n_steps")


def test_small_runs_keep_minibatches_whole():
    result = schedule_arguments(TrainArguments(lanes=8, steps=2000), 40)
    assert result["n_steps"] == 64
    assert (8 * 64) % result["batch_size"] == 0
    result = schedule_arguments(TrainArguments(lanes=3, steps=20), 40)
    assert (result["n_steps"] * 3) % result["batch_size"] == 0
    result = schedule_arguments(TrainArguments(algorithm="dqn", lanes=8, steps=500), 40)
    assert result["buffer_size"] == 500


def test_unknown_algorithms_are_named():
    with pytest.raises(ValueError, match=r"algorithm must be one of a2c, .*, got 'sarsa'"):
        hyperparameters.defaults("sarsa")


def test_policy_arguments_are_those_of_the_environment():
    kwargs = zoo.policy_kwargs("ppo", num_pages=7, bandwidth=2.0, width=16)
    features = ("elapsed", "signals", "changed", "importance", "change_rate", "recall")
    expected = network_arguments("ppo", "pages", (*features, "false_signal_rate"), 3.5, 16)
    assert kwargs == expected["policy_kwargs"]


def test_reading_settings_imports_no_torch():
    code = (
        "import sys, agents.sb3.hyperparameters as h; h.defaults('ppo'); assert 'torch' not in sys"
    )
    code += ".modules"
    subprocess.run([sys.executable, "-c", code], check=True)
