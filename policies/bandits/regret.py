"""Regret of bandits on arms with Bernoulli rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import whole
from policies.bandits.bandit import Bandit

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

    It is the sum over rounds of the largest mean minus that of the arm played: the regret of Han
    et al. (2020), eq. 1, without the noise of the rewards. All horizons are read along one run, so
    a bandit tuned to a horizon needs a call for that horizon alone.

    Args:
        make: returns a new bandit.
        means: probabilities of the reward 1, in [0, 1], (K,).
        horizons: rounds after which regret is read, rising whole numbers >= 1.
        runs: independent runs, a whole number >= 1.
        seed: seed of all draws.

    Returns:
        Regret >= 0, (runs, number of horizons).
    """
    ends = [whole("horizons", horizon, 1) for horizon in horizons]
    if not ends or any(later <= earlier for earlier, later in pairwise(ends)):
        raise ValueError(f"horizons must be rising whole numbers, got {horizons!r}")
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
