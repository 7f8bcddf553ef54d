"""EXP3, EXP3-IX and EXP3++: exponential weights with explicit, implicit and adaptive exploration.

x is the reward of the chosen arm, in [0, 1]; its loss is 1 - x; t is the round, from 1. Memories
contain sums instead of weights, so that nothing overflows.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import real, share
from policies.bandits.bandit import PROBABILITIES, UPDATE, Bandit, softmax

ESTIMATES, PULLS, LOSSES = 0, 1, 2
"""Rows of the memory: estimated gains or losses; for EXP3++ also numbers of choices, and losses."""


@compiled(PROBABILITIES.signature)
def exp3_probabilities(
    memory: FloatArray, number: int, settings: FloatArray, out: FloatArray
) -> None:
    """Write the arms' probabilities of EXP3: (1 - gamma) w_k / sum w + gamma / K.

    The weight w_k is exp(gamma / K * estimated gain).
    """
    num_arms, gamma = out.size, settings[0]
    if np.isnan(gamma):
        gamma = min(1.0, np.sqrt(num_arms * np.log(num_arms) / ((np.e - 1.0) * number)))
    softmax(memory[ESTIMATES], gamma / num_arms, out)
    for arm in range(num_arms):
        out[arm] = (1.0 - gamma) * out[arm] + gamma / num_arms


@compiled(UPDATE.signature)
def exp3_update(
    memory: FloatArray, number: int, settings: FloatArray, chance: float, arm: int, reward: float
) -> None:
    """Add the reward over its probability, x / q, to the chosen arm's estimated gain."""
    memory[ESTIMATES, arm] += reward / chance


class Exp3Bandit(Bandit):
    r"""EXP3 of Auer et al. (2002), as in Han et al. (2020), Algorithm 1.

    ========  ==============================================================
    w_k       weight of arm k: exp(gamma / K times the sum of its x / q)
    q_k       probability of arm k: (1 - gamma) w_k / sum_j w_j + gamma / K
    ========  ==============================================================

    Line 11 of the paper divides the reward by :math:`q_i`, with i an offer; it has to be the q of
    the chosen arm, or the estimate has no meaning.

    A fixed ``gamma``, such as the paper's .1, has no sublinear bound on regret: it chooses at
    random in the share gamma of all rounds, and so loses gamma times the mean gap of the arms per
    round. With None, gamma falls as min(1, sqrt(K ln K / ((e - 1) t))), Auer's choice for a horizon
    of t (Corollary 3.2); all weights are recomputed with it in every round.

    Args:
        num_arms: K.
        gamma: share of exploration, in (0, 1]; None for a falling gamma.
    """

    kernels = (exp3_probabilities, exp3_update)

    def __init__(self, num_arms: int, *, gamma: float | None = 0.1) -> None:
        settings = math.nan if gamma is None else share("gamma", gamma, above=True)
        super().__init__(num_arms, settings)
        self.gamma = gamma


@compiled()
def learning_rate(num_arms: int, number: int, fixed: float) -> float:
    """Return the learning rate: ``fixed``, or sqrt(2 ln K / (K t)) if ``fixed`` is NaN."""
    if not np.isnan(fixed):
        return fixed
    falling: float = np.sqrt(2.0 * np.log(num_arms) / (num_arms * number))
    return falling


@compiled(PROBABILITIES.signature)
def exp3_ix_probabilities(
    memory: FloatArray, number: int, settings: FloatArray, out: FloatArray
) -> None:
    """Write the arms' probabilities of EXP3-IX, in proportion to exp(-eta * estimated loss)."""
    softmax(memory[ESTIMATES], -learning_rate(out.size, number, settings[0]), out)


@compiled(UPDATE.signature)
def exp3_ix_update(
    memory: FloatArray, number: int, settings: FloatArray, chance: float, arm: int, reward: float
) -> None:
    """Add (1 - x) / (p + gamma), for the reward x, to the chosen arm's estimated loss."""
    gamma = learning_rate(memory.shape[1], number, settings[0]) / 2.0
    memory[ESTIMATES, arm] += (1.0 - reward) / (chance + gamma)


class Exp3IXBandit(Bandit):
    """EXP3-IX of Neu (2015), whose regret is small with high probability, not only on average.

    ========  =================================================================
    L_k       estimated loss of arm k: the sum of its (1 - x) / (p + gamma_t)
    p_k       probability of arm k, in proportion to exp(-eta_t L_k)
    gamma_t   eta_t / 2, which biases estimates towards the chosen arms
    ========  =================================================================

    By default eta_t = sqrt(2 ln K / (K t)), which needs no horizon. (Neu's choice without a horizon
    is smaller by the square root of 2.)

    Args:
        num_arms: K.
        learning_rate: a fixed eta, > 0; None for the default.
    """

    kernels = (exp3_ix_probabilities, exp3_ix_update)

    def __init__(self, num_arms: int, *, learning_rate: float | None = None) -> None:
        fixed = math.nan
        if learning_rate is not None:
            fixed = real("learning_rate", learning_rate, above=0.0)
        super().__init__(num_arms, fixed)


@compiled(PROBABILITIES.signature)
def exp3_plus_plus_probabilities(
    memory: FloatArray, number: int, settings: FloatArray, out: FloatArray
) -> None:
    """Write EXP3++ probabilities (1 - sum epsilon) rho + epsilon; first, each arm in turn."""
    num_arms, alpha, beta = out.size, settings[0], settings[1]
    for arm in range(num_arms):
        if memory[PULLS, arm] == 0.0:
            out[:] = 0.0
            out[arm] = 1.0
            return
    rate = 0.5 * np.sqrt(np.log(num_arms) / (number * num_arms))
    softmax(memory[ESTIMATES], -rate, out)
    lower, min_upper = np.empty(num_arms), 1.0
    for arm in range(num_arms):
        pulls = memory[PULLS, arm]
        mean = memory[LOSSES, arm] / pulls
        width = np.sqrt((alpha * np.log(number) + np.log(num_arms)) / (2.0 * pulls))
        lower[arm] = mean - width
        min_upper = min(min_upper, mean + width)
    epsilons, total = np.empty(num_arms), 0.0
    for arm in range(num_arms):
        gap = lower[arm] - min_upper
        epsilons[arm] = min(0.5 / num_arms, rate)
        if gap > 0.0:
            epsilons[arm] = min(epsilons[arm], beta * np.log(number) / (number * gap * gap))
        total += epsilons[arm]
    for arm in range(num_arms):
        out[arm] = (1.0 - total) * out[arm] + epsilons[arm]


@compiled(UPDATE.signature)
def exp3_plus_plus_update(
    memory: FloatArray, number: int, settings: FloatArray, chance: float, arm: int, reward: float
) -> None:
    """Add the chosen arm's loss to its two sums: over its probability, and undivided."""
    memory[ESTIMATES, arm] += (1.0 - reward) / chance
    memory[PULLS, arm] += 1.0
    memory[LOSSES, arm] += 1.0 - reward


class Exp3PlusPlusBandit(Bandit):
    """EXP3++ of Seldin and Lugosi (2017), for both stochastic and adversarial rewards.

    ===========  ===================================================================
    rho_k        in proportion to exp(-eta_t times the sum of loss / probability)
    eta_t        sqrt(ln K / (t K)) / 2
    UCB, LCB     L / N plus or minus sqrt(alpha ln(t K^(1/alpha)) / (2 N)), in [0, 1],
                 with L the sum of losses and N the number of choices
    gap_k        max(0, LCB_k - min UCB)
    xi_k         beta ln t / (t gap_k^2), infinite where the gap is 0
    epsilon_k    min(1 / (2 K), eta_t, xi_k)
    p_k          (1 - sum of epsilon) rho_k + epsilon_k
    ===========  ===================================================================

    In the first K rounds each arm is chosen once, with probability 1.

    Args:
        num_arms: K.
        alpha: of the confidence intervals, > 0; the paper's is 3.
        beta: of the exploration, > 0; the paper's is 256.
    """

    kernels = (exp3_plus_plus_probabilities, exp3_plus_plus_update)

    def __init__(self, num_arms: int, *, alpha: float = 3.0, beta: float = 256.0) -> None:
        settings = real("alpha", alpha, above=0.0), real("beta", beta, above=0.0)
        super().__init__(num_arms, *settings)
