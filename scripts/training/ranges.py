"""Search space of hyperparameters, and conversion of a trial to the settings of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agents.sb3 import hyperparameters
from agents.sb3.algorithms import OFF_POLICY
from agents.sb3.arguments import FALLING
from agents.sb3.hyperparameters import WORDS

HORIZONS = (0.8, 0.9, 0.95, 0.98, 0.99)
LANES = (16, 32, 64, 128)
ROLLOUTS = {"a2c": (4, 8)}
ROLLOUT = (16, 32, 64, 128)
WIDTHS = (16, 32, 64)
WITH_MINIBATCHES = ("maskableppo", "ppo", "recurrentppo")
WITH_ENTROPY = (*WITH_MINIBATCHES, "a2c")
RL_ZOO = {ours: zoo for zoo, ours in WORDS.items()}
POLICY_KWARGS = "__import__('agents.sb3.zoo').sb3.zoo.policy_kwargs"


def suggested(trial: Any, algorithm: str) -> dict[str, Any]:
    """Draw the hyperparameters of one of Optuna's trials, by name; see :func:`rounded`."""
    parameters = {
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        "gamma": trial.suggest_categorical("gamma", HORIZONS),
        "lanes": trial.suggest_categorical("lanes", LANES),
        "width": trial.suggest_categorical("width", WIDTHS),
    }
    if algorithm in OFF_POLICY:
        parameters["batch_size"] = trial.suggest_categorical("batch_size", (64, 128, 256, 512))
        parameters["gradient_steps"] = trial.suggest_categorical("gradient_steps", (2, 4, 8, 16))
    else:
        choices = ROLLOUTS.get(algorithm, ROLLOUT)
        parameters["rollout"] = trial.suggest_categorical("rollout", choices)
    if algorithm == "dqn":
        parameters["exploration_fraction"] = trial.suggest_float("exploration_fraction", 0.05, 0.5)
    if algorithm in WITH_ENTROPY:
        parameters["ent_coef"] = trial.suggest_float("ent_coef", 1e-5, 0.03, log=True)
    if algorithm in WITH_MINIBATCHES:
        parameters["minibatches"] = trial.suggest_categorical("minibatches", (1, 2, 4, 8))
        parameters["n_epochs"] = trial.suggest_categorical("n_epochs", (1, 2, 4, 8))
    return parameters


def rounded(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyperparameters rounded to three digits, as used and reported."""
    return {
        name: float(f"{value:.3g}") if isinstance(value, float) else value
        for name, value in parameters.items()
    }


def settings_of(parameters: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return the settings of a run, with the batch size from the number of minibatches.

    Args:
        parameters: hyperparameters of a trial.
        steps: length of a stage, in steps over all lanes: an upper bound of rollouts.
    """
    settings = {**parameters, "learning_rate": f"{FALLING}{parameters['learning_rate']}"}
    if "rollout" in settings:
        settings["rollout"] = max(min(settings["rollout"], steps // settings["lanes"]), 2)
    if "minibatches" in settings:
        size, count = settings["lanes"] * settings["rollout"], settings.pop("minibatches")
        settings["batch_size"] = size // count if size % count == 0 else size
    return settings


def network_of(algorithm: str, env_id: str) -> str:
    """Return the network of the recommended policy."""
    policy = str(hyperparameters.settings(algorithm, env_id)["policy"])
    return "mlp" if policy.startswith("Mlp") else "pages"


def entry_of(
    algorithm: str, env_id: str, parameters: Mapping[str, Any], steps: int, stages: int
) -> dict[str, Any]:
    """Return an entry of a hyperparameter file, in the format of RL-Zoo.

    Args:
        algorithm: one of :data:`agents.catalog.ALGORITHMS`.
        env_id: id of the environment.
        parameters: hyperparameters of a trial.
        steps: length of the trial.
        stages: number of stages of the trial.
    """
    settings = settings_of(parameters, math.ceil(steps / stages))
    width = settings.pop("width")
    renamed = {RL_ZOO.get(name, name): value for name, value in settings.items()}
    recommended = hyperparameters.settings(algorithm, env_id)
    return {
        **{name: value for name, value in recommended.items() if name not in RL_ZOO},
        "policy_kwargs": f"{POLICY_KWARGS}({algorithm!r}, {env_id!r}, width={width})",
        "n_timesteps": steps,
        **renamed,
    }
