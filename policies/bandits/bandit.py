"""What all bandits share: how they are asked and told, and how they are played in compiled code.

A bandit's whole memory is an array of three numbers per arm, so that the classes and the compiled
play run the very same two functions: one that says with which probability each arm is played in a
round, and one that takes in a reward.
"""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.compiling import compiled, ready

MEMORY_ROWS = 3
"""Numbers that a bandit keeps of every arm."""

_TABLE, _ROW = types.float64[:, ::1], types.float64[::1]
PROBABILITIES = types.FunctionType(types.void(_TABLE, types.int64, _ROW, _ROW))
"""Type of ``probabilities(memory, round, settings, out)``; rounds are counted from 1."""
UPDATE = types.FunctionType(
    types.void(_TABLE, types.int64, _ROW, types.float64, types.int64, types.float64)
)
"""Type of ``update(memory, round, settings, chance, arm, reward)``.

``chance`` is the probability with which ``arm`` was played in that round.
"""


class BanditKernels(NamedTuple):
    """The two compiled functions of a bandit, of the types PROBABILITIES and UPDATE."""

    probabilities: Any
    update: Any


class Bandit(ABC):
    """Chooses among K arms, round by round, and learns from the rewards of those it chose.

    Args:
        num_arms: K, a whole number >= 1.
        settings: what its compiled functions are told, (S,) float64.

    Raises:
        ValueError: ``num_arms`` is no whole number >= 1.

    Attributes:
        num_arms: K.
        rounds: how many rewards it was told.
    """

    kernels: ClassVar[BanditKernels]

    def __init__(self, num_arms: int, settings: FloatArray) -> None:
        self.num_arms = whole("num_arms", num_arms, 1)
        self.rounds = 0
        self._settings = np.ascontiguousarray(settings, np.float64)
        self._memory = np.zeros((MEMORY_ROWS, self.num_arms))

    def probabilities(self) -> FloatArray:
        """With which probability each arm is played in the next round, (K,), in sum 1."""
        out = np.empty(self.num_arms)
        ready(self.kernels.probabilities)(self._memory, self.rounds + 1, self._settings, out)
        return out

    def draw(self, uniform: float) -> int:
        """The arm at a number in [0, 1): uniform ones give each arm its probability.

        Raises:
            ValueError: the number lies outside [0, 1).
        """
        if not 0.0 <= uniform < 1.0:
            raise ValueError(f"uniform must lie in [0, 1), got {uniform!r}")
        return int(pick(self.probabilities(), float(uniform)))

    def update(self, arm: int, reward: float) -> None:
        """Take in the reward of the arm that was played, which ends the round.

        Raises:
            ValueError: no such arm, or one that could not have been played; a reward outside
                [0, 1]. Nothing is learned then.
        """
        arm = whole("arm", arm, 0, self.num_arms - 1)
        reward = real("reward", reward, least=0.0)
        if reward > 1.0:
            raise ValueError(f"reward must lie in [0, 1], got {reward!r}")
        chance = float(self.probabilities()[arm])
        if chance <= 0.0:
            raise ValueError(f"arm must be one with a probability above 0, got {arm!r}")
        kernel = ready(self.kernels.update)
        kernel(self._memory, self.rounds + 1, self._settings, chance, arm, reward)
        self.rounds += 1

    def play_bernoulli(self, means: FloatArray, uniforms: FloatArray) -> IntArray:
        """Play arms that pay 1 with fixed probabilities and else 0, in compiled code.

        Args:
            means: the probabilities, in [0, 1], (K,).
            uniforms: for every round two numbers in [0, 1): the arm's is as in :meth:`draw`, and
                it pays where the other is below its mean; (n, 2).

        Returns:
            The arms played, (n,). The bandit has learned what n calls of :meth:`update` would
            have taught it.

        Raises:
            ValueError: an array of another shape, or with numbers outside its range.
        """
        means = np.ascontiguousarray(means, np.float64)
        uniforms = np.ascontiguousarray(uniforms, np.float64)
        if means.shape != (self.num_arms,) or not np.all((means >= 0.0) & (means <= 1.0)):
            raise ValueError(f"means must be {self.num_arms} numbers in [0, 1], got {means!r}")
        if uniforms.ndim != 2 or uniforms.shape[1] != 2:
            raise ValueError(f"uniforms must have shape (n, 2), got {uniforms.shape}")
        if not np.all((uniforms >= 0.0) & (uniforms < 1.0)):
            raise ValueError(
                f"uniforms must lie in [0, 1), got {uniforms.min()!r} .. {uniforms.max()!r}"
            )
        arms = np.empty(len(uniforms), np.int64)
        probabilities, update = (ready(kernel) for kernel in self.kernels)
        memory, settings = self._memory, self._settings
        play = ready(_play_bernoulli)
        play(probabilities, update, memory, settings, self.rounds, means, uniforms, arms)
        self.rounds += len(arms)
        return arms


@compiled()
def pick(probabilities: FloatArray, uniform: float) -> int:
    """Return the arm at a number in [0, 1) on the line of probabilities laid end to end."""
    reached, last = 0.0, 0
    for arm in range(probabilities.size):
        if probabilities[arm] > 0.0:
            last = arm
            reached += probabilities[arm]
            if uniform < reached:
                break
    return last


@compiled()
def softmax(values: FloatArray, scale: float, out: FloatArray) -> None:
    """Write exp(scale * value) of all arms, divided by their sum, to ``out``; never overflows."""
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
    types.void(
        PROBABILITIES,
        UPDATE,
        _TABLE,
        _ROW,
        types.int64,
        _ROW,
        _TABLE,
        types.int64[::1],
    )
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
    """Play as many rounds as there are uniforms, from round ``rounds + 1`` on."""
    chances = np.empty(means.size)
    for k in range(arms.size):
        number = rounds + k + 1
        probabilities(memory, number, settings, chances)
        arm = pick(chances, uniforms[k, 0])
        reward = 1.0 if uniforms[k, 1] < means[arm] else 0.0
        update(memory, number, settings, chances[arm], arm, reward)
        arms[k] = arm
