"""``shifting``: change rates are redrawn at random times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.instance import HiddenLaw, Misspecified, hosts_of
from crawl_envs.instances.misspecified.occurrences import (
    Occurrences,
    arrivals,
    blocks,
    in_pieces,
    signalled,
)
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.types import FloatArray, Instance, IntArray

SHIFT_RATE = 0.2
"""Rate at which a habit is redrawn: every five units of time on average. At one crawl per page and
unit of time a habit can be learned before it shifts, and the revealed rates are outdated for most
of an episode of length 20."""


@dataclass(frozen=True, eq=False)
class Shifting(HiddenLaw):
    """Habits, change rates shared by pages, that are redrawn from U(0, 1) at Poisson times.

    At time 0 a habit is the revealed change rate of its pages; its expectation at time t is
    exp(-SHIFT_RATE t) times that plus (1 - exp(-SHIFT_RATE t)) / 2. Given its habit, a page changes
    by a Poisson process. Recall and false-signal rate are the revealed ones, so the precision of
    signals shifts with the habits.

    Args:
        habit: habit of each page, numbered from 0 without gaps, (m,).
    """

    habit: IntArray

    def occurrences(self, pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and sent signals in (0, horizon]."""
        _, first = np.unique(self.habit, return_index=True)
        start, end, habit, rate = spans(rng, pages.change_rate[first], horizon)
        count = np.bincount(habit)
        begin = np.cumsum(count) - count
        page, span = blocks(begin[self.habit], count[self.habit])
        time, piece = in_pieces(rng, start[span], end[span], rate[span])
        return signalled(rng, (time, page[piece]), pages.recall, pages.false_signal_rate, horizon)


def spans(
    rng: np.random.Generator, first_rate: FloatArray, horizon: float
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Draw the spans of constant rate of every habit, which cover (0, horizon].

    Args:
        rng: random generator.
        first_rate: rate of each habit at time 0, (n,).
        horizon: end of the last spans.

    Returns:
        Starts, ends, habits and rates, (k,) each, sorted by habit and time.
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


def draw_shifting(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw pages and habits: one per host for half of the hosts, one per page for the others.

    A random half of the hosts, rounded up, shares habits; a shared habit starts at the rate of the
    host's first page. Revealed change rates are true at time 0 only; recall and false-signal rate
    are constant. Hosts are public (``problem.group``); the sharing of habits is hidden.
    """
    pages, host = draw_noisy(rng, num_pages, **more), hosts_of(num_pages)
    hosts = int(host[-1]) + 1
    together = rng.permutation(hosts) < (hosts + 1) // 2
    named = np.where(together[host], num_pages + host, np.arange(num_pages))
    _, first, habit = np.unique(named, return_index=True, return_inverse=True)
    return Misspecified(
        pages, Shifting(habit), change_rate=pages.change_rate[first[habit]], group=host
    )
