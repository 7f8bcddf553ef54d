"""The policies of Kolobov et al., "Staying up to Date with Online Content Changes", section 4.

Pages of whose every change the tracker is told (complete observation) are crawled on shares of
their signals, all others at rates of their own. In the form of action ``rates`` these are the
paper's policies: Poisson crawls (eq. 3), and coins tossed for signals (eqs. 6 and 7). Where crawls
come slot by slot they are derandomised, with crawls spaced as evenly as slots allow, which costs
less: see :class:`policies.base.allocated.AllocatedPolicy`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.arguments import real
from policies import solvers
from policies.base.allocated import AllocatedPolicy, PageRates
from policies.solvers.allocation import Allocation


class SolvedPolicy(AllocatedPolicy):
    """Rates, and shares of signals, by a solver.

    Arguments and errors as for :class:`policies.base.allocated.AllocatedPolicy`.
    """

    needs = ("importance", "change_rate")

    @abstractmethod
    def solve(self, problem: Problem, bandwidth: float) -> Allocation:
        """The allocation of a problem with pages that matter and change."""

    def allocate(self, problem: Problem, bandwidth: float) -> PageRates:
        """What the solver finds; nothing where no page that matters changes."""
        assert problem.change_rate is not None
        nothing = np.zeros(problem.num_pages)
        if not np.any((problem.importance > 0.0) & (problem.change_rate > 0.0)):
            return PageRates(nothing, nothing)
        found = self.solve(problem, bandwidth)
        answered = found.probabilities
        return PageRates(found.rates, nothing if answered is None else answered)

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Crawls per unit of time of each page, answers to signals among them, (m,)."""
        return self.allocate(problem, bandwidth).rates


class HostCappedPolicy(SolvedPolicy):
    """Rates by a solver that can cap the crawls of every host.

    Args:
        env: as for :class:`policies.base.allocated.AllocatedPolicy`.
        host: the host of each page, whole numbers 0 .. H - 1, (m,); None for no caps.
        host_bandwidth: crawls per unit of time that each host bears, > 0, (H,) or a number for
            all; inf for no cap. They cap rates, expected crawls per unit of time: not every crawl.
        **planning: ``action_form`` and ``schedule``, as for the base class.

    Raises:
        ValueError: as for the base class; one of ``host`` and ``host_bandwidth`` without the
            other; when an episode starts, as for :func:`policies.solvers.host_caps`.
    """

    def __init__(
        self,
        env: Any = None,
        *,
        host: ArrayLike | None = None,
        host_bandwidth: ArrayLike | None = None,
        **planning: Any,
    ) -> None:
        super().__init__(env, **planning)
        if (host is None) != (host_bandwidth is None):
            raise ValueError(
                "host and host_bandwidth must be given together, got "
                f"host={host!r}, host_bandwidth={host_bandwidth!r}"
            )
        self.host, self.host_bandwidth = host, host_bandwidth

    def _politely(
        self,
        solver: Callable[..., Allocation],
        problem: Problem,
        bandwidth: float,
        **arguments: Any,
    ) -> Allocation:
        """What the solver finds within the caps."""
        assert problem.change_rate is not None
        pages = (problem.importance, problem.change_rate, bandwidth)
        if self.host is None or self.host_bandwidth is None:
            return solver(*pages, **arguments)
        return solvers.host_capped(solver, *pages, self.host, self.host_bandwidth, **arguments)


class LambdaCrawl(HostCappedPolicy):
    """LAMBDACRAWL: the least harmonic penalty at random instants (Algorithm 3).

    One price of a crawl decides over all pages (:func:`policies.solvers.harmonic`). The paper's
    name is LC; on pages without complete observation alone it is LAMBDACRAWL-INCOMLOBS
    (Algorithm 1), on pages with it LAMBDACRAWL-COMPLOBS (Algorithm 2).

    Arguments and errors as for :class:`HostCappedPolicy`.
    """

    def solve(self, problem: Problem, bandwidth: float) -> Allocation:
        """Optimal rates and shares of signals."""
        return self._politely(solvers.harmonic, problem, bandwidth, complete=problem.complete)


class LambdaCrawlApprox(SolvedPolicy):
    """LAMBDACRAWLAPPROX: pages without complete observation share in proportion to importance.

    That is optimal where importance is in proportion to change rates (Proposition 9). Change rates
    serve to split the bandwidth between the two kinds of pages, and to tell what answers to
    signals cost (:func:`policies.solvers.harmonic.approx`). It knows no hosts.

    Arguments and errors as for :class:`SolvedPolicy`.
    """

    def solve(self, problem: Problem, bandwidth: float) -> Allocation:
        """Rates in proportion to importance, and optimal shares of signals."""
        assert problem.change_rate is not None
        pages = (problem.importance, problem.change_rate, bandwidth)
        return solvers.harmonic_approx(*pages, complete=problem.complete)


class BinaryLambdaCrawl(HostCappedPolicy):
    """BinaryLambdaCrawl: the least binary penalty at random instants (Azar et al., Algorithm 1).

    It takes every page for one without complete observation, as in the paper's experiments, and
    gives many no crawl at all unless it is told a floor: BLC, and with a floor BLC-epsilon.

    Args:
        env: as for :class:`HostCappedPolicy`.
        floor: epsilon: the least rate of a page as a share, in [0, 1], of the even one,
            ``bandwidth / num_pages``.
        **polite: ``host``, ``host_bandwidth``, ``action_form`` and ``schedule``, likewise.

    Raises:
        ValueError: as for :class:`HostCappedPolicy`; a floor outside [0, 1].
    """

    def __init__(self, env: Any = None, *, floor: float = 0.0, **host_capped: Any) -> None:
        super().__init__(env, **host_capped)
        self.floor = real("floor", floor, least=0.0)
        if self.floor > 1.0:
            raise ValueError(f"floor must lie in [0, 1], got {floor!r}")

    def solve(self, problem: Problem, bandwidth: float) -> Allocation:
        """Optimal rates; no signal is answered."""
        return self._politely(solvers.binary_poisson, problem, bandwidth, floor=self.floor)
