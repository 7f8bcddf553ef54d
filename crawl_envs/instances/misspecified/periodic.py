"""``periodic``: half of the pages change nearly regularly, half at certain hours of the day."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.instance import HiddenLaw, Misspecified
from crawl_envs.instances.misspecified.occurrences import Occurrences, in_pieces, signalled
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.types import FloatArray, Instance, IntArray

SHAPE_RANGE = (20.0, 50.0)
"""Shapes of gamma gaps, with coefficients of variation between 0.22 and 0.14."""
DAY = 1.0
"""Length of a day in units of time, a public constant."""
WINDOW = 0.2
"""Share of a day, about five hours, in which an hourly page changes; its position is hidden."""


@dataclass(frozen=True, eq=False)
class Periodic(HiddenLaw):
    """Changes by nearly regular renewals, or only at certain hours.

    Pages with a shape k > 0 change by a stationary renewal process with gaps
    Gamma(k, 1 / (k Delta)), so that phases are random. Pages with a shape of 0 change by a Poisson
    process of rate Delta / WINDOW in a window of length WINDOW of every DAY. Signals have the
    revealed quality.

    Args:
        shape: shape of the gaps, >= 0, (m,).
        opening: start of the window as a share of a day, in [0, 1), (m,).
    """

    shape: FloatArray
    opening: FloatArray

    def occurrences(self, pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and sent signals in (0, horizon]."""
        regular = np.flatnonzero(self.shape > 0.0)
        hourly = np.flatnonzero(self.shape == 0.0)
        time, row = renewals(rng, pages.change_rate[regular], self.shape[regular], horizon)
        times, rows = in_windows(rng, pages.change_rate[hourly], self.opening[hourly], horizon)
        changes = np.concatenate([time, times]), np.concatenate([regular[row], hourly[rows]])
        return signalled(rng, changes, pages.recall, pages.false_signal_rate, horizon)


def gaps_at_once(rate: FloatArray, horizon: float) -> int:
    """Return the number of gaps drawn per page at once, sufficient in most cases."""
    return math.ceil(1.1 * float(rate.max(initial=0.0)) * horizon) + 2


def renewals(
    rng: np.random.Generator, rate: FloatArray, shape: FloatArray, horizon: float
) -> tuple[FloatArray, IntArray]:
    """Draw stationary renewal processes with gamma gaps.

    The gap that contains time 0 is length-biased, Gamma(k + 1, 1 / (k Delta)), and a uniform
    share of it remains (e.g. Cox, Renewal Theory, 1962, section 5.4).

    Args:
        rng: random generator.
        rate: renewals per unit time, >= 0, (n,).
        shape: k, > 0, (n,).
        horizon: end of the interval.

    Returns:
        Times in (0, horizon] and rows.
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
    """Draw Poisson processes restricted to a window of every day.

    Args:
        rng: random generator.
        rate: mean rate over a day, >= 0, (n,).
        opening: start of the window as a share of the day, in [0, 1), (n,).
        horizon: end of the interval.

    Returns:
        Times in (0, horizon] and rows.
    """
    days = np.arange(-1, math.ceil(horizon / DAY))
    start = DAY * (days + opening[:, None])
    start, end = np.clip([start, start + DAY * WINDOW], 0.0, horizon).reshape(2, -1)
    time, piece = in_pieces(rng, start, end, np.repeat(rate / WINDOW, days.size))
    return time, piece // days.size


def draw_periodic(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw pages, and their shapes and windows; revealed rates and signal quality are true.

    Half of the pages, rounded down, have windows, the others shapes from U(SHAPE_RANGE).
    """
    pages = draw_noisy(rng, num_pages, **more)
    hourly = rng.permutation(num_pages) < num_pages // 2
    shape = np.where(hourly, 0.0, rng.uniform(*SHAPE_RANGE, num_pages))
    return Misspecified(pages, Periodic(shape, rng.random(num_pages)))
