"""Crawl values, exact and tabulated.

Public modules: delays, kernels, lambert, promises, ranking, series, tables.
"""

from __future__ import annotations

from policies.values.functions import (
    cycle_freshness,
    cycle_length,
    effective_elapsed,
    fill,
    greedy,
    greedy_cis,
    greedy_cis_plus,
    greedy_ncis,
    greedy_ncis_approx,
    greedy_ncis_observed,
    harmonic,
)

__all__ = [
    "cycle_freshness",
    "cycle_length",
    "effective_elapsed",
    "fill",
    "greedy",
    "greedy_cis",
    "greedy_cis_plus",
    "greedy_ncis",
    "greedy_ncis_approx",
    "greedy_ncis_observed",
    "harmonic",
]
