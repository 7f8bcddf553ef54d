"""Record episodes of policies as Minari data sets; the same seed gives the same bytes.

All data sets of a family have the same pages and events, so their returns can be compared. The
reference scores, for ``minari.get_normalized_score``, are the mean returns of random crawling and
of the expert.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import policies
from crawl_envs.evaluation import make_env

PATH = "MINARI_DATASETS_PATH"
"""Environment variable that names the folder of Minari."""
LEVELS = ("expert", "medium", "random")


class Task(NamedTuple):
    """Id and arguments of a family's environment, and a policy for each of LEVELS."""

    id: str
    arguments: Mapping[str, Any]
    policies: tuple[str, str, str]


FAMILIES: Mapping[str, Task] = {
    "ncis": Task(
        "CrawlNCIS-v0",
        {"num_pages": 100, "bandwidth": 100.0, "horizon": 5.0, "instance": "noisy"},
        ("GreedyNCIS", "Greedy", "RandomCrawl"),
    ),
    "harmonic": Task(
        "CrawlHarmonic-v0",
        {"num_pages": 100, "horizon": 25.0, "action": "page"},
        ("GreedyHarmonic", "Greedy", "RandomCrawl"),
    ),
    "longevity": Task(
        "CrawlLongevity-v0",
        {"num_pages": 50, "horizon": 50.0, "instance": "quality"},
        ("FragmentStatic", "Greedy", "RandomCrawl"),
    ),
    "offers": Task(
        "CrawlOffers-v1",
        {"num_pages": 100, "horizon": 7.0, "action": "scores"},
        ("ContextualBandit", "Exp3IX", "RandomCrawl"),
    ),
}


def dataset_name(family: str, level: str) -> str:
    """Return the name of a data set in Minari: ``crawl/FAMILY/LEVEL-v0``."""
    return f"crawl/{family}/{level}-v0"


def descriptions(family: str, seeds: range) -> dict[str, str]:
    """Return a description of a family's data set for each level, which names the seeds."""
    task = FAMILIES[family]
    arguments = json.dumps(dict(task.arguments), sort_keys=True)
    return {
        level: f"{len(seeds)} episodes of {policy} in {task.id} with {arguments}, "
        f"seeds from {seeds.start} on; made by scripts.datasets"
        for level, policy in zip(LEVELS, task.policies, strict=True)
    }


def metadata_of(folder: Path, family: str, level: str) -> dict[str, Any]:
    """Return the metadata of a data set in a folder of Minari, empty if there is none."""
    file = folder / dataset_name(family, level) / "data" / "metadata.json"
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}


def is_recorded(folder: Path, family: str, seeds: range) -> bool:
    """Return whether a folder has a family's data sets; ValueError if their descriptions differ."""
    if not (folder / "crawl" / family).exists():
        return False
    for level, description in descriptions(family, seeds).items():
        present = metadata_of(folder, family, level).get("description", "nothing")
        if present != description:
            raise ValueError(
                f"--out {folder} has other data sets of {family} ({present}); name another folder, "
                "or discard them with --fresh"
            )
    return True


@contextmanager
def minari_folder(folder: str | Path) -> Iterator[None]:
    """Let Minari use ``folder`` for its data sets within the context."""
    before = os.environ.get(PATH)
    os.environ[PATH] = os.path.abspath(folder)
    try:
        yield
    finally:
        os.environ.pop(PATH)
        if before is not None:
            os.environ[PATH] = before


def record(folder: Path, family: str, seeds: range) -> None:
    """Record the data sets of a family; they replace its data sets in the folder.

    Args:
        folder: a folder of Minari.
        family: a key of FAMILIES.
        seeds: seeds of the episodes.
    """
    import minari
    from minari.data_collector import EpisodeBuffer

    task, about = FAMILIES[family], descriptions(family, seeds)
    env = make_env(task.id, **task.arguments)
    episodes = {
        level: [_episode(env, policy, seed) for seed in seeds]
        for level, policy in zip(LEVELS, task.policies, strict=True)
    }
    returns = {
        level: float(np.mean([episode["rewards"].sum() for episode in episodes[level]]))
        for level in LEVELS
    }
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        minari_folder(scratch),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # about an author's address and the like
        for level, policy in zip(LEVELS, task.policies, strict=True):
            data = minari.create_dataset_from_buffers(
                dataset_name(family, level),
                [EpisodeBuffer(id=row, **episode) for row, episode in enumerate(episodes[level])],
                env=env,
                algorithm_name=policy,
                author="The crawl_envs authors",
                ref_min_score=returns["random"],
                ref_max_score=returns["expert"],
                data_format="arrow",
            )
            metadata = {"description": about[level], "mean_return": returns[level]}
            data.storage.update_metadata(metadata)
        crawl = folder / "crawl"
        shutil.rmtree(crawl / family, ignore_errors=True)
        crawl.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(scratch) / "crawl" / "namespace_metadata.json", crawl)
        (Path(scratch) / "crawl" / family).rename(crawl / family)
    env.close()


def _episode(env: gymnasium.Env[Any, Any], name: str, seed: int) -> dict[str, Any]:
    """Return an episode of T steps of a policy: T + 1 observations, T actions, rewards and ends."""
    core: Any = env.unwrapped
    observation, _ = env.reset(seed=seed)
    policy: Any = policies.make(name, env)
    learn = getattr(policy, "observe", lambda log: None)
    learn(core.last_log())
    observations, actions, rewards = [observation], [], []
    state, start, over = None, np.ones(1, np.bool_), False
    while not over:
        action, state = policy.predict(observation, state, start, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(action)
        learn(core.last_log())
        start, over = np.zeros(1, np.bool_), terminated or truncated
        observations.append(observation)
        actions.append(action)
        rewards.append(reward)
    last = np.arange(1, len(rewards) + 1) == len(rewards)
    return {
        "seed": seed,
        "observations": np.array(observations),
        "actions": np.array(actions, core.action_space.dtype),
        "rewards": np.array(rewards),
        "terminations": np.zeros_like(last),
        "truncations": last,
    }
