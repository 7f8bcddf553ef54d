"""``bursty``: changes come in short bursts between long quiet spells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.instance import HiddenLaw, Misspecified
from crawl_envs.instances.misspecified.occurrences import Occurrences, in_pieces, signalled
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.types import BoolArray, FloatArray, Instance, IntArray

BURST_LENGTH = 1.0
"""Mean length of a burst. One crawl per page and unit of time detects most bursts of this length,
so a detected change, or several signals, predict more changes. Shorter bursts would end undetected.
"""
BURST_SHARE = 0.1
"""Share of time in bursts; quiet spells have mean length 9."""
QUIET_FACTOR = 0.1
"""Change rate in quiet spells over the mean rate."""
BURST_FACTOR = (1.0 - (1.0 - BURST_SHARE) * QUIET_FACTOR) / BURST_SHARE
"""Change rate in bursts over the mean rate, 9.1: the long-run mean equals the revealed rate."""


@dataclass(frozen=True)
class Bursty(HiddenLaw):
    """Changes of a stationary two-state Markov-modulated Poisson process per page.

    Bursts and quiet spells have exponential lengths, with means BURST_LENGTH and
    BURST_LENGTH * (1 - BURST_SHARE) / BURST_SHARE. The number of changes in a time t has mean
    Delta t and, unlike a Poisson count, variance

        Delta t + 2 v (t / k - (1 - exp(-k t)) / k**2),

    with v = BURST_SHARE (1 - BURST_SHARE) ((BURST_FACTOR - QUIET_FACTOR) Delta)**2 the variance
    of the rate and k = 1 / (BURST_LENGTH (1 - BURST_SHARE)) the decay rate of its autocovariance.
    Signals have the revealed recall and false-signal rate.
    """

    def occurrences(self, pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and sent signals in (0, horizon]."""
        start, end, page, burst = spells(rng, pages.num_pages, horizon)
        rate = pages.change_rate[page] * np.where(burst, BURST_FACTOR, QUIET_FACTOR)
        time, piece = in_pieces(rng, start, end, rate)
        return signalled(rng, (time, page[piece]), pages.recall, pages.false_signal_rate, horizon)


def spells_at_once(horizon: float) -> int:
    """Return the even number of spells drawn per page at once, sufficient in most cases."""
    cycles = horizon * BURST_SHARE / BURST_LENGTH
    return 2 * (math.ceil(cycles + 4.0 * math.sqrt(cycles)) + 2)


def spells(
    rng: np.random.Generator, num_pages: int, horizon: float
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Draw bursts and quiet spells that cover (0, horizon] for every page.

    Returns:
        Starts, ends, pages, and burst flags, (k,) each.
    """
    first = rng.random(num_pages) < BURST_SHARE
    number = np.arange(spells_at_once(horizon))
    burst = first[:, None] ^ (number % 2 == 1)
    mean = np.where(burst, BURST_LENGTH, BURST_LENGTH * (1.0 - BURST_SHARE) / BURST_SHARE)
    ends = np.zeros((num_pages, 1))
    while ends[:, -1].min() < horizon:
        length = mean * rng.standard_exponential(mean.shape)
        ends = np.concatenate([ends, ends[:, -1:] + np.cumsum(length, axis=1)], axis=1)
    page, spell = np.nonzero(ends[:, :-1] < horizon)
    end = np.minimum(ends[page, spell + 1], horizon)
    return ends[page, spell], end, page, burst[page, spell % number.size]


def draw_bursty(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw pages with bursty changes; revealed rates and signal quality are true."""
    return Misspecified(draw_noisy(rng, num_pages, **more), Bursty())
