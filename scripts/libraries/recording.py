"""Episodes of policies as Minari data sets, the same bytes for the same seed.

Every data set of a family has the same pages and events, so that their returns compare. The
reference scores, for ``minari.get_normalized_score``, are the mean returns of random crawling and
of the expert.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import policies
from crawl_envs.evaluation import make_env

PATH = "MINARI_DATASETS_PATH"
"""Environment variable that names the folder of Minari."""
LEVELS = ("expert", "medium", "random")


@dataclass(frozen=True)
class Recorded:
    """What is recorded of a family: the id, its arguments, and the policy of each level."""

    id: str
    arguments: Mapping[str, Any]
    players: Mapping[str, str]


def _players(expert: str, medium: str) -> dict[str, str]:
    return dict(zip(LEVELS, (expert, medium, "RandomCrawl"), strict=True))


FAMILIES: Mapping[str, Recorded] = {
    "ncis": Recorded(
        "CrawlNCIS-v0",
        {"num_pages": 100, "bandwidth": 100.0, "horizon": 5.0, "instance": "noisy"},
        _players("GreedyNCIS", "Greedy"),
    ),
    "harmonic": Recorded(
        "CrawlHarmonic-v0",
        {"num_pages": 100, "horizon": 25.0, "action": "page"},
        _players("GreedyHarmonic", "Greedy"),
    ),
    "longevity": Recorded(
        "CrawlLongevity-v0",
        {"num_pages": 50, "horizon": 50.0, "instance": "quality"},
        _players("FragmentStatic", "Greedy"),
    ),
    "offers": Recorded(
        "CrawlOffers-v1",
        {"num_pages": 100, "horizon": 7.0, "action": "scores"},
        _players("ContextualBandit", "Exp3IX"),
    ),
}


class Episode(NamedTuple):
    """An episode: observations of T + 1 decisions, and T actions and rewards."""

    seed: int
    observations: Any
    actions: Any
    rewards: Any


def episode(env: gymnasium.Env[Any, Any], player: str, seed: int) -> Episode:
    """Return the episode of a policy on a seed."""
    core: Any = env.unwrapped
    observation, _ = env.reset(seed=seed)
    policy: Any = policies.make(player, env)
    learn = getattr(policy, "observe", lambda log: None)
    learn(core.last_log())
    seen, actions, rewards = [observation], [], []
    state, start, over = None, np.ones(1, np.bool_), False
    while not over:
        action, state = policy.predict(observation, state, start, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(action)
        learn(core.last_log())
        start, over = np.zeros(1, np.bool_), terminated or truncated
        seen.append(observation)
        actions.append(action)
        rewards.append(reward)
    kind = core.action_space.dtype
    return Episode(seed, np.array(seen), np.array(actions, kind), np.array(rewards))


def name_of(family: str, level: str) -> str:
    """Return the name of a data set."""
    return f"crawl/{family}/{level}-v0"


def described(family: str, level: str, count: int, seed: int) -> str:
    """Return the description of a data set, which tells it from those of other arguments."""
    recorded = FAMILIES[family]
    arguments = json.dumps(dict(recorded.arguments), sort_keys=True)
    return (
        f"{count} episodes of {recorded.players[level]} in {recorded.id} with {arguments}, "
        f"seeds from {seed} on; made by scripts.datasets"
    )


@contextmanager
def datasets_in(folder: str) -> Iterator[None]:
    """Have Minari keep its data sets in a folder."""
    before = os.environ.get(PATH)
    os.environ[PATH] = os.path.abspath(folder)
    try:
        yield
    finally:
        os.environ.pop(PATH)
        if before is not None:
            os.environ[PATH] = before


def record(family: str, seeds: Sequence[int], about: Mapping[str, str]) -> None:
    """Write the data sets of a family to the folder of Minari, which must not have them.

    Args:
        family: a key of FAMILIES.
        seeds: seeds of the episodes.
        about: description of each level.
    """
    recorded = FAMILIES[family]
    env = make_env(recorded.id, **recorded.arguments)
    played = {
        level: [episode(env, player, seed) for seed in seeds]
        for level, player in recorded.players.items()
    }
    returns = {
        level: float(np.mean([each.rewards.sum() for each in episodes]))
        for level, episodes in played.items()
    }
    for level, episodes in played.items():
        references = returns["random"], returns["expert"]
        data = _written(env, name_of(family, level), episodes, recorded.players[level], references)
        data.storage.update_metadata({"description": about[level], "mean_return": returns[level]})
    env.close()


def _written(
    env: gymnasium.Env[Any, Any],
    name: str,
    episodes: Sequence[Episode],
    player: str,
    references: tuple[float, float],
) -> Any:
    import minari
    from minari.data_collector import EpisodeBuffer

    buffers = []
    for number, (seed, observations, actions, rewards) in enumerate(episodes):
        ends = np.arange(1, len(rewards) + 1) == len(rewards)
        buffers.append(
            EpisodeBuffer(
                id=number,
                seed=seed,
                observations=observations,
                actions=actions,
                rewards=rewards,
                terminations=np.zeros_like(ends),
                truncations=ends,
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about an author's address and the like
        return minari.create_dataset_from_buffers(
            name,
            buffers,
            env=env,
            algorithm_name=player,
            author="The crawl_envs authors",
            ref_min_score=references[0],
            ref_max_score=references[1],
            data_format="arrow",
        )
