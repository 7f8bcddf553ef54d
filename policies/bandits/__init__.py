"""Adversarial multi-armed bandits with a few arms and rewards in [0, 1].

They are independent of crawling. A bandit returns the probabilities of its arms, or the arm at a
uniform number, and is updated with the reward of that arm. Random numbers come from the caller, so
that runs are reproducible.

Public modules: rewards, strategy_bandit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.bandits.bandit import Bandit, bernoulli_regret, growth
from policies.bandits.exp3 import Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit

if TYPE_CHECKING:
    from policies.bandits.arm_env import ArmEnv

__all__ = [
    "ArmEnv",
    "Bandit",
    "Exp3Bandit",
    "Exp3IXBandit",
    "Exp3PlusPlusBandit",
    "bernoulli_regret",
    "growth",
]


def __getattr__(name: str) -> Any:
    """Import ArmEnv, which needs Gymnasium, when it is first used."""
    if name != "ArmEnv":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from policies.bandits.arm_env import ArmEnv

    return ArmEnv
