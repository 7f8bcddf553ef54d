"""Explore, then commit: estimate change rates for a while, then crawl at the optimal rates."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import quantity
from policies import solvers
from policies.base.registry import registered
from policies.estimators.histories import Histories
from policies.estimators.moments import match_histories
from policies.lambdacrawl.rate_learner import ROUNDING, RateLearner, even
from policies.solvers import Allocation

Aim = Literal["harmonic", "binary"]


@registered(paper="Learning to Crawl")
class ExploreThenCommit(RateLearner):
    r"""Crawls all pages at the same rate for a while, then at rates optimal under its estimates.

    After Upadhyay et al. (Learning to Crawl, AAAI 2020). For the time ``explore`` every page is
    crawled at the rate R / m. Then change rates are estimated once, by moment matching, or from
    signal counts for pages with complete observation, and the optimal rates for them are used to
    the end. The loss per unit of time is quadratic in the estimation errors, so that exploration
    of the order of sqrt(T) gives a regret of the order of sqrt(T).

    Smoothing is ours: without it, a page where no crawl, or every crawl, saw a change would have an
    estimate of 0, or of infinity, to the end.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        explore: length of the exploration, in units of time, rounded up to whole epochs; None for
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
        env: Any,
        *,
        explore: float | None = None,
        objective: Aim = "harmonic",
        epoch: float = 1.0,
        initial: float = 1.0,
        smoothing: float = 0.5,
    ) -> None:
        super().__init__(env, epoch=epoch, initial=initial, smoothing=smoothing)
        self.explore = None if explore is None else quantity("explore", explore, least=0.0)
        if objective not in get_args(Aim):
            raise ValueError(f"objective must be one of {get_args(Aim)}, got {objective!r}")
        self.objective = objective

    def _responses(self, complete: BoolArray) -> BoolArray:
        counts = self.action_form == "rates" or self.objective == "harmonic"
        return complete if counts else np.zeros_like(complete)

    def _fit(self, crawls: Histories, *, smoothing: float, start: FloatArray) -> FloatArray:
        return match_histories(crawls, smoothing).change_rate

    def _allocate(self, importance: FloatArray, bandwidth: float, time: float) -> Allocation:
        explore = self.explore
        if explore is None:
            explore = math.sqrt(self.horizon * self.epoch)
        if time - self.learned.since < explore * (1.0 - ROUNDING):
            return even(importance.size, bandwidth)
        self.learned.closed = True
        pages = (importance, self.change_rate, bandwidth)
        if self.objective == "binary":
            return solvers.binary_poisson(*pages)
        return solvers.harmonic(*pages, complete=self.complete)
