"""Every algorithm comes within a hundredth of an optimum that is known exactly.

The task is that of ``tests/exact_optimum.py``: three pages, no signals, known rates. Crawling at
random, in turn, or always the same page are all more than a tenth from the optimum.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from agents.sb3.algorithms import CONTRIB
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import mean_rewards
from agents.sb3.training import train
from tests.agents.weights import same_weights
from tests.exact_optimum import Pages, best_of_episode, expected_mean, expected_mean_of_random

PAGES = Pages((5.0, 3.0, 1.0), (1.0, 0.5, 6.0), 1.5)
SLOTS = 30
TOLERANCE = 0.01
"""Of the optimum; see ``test_the_gap_that_learning_is_to_close``."""

ENVIRONMENT = {"num_pages": 3, "bandwidth": PAGES.bandwidth, "horizon": SLOTS / PAGES.bandwidth}
INSTANCE = {
    "importance": list(PAGES.importance),
    "change_rate": list(PAGES.change_rate),
    "bandwidth": PAGES.bandwidth,
}
SCORES = {**ENVIRONMENT, "action": "scores", "batch": 1}
ON_POLICY = {"gae_lambda": 0.8, "ent_coef": 0.01}
PPO = {"steps": 60_000, "learning_rate": "lin_0.005", "model_args": {**ON_POLICY, "n_epochs": 4}}
RUNS = {
    "ppo": PPO,
    "a2c": {"steps": 100_000, "learning_rate": "lin_0.005", "model_args": ON_POLICY},
    "dqn": {
        "steps": 20_000,
        "lanes": 32,
        "learning_rate": "lin_0.003",
        "model_args": {"gradient_steps": 4, "target_update_interval": 2000},
    },
    "maskableppo": PPO,
    "recurrentppo": {
        "steps": 40_000,
        "lanes": 32,
        "learning_rate": "lin_0.008",
        "model_args": {**ON_POLICY, "n_epochs": 4, "batch_size": 1024},
    },
    "sac": {
        "steps": 20_000,
        "learning_rate": "lin_0.005",
        "network": "mlp",
        "width": 32,
        "model_args": {"batch_size": 128, "gradient_steps": 4},
    },
}
"""Step sizes that fall to 0, as an agent is not better or worse by the last steps' luck then."""


def arguments_of(algorithm: str, **changes) -> TrainArguments:
    return TrainArguments(
        **{
            "algorithm": algorithm,
            "env_args": SCORES if algorithm == "sac" else ENVIRONMENT,
            "instance": INSTANCE,
            "gamma": 0.9,
            "width": 16,
            **RUNS[algorithm],
            **changes,
        }
    )


@functools.cache
def optimum() -> float:
    return best_of_episode(PAGES, SLOTS)


def test_the_gap_that_learning_is_to_close():
    others = [lambda elapsed, changed: elapsed.argmax(1)]
    others += [lambda elapsed, changed, page=page: np.full(len(elapsed), page) for page in range(3)]
    reached = [expected_mean(PAGES, choose, SLOTS) for choose in others]
    assert max(expected_mean_of_random(PAGES, 12), *reached) < 0.9 * optimum()


def choices(agent):
    """Return the agent's best pages as a function of elapsed slots and of results of crawls."""

    def choose(elapsed, changed):
        observations = np.zeros((*elapsed.shape, len(agent.features)), np.float32)
        known = {
            "elapsed": elapsed / PAGES.bandwidth,
            "changed": changed,
            "importance": PAGES.importance,
            "change_rate": PAGES.change_rate,
        }
        for name, values in known.items():
            observations[:, :, agent.features.index(name)] = values
        actions, _ = agent.predict(observations, deterministic=True)
        return actions if actions.ndim == 1 else actions.argmax(1)

    return choose


@pytest.mark.parametrize("algorithm", RUNS)
def test_the_optimum_is_reached(algorithm, tmp_path):
    arguments = arguments_of(algorithm)
    if algorithm in CONTRIB:
        pytest.importorskip("sb3_contrib")
    agent = train(arguments, tmp_path)
    if algorithm == "recurrentppo":  # what it remembers is no state of the dynamic program
        played = mean_rewards(lambda env: agent, arguments, episodes=4000)
        reached = played.mean() + 2.0 * played.std(ddof=1) / math.sqrt(len(played))
    else:
        reached = expected_mean(PAGES, choices(agent), SLOTS)
        played = mean_rewards(lambda env: agent, arguments, episodes=500)
        error = played.std(ddof=1) / math.sqrt(len(played))
        assert abs(played.mean() - reached) < 4.0 * error
    assert (1.0 - TOLERANCE) * optimum() <= reached


@pytest.mark.parametrize("algorithm", RUNS)
def test_a_seed_gives_the_same_agent_every_time(algorithm, tmp_path):
    changes = {"steps": 256, "lanes": 8, "rollout": 16}
    one, two, other = (
        train(arguments_of(algorithm, **changes, seed=seed), tmp_path / str(run)).model
        for run, seed in enumerate((0, 0, 1))
    )
    assert one._n_updates > 1
    assert same_weights(one, two)
    assert not same_weights(one, other)
