"""``periodic``: half of the pages change nearly regularly, half at their hours of the day."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crawl_envs.instances.misspecified.instance import Misspecified, RevealedDelay
from crawl_envs.instances.misspecified.occurrences import Occurrences, in_pieces, signalled
from crawl_envs.types import FloatArray, Instance, IntArray

SHAPE_RANGE = (20.0, 50.0)
"""Of gamma gaps: their coefficients of variation lie between 0.22 and 0.14."""
DAY = 1.0
"""Length of a day in units of time. It is public, like the sun: policies may count on it."""
WINDOW = 0.2
"""Share of a day, about five hours, in which a page with hours changes. Which, is to be learned."""


@dataclass(frozen=True, eq=False)
class Periodic(RevealedDelay):
    """Changes by renewals that are nearly regular, or only at certain hours.

    Pages with a shape k change after gaps Gamma(k, 1 / (k Delta)), from the steady state: time 0
    lies anywhere in a gap, so that every page has a phase of its own. Pages with a shape of 0
    change as a Poisson process of rate Delta / WINDOW between their opening hour and WINDOW days
    later, every DAY, and never else. Signals are as told.

    Args:
        shape: of the gaps, >= 0, (m,).
        opening: hour at which the window opens, a share of a day in [0, 1), (m,).
    """

    shape: FloatArray
    opening: FloatArray

    def occurrences(self, told: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and signals in (0, horizon], as they happen and are sent."""
        regular = np.flatnonzero(self.shape > 0.0)
        hourly = np.flatnonzero(self.shape == 0.0)
        time, row = renewals(rng, told.change_rate[regular], self.shape[regular], horizon)
        day_time, day_row = in_windows(rng, told.change_rate[hourly], self.opening[hourly], horizon)
        changes = np.concatenate([time, day_time]), np.concatenate([regular[row], hourly[day_row]])
        return signalled(rng, changes, told.recall, told.false_signal_rate, horizon)


def gaps_at_once(rate: FloatArray, horizon: float) -> int:
    """Return how many gaps per page are drawn at once: seldom too few for the fastest page."""
    return math.ceil(1.1 * float(rate.max(initial=0.0)) * horizon) + 2


def renewals(
    rng: np.random.Generator, rate: FloatArray, shape: FloatArray, horizon: float
) -> tuple[FloatArray, IntArray]:
    """Draw stationary renewal processes with gamma gaps.

    The gap in which time 0 lies is length-biased, Gamma(k + 1, 1 / (k Delta)), and a uniform
    share of it is left (e.g. Cox, Renewal Theory, 1962, section 5.4).

    Args:
        rng: what is drawn from.
        rate: renewals per unit of time, (n,), >= 0.
        shape: k, (n,), > 0.
        horizon: renewals after it are left out.

    Returns:
        Times in (0, horizon], and their rows.
    """
    scale = np.divide(1.0, shape * rate, out=np.full(rate.shape, np.inf), where=rate > 0.0)
    times = ((1.0 - rng.random(rate.size)) * rng.standard_gamma(shape + 1.0) * scale)[:, None]
    columns = gaps_at_once(rate, horizon)
    while times[:, -1].min(initial=np.inf) <= horizon:
        gaps = rng.standard_gamma(shape[:, None], (rate.size, columns)) * scale[:, None]
        times = np.concatenate([times, times[:, -1:] + np.cumsum(gaps, axis=1)], axis=1)
    row, number = np.nonzero(times <= horizon)
    return times[row, number], row


def in_windows(
    rng: np.random.Generator, rate: FloatArray, opening: FloatArray, horizon: float
) -> tuple[FloatArray, IntArray]:
    """Draw Poisson processes that run in a window of every day only.

    Args:
        rng: what is drawn from.
        rate: mean over a day, (n,), >= 0.
        opening: when the window opens, as a share of the day in [0, 1), (n,).
        horizon: times lie in (0, horizon].

    Returns:
        Times, and their rows.
    """
    days = np.arange(-1, math.ceil(horizon / DAY))
    start = DAY * (days + opening[:, None])
    start, end = np.clip([start, start + DAY * WINDOW], 0.0, horizon).reshape(2, -1)
    time, piece = in_pieces(rng, start, end, np.repeat(rate / WINDOW, days.size))
    return time, piece // days.size


def periodic(pages: Instance, rng: np.random.Generator) -> Misspecified:
    """Draw shapes and hours; the rates and the quality of signals that are told hold.

    Half of the pages, rounded down, have hours, and the others shapes from U(SHAPE_RANGE).
    """
    hourly = rng.permutation(pages.num_pages) < pages.num_pages // 2
    shape = np.where(hourly, 0.0, rng.uniform(*SHAPE_RANGE, pages.num_pages))
    return Misspecified(pages, Periodic(shape, rng.random(pages.num_pages)))
