"""Optimal allocations of crawl rates; their objectives bound those of policies.

=====================  ==========================================================
here                   in the papers
=====================  ==========================================================
``importance``         mu; normalised to sum 1 inside (mu~)
``change_rate``        Delta
``rates``              xi (NCIS), rho (LambdaCrawl): crawls per unit time
``thresholds``         iota (NCIS): effective elapsed time at which to crawl
``evidence``           y = alpha iota, in nats: exp(-y) is P(fresh)
``probabilities``      p (LambdaCrawl): probability of a crawl on a signal
``multiplier``         Lambda, lambda: gain of one more crawl per unit time
=====================  ==========================================================

Public module: allocation.
"""

from __future__ import annotations

from policies.solvers.allocation import Allocation
from policies.solvers.binary.periodic import binary_periodic, periodic_freshness
from policies.solvers.binary.random_crawls import binary_discrete, binary_poisson
from policies.solvers.exact import DiscreteValue, discrete
from policies.solvers.fragments import fragments, periods_at
from policies.solvers.harmonic_penalty.approx import harmonic_approx
from policies.solvers.harmonic_penalty.costs import binary_cost, harmonic_cost
from policies.solvers.harmonic_penalty.lambdacrawl import harmonic
from policies.solvers.harmonic_penalty.periodic import harmonic_periodic, harmonic_periodic_cost
from policies.solvers.host_caps import host_capped
from policies.solvers.noisy_signals.theorem1 import ncis

__all__ = [
    "Allocation",
    "DiscreteValue",
    "binary_cost",
    "binary_discrete",
    "binary_periodic",
    "binary_poisson",
    "discrete",
    "fragments",
    "harmonic",
    "harmonic_approx",
    "harmonic_cost",
    "harmonic_periodic",
    "harmonic_periodic_cost",
    "host_capped",
    "ncis",
    "periodic_freshness",
    "periods_at",
]
