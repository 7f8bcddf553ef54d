"""A schedule of evenly spaced crawls at the optimal rates without signals."""

from __future__ import annotations

from crawl_envs.types import FloatArray, Problem
from policies import solvers
from policies.base.allocated import AllocatedPolicy, even_rates
from policies.base.policy import PAGE_FORMS
from policies.base.registry import registered


@registered(paper="NCIS")
class LowDiscrepancy(AllocatedPolicy):
    """The optimal rates for evenly spaced crawls, without signals (NCIS, eq. 5).

    With its default schedule, it is the LDS of Busa-Fekete et al., section 6.4, after Algorithm 3
    of Azar et al. When the bandwidth changes, it solves for the new one and starts a new schedule.
    Crawls at random instants are not evenly spaced, so it does not act in the form ``rates``.
    """

    acts = PAGE_FORMS
    needs = ("importance", "change_rate")

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return the optimal rates of pages, (m,); equal ones where no page needs any crawl."""
        assert problem.change_rate is not None
        if not problem.importance.any():
            return even_rates(problem, bandwidth)
        pages = problem.importance, problem.change_rate, bandwidth
        rates = solvers.binary_periodic(*pages, cost=problem.cost).rates
        return rates if rates.any() else even_rates(problem, bandwidth)
