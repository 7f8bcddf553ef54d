"""MaskablePPO of sb3-contrib: the lanes' ``action_masks`` say which pages may be crawled.

In this task all may. On recorded sites, where pages are born and die, and with the limits of
hosts, some may not; the program is the same.

    python docs/examples/sb3_contrib_maskable_ppo.py --seed 1
"""

from __future__ import annotations

import gymnasium
import torch
from sb3_contrib import MaskablePPO
from task import ARGUMENTS, ID, report, run

from agents.networks.masked import MaskablePageActorCritic
from agents.sb3.bridge import CrawlVecEnv
from agents.sb3.zoo import policy_kwargs

LANES = 64


class Masked:
    """A policy of the suite that crawls the best page that may be crawled."""

    def __init__(self, model: MaskablePPO, env: gymnasium.Env) -> None:
        self.model, self.mask = model, env.get_wrapper_attr("action_masks")

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        """Return the page of an observation."""
        masks = self.mask()
        return self.model.predict(observation, state, episode_start, deterministic, masks)


def train(steps: int, seed: int) -> MaskablePPO:
    """Return a model after ``steps`` decisions in all lanes together."""
    torch.set_num_threads(1)  # small networks are fastest on one thread
    lanes = gymnasium.make_vec(ID, num_envs=LANES, autoreset_mode="SameStep", **ARGUMENTS)
    model = MaskablePPO(
        MaskablePageActorCritic,
        CrawlVecEnv(lanes),
        n_steps=32,
        batch_size=256,
        n_epochs=2,
        learning_rate=lambda left: 3e-3 * left,
        gamma=0.95,
        gae_lambda=0.9,
        ent_coef=0.003,
        policy_kwargs=policy_kwargs("maskableppo", "CrawlNCIS-v0", **ARGUMENTS),
        seed=1000 * seed,
        device="cpu",
    )
    return model.learn(steps)


def main(steps: int, seed: int, episodes: int) -> float:
    """Train, print the scores, and return the score."""
    model = train(steps, seed)
    return report("sb3-contrib MaskablePPO", lambda env: Masked(model, env), episodes)


if __name__ == "__main__":
    run(main, __doc__, steps=500_000)
