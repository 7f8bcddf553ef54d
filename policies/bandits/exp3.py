"""EXP3: exponential weights with a share of uniform exploration."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.compiling import compiled
from policies.bandits.bandit import PROBABILITIES, UPDATE, Bandit, BanditKernels, softmax


@compiled()
def exploration(num_arms: int, number: int, gamma: float) -> float:
    """Return the share of exploration: gamma, or if that is NaN the one for the rounds so far."""
    if not np.isnan(gamma):
        return gamma
    wanted: float = np.sqrt(num_arms * np.log(num_arms) / ((np.e - 1.0) * number))
    return min(1.0, wanted)


@compiled(PROBABILITIES.signature)
def exp3_probabilities(
    memory: FloatArray, number: int, settings: FloatArray, out: FloatArray
) -> None:
    """Write q_k = (1 - gamma) w_k / sum w + gamma / K, w_k = exp(gamma / K * estimated gain)."""
    num_arms = out.size
    gamma = exploration(num_arms, number, settings[0])
    softmax(memory[0], gamma / num_arms, out)
    for arm in range(num_arms):
        out[arm] = (1.0 - gamma) * out[arm] + gamma / num_arms


@compiled(UPDATE.signature)
def exp3_update(
    memory: FloatArray, number: int, settings: FloatArray, chance: float, arm: int, reward: float
) -> None:
    """Add x / q of the arm played to its estimated gain."""
    memory[0, arm] += reward / chance


class Exp3Bandit(Bandit):
    r"""EXP3 of Auer et al. (2002), as in Han et al. (2020), Algorithm 1.

    ========  ==============================================================
    w_k       weight of arm k: exp(gamma / K times the sum of its x / q)
    q_k       probability of arm k: (1 - gamma) w_k / sum_j w_j + gamma / K
    x         reward of the arm played, in [0, 1]
    ========  ==============================================================

    Line 11 of the paper divides the reward by :math:`q_i`, with i an offer; it has to be the q of
    the arm played, or the estimate has no meaning. The memory holds sums, not weights, so that
    nothing overflows.

    A fixed ``gamma``, such as the paper's .1, has no sublinear bound on regret: it plays at random
    in the share gamma of all rounds, and so loses gamma times the mean gap of the arms per round.
    With None, gamma falls with the rounds t as min(1, sqrt(K ln K / ((e - 1) t))), Auer's choice
    for a horizon of t; all weights are recomputed with it in every round.

    Args:
        num_arms: K, a whole number >= 1.
        gamma: share of exploration, in (0, 1]; None for the falling one.

    Raises:
        ValueError: an argument out of its range.
    """

    kernels = BanditKernels(exp3_probabilities, exp3_update)

    def __init__(self, num_arms: int, *, gamma: float | None = 0.1) -> None:
        if gamma is not None and real("gamma", gamma, above=0.0) > 1.0:
            raise ValueError(f"gamma must lie in (0, 1], got {gamma!r}")
        super().__init__(num_arms, np.array([math.nan if gamma is None else gamma]))
        self.gamma = gamma


def exp3_gamma(num_arms: int, horizon: int) -> float:
    """Return the gamma of Auer et al. (2002), Corollary 3.2, for a horizon in rounds.

    Raises:
        ValueError: an argument is not a whole number >= 1.
    """
    num_arms, horizon = whole("num_arms", num_arms, 1), whole("horizon", horizon, 1)
    return float(exploration(num_arms, horizon, math.nan))
