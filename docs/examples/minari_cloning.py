"""Behaviour cloning on a Minari data set that an expert, GREEDY-NCIS, has recorded.

    python docs/examples/minari_cloning.py --seed 1

The data set is kept below ``MINARI_DATASETS_PATH``, if set, in place of one of an earlier run.
"""

from __future__ import annotations

import gymnasium
import minari
import numpy as np
import torch
from minari import DataCollector, MinariDataset
from network import Best, PageNetwork
from task import ARGUMENTS, ID, report, run

import policies

DATASET = "crawl/noisy-10/greedy-ncis-v0"
MINIBATCH, RATE = 256, 3e-3


def record(episodes: int, seed: int) -> MinariDataset:
    """Return the data set of an expert's episodes, each with pages of its own."""
    if DATASET in minari.list_local_datasets():
        minari.delete_dataset(DATASET)
    env = DataCollector(gymnasium.make(ID, **ARGUMENTS))
    expert = policies.make("GreedyNCIS", env)
    for episode in range(episodes):
        observation, _ = env.reset(seed=1000 * seed + episode)
        state, start, over = None, np.ones(1, np.bool_), False
        while not over:
            page, state = expert.predict(observation, state, start, deterministic=True)
            observation, _, terminated, truncated, _ = env.step(page)
            start, over = np.zeros(1, np.bool_), terminated or truncated
    return env.create_dataset(DATASET, algorithm_name="GreedyNCIS")


def clone(data: MinariDataset, steps: int, seed: int) -> PageNetwork:
    """Return a network after ``steps`` minibatches of the expert's decisions."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # small networks are fastest on one thread
    episodes = list(data.iterate_episodes())
    seen = torch.as_tensor(np.concatenate([each.observations[:-1] for each in episodes]))
    pages = torch.as_tensor(np.concatenate([each.actions for each in episodes]))
    network = PageNetwork(seen.shape[-1])
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = RATE * (1.0 - step / steps)
        chosen = torch.randint(len(pages), (MINIBATCH,))
        loss = torch.nn.functional.cross_entropy(network(seen[chosen])[0], pages[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network


def main(recorded: int, steps: int, seed: int, episodes: int) -> float:
    """Record, clone, print the scores, and return that of the clone."""
    network = clone(record(recorded, seed), steps, seed)
    return report("Minari, cloned", lambda env: Best(network), episodes)


if __name__ == "__main__":
    run(main, __doc__, recorded=300, steps=5_000)
