"""What is tried when hyperparameters are tuned, and how a trial's numbers become a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from agents import ALGORITHMS
from agents.sb3 import hyperparameters
from agents.sb3.algorithms import OFF_POLICY
from agents.sb3.hyperparameters import WORDS
from scripts.training.recipes import ES

TUNED = (*ALGORITHMS, ES)
"""What can be tuned."""
HORIZONS = (0.8, 0.9, 0.95, 0.98, 0.99)
LANES = (16, 32, 64, 128)
ROLLOUTS = {"a2c": (4, 8)}
ROLLOUT = (16, 32, 64, 128)
VALIDATED_EVERY = 25
"""Generations between validations, at most."""
WIDTHS = (16, 32, 64)
WITH_MINIBATCHES = ("maskableppo", "ppo", "recurrentppo")
WITH_ENTROPY = (*WITH_MINIBATCHES, "a2c")
RL_ZOO = {ours: zoo for zoo, ours in WORDS.items()}
POLICY_KWARGS = "__import__('agents.sb3.hyperparameters').hyperparameters.policy_kwargs"


class Trial(Protocol):
    """What draws the numbers of a trial, as an Optuna trial does."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """Return a number of a range."""

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """Return one of several."""


def suggested(trial: Trial, algorithm: str) -> dict[str, Any]:
    """Draw the numbers of a trial, by the names that a trial keeps; see :func:`rounded`."""
    if algorithm == ES:
        return {
            "pairs": trial.suggest_categorical("pairs", (8, 16, 32)),
            "sigma": trial.suggest_float("sigma", 0.02, 0.5, log=True),
            "learning_rate": trial.suggest_float("learning_rate", 0.003, 0.2, log=True),
            "hidden": trial.suggest_categorical("hidden", (6, 12, 24)),
        }
    found = {
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        "gamma": trial.suggest_categorical("gamma", HORIZONS),
        "lanes": trial.suggest_categorical("lanes", LANES),
        "width": trial.suggest_categorical("width", WIDTHS),
    }
    if algorithm in OFF_POLICY:
        found["batch_size"] = trial.suggest_categorical("batch_size", (64, 128, 256, 512))
        found["gradient_steps"] = trial.suggest_categorical("gradient_steps", (2, 4, 8, 16))
    else:
        choices = ROLLOUTS.get(algorithm, ROLLOUT)
        found["rollout"] = trial.suggest_categorical("rollout", choices)
    if algorithm == "dqn":
        found["exploration_fraction"] = trial.suggest_float("exploration_fraction", 0.05, 0.5)
    if algorithm in WITH_ENTROPY:
        found["ent_coef"] = trial.suggest_float("ent_coef", 1e-5, 0.03, log=True)
    if algorithm in WITH_MINIBATCHES:
        found["minibatches"] = trial.suggest_categorical("minibatches", (1, 2, 4, 8))
        found["n_epochs"] = trial.suggest_categorical("n_epochs", (1, 2, 4, 8))
    return found


def rounded(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a trial as they are used and told: to three digits."""
    return {
        name: float(f"{value:.3g}") if isinstance(value, float) else value
        for name, value in found.items()
    }


def generations_of(steps: int, stage: int, stages: int) -> dict[str, int]:
    """Return the length of an evolution up to a stage, and how often it is validated.

    The length of a stage, which is ``steps / stages``, is rounded up to whole validations.
    """
    part = math.ceil(steps / stages)
    every = min(part, VALIDATED_EVERY)
    return {
        "generations": stage * every * math.ceil(part / every),
        "validation_every": every,
    }


def settings_of(found: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return the settings of a run: a minibatch in steps, where a trial says how many there are.

    Args:
        found: what was drawn.
        steps: over all lanes, beyond which a rollout does not go: the length of a stage.
    """
    settings = dict(found)
    if "rollout" in settings:
        settings["rollout"] = max(min(settings["rollout"], steps // settings["lanes"]), 2)
    if "minibatches" in settings:
        size, count = settings["lanes"] * settings["rollout"], settings.pop("minibatches")
        settings["batch_size"] = size // count if size % count == 0 else size
    return settings


def network_of(algorithm: str, env_id: str) -> str:
    """Return the network of the policy that is recommended, which best settings keep."""
    policy = str(hyperparameters.settings(algorithm, env_id)["policy"])
    return "mlp" if policy.startswith("Mlp") else "pages"


def entry_of(
    algorithm: str, env_id: str, found: Mapping[str, Any], steps: int, stages: int
) -> dict[str, Any]:
    """Return an entry of a file of hyperparameters, in the format of RL-Zoo.

    Args:
        algorithm: one of TUNED.
        env_id: id of the environment.
        found: numbers of a trial.
        steps: length of the trial.
        stages: its parts.
    """
    settings = settings_of(found, math.ceil(steps / stages))
    if algorithm == ES:
        return {**settings, **generations_of(steps, 1, 1)}
    width = settings.pop("width")
    renamed = {RL_ZOO.get(name, name): value for name, value in settings.items()}
    told = hyperparameters.settings(algorithm, env_id)
    return {
        **{name: value for name, value in told.items() if name not in RL_ZOO},
        "policy_kwargs": f"{POLICY_KWARGS}({algorithm!r}, {env_id!r}, width={width})",
        "n_timesteps": steps,
        **renamed,
    }
