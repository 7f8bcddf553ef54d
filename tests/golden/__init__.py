"""A short trajectory of every registered id, and of some settings more, kept as JSON.

A golden file says what an environment did when it was written; a difference is a change of
behaviour, which calls for a new version of the id, or for a word on why not. Files are written
again, and only then, by::

    python -m tests.golden

NumPy does not promise the same draws for ever, so a file names the version that it was written
with.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import crawl_envs

FOLDER = Path(__file__).parent
SEED = 2024
STEPS = 30
SETTINGS: dict[str, dict[str, Any]] = {
    "CrawlNCIS-v0": {
        "num_pages": 5,
        "bandwidth": 5.0,
        "horizon": 4.0,
        "instance": "delayed",
        "bandwidth_steps": [[2.0, 3.0]],
    },
    "CrawlTrace-v0": {"window": [100.0, 110.0], "importance": "zipf"},
    "CrawlSites-v0": {
        "split": "garden-handbook",
        "num_pages": 65,
        "days": 12.0,
        "days_per_crawl": [5.0, 10.0],
    },
    "CrawlNCIS-v0 sources": {
        "num_pages": 5,
        "bandwidth": 5.0,
        "horizon": 4.0,
        "instance": "sources",
        "delay": {"kind": "exponential", "mean": 0.3},
    },
    "CrawlHarmonic-v0": {"num_pages": 8, "bandwidth": 4.0, "horizon": 25.0},
    "CrawlHarmonic-v0 page": {
        "num_pages": 6,
        "bandwidth": 4.0,
        "horizon": 6.0,
        "action": "page",
    },
    "CrawlOffers-v1": {"num_pages": 100, "bandwidth": 50.0, "horizon": 1.5, "first_day": 325},
    "CrawlOffers-v1 scores": {
        "num_pages": 100,
        "bandwidth": 40.0,
        "horizon": 1.5,
        "action": "scores",
        "objective": "offers",
        "price_history": "crawled",
        "reveal": "parameters",
    },
    "CrawlTrace-v0 both": {"window": [100.0, 110.0], "signals": "both"},
    "CrawlLongevity-v0": {
        "num_pages": 12,
        "bandwidth": 1.5,
        "horizon": 12.0,
        "signals": "noisy",
        "sketch_size": 8,
    },
    "CrawlLongevity-v0 trace": {
        "instance": "garden-handbook",
        "window": [100.0, 130.0],
        "bandwidth": 1.0,
        "action": "refresh",
    },
}
"""Arguments that make episodes short, by an id and maybe a word more; an id that is missing runs
with its defaults."""


def names() -> tuple[str, ...]:
    """Return what has a golden file: all registered ids, and the further settings."""
    return tuple(dict.fromkeys((*crawl_envs.FAMILIES, *SETTINGS)))


def path_of(name: str) -> Path:
    """Return where a golden file lies."""
    return FOLDER / f"{name.replace(' ', '-')}.json"


def play(name: str, seed: int, arguments: dict[str, Any], actions: list[Any]) -> dict[str, Any]:
    """Return what happens: rewards, ledgers of the episodes, and a hash of all observations."""
    env = gymnasium.make(name, **arguments).unwrapped
    core: Any = env
    digest = hashlib.sha256()
    observation, _ = env.reset(seed=seed)
    rewards, ledgers, signals = [], [], []
    for action in actions:
        digest.update(np.ascontiguousarray(observation).tobytes())
        observation, reward, _, truncated, _ = env.step(np.array(action))
        rewards.append(float(reward))
        signals.append(core.last_log().signal_time.size)
        if truncated:
            ledgers.append(asdict(core.ledger()))
            observation, _ = env.reset()
    digest.update(np.ascontiguousarray(observation).tobytes())
    ledgers.append(asdict(core.ledger()))
    return {
        "rewards": rewards,
        "signals": signals,
        "ledgers": ledgers,
        "observations": digest.hexdigest(),
    }


def record(name: str) -> dict[str, Any]:
    """Return the golden record of an id, or of a further setting of it."""
    arguments, name = SETTINGS.get(name, {}), name.split()[0]
    space = gymnasium.make(name, **arguments).action_space
    space.seed(SEED)
    actions = [np.asarray(space.sample()).tolist() for _ in range(STEPS)]
    return {
        "id": name,
        "numpy": np.__version__,
        "seed": SEED,
        "arguments": arguments,
        "actions": actions,
        **play(name, SEED, arguments, actions),
    }


def write_all() -> None:
    """Write all golden files."""
    for name in names():
        text = json.dumps(record(name), indent=1)
        path_of(name).write_text(text + "\n", encoding="utf-8")
