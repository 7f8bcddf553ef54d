"""LambdaLearnAndCrawl: learn change rates while crawling at the optimal rates for them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import real
from policies import solvers
from policies.base.registry import registered
from policies.estimators.change_rates import fit_histories
from policies.estimators.histories import Histories
from policies.lambdacrawl.rate_learner import RateLearner
from policies.solvers import Allocation


@registered(paper="LambdaCrawl")
class LambdaLearnAndCrawl(RateLearner):
    """Estimates all change rates after every epoch, and crawls at the optimal rates for them.

    LAMBDALEARNANDCRAWL, Algorithm 4 of Kolobov et al. (2019). The first estimate is ``initial``. At
    the end of every epoch, change rates are estimated by maximum likelihood from crawls (eq. 10),
    or from the number of signals for pages with complete observation (eq. 11), both smoothed by
    pseudo-observations so that they are positive and finite. The next epoch uses the rates of
    :func:`policies.solvers.harmonic` for these estimates.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        window: S(n) of the paper; None converges for constant change rates (Proposition 8).
        bounds: (least, largest) estimate; None for none. The public code of the paper searches
            change rates of pages without complete observation in [.0005, 7] per day.
        **learning: ``epoch``, ``initial`` and ``smoothing``, as for the base class.

    Raises:
        ValueError: as for :class:`policies.lambdacrawl.rate_learner.RateLearner`; an argument out
            of its range.
    """

    def __init__(
        self,
        env: Any,
        *,
        window: float | None = None,
        bounds: tuple[float, float] | None = None,
        **learning: Any,
    ) -> None:
        super().__init__(env, window=window, **learning)
        self.bounds = range_of("bounds", bounds)

    def _fit(self, crawls: Histories, *, smoothing: float, start: FloatArray) -> FloatArray:
        return fit_histories(crawls, smoothing, *self.bounds, start).change_rate

    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        pages = (importance, self.change_rate, bandwidth)
        return solvers.harmonic(*pages, complete=self.complete)


@registered(paper="LambdaCrawl")
class LambdaLearnAndCrawlApprox(LambdaLearnAndCrawl):
    """The same with rates in proportion to importance on pages without complete observation.

    The approximation of Proposition 9: :func:`policies.solvers.harmonic_approx`. It needs the
    change rates of pages with complete observation, which are quickly estimated. It also learns
    those of the others, as the paper's public code does, but only to split the bandwidth between
    the two kinds. Arguments and errors as for :class:`LambdaLearnAndCrawl`.
    """

    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        pages = (importance, self.change_rate, bandwidth)
        return solvers.harmonic_approx(*pages, complete=self.complete)


@registered(paper="LambdaCrawl")
class LambdaLearnAndCrawlBinary(LambdaLearnAndCrawl):
    """The same for binary staleness with a floor: BLLC_eps of the paper's experiments.

    All pages are crawled as if none had complete observation, at the rates of
    :func:`policies.solvers.binary_poisson`, and in the form ``page`` all change rates are learned
    from crawls. In the form ``rates``, where a page with complete observation can be crawled only
    on its signals, it responds to the share of signals with the same expected number of crawls, or
    to all signals if these are fewer, which spends less than the budget; and it counts signals.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        floor: eps, the least rate as a share of R / m, in [0, 1]; .4 is that of the paper's code.
        **learning: as for :class:`LambdaLearnAndCrawl`.

    Raises:
        ValueError: as for :class:`LambdaLearnAndCrawl`; floor outside [0, 1].
    """

    def __init__(self, env: Any, *, floor: float = 0.4, **learning: Any) -> None:
        super().__init__(env, **learning)
        self.floor = real("floor", floor, least=0.0)
        if self.floor > 1.0:
            raise ValueError(f"floor must lie in [0, 1], got {floor!r}")

    def _responses(self, complete: BoolArray) -> BoolArray:
        return complete if self.action_form == "rates" else np.zeros_like(complete)

    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        return solvers.binary_poisson(importance, self.change_rate, bandwidth, floor=self.floor)


def range_of(name: str, bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return (least, largest); (0, inf) for None; ValueError unless 0 <= least < largest."""
    if bounds is None:
        return 0.0, math.inf
    try:
        least, largest = map(float, bounds)
    except (TypeError, ValueError):
        least, largest = math.nan, math.nan
    if not 0.0 <= least < largest:
        raise ValueError(
            f"{name} must be (least, largest) with 0 <= least < largest, got {bounds!r}"
        )
    return least, largest
