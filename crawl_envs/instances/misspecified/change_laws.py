"""Laws whose changes are not Poisson: ``bursty``, ``periodic`` and ``shifting``.

Signals follow the true recall and false-signal rates of the pages, which are revealed. So the
precision of signals shifts with the change rates of ``shifting``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.occurrences import (
    Misspecified,
    Occurrences,
    arrivals,
    in_pieces,
    members,
    signalled,
)
from crawl_envs.instances.misspecified.signal_laws import hosts_of
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.types import BoolArray, FloatArray, Instance, IntArray

BURST_LENGTH = 1.0
"""Mean length of a burst. One crawl per page and unit of time detects most bursts of this length,
so a detected change, or several signals, predict more changes. Shorter bursts would end undetected.
"""
BURST_SHARE = 0.1
"""Share of time in bursts."""
QUIET_LENGTH = BURST_LENGTH * (1.0 - BURST_SHARE) / BURST_SHARE
"""Mean length of a quiet spell, 9."""
QUIET_FACTOR = 0.1
"""Change rate in quiet spells, as a multiple of the mean rate."""
BURST_FACTOR = (1.0 - (1.0 - BURST_SHARE) * QUIET_FACTOR) / BURST_SHARE
"""Change rate in bursts over the mean rate, 9.1: the long-run mean equals the revealed rate."""

SHAPE_RANGE = (20.0, 50.0)
"""Shapes of gamma gaps, with coefficients of variation between 0.22 and 0.14."""
DAY = 1.0
"""Length of a day in units of time, a public constant."""
WINDOW = 0.2
"""Share of a day, about five hours, in which an hourly page changes; its position is hidden."""

SHIFT_RATE = 0.2
"""Rate at which a habit is redrawn: every five units of time on average. At one crawl per page and
unit of time a habit can be learned before it shifts, and the revealed rates are outdated for most
of an episode of length 20."""


def sums_past(horizon: float, first: FloatArray, gaps: Callable[[], FloatArray]) -> FloatArray:
    """Return rows of increasing times that start at ``first``, (n,), and end after the horizon.

    ``gaps`` draws the next gaps, (n, k), as often as needed.
    """
    times = first[:, None]
    while times[:, -1].min(initial=np.inf) <= horizon:
        times = np.concatenate([times, times[:, -1:] + np.cumsum(gaps(), axis=1)], axis=1)
    return times


# bursty


def spells_at_once(horizon: float) -> int:
    """Return how many spells to draw per page in one call: even, and mostly enough."""
    cycles = horizon * BURST_SHARE / BURST_LENGTH
    return 2 * (math.ceil(cycles + 4.0 * math.sqrt(cycles)) + 2)


def spells(
    rng: np.random.Generator, num_pages: int, horizon: float
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Draw starts, ends, pages and burst flags, (k,), of the spells that cover (0, horizon]."""
    first = rng.random(num_pages) < BURST_SHARE
    burst = first[:, None] ^ (np.arange(spells_at_once(horizon)) % 2 == 1)
    mean = np.where(burst, BURST_LENGTH, QUIET_LENGTH)
    times = sums_past(
        horizon, np.zeros(num_pages), lambda: mean * rng.standard_exponential(mean.shape)
    )
    page, spell = np.nonzero(times[:, :-1] < horizon)
    end = np.minimum(times[page, spell + 1], horizon)
    return times[page, spell], end, page, first[page] ^ (spell % 2 == 1)


def bursty(pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
    """Draw changes that alternate between bursts and quiet spells, for each page, and signals.

    Changes are a stationary two-state Markov-modulated Poisson process, with exponential lengths of
    bursts and quiet spells. Their number in a time t has mean Delta t and, unlike Poisson, variance

        Delta t + 2 v (t / k - (1 - exp(-k t)) / k**2),

    with v = BURST_SHARE (1 - BURST_SHARE) ((BURST_FACTOR - QUIET_FACTOR) Delta)**2 the variance of
    the rate and k = 1 / (BURST_LENGTH (1 - BURST_SHARE)) the decay rate of its autocovariance.
    """
    start, end, page, burst = spells(rng, pages.num_pages, horizon)
    rate = pages.change_rate[page] * np.where(burst, BURST_FACTOR, QUIET_FACTOR)
    time, piece = in_pieces(rng, start, end, rate)
    return signalled(rng, (time, page[piece]), pages, horizon)


def draw_bursty(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw an instance with bursty changes; the revealed rates and signal quality are true."""
    pages = draw_noisy(rng, num_pages, **more)
    return Misspecified(pages, partial(bursty, pages))


# periodic


def gaps_at_once(rate: FloatArray, horizon: float) -> int:
    """Return how many gaps between changes to draw per page in one call, which is mostly enough."""
    return math.ceil(1.1 * float(rate.max(initial=0.0)) * horizon) + 2


def renewals(
    rng: np.random.Generator, rate: FloatArray, shape: FloatArray, horizon: float
) -> tuple[FloatArray, IntArray]:
    """Draw changes with gamma-distributed gaps, Gamma(k, 1 / (k Delta)), from a stationary start.

    The gap that contains time 0 is length-biased, Gamma(k + 1, 1 / (k Delta)), and a uniform share
    of it remains (e.g. Cox, Renewal Theory, 1962, section 5.4). Return times in (0, horizon] and
    rows of ``rate``, Delta >= 0, and ``shape``, k > 0, (n,) both.
    """
    scale = np.divide(1.0, shape * rate, out=np.full(rate.shape, np.inf), where=rate > 0.0)
    first = (1.0 - rng.random(rate.size)) * rng.standard_gamma(shape + 1.0) * scale
    size = (rate.size, gaps_at_once(rate, horizon))
    times = sums_past(
        horizon, first, lambda: rng.standard_gamma(shape[:, None], size) * scale[:, None]
    )
    row, number = np.nonzero(times <= horizon)
    return times[row, number], row


def in_windows(
    rng: np.random.Generator, rate: FloatArray, opening: FloatArray, horizon: float
) -> tuple[FloatArray, IntArray]:
    """Draw Poisson events in a daily window, at a mean of ``rate``; return times and rows."""
    days = np.arange(-1, math.ceil(horizon / DAY))
    start = DAY * (days + opening[:, None])
    start, end = np.clip([start, start + DAY * WINDOW], 0.0, horizon).reshape(2, -1)
    time, piece = in_pieces(rng, start, end, np.repeat(rate / WINDOW, days.size))
    return time, piece // days.size


def periodic(
    pages: Instance,
    rng: np.random.Generator,
    horizon: float,
    *,
    shape: FloatArray,
    opening: FloatArray,
) -> Occurrences:
    """Draw changes with nearly regular gaps, or only at certain hours of the day, and signals.

    ``shape`` is the shape of a page's gamma gaps, (m,). Where it is 0, changes are a Poisson
    process of rate Delta / WINDOW in a window of every DAY, which begins at ``opening``, in [0, 1)
    of a day, (m,).
    """
    regular, hourly = np.flatnonzero(shape > 0.0), np.flatnonzero(shape == 0.0)
    time, row = renewals(rng, pages.change_rate[regular], shape[regular], horizon)
    times, rows = in_windows(rng, pages.change_rate[hourly], opening[hourly], horizon)
    changes = np.concatenate([time, times]), np.concatenate([regular[row], hourly[rows]])
    return signalled(rng, changes, pages, horizon)


def draw_periodic(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw an instance of pages with regular gaps or windows; revealed parameters are true.

    Half of the pages, rounded down, have windows, the others shapes of gaps from U(SHAPE_RANGE).
    """
    pages = draw_noisy(rng, num_pages, **more)
    hourly = rng.permutation(num_pages) < num_pages // 2
    shape = np.where(hourly, 0.0, rng.uniform(*SHAPE_RANGE, num_pages))
    opening = rng.random(num_pages)
    return Misspecified(pages, partial(periodic, pages, shape=shape, opening=opening))


# shifting


def spans(
    rng: np.random.Generator, first_rate: FloatArray, horizon: float
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Draw when each habit's rate is redrawn: spans of constant rate, which cover (0, horizon].

    ``first_rate`` are the rates at time 0, (n,). Return starts, ends, habits and rates, (k,) each,
    sorted by habit and time.
    """
    count = first_rate.size
    time, shifted = arrivals(rng, np.full(count, SHIFT_RATE), horizon)
    start = np.concatenate([np.zeros(count), time])
    habit = np.concatenate([np.arange(count), shifted])
    rate = np.concatenate([first_rate, rng.random(time.size)])
    order = np.lexsort((start, habit))
    start = start[order]
    end = np.append(start[1:], 0.0)
    end[end == 0.0] = horizon  # the next span is the first of another habit
    return start, end, habit[order], rate[order]


def shifting(
    pages: Instance, rng: np.random.Generator, horizon: float, *, habit: IntArray
) -> Occurrences:
    """Draw changes at rates called habits, which are redrawn from U(0, 1) at Poisson times.

    Pages may share a habit. At time 0 it is the change rate of its first page; its mean at time t
    is exp(-SHIFT_RATE t) times this rate plus (1 - exp(-SHIFT_RATE t)) / 2. A page changes by a
    Poisson process at its habit. ``habit`` has the number of each page's habit, from 0 without
    gaps, (m,).
    """
    _, first = np.unique(habit, return_index=True)
    start, end, of_habit, rate = spans(rng, pages.change_rate[first], horizon)
    page, span = members(of_habit, habit)
    time, piece = in_pieces(rng, start[span], end[span], rate[span])
    return signalled(rng, (time, page[piece]), pages, horizon)


def draw_shifting(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw an instance whose pages change at habits: rates that hosts or pages redraw in time.

    A random half of the hosts, rounded up, shares habits; a shared habit starts at the rate of the
    host's first page. Revealed change rates are true at time 0 only; recall and false-signal rate
    are constant. Hosts are public (``problem.group``); the sharing of habits is hidden.
    """
    pages, host = draw_noisy(rng, num_pages, **more), hosts_of(num_pages)
    hosts = int(host[-1]) + 1
    together = rng.permutation(hosts) < (hosts + 1) // 2
    named = np.where(together[host], num_pages + host, np.arange(num_pages))
    _, first, habit = np.unique(named, return_index=True, return_inverse=True)
    change_rate = pages.change_rate[first[habit]]
    law = partial(shifting, pages, habit=habit)
    return Misspecified(pages, law, change_rate=change_rate, group=host)
