"""The base class of bandits, and compiled runs against arms of fixed means.

The memory of a bandit is an array of three numbers per arm. The classes and the compiled runs call
the same two kernels: one computes the probabilities of the arms in a round, the other updates the
memory with a reward.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import compiled, inlined, ready
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import real, whole

MEMORY_ROWS = 3
"""Numbers per arm in a bandit's memory."""

_TABLE, _ROW = types.float64[:, ::1], types.float64[::1]
PROBABILITIES = types.FunctionType(types.void(_TABLE, types.int64, _ROW, _ROW))
"""Type of ``probabilities(memory, round, settings, out)``; rounds are counted from 1."""
UPDATE = types.FunctionType(
    types.void(_TABLE, types.int64, _ROW, types.float64, types.int64, types.float64)
)
"""Type of ``update(memory, round, settings, chance, arm, reward)``.

``chance`` is the probability of ``arm`` in that round.
"""


class Bandit(ABC):
    """Chooses one of K arms per round and learns from the rewards of the chosen arms.

    Args:
        num_arms: K, an integer >= 1; ValueError if not, as for the arguments of subclasses.
        *settings: parameters of the kernels.

    Attributes:
        num_arms: K.
        rounds: number of rewards received.
    """

    kernels: ClassVar[tuple[Any, Any]]
    """Two compiled functions, of types PROBABILITIES and UPDATE."""

    def __init__(self, num_arms: int, *settings: float) -> None:
        self.num_arms = whole("num_arms", num_arms, 1)
        self.rounds = 0
        self._settings = np.array(settings, np.float64)
        self._memory = np.zeros((MEMORY_ROWS, self.num_arms))

    def probabilities(self) -> FloatArray:
        """Return the probabilities of the arms in the next round, (K,), with sum 1."""
        out = np.empty(self.num_arms)
        ready(self.kernels[0])(self._memory, self.rounds + 1, self._settings, out)
        return out

    def draw(self, uniform: float) -> int:
        """Return the arm that a uniform random number in [0, 1) selects, by probabilities."""
        if not 0.0 <= uniform < 1.0:
            raise ValueError(f"uniform must lie in [0, 1), got {uniform!r}")
        return int(pick(self.probabilities(), float(uniform)))

    def update(self, arm: int, reward: float) -> None:
        """Update the bandit with the reward of the chosen arm, which ends the round.

        Raises:
            ValueError: ``arm`` is not an arm, or has probability 0; the reward lies outside [0, 1].
                The bandit is unchanged.
        """
        arm = whole("arm", arm, 0, self.num_arms - 1)
        reward = real("reward", reward, least=0.0)
        if reward > 1.0:
            raise ValueError(f"reward must lie in [0, 1], got {reward!r}")
        chance = float(self.probabilities()[arm])
        if chance <= 0.0:
            raise ValueError(f"arm must be one with a probability above 0, got {arm!r}")
        kernel = ready(self.kernels[1])
        kernel(self._memory, self.rounds + 1, self._settings, chance, arm, reward)
        self.rounds += 1

    def play_bernoulli(self, means: FloatArray, uniforms: FloatArray) -> IntArray:
        """Run n rounds with Bernoulli rewards in compiled code, like n calls of :meth:`update`.

        Args:
            means: probabilities of the reward 1, in [0, 1], (K,).
            uniforms: for every round two numbers in [0, 1), (n, 2): the first draws the arm, as in
                :meth:`draw`; the reward is 1 if the second is below the arm's mean, else 0.

        Returns the chosen arms, (n,); ValueError if a shape or number is out of its range.
        """
        if means.shape != (self.num_arms,) or not np.all((means >= 0.0) & (means <= 1.0)):
            raise ValueError(f"means must be {self.num_arms} numbers in [0, 1], got {means!r}")
        if uniforms.shape[1:] != (2,) or not np.all((uniforms >= 0.0) & (uniforms < 1.0)):
            raise ValueError("uniforms must be pairs of numbers in [0, 1), (n, 2)")
        arms = np.empty(len(uniforms), np.int64)
        kernels = (ready(kernel) for kernel in self.kernels)
        state = self._memory, self._settings, self.rounds
        ready(_play_bernoulli)(*kernels, *state, means, uniforms, arms)
        self.rounds += len(arms)
        return arms


@compiled()
def pick(probabilities: FloatArray, uniform: float) -> int:
    """Return the arm in whose interval of cumulative probability ``uniform``, in [0, 1), lies."""
    reached, last = 0.0, 0
    for arm in range(probabilities.size):
        if probabilities[arm] > 0.0:
            last = arm
            reached += probabilities[arm]
            if uniform < reached:
                break
    return last


@inlined()
def softmax(values: FloatArray, scale: float, out: FloatArray) -> None:
    """Write exp(scale * value) of all arms, divided by their sum, to ``out`` without overflow."""
    top = -np.inf
    for arm in range(values.size):
        top = max(top, scale * values[arm])
    total = 0.0
    for arm in range(values.size):
        out[arm] = np.exp(scale * values[arm] - top)
        total += out[arm]
    for arm in range(values.size):
        out[arm] /= total


@compiled(
    types.void(PROBABILITIES, UPDATE, _TABLE, _ROW, types.int64, _ROW, _TABLE, types.int64[::1])
)
def _play_bernoulli(
    probabilities: Any,
    update: Any,
    memory: FloatArray,
    settings: FloatArray,
    rounds: int,
    means: FloatArray,
    uniforms: FloatArray,
    arms: IntArray,
) -> None:
    """Play one round per row of ``uniforms``, from round ``rounds + 1`` on, and write the arms."""
    chances = np.empty(means.size)
    for k in range(arms.size):
        number = rounds + k + 1
        probabilities(memory, number, settings, chances)
        arm = pick(chances, uniforms[k, 0])
        reward = 1.0 if uniforms[k, 1] < means[arm] else 0.0
        update(memory, number, settings, chances[arm], arm, reward)
        arms[k] = arm


BLOCK = 1 << 16
"""Rounds drawn at a time."""


def bernoulli_regret(
    make: Callable[[], Bandit],
    means: FloatArray,
    horizons: Sequence[int],
    *,
    runs: int = 20,
    seed: int = 0,
) -> FloatArray:
    """Return the pseudo-regret of runs against arms with Bernoulli rewards.

    It is the sum over rounds of the largest mean minus the mean of the chosen arm: the regret of
    Han et al. (2020), eq. 1, without the noise of the rewards. One run covers all horizons, so a
    bandit tuned to a horizon needs a call for that horizon only.

    Args:
        make: function that returns a new bandit.
        means: probabilities of the reward 1, in [0, 1], (K,).
        horizons: rounds after which regret is recorded, rising integers >= 1.
        runs: independent runs, an integer >= 1.
        seed: seed of all draws.

    Returns:
        Regret >= 0, (runs, number of horizons).
    """
    ends = [whole("horizons", horizon, 1) for horizon in horizons]
    if not ends or any(later <= earlier for earlier, later in pairwise(ends)):
        raise ValueError(f"horizons must be rising integers, got {horizons!r}")
    regret = np.empty((whole("runs", runs, 1), len(ends)))
    for row, stream in zip(regret, np.random.SeedSequence(seed).spawn(runs), strict=True):
        bandit, rng, lost = make(), np.random.default_rng(stream), 0.0
        for k, end in enumerate(ends):
            while bandit.rounds < end:
                uniforms = rng.random((min(BLOCK, end - bandit.rounds), 2))
                arms = bandit.play_bernoulli(means, uniforms)
                lost += float((np.max(means) - means[arms]).sum())
            row[k] = lost
    return regret


def growth(horizons: Sequence[int], regret: FloatArray) -> float:
    """Return the exponent of the growth of regret: the slope of a line through its logarithms.

    ``regret`` is the mean regret, > 0, at each of two or more horizons; ValueError if not.
    """
    values = np.asarray(regret, np.float64)
    if len(horizons) < 2 or values.shape != (len(horizons),) or not np.all(values > 0.0):
        raise ValueError(f"regret must be > 0 at each of two or more horizons, got {regret!r}")
    return float(np.polyfit(np.log(np.asarray(horizons, np.float64)), np.log(values), 1)[0])
