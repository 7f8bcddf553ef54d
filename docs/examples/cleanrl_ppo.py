"""PPO in one file, as CleanRL has it, on the native vector environment of ``gymnasium.make_vec``.

python docs/examples/cleanrl_ppo.py --seed 1
"""

from __future__ import annotations

import gymnasium
import numpy as np
import torch
from network import Best, PageNetwork
from task import ARGUMENTS, ID, report, run
from torch import Tensor, nn
from torch.distributions import Categorical

LANES, STEPS, EPOCHS, MINIBATCHES = 64, 32, 2, 8
GAMMA, LAMBDA, CLIP, ENTROPY, RATE = 0.95, 0.9, 0.2, 0.003, 3e-3


def advantages(rewards: Tensor, values: Tensor, dones: Tensor) -> Tensor:
    """Return generalised advantages, (T, N), of T rewards and T + 1 values; dones cut them."""
    found, ahead = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        kept = 1.0 - dones[t]
        error = rewards[t] + GAMMA * values[t + 1] * kept - values[t]
        ahead = error + GAMMA * LAMBDA * kept * ahead
        found[t] = ahead
    return found


def train(steps: int, seed: int) -> PageNetwork:
    """Return a network after about ``steps`` decisions in all lanes together."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # small networks are fastest on one thread
    lanes = gymnasium.make_vec(ID, num_envs=LANES, autoreset_mode="SameStep", **ARGUMENTS)
    pages, features = lanes.single_observation_space.shape
    network = PageNetwork(features)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    observation = torch.as_tensor(lanes.reset(seed=1000 * seed)[0])
    updates = max(steps // (LANES * STEPS), 1)
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = RATE * (1.0 - update / updates)
        seen = torch.zeros(STEPS, LANES, pages, features)
        actions = torch.zeros(STEPS, LANES, dtype=torch.int64)
        rewards, dones, old = torch.zeros(3, STEPS, LANES)
        values = torch.zeros(STEPS + 1, LANES)
        with torch.no_grad():
            for t in range(STEPS):
                logits, values[t] = network(observation)
                drawn = Categorical(logits=logits)
                seen[t], actions[t] = observation, drawn.sample()
                old[t] = drawn.log_prob(actions[t])
                shown, reward, _, truncated, info = lanes.step(actions[t].numpy())
                rewards[t], dones[t] = torch.as_tensor(reward), torch.as_tensor(truncated)
                if "final_obs" in info:  # the horizon cuts an episode: what follows has a value
                    last = torch.as_tensor(np.stack(info["final_obs"][truncated]))
                    rewards[t, truncated] += GAMMA * network(last)[1]
                observation = torch.as_tensor(shown)
            values[STEPS] = network(observation)[1]
        gains = advantages(rewards, values, dones)
        batch = (seen, actions, old, gains, gains + values[:-1])
        learn(network, optimizer, [part.flatten(0, 1) for part in batch])
    lanes.close()
    return network


def learn(network: PageNetwork, optimizer: torch.optim.Optimizer, batch: list[Tensor]) -> None:
    """Take the steps of an update: the clipped objective, a value and an entropy term."""
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(batch[0])).chunk(MINIBATCHES):
            seen, actions, old, gains, returns = (part[chosen] for part in batch)
            logits, values = network(seen)
            drawn = Categorical(logits=logits)
            ratio = (drawn.log_prob(actions) - old).exp()
            gains = (gains - gains.mean()) / (gains.std() + 1e-8)
            clipped = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
            loss = -torch.min(ratio * gains, clipped * gains).mean()
            loss += 0.5 * (values - returns).pow(2).mean() - ENTROPY * drawn.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()


def main(steps: int, seed: int, episodes: int) -> float:
    """Train, print the scores, and return the score."""
    network = train(steps, seed)
    return report("CleanRL-style PPO", lambda env: Best(network), episodes)


if __name__ == "__main__":
    run(main, __doc__, steps=500_000)
