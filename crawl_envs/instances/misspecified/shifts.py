"""``shifting``: how often pages change is redrawn now and then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawl_envs.instances.misspecified.hosts import hosts_of
from crawl_envs.instances.misspecified.instance import Misspecified, RevealedDelay
from crawl_envs.instances.misspecified.occurrences import (
    Occurrences,
    arrivals,
    blocks,
    in_pieces,
    signalled,
)
from crawl_envs.types import FloatArray, Instance, IntArray

SHIFT_RATE = 0.2
"""Of a habit: it is redrawn once in five units of time on average. With a crawl per page and unit
of time a habit can be learned before it shifts, and what is told is stale for most of an episode
of 20."""


@dataclass(frozen=True, eq=False)
class Shifting(RevealedDelay):
    """Pages follow habits: rates of changes that are redrawn from U(0, 1) at Poisson times.

    At time 0 a habit is what is told of its pages; t later it is expected to be
    exp(-SHIFT_RATE t) times that plus (1 - exp(-SHIFT_RATE t)) / 2. Given its habit a page changes
    as a Poisson process. Recall and false signals are as told throughout, so that the precision
    of signals shifts with the habits.

    Args:
        habit: which habit each page follows, (m,), from 0 without gaps.
    """

    habit: IntArray

    def occurrences(self, told: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and signals in (0, horizon], as they happen and are sent."""
        _, first = np.unique(self.habit, return_index=True)
        start, end, habit, rate = spans(rng, told.change_rate[first], horizon)
        count = np.bincount(habit)
        begin = np.cumsum(count) - count
        page, span = blocks(begin[self.habit], count[self.habit])
        time, piece = in_pieces(rng, start[span], end[span], rate[span])
        return signalled(rng, (time, page[piece]), told.recall, told.false_signal_rate, horizon)


def spans(
    rng: np.random.Generator, first_rate: FloatArray, horizon: float
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Draw the times between shifts, of every habit.

    Args:
        rng: what is drawn from.
        first_rate: rate of each habit at time 0, (n,).
        horizon: spans cover (0, horizon].

    Returns:
        Starts, ends, habits and rates, (k,) each, by habit and in order of time.
    """
    count = first_rate.size
    time, shifted = arrivals(rng, np.full(count, SHIFT_RATE), horizon)
    start = np.concatenate([np.zeros(count), time])
    habit = np.concatenate([np.arange(count), shifted])
    rate = np.concatenate([first_rate, rng.random(time.size)])
    order = np.lexsort((start, habit))
    start, habit, rate = start[order], habit[order], rate[order]
    end = np.full(start.size, horizon)
    follows = np.flatnonzero(habit[1:] == habit[:-1])
    end[follows] = start[follows + 1]
    return start, end, habit, rate


def shifting(pages: Instance, rng: np.random.Generator) -> Misspecified:
    """Give pages their habits: those of half of the hosts share one, the others have their own.

    Which hosts, rounded up, is drawn. A shared habit begins as that of the host's first page. What
    is told of changes is true at time 0 only; recall and false signals stay. The hosts are told to
    everybody (``problem.group``), but not which of them share a habit.
    """
    host = hosts_of(pages.num_pages)
    hosts = int(host[-1]) + 1
    together = rng.permutation(hosts) < (hosts + 1) // 2
    named = np.where(together[host], pages.num_pages + host, np.arange(pages.num_pages))
    _, first, habit = np.unique(named, return_index=True, return_inverse=True)
    return Misspecified(
        pages, Shifting(habit), change_rate=pages.change_rate[first[habit]], group=host
    )
