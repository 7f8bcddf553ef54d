"""Adversarial multi-armed bandits with a few arms and rewards in [0, 1].

They are independent of crawling. A bandit returns the probabilities of its arms, or the arm at a
uniform number, and is updated with the reward of that arm. Random numbers come from the caller, so
that runs are reproducible.

Public module: rewards.
"""

from __future__ import annotations

from policies.bandits.arm_env import ArmEnv
from policies.bandits.bandit import Bandit
from policies.bandits.exp3 import Exp3Bandit, exp3_gamma
from policies.bandits.exp3_ix import Exp3IXBandit
from policies.bandits.exp3_plus_plus import Exp3PlusPlusBandit
from policies.bandits.regret import bernoulli_regret, growth

__all__ = [
    "ArmEnv",
    "Bandit",
    "Exp3Bandit",
    "Exp3IXBandit",
    "Exp3PlusPlusBandit",
    "bernoulli_regret",
    "exp3_gamma",
    "growth",
]
