"""Optimal allocations of crawl rates, and the bounds that they are.

=====================  ==========================================================
here                   in the papers
=====================  ==========================================================
``importance``         mu; normalised to sum 1 inside (mu~)
``change_rate``        Delta
``rates``              xi (NCIS), rho (LambdaCrawl): crawls per unit time
``thresholds``         iota (NCIS): effective elapsed time at which to crawl
``evidence``           y = alpha iota: how much tells of a change, in nats
``multiplier``         Lambda: objective gained by one more crawl per unit time
=====================  ==========================================================
"""

from __future__ import annotations

from policies.solvers.allocation import Allocation
from policies.solvers.discrete import DiscreteValue, discrete
from policies.solvers.ncis import ncis
from policies.solvers.periodic import binary_periodic, periodic_freshness

__all__ = [
    "Allocation",
    "DiscreteValue",
    "binary_periodic",
    "discrete",
    "ncis",
    "periodic_freshness",
]
