"""EXP3-IX: exponential weights whose exploration is implicit in the estimate of losses."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.compiling import compiled
from policies.bandits.bandit import PROBABILITIES, UPDATE, Bandit, BanditKernels, softmax


@compiled()
def learning_rate(num_arms: int, number: int, fixed: float) -> float:
    """Return the learning rate: the fixed one, or if that is NaN sqrt(2 ln K / (K t))."""
    if not np.isnan(fixed):
        return fixed
    falling: float = np.sqrt(2.0 * np.log(num_arms) / (num_arms * number))
    return falling


@compiled(PROBABILITIES.signature)
def exp3_ix_probabilities(
    memory: FloatArray, number: int, settings: FloatArray, out: FloatArray
) -> None:
    """Write p_k, in proportion to exp(-eta * estimated loss)."""
    softmax(memory[0], -learning_rate(out.size, number, settings[0]), out)


@compiled(UPDATE.signature)
def exp3_ix_update(
    memory: FloatArray, number: int, settings: FloatArray, chance: float, arm: int, reward: float
) -> None:
    """Add (1 - x) / (p + gamma) of the arm played to its estimated loss."""
    gamma = learning_rate(memory.shape[1], number, settings[0]) / 2.0
    memory[0, arm] += (1.0 - reward) / (chance + gamma)


class Exp3IXBandit(Bandit):
    """EXP3-IX of Neu (2015), whose regret is small with high probability, not only on average.

    ========  =================================================================
    L_k       estimated loss of arm k: the sum of its (1 - x) / (p + gamma_t)
    p_k       probability of arm k, in proportion to exp(-eta_t L_k)
    gamma_t   eta_t / 2, which biases estimates towards the arms played
    ========  =================================================================

    By default eta_t = sqrt(2 ln K / (K t)) in round t, which needs no horizon. (Neu's own choice
    without a horizon is smaller by the square root of 2.)

    Args:
        num_arms: K, a whole number >= 1.
        horizon: number of rounds, for the fixed eta sqrt(2 ln K / (K horizon)).
        learning_rate: instead of ``horizon``, a fixed eta, > 0.

    Raises:
        ValueError: an argument out of its range, or both of the last two.
    """

    kernels = BanditKernels(exp3_ix_probabilities, exp3_ix_update)

    def __init__(
        self, num_arms: int, *, horizon: int | None = None, learning_rate: float | None = None
    ) -> None:
        if horizon is not None and learning_rate is not None:
            raise ValueError(
                "learning_rate must be None where a horizon is given, got "
                f"learning_rate={learning_rate!r}, horizon={horizon!r}"
            )
        if learning_rate is not None:
            learning_rate = real("learning_rate", learning_rate, above=0.0)
        elif horizon is not None:
            num_arms, horizon = whole("num_arms", num_arms, 1), whole("horizon", horizon, 1)
            learning_rate = math.sqrt(2.0 * math.log(num_arms) / (num_arms * horizon))
        super().__init__(num_arms, np.array([math.nan if learning_rate is None else learning_rate]))
        self.learning_rate = learning_rate
