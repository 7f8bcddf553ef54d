"""The budget of actions that are crawl rates for an epoch, instead of pages to crawl.

It limits the declared spending: the sum of the crawl rates and, for pages with complete
observation, of the probabilities times the tracker's estimated change rates, each times the cost of
a crawl. The actual spending is random and depends on the truth; a token bucket can cap it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.sim.clock import clock_rows, crawls_between
from crawl_envs.sim.state import State
from crawl_envs.types import BoolArray, FloatArray, Instance, Reveal
from crawl_envs.types.arguments import one_of, per_page, real, whole
from crawl_envs.types.compiled_policies import CompiledRates

Overspend: TypeAlias = Literal["scale", "error"]
MAX_CRAWLS = 1e8
"""Largest mean number of crawls of an epoch, and of a compiled episode; their log takes 5 GB."""

SPEND_ROUNDING = 1e-9
"""Rounding tolerance of the declared spending, as a share of the budget."""


def within_budget(
    action: FloatArray,
    complete: BoolArray,
    change_rate: FloatArray,
    bandwidth: ArrayLike,
    overspend: Overspend,
    cost: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return actions cut to their budgets of crawls per unit of time, and their expected spending.

    An action is a crawl rate or, where ``complete``, a probability at changes, whose estimated
    rates are ``change_rate``. Arrays are (m,) or, for several lanes, (N, m), with a bandwidth or
    (N,). ``cost`` is that of a crawl of each page, None for 1. ``scale`` clips probabilities to 1,
    and scales an action that spends too much down to the budget, all pages by the same factor.

    Raises:
        ValueError: with ``error``, a probability above 1, or an action that spends too much; in any
            case, rates whose sum is not finite.
    """
    spending = action
    if complete.any():
        if np.any(too_high := complete & (action > 1.0)):
            if overspend == "error":
                raise ValueError(
                    "action must be a probability in [0, 1] where every change is signalled, got "
                    f"{action[too_high].max()}"
                )
            action = np.where(too_high, 1.0, action)
        spending = np.where(complete, action * change_rate, action)
    if cost is not None:
        spending = spending * cost
    with np.errstate(over="ignore"):
        spent = np.asarray(np.sum(spending, axis=-1))
    if not np.all(np.isfinite(spent)):
        raise ValueError(f"action must have a finite sum, got rates up to {action.max():g}")
    budget = np.broadcast_to(np.asarray(bandwidth, np.float64), spent.shape)
    over = spent > budget * (1.0 + SPEND_ROUNDING)
    if not over.any():
        return action, spent
    if overspend == "error":
        raise ValueError(
            f"action must spend at most the bandwidth {budget[over][0]:g} per unit of time, "
            f"got {spent[over][0]:g}"
        )
    factor = np.divide(budget, spent, out=np.ones_like(spent), where=over)
    return action * factor[..., None], np.where(over, budget, spent)


class RateBudget:
    """The budgets of N lanes whose actions are crawl rates, and their estimated change rates.

    Args:
        num_lanes: number of lanes, N.
        num_pages: number of pages, m.
        epoch: length of an epoch, > 0.
        reveal: known part of the instance; with ``parameters`` the declared spending is computed
            from true change rates.
        overspend: of :func:`within_budget`.
        bucket: size of a token bucket, in crawls of cost 1, >= 1. It starts full and is refilled at
            the bandwidth; a crawl that costs more is denied. None for no limit.
        costs: whether crawls have costs.

    Raises:
        ValueError: an argument outside its range.
    """

    def __init__(
        self,
        num_lanes: int,
        num_pages: int,
        epoch: float,
        reveal: Reveal,
        overspend: Overspend = "scale",
        bucket: float | None = None,
        costs: bool = False,
    ) -> None:
        one_of("overspend", overspend, Overspend)
        self.epoch, self.reveal, self.overspend = epoch, reveal, overspend
        self.bucket = None if bucket is None else real("bucket", bucket, least=1.0)
        shape = (num_lanes, num_pages)
        self.signals, self.complete = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        self.change_rate, self.declared = np.zeros(shape), dict[int, FloatArray]()
        self.steady = np.zeros(num_lanes)
        self.cost = np.ones(shape) if costs else None

    def check(self, instance: Instance) -> None:
        """Raise ValueError if an epoch would have too many crawls, or the bucket is too small."""
        cost = np.ones(1) if instance.cost is None else instance.cost
        if self.bucket is not None and self.bucket < cost.max():
            raise ValueError(
                f"bucket must be at least the largest cost of a crawl, {cost.max():g}, got "
                f"{self.bucket:g}"
            )
        steps = (rate for _, rate in instance.bandwidth_steps)
        crawls = max(instance.bandwidth, *steps, 0.0) * self.epoch / float(cost.min())
        if crawls > MAX_CRAWLS:
            raise ValueError(
                f"bandwidth must give at most {MAX_CRAWLS:g} crawls in an epoch, got {crawls:g}"
            )

    def start(self, lane: int, instance: Instance) -> None:
        """Start an episode of a lane: store its instance's rates and forget declared ones."""
        self.complete[lane], self.change_rate[lane] = instance.complete, instance.change_rate
        self.steady[lane] = math.nan if instance.bandwidth_steps else instance.bandwidth
        if self.cost is not None:
            self.cost[lane] = 1.0 if instance.cost is None else instance.cost
        self.signals[lane] = 0
        self.declared.pop(lane, None)

    def declare(self, change_rate: ArrayLike, lane: int) -> None:
        """Declare the change rates of a lane's pages, (m,), for the budget of the next step.

        They matter only for pages with complete observation, and only if change rates are hidden;
        else the revealed rates are used. Hidden rates that are not declared are
        (N + 1/2) / (t + 1/2), with N signals received up to time t.

        Raises:
            ValueError: not one finite number >= 0 per page, or no such lane.
        """
        num_lanes, num_pages = self.signals.shape
        rates = per_page("change_rate", change_rate, num_pages)
        self.declared[whole("lane", lane, 0, num_lanes - 1)] = rates

    def allowed(
        self, wanted: FloatArray, bandwidth: FloatArray, time: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return actions ``wanted``, (N, m), cut to the budgets, and declared spending, (N,)."""
        believed = self.change_rate
        if self.reveal != "parameters":
            believed = (self.signals + 0.5) / (time[:, None] + 0.5)
            for lane, declared in self.declared.items():
                believed[lane] = declared
        pages = self.complete, believed
        result = within_budget(wanted, *pages, bandwidth, self.overspend, self.cost)
        self.declared.clear()
        return result

    def count_signals(self, state: State, lanes: Iterable[int]) -> None:
        """Add the last slot's signals to the counts of some lanes, if rates are hidden."""
        if self.reveal == "parameters":
            return
        for lane in lanes:
            pages = state.signal_log[lane, : state.lanes[lane]["logged"]]["page"]
            np.add.at(self.signals[lane], pages, 1)

    def bandwidth(self, instance: Instance, slot: int) -> float:
        """Return an instance's bandwidth averaged over the epoch that slot ``slot`` starts."""
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        start, end = slot / (1.0 / self.epoch), (slot + 1) / (1.0 / self.epoch)
        return crawls_between(clock, start, end) / (end - start)

    def keeps_to(self, form: CompiledRates, instance: Instance, length: int) -> bool:
        """Return whether lanes apply a policy of rates unchanged during ``length`` epochs.

        They do if there is no bucket, change rates are revealed, every rule starts with an epoch,
        only pages with complete observation are crawled at signals, and no rule declares more than
        the budget of any of its epochs.
        """
        complete = instance.complete
        if self.bucket is not None or self.reveal != "parameters":
            return False
        if any(rule.rates[complete].any() or rule.chances[~complete].any() for rule in form.rules):
            return False
        starts = np.array([rule.start for rule in form.rules])
        problem, signal_rate = instance.problem(), instance.signal_rate
        spent = [
            problem.spend(rule.rates) + problem.spend(rule.chances * signal_rate)
            for rule in form.rules
        ]
        edges = np.arange(length + 1) / (1.0 / self.epoch)
        current = np.searchsorted(starts, edges[:-1], side="right") - 1
        budget = np.array([self.bandwidth(instance, slot) for slot in range(length)])
        with_epochs = np.isin(starts[starts < edges[-1]], edges).all()
        within = np.array(spent)[current] <= budget * (1.0 + SPEND_ROUNDING)
        return bool(with_epochs and within.all())
