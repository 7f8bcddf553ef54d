"""Optimal crawl rates of pages; their objectives bound those of policies.

=====================  ==========================================================
here                   in the papers
=====================  ==========================================================
``importance``         mu; normalised to sum 1 inside (mu~)
``change_rate``        Delta
``rates``              xi (NCIS), rho (LambdaCrawl): crawls per unit time
``thresholds``         iota (NCIS): effective elapsed time at which to crawl
``evidence``           y = alpha iota, in nats: exp(-y) is P(fresh)
``probabilities``      p (LambdaCrawl): probability of a crawl on a signal
``multiplier``         Lambda, lambda: gain of one more unit of cost per time
``cost``               of a crawl, 1 in the papers: c
=====================  ==========================================================

Public modules: allocation, concave_penalties, multiplier.
"""

from __future__ import annotations

from policies.solvers.allocation import Allocation
from policies.solvers.binary_periodic import binary_periodic, periodic_freshness
from policies.solvers.binary_random import binary_discrete, binary_poisson
from policies.solvers.concave_penalties import concave_penalty, concave_penalty_cost
from policies.solvers.costs import binary_cost, harmonic_cost
from policies.solvers.fragments import fragments
from policies.solvers.harmonic_periodic import harmonic_periodic, harmonic_periodic_cost
from policies.solvers.lambdacrawl import harmonic, harmonic_approx
from policies.solvers.noisy_signals.theorem1 import ncis

__all__ = [
    "Allocation",
    "binary_cost",
    "binary_discrete",
    "binary_periodic",
    "binary_poisson",
    "concave_penalty",
    "concave_penalty_cost",
    "fragments",
    "harmonic",
    "harmonic_approx",
    "harmonic_cost",
    "harmonic_periodic",
    "harmonic_periodic_cost",
    "ncis",
    "periodic_freshness",
]
