"""PPO of Stable-Baselines3 on the native vector environment, with the package's page network.

python docs/examples/sb3_ppo.py --seed 1
python docs/examples/sb3_ppo.py --seed 1 --plain    # Stable-Baselines3's MlpPolicy
"""

from __future__ import annotations

import gymnasium
import torch
from stable_baselines3 import PPO
from task import ARGUMENTS, ID, report, run

from agents.networks.actor_critic import PageActorCritic
from agents.sb3.bridge import CrawlVecEnv
from agents.sb3.zoo import policy_kwargs

LANES = 64


def train(steps: int, seed: int, plain: bool) -> PPO:
    """Return a model after ``steps`` decisions in all lanes together."""
    torch.set_num_threads(1)  # small networks are fastest on one thread
    lanes = gymnasium.make_vec(ID, num_envs=LANES, autoreset_mode="SameStep", **ARGUMENTS)
    network = {} if plain else policy_kwargs("ppo", "CrawlNCIS-v0", **ARGUMENTS)
    model = PPO(
        "MlpPolicy" if plain else PageActorCritic,
        CrawlVecEnv(lanes),
        n_steps=32,
        batch_size=256,
        n_epochs=2,
        learning_rate=lambda left: 3e-3 * left,
        gamma=0.95,
        gae_lambda=0.9,
        ent_coef=0.003,
        policy_kwargs=network,
        seed=1000 * seed,
        device="cpu",
    )
    return model.learn(steps)


def main(steps: int, seed: int, episodes: int, plain: bool = False) -> float:
    """Train, print the scores, and return the score."""
    model = train(steps, seed, plain)
    label = "SB3 PPO, MlpPolicy" if plain else "SB3 PPO, page network"
    return report(label, lambda env: model, episodes)


if __name__ == "__main__":
    run(main, __doc__, steps=500_000, plain=False)
