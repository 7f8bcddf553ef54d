"""Bandits: choosing among a few arms whose rewards an adversary may have set.

They know nothing of crawling. Rewards lie in [0, 1]; a bandit is asked for the probabilities of its
arms, or for an arm at a uniform number, and is told what that arm paid. The randomness is the
caller's, so that a run can be repeated.
"""

from __future__ import annotations

from policies.bandits.bandit import Bandit
from policies.bandits.exp3 import Exp3Bandit, exp3_gamma
from policies.bandits.exp3_ix import Exp3IXBandit
from policies.bandits.exp3_plus_plus import Exp3PlusPlusBandit
from policies.bandits.regret import bernoulli_regret, growth

__all__ = [
    "Bandit",
    "Exp3Bandit",
    "Exp3IXBandit",
    "Exp3PlusPlusBandit",
    "bernoulli_regret",
    "exp3_gamma",
    "growth",
]
