"""EXP3++: exponential weights with less exploration of arms that are worse with confidence."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import real
from crawl_envs.types.compiling import compiled
from policies.bandits.bandit import PROBABILITIES, UPDATE, Bandit, BanditKernels, softmax

ESTIMATES, PLAYS, LOSSES = 0, 1, 2
"""Rows of the memory: sums of loss / probability, numbers of plays, sums of losses."""


@compiled()
def _half_width(num_arms: int, number: int, plays: float, alpha: float) -> float:
    """Return half the confidence interval of a mean loss, sqrt(alpha ln(t K^(1/alpha)) / 2N)."""
    width: float = np.sqrt((alpha * np.log(number) + np.log(num_arms)) / (2.0 * plays))
    return width


@compiled()
def gap(memory: FloatArray, number: int, alpha: float, arm: int) -> float:
    """Return a lower confidence bound on an arm's mean loss less the least one, in [0, 1]."""
    num_arms = memory.shape[1]
    least = 1.0
    for other in range(num_arms):
        plays = memory[PLAYS, other]
        width = _half_width(num_arms, number, plays, alpha)
        least = min(least, memory[LOSSES, other] / plays + width)
    plays = memory[PLAYS, arm]
    low = memory[LOSSES, arm] / plays - _half_width(num_arms, number, plays, alpha)
    surely: float = max(0.0, max(0.0, low) - least)
    return surely


@compiled(PROBABILITIES.signature)
def exp3_plus_plus_probabilities(
    memory: FloatArray, number: int, settings: FloatArray, out: FloatArray
) -> None:
    """Write (1 - sum epsilon) rho + epsilon; in the first K rounds, each arm in turn."""
    num_arms = out.size
    alpha, beta = settings[0], settings[1]
    for arm in range(num_arms):
        if memory[PLAYS, arm] == 0.0:
            out[:] = 0.0
            out[arm] = 1.0
            return
    rate = 0.5 * np.sqrt(np.log(num_arms) / (number * num_arms))
    softmax(memory[ESTIMATES], -rate, out)
    epsilons = np.empty(num_arms)
    total = 0.0
    for arm in range(num_arms):
        worse = gap(memory, number, alpha, arm)
        epsilons[arm] = min(0.5 / num_arms, rate)
        if worse > 0.0:
            epsilons[arm] = min(epsilons[arm], beta * np.log(number) / (number * worse * worse))
        total += epsilons[arm]
    for arm in range(num_arms):
        out[arm] = (1.0 - total) * out[arm] + epsilons[arm]


@compiled(UPDATE.signature)
def exp3_plus_plus_update(
    memory: FloatArray, number: int, settings: FloatArray, chance: float, arm: int, reward: float
) -> None:
    """Add the loss of the arm played, both divided by its probability and as it is."""
    loss = 1.0 - reward
    memory[ESTIMATES, arm] += loss / chance
    memory[PLAYS, arm] += 1.0
    memory[LOSSES, arm] += loss


class Exp3PlusPlusBandit(Bandit):
    """EXP3++ of Seldin and Lugosi (2017), for both stochastic and adversarial rewards.

    ===========  ===================================================================
    loss         1 - x of the arm played; L its sum, N the number of plays
    rho_k        in proportion to exp(-eta_t times the sum of loss / probability)
    eta_t        sqrt(ln K / (t K)) / 2
    UCB, LCB     L / N plus or minus sqrt(alpha ln(t K^(1/alpha)) / (2 N)), in [0, 1]
    gap_k        max(0, LCB_k - min UCB)
    xi_k         beta ln t / (t gap_k^2), infinite where the gap is 0
    epsilon_k    min(1 / (2 K), eta_t, xi_k)
    p_k          (1 - sum of epsilon) rho_k + epsilon_k
    ===========  ===================================================================

    In the first K rounds each arm is played once, with probability 1.

    Args:
        num_arms: K, a whole number >= 1.
        alpha: of the confidence intervals, > 0; the paper's is 3.
        beta: of the exploration, > 0; the paper's is 256.

    Raises:
        ValueError: an argument out of its range.
    """

    kernels = BanditKernels(exp3_plus_plus_probabilities, exp3_plus_plus_update)

    def __init__(self, num_arms: int, *, alpha: float = 3.0, beta: float = 256.0) -> None:
        self.alpha = real("alpha", alpha, above=0.0)
        self.beta = real("beta", beta, above=0.0)
        super().__init__(num_arms, np.array([self.alpha, self.beta]))
