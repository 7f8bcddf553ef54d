"""The crawl conditions of pages, and tolerances, for the solver of Theorem 1.

The solver's pages have arrays (k,): ``importance`` (as shares of all), ``change_rate``, ``alpha``
and ``signal_rate`` (of informative signals). Their ``state``, (k, 3), is the start of each page's
search, with its cycle length last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray

SAME = 1e-12
"""Relative difference of rates that count as equal."""


class Levels(NamedTuple):
    """Crawl conditions of pages, arrays of shape (k,); see :class:`policies.solvers.Allocation`.

    ``signals`` are those of one source.
    """

    thresholds: FloatArray
    evidence: FloatArray
    probabilities: FloatArray
    signals: FloatArray


def evidence_margin(level: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return the tolerance of evidence around a level, (k,), within which it equals the level.

    It covers rounding, and is less than a quarter of the least ``evidence`` of a signal, (S, k).
    """
    least = np.where(evidence > 0.0, evidence, np.inf).min(axis=0)
    margin: FloatArray = np.minimum(1e-6 * level, 0.25 * least)
    return margin
