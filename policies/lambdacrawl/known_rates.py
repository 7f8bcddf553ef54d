"""Optimal rates for revealed change rates: LambdaCrawl and variants (Kolobov et al., section 4).

Pages whose every change sends a signal (complete observation) are crawled at shares of their
signals, all others at crawl rates ("Staying up to Date with Online Content Changes"). In the form
of action ``rates`` these are the paper's policies: Poisson crawls (eq. 3), and a random response to
each signal (eqs. 6 and 7). In the forms that name pages they have no randomness and crawls as even
as slots allow, at a lower cost: see :class:`policies.base.allocated.AllocatedPolicy`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.arguments import share
from policies import solvers
from policies.base.allocated import AllocatedPolicy, PageRates
from policies.base.registry import registered
from policies.solvers.allocation import Allocation
from policies.solvers.concave_penalties import Penalty


class SolvedPolicy(AllocatedPolicy):
    """Crawls, and responds to signals, at the rates and probabilities that a solver returns."""

    needs = ("importance", "change_rate")

    @abstractmethod
    def solve(self, problem: Problem, bandwidth: float) -> Allocation:
        """Return the solver's allocation; some page has importance and change rate > 0."""

    def allocate(self, problem: Problem, bandwidth: float) -> PageRates:
        """Return the solver's rates and probabilities; 0 where no important page changes."""
        assert problem.change_rate is not None
        nothing = np.zeros(problem.num_pages)
        if not np.any((problem.importance > 0.0) & (problem.change_rate > 0.0)):
            return PageRates(nothing, nothing)
        allocation = self.solve(problem, bandwidth)
        answered = allocation.probabilities
        return PageRates(allocation.rates, nothing if answered is None else answered)

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return each page's crawls per unit of time, (m,), responses to signals included."""
        return self.allocate(problem, bandwidth).rates


@registered(paper="LambdaCrawl")
class LambdaCrawl(SolvedPolicy):
    """LAMBDACRAWL: the least harmonic penalty at random instants (Algorithm 3).

    All pages share one multiplier (:func:`policies.solvers.harmonic`). The paper's abbreviation is
    LC; it is LAMBDACRAWL-INCOMLOBS (Algorithm 1) if no page has complete observation, and
    LAMBDACRAWL-COMPLOBS (Algorithm 2) if all have.

    Args:
        penalty: penalty of missed changes, a table or a function as in
            :func:`policies.solvers.concave_penalty`; None for the harmonic one.
        **settings: as for :class:`policies.base.allocated.AllocatedPolicy`.

    Raises:
        ValueError: as for the base class; when an episode starts, as for
            :func:`policies.solvers.concave_penalty`.
    """

    def __init__(self, *, penalty: Penalty | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.penalty = penalty

    def solve(self, problem: Problem, bandwidth: float) -> Allocation:
        """Return the rates and response probabilities with the least mean penalty."""
        assert problem.change_rate is not None
        pages = (problem.importance, problem.change_rate, bandwidth)
        if self.penalty is None:
            return solvers.harmonic(*pages, complete=problem.complete, cost=problem.cost)
        return solvers.concave_penalty(*pages, self.penalty, problem.complete, problem.cost)


@registered(paper="LambdaCrawl")
class LambdaCrawlApprox(SolvedPolicy):
    """LAMBDACRAWLAPPROX: rates in proportion to importance on pages without complete observation.

    That is optimal where importance is in proportion to change rates (Proposition 9). Change rates
    only split the bandwidth between the two kinds of pages, and give the number of signal
    responses (:func:`policies.solvers.harmonic_approx`).
    """

    def solve(self, problem: Problem, bandwidth: float) -> Allocation:
        """Return rates in proportion to importance, and optimal response probabilities."""
        assert problem.change_rate is not None
        pages = (problem.importance, problem.change_rate, bandwidth)
        return solvers.harmonic_approx(*pages, complete=problem.complete, cost=problem.cost)


@registered(paper="LambdaCrawl")
class BinaryLambdaCrawl(SolvedPolicy):
    """BinaryLambdaCrawl: the least binary penalty at random instants (Azar et al., Algorithm 1).

    It treats every page as one without complete observation, as in the paper's experiments. Many
    pages get no crawl unless there is a floor: BLC, and with a floor BLC-epsilon.

    Args:
        floor: epsilon, the least rate of a page as a share of the uniform rate, in [0, 1].
        **settings: as for :class:`policies.base.allocated.AllocatedPolicy`.
    """

    def __init__(self, *, floor: float = 0.0, **settings: Any) -> None:
        super().__init__(**settings)
        self.floor = share("floor", floor)

    def solve(self, problem: Problem, bandwidth: float) -> Allocation:
        """Return the rates with the least binary penalty, without signal responses."""
        assert problem.change_rate is not None
        pages = (problem.importance, problem.change_rate, bandwidth)
        return solvers.binary_poisson(*pages, floor=self.floor, cost=problem.cost)
