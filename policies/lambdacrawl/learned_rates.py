"""Policies that estimate change rates, in every epoch or once, and crawl at the optimal rates."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import one_of, quantity, share
from policies import solvers
from policies.base.registry import registered
from policies.estimators.change_rates import fit_histories
from policies.estimators.histories import Histories
from policies.estimators.moments import match_histories
from policies.lambdacrawl.rate_learner import ROUNDING, RateLearner, even
from policies.solvers import Allocation

Aim = Literal["harmonic", "binary"]


@registered(paper="LambdaCrawl")
class LambdaLearnAndCrawl(RateLearner):
    """Estimates all change rates after every epoch, and crawls at the optimal rates for them.

    LAMBDALEARNANDCRAWL, Algorithm 4 of Kolobov et al. (2019). The first estimate is ``initial``. At
    the end of every epoch, change rates are estimated by maximum likelihood from crawls (eq. 10),
    or from the number of signals for pages with complete observation (eq. 11), both smoothed by
    pseudo-observations so that they are positive and finite. The next epoch uses the rates of
    :func:`policies.solvers.harmonic` for these estimates.

    Args:
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
        *,
        window: float | None = None,
        bounds: tuple[float, float] | None = None,
        **learning: Any,
    ) -> None:
        super().__init__(window=window, **learning)
        self.bounds = range_of(bounds)

    def _fit(self, crawls: Histories, start: FloatArray) -> FloatArray:
        return fit_histories(crawls, self.smoothing, *self.bounds, start).change_rate

    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        pages = (importance, self.change_rate, bandwidth)
        return solvers.harmonic(*pages, complete=self.complete, cost=self.problem.cost)


@registered(paper="LambdaCrawl")
class LambdaLearnAndCrawlApprox(LambdaLearnAndCrawl):
    """LambdaLearnAndCrawl with rates in proportion to importance without complete observation.

    The approximation of Proposition 9: :func:`policies.solvers.harmonic_approx`. It needs the
    change rates of pages with complete observation, which are quickly estimated. It also learns the
    other change rates, as the paper's public code does, but only to split the bandwidth between the
    two kinds. Arguments and errors as for :class:`LambdaLearnAndCrawl`.
    """

    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        pages = (importance, self.change_rate, bandwidth)
        return solvers.harmonic_approx(*pages, complete=self.complete, cost=self.problem.cost)


@registered(paper="LambdaCrawl")
class LambdaLearnAndCrawlBinary(LambdaLearnAndCrawl):
    """LambdaLearnAndCrawl for binary staleness with a floor: BLLC_eps of the paper's experiments.

    All pages are crawled as if none had complete observation, at the rates of
    :func:`policies.solvers.binary_poisson`. In the form ``page`` all change rates are learned from
    crawls. In the form ``rates``, a page with complete observation can be crawled only on its
    signals: it responds to the share of signals with the same expected number of crawls, or to all
    signals if these are fewer, which spends less than the budget. There it counts signals.

    Args:
        floor: eps, the least rate as a share of R / m, in [0, 1]; .4 as in the paper's code.
        **learning: as for :class:`LambdaLearnAndCrawl`.

    Raises:
        ValueError: as for :class:`LambdaLearnAndCrawl`; floor outside [0, 1].
    """

    def __init__(self, *, floor: float = 0.4, **learning: Any) -> None:
        super().__init__(**learning)
        self.floor = share("floor", floor)

    def _responses(self, complete: BoolArray) -> BoolArray:
        return complete if self.form.action == "rates" else np.zeros_like(complete)

    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        pages = (importance, self.change_rate, bandwidth)
        return solvers.binary_poisson(*pages, floor=self.floor, cost=self.problem.cost)


@registered(paper="Learning to Crawl")
class ExploreThenCommit(RateLearner):
    r"""Crawls all pages at the same rate for a while, then at rates optimal under its estimates.

    After Upadhyay et al. (Learning to Crawl, AAAI 2020). For the time ``explore`` every page is
    crawled at the rate R / m. Then change rates are estimated once, by moment matching, or from
    signal counts for pages with complete observation, and the optimal rates for them are used to
    the end. The loss per unit of time is quadratic in the estimation errors, so that exploration
    of the order of sqrt(T) gives a regret of the order of sqrt(T).

    Smoothing is an addition: without it, a page where no crawl, or every crawl, found a change
    would have an estimate of 0, or of infinity, to the end.

    Args:
        explore: length of the exploration, in units of time, rounded up to full epochs; None for
            the square root of the horizon, both counted in epochs.
        objective: ``harmonic`` uses :func:`policies.solvers.harmonic`, ``binary``
            :func:`policies.solvers.binary_poisson`, which treats all pages as if none had complete
            observation.
        epoch: in the form ``page``, the time unit of exploration; in the form ``rates`` it is the
            environment's.
        initial: estimate of all change rates before any observation, > 0.
        smoothing: length of the pseudo-intervals, and number of pseudo-signals, > 0. A page not
            crawled during exploration has the rate ln(2) / smoothing.

    Raises:
        ValueError: as for :class:`policies.lambdacrawl.rate_learner.RateLearner`; an argument out
            of its range.
    """

    def __init__(
        self,
        *,
        explore: float | None = None,
        objective: Aim = "harmonic",
        epoch: float = 1.0,
        initial: float = 1.0,
        smoothing: float = 0.5,
    ) -> None:
        super().__init__(epoch=epoch, initial=initial, smoothing=smoothing)
        self.explore = None if explore is None else quantity("explore", explore, least=0.0)
        one_of("objective", objective, Aim)
        self.objective = objective

    def _responses(self, complete: BoolArray) -> BoolArray:
        counts = self.form.action == "rates" or self.objective == "harmonic"
        return complete if counts else np.zeros_like(complete)

    def _fit(self, crawls: Histories, start: FloatArray) -> FloatArray:
        return match_histories(crawls, self.smoothing).change_rate

    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        explore = self.explore
        if explore is None:
            explore = math.sqrt(self.horizon * self.epoch)
        if time - self.learned.since < explore * (1.0 - ROUNDING):
            return even(self.problem, bandwidth)
        self.learned.closed = True
        pages = (importance, self.change_rate, bandwidth)
        if self.objective == "binary":
            return solvers.binary_poisson(*pages, cost=self.problem.cost)
        return solvers.harmonic(*pages, complete=self.complete, cost=self.problem.cost)


def range_of(bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return (least, largest); (0, inf) for None; ValueError unless 0 <= least < largest."""
    try:
        low, high = (0.0, math.inf) if bounds is None else map(float, bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not 0.0 <= low < high:
        raise ValueError(
            f"bounds must be (least, largest) with 0 <= least < largest, got {bounds!r}"
        )
    return low, high
