"""Adversarial multi-armed bandits with a few arms and rewards in [0, 1].

They are independent of crawling. A bandit returns the probabilities of its arms, or the arm for a
uniform random number, and is updated with the reward of that arm. Random numbers come from the
caller, so that runs are reproducible.

Public modules: rewards, strategy_bandit.
"""

from __future__ import annotations

from policies.bandits.bandit import Bandit, bernoulli_regret, growth
from policies.bandits.exp3 import Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit

__all__ = [
    "Bandit",
    "Exp3Bandit",
    "Exp3IXBandit",
    "Exp3PlusPlusBandit",
    "bernoulli_regret",
    "growth",
]
