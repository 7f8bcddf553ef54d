"""``bursty``: pages are quiet almost always, and change many times when they do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crawl_envs.instances.misspecified.instance import Misspecified, RevealedDelay
from crawl_envs.instances.misspecified.occurrences import Occurrences, in_pieces, signalled
from crawl_envs.types import BoolArray, FloatArray, Instance, IntArray

BURST_LENGTH = 1.0
"""Mean length of a burst. A crawl per page and unit of time then meets most bursts, and a change
that was found, or a crowd of signals, says that more are coming: shorter bursts would be over
before they were found."""
BURST_SHARE = 0.1
"""Share of the time that a page is in a burst; quiet spells last 9 units on average."""
QUIET_FACTOR = 0.1
"""Rate of changes in quiet spells, by the mean rate."""
BURST_FACTOR = (1.0 - (1.0 - BURST_SHARE) * QUIET_FACTOR) / BURST_SHARE
"""Rate of changes in a burst, by the mean rate, 9.1: so that the long-run mean is as told."""


@dataclass(frozen=True)
class Bursty(RevealedDelay):
    """Changes of a two-state modulated Poisson process per page, each in its steady state.

    Spells in a burst and out of it are exponential, of means BURST_LENGTH and
    BURST_LENGTH * (1 - BURST_SHARE) / BURST_SHARE. The count of changes in a time t has the mean
    Delta t and, unlike a Poisson count, the variance

        Delta t + 2 v (t / k - (1 - exp(-k t)) / k**2),

    with v = BURST_SHARE (1 - BURST_SHARE) ((BURST_FACTOR - QUIET_FACTOR) Delta)**2 the variance
    of the rate and k = 1 / (BURST_LENGTH (1 - BURST_SHARE)) at which it is forgotten. Signals tell
    of each change with the recall, and false ones are Poisson, as told.
    """

    def occurrences(self, told: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and signals in (0, horizon], as they happen and are sent."""
        start, end, page, burst = spells(rng, told.num_pages, horizon)
        rate = told.change_rate[page] * np.where(burst, BURST_FACTOR, QUIET_FACTOR)
        time, piece = in_pieces(rng, start, end, rate)
        return signalled(rng, (time, page[piece]), told.recall, told.false_signal_rate, horizon)


def spells_at_once(horizon: float) -> int:
    """Return how many spells per page are drawn at once, an even number, seldom too few."""
    cycles = horizon * BURST_SHARE / BURST_LENGTH
    return 2 * (math.ceil(cycles + 4.0 * math.sqrt(cycles)) + 2)


def spells(
    rng: np.random.Generator, num_pages: int, horizon: float
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Draw spells in and out of bursts that cover (0, horizon] for every page.

    Returns:
        Starts, ends, pages and whether it is a burst, (k,) each.
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


def bursty(pages: Instance, rng: np.random.Generator) -> Misspecified:
    """Let the pages change in bursts; the rates and the quality of signals that are told hold."""
    return Misspecified(pages, Bursty())
