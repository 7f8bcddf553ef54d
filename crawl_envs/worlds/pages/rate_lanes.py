"""Lanes with crawl rates as actions, for epochs, instead of the pages to crawl.

The budget limits the declared spending: the sum of the crawl rates and, for pages with complete
observation, of the probabilities times the tracker's estimated change rates. The actual spending is
random and depends on the truth; a token bucket can cap it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike

from crawl_envs.sim.advance import UNFINISHED
from crawl_envs.sim.clock import clock_rows, crawls_between, slots_until
from crawl_envs.sim.state import DECLARED, DENIED
from crawl_envs.spaces.actions import Actions, CrawlRates
from crawl_envs.types import BoolArray, FloatArray, Instance
from crawl_envs.types.arguments import per_page, quantity, real, whole
from crawl_envs.types.compiled_policies import CompiledRates
from crawl_envs.worlds.lanes import InstanceGenerator, Plan
from crawl_envs.worlds.pages.lanes import SPENT, Lanes
from crawl_envs.worlds.pages.step import resume_rates, step_rates

Overspend: TypeAlias = Literal["scale", "error"]
MOST_CRAWLS = 1e8
"""Largest mean number of crawls of an epoch, and of a compiled episode; their log takes 5 GB."""

SPEND_ROUNDING = 1e-9
"""Rounding tolerance of the declared spending, as a share of the budget."""


def within_budget(
    action: FloatArray,
    complete: BoolArray,
    change_rate: FloatArray,
    bandwidth: ArrayLike,
    overspend: Overspend,
) -> tuple[FloatArray, FloatArray]:
    """Return actions within their budgets, and their expected spending.

    Args:
        action: crawl rates, and probabilities where ``complete``, (m,) or, for several lanes,
            (N, m).
        complete: mask of the pages with complete observation, of the same shape, bool.
        change_rate: estimated changes per unit of time, of the same shape; used only where
            ``complete``.
        bandwidth: crawls per unit of time, a number or (N,).
        overspend: ``scale`` clips probabilities to 1, and scales an action that spends too much
            down to the budget, all pages by the same factor; ``error`` raises an error for both.

    Raises:
        ValueError: with ``error``, a probability above 1, or an action that spends too much; in any
            case, rates whose sum is not finite.
    """
    if np.any(too_high := complete & (action > 1.0)):
        if overspend == "error":
            raise ValueError(
                "action must be a probability in [0, 1] where every change is signalled, got "
                f"{action[too_high].max()}"
            )
        action = np.where(too_high, 1.0, action)
    with np.errstate(over="ignore"):
        spent = np.asarray(np.sum(np.where(complete, action * change_rate, action), axis=-1))
    if not np.all(np.isfinite(spent)):
        raise ValueError(f"action must have a finite sum, got rates up to {action.max():g}")
    budget = np.broadcast_to(np.asarray(bandwidth, np.float64), spent.shape)
    over = spent > budget * (1.0 + SPEND_ROUNDING)
    if not over.any():
        return action, spent
    if overspend == "error":
        raise ValueError(
            f"action must spend at most the bandwidth {budget[over][0]:g} crawls per unit of time, "
            f"got {spent[over][0]:g}"
        )
    factor = np.divide(budget, spent, out=np.ones_like(spent), where=over)
    return action * factor[..., None], np.where(over, budget, spent)


class EpochLanes(Lanes):
    """N lanes whose actions are crawl rates for the next epoch.

    The first decision is at time 0, the k-th at time k * epoch. The action form is ``rates``.

    Args:
        num_lanes: number of lanes, N.
        generator: generator of the instance of a lane at every seeded reset.
        epoch: length of an epoch, > 0.
        overspend: treatment of actions that declare more than the budget; see
            :func:`within_budget`.
        highest: upper bound of the action space, a rate that no page needs to exceed.
        bucket: size in crawls of a token bucket, >= 1. It starts full and is refilled at the
            bandwidth; a crawl without a token is denied. None for no limit.
        **more: arguments of :class:`crawl_envs.worlds.pages.lanes.Lanes`.

    Raises:
        ValueError: an argument outside its range.
    """

    _OWN = (*Lanes._OWN, "_signal_counts", "_complete", "_change_rate")

    def __init__(
        self,
        num_lanes: int,
        generator: InstanceGenerator,
        *,
        epoch: float = 1.0,
        overspend: Overspend = "scale",
        bucket: float | None = None,
        highest: float,
        **more: Any,
    ) -> None:
        self.epoch = quantity("epoch", epoch, above=0.0)
        if overspend not in get_args(Overspend):
            raise ValueError(f"overspend must be one of {get_args(Overspend)}, got {overspend!r}")
        self.overspend: Overspend = overspend
        self.bucket = None if bucket is None else real("bucket", bucket, least=1.0)
        form = CrawlRates(generator.num_pages, highest)
        super().__init__(num_lanes, generator, form, **more)
        self.reported = (*SPENT, ("denied", DENIED), ("declared", DECLARED))
        shape = (num_lanes, self.num_pages)
        self._signal_counts = np.zeros(shape, np.int64)
        self._complete, self._change_rate = np.zeros(shape, np.bool_), np.zeros(shape)
        self._declared: dict[int, FloatArray] = {}

    def _world_arguments(self) -> dict[str, Any]:
        bucket = np.inf if self.bucket is None else self.bucket
        return {"epoch": self.epoch, "at_random": True, "bucket": bucket}

    def _last_slot_of(self, instance: Instance) -> int:
        try:
            epochs = slots_until(clock_rows(1.0 / self.epoch), self.horizon)
        except ValueError:
            raise ValueError(
                f"epoch must not be so short beside the horizon {self.horizon:g} that epochs "
                f"cannot be counted, got {self.epoch!r}"
            ) from None
        if epochs < 1:
            raise ValueError(
                f"horizon must hold at least one epoch, got {self.horizon} with epoch {self.epoch}"
            )
        return epochs - 1

    def _steps_of(self, instance: Instance) -> int:
        return self._last_slot_of(instance) + 1

    def _check(self, instance: Instance) -> None:
        super()._check(instance)
        steps = (rate for _, rate in instance.bandwidth_steps)
        crawls = max(instance.bandwidth, *steps, 0.0) * self.epoch
        if crawls > MOST_CRAWLS:
            raise ValueError(
                f"bandwidth must give at most {MOST_CRAWLS:g} crawls in an epoch, got {crawls:g}"
            )

    def num_slots(self, lane: int) -> int:
        """Return the number of epochs of a lane's episode."""
        return int(self._last_slot[lane]) + 1

    def crawls_allowed(self, lane: int) -> float:
        """Return the budget of a lane's episode, in crawls; the actual number is random."""
        instance = self.instance(lane)
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        return crawls_between(clock, 0.0, self.num_slots(lane) / (1.0 / self.epoch))

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Declare the tracker's estimated change rates, for the budget of the next step.

        Only those of pages with complete observation matter, and only if change rates are hidden;
        otherwise the revealed rates are used. The default of hidden rates is (N + 1/2) / (t + 1/2)
        with N signals received up to time t.

        Raises:
            ValueError: not one finite number >= 0 per page, or no such lane.
        """
        rates = per_page("change_rate", change_rate, self.num_pages)
        self._declared[whole("lane", lane, 0, self.num_lanes - 1)] = rates

    def _prepare(self, plan: Plan) -> None:
        super()._prepare(plan)
        if plan.instance is not None:
            self._complete[plan.lane] = plan.instance.complete
            self._change_rate[plan.lane] = plan.instance.change_rate

    def _believed(self) -> FloatArray:
        """Return the change rates of the declared spending, (N, m)."""
        if self.reveal == "parameters":
            return self._change_rate
        now = self._world.state.lanes["time"][:, None]
        rates: FloatArray = (self._signal_counts + 0.5) / (now + 0.5)
        for lane, declared in self._declared.items():
            rates[lane] = declared
        return rates

    def _budgets(self) -> FloatArray:
        """Return the mean bandwidth of each lane's next epoch, (N,)."""
        slots = self._world.state.lanes["slot"]
        return np.array([self._bandwidth(lane, int(slot)) for lane, slot in enumerate(slots)])

    def budget(self, lane: int) -> float:
        """Return the mean bandwidth of a lane's next epoch."""
        return self._bandwidth(lane, int(self._world.state.lanes[lane]["slot"]))

    def _bandwidth(self, lane: int, slot: int) -> float:
        instance = self.instance(lane)
        if not instance.bandwidth_steps:
            return instance.bandwidth
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        start, end = slot / (1.0 / self.epoch), (slot + 1) / (1.0 / self.epoch)
        return crawls_between(clock, start, end) / (end - start)

    def keeps_to(self, form: CompiledRates) -> bool:
        """Return whether lane 0 would apply a policy of rates unchanged, in all its epochs.

        True if there is no bucket, change rates are revealed, the rules start with epochs and
        respond to signals only of pages with complete observation, and no rule declares more than
        the budget of any of its epochs.
        """
        instance, length = self.instance(0), self.num_slots(0)
        complete = instance.complete
        if self.bucket is not None or self.reveal != "parameters":
            return False
        if any(rule.rates[complete].any() or rule.chances[~complete].any() for rule in form.rules):
            return False
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        edges = np.arange(length + 1) / (1.0 / self.epoch)
        starts = np.array([rule.start for rule in form.rules])
        spent = [rule.rates.sum() + rule.chances @ instance.signal_rate for rule in form.rules]
        if not np.all(np.isin(starts[starts < edges[-1]], edges)):
            return False
        for start, end in pairwise(edges):
            rule = int(np.searchsorted(starts, start, side="right")) - 1
            budget = crawls_between(clock, start, end) / (end - start)
            if spent[rule] > budget * (1.0 + SPEND_ROUNDING):
                return False
        return True

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Crawl at the given rates for an epoch, in lanes not ended; as :meth:`Lanes.play`."""
        if self._steps_left == 0:
            raise ResetNeeded("call reset before step")
        (wanted,) = actions
        if self.any_ended:
            wanted = np.where(self.ended[:, None], 0.0, wanted)
        budgets = self._budgets()
        action, declared = within_budget(
            wanted, self._complete, self._believed(), budgets, self.overspend
        )
        self._declared.clear()
        rates = np.where(self._complete, 0.0, action)
        chances = np.where(self._complete, action, 0.0)
        if step_rates(self._world.table, rates, chances, budgets) == UNFINISHED:
            self._resume(resume_rates)
        self._world.outcomes[DECLARED][:] = declared
        self._count_signals()
        return self._world.outcomes

    def _count_signals(self) -> None:
        """Count the signals of the last epoch, if change rates are hidden."""
        if self.reveal == "parameters":
            return
        state = self._world.state
        for lane in map(int, np.flatnonzero(~self.ended)):
            pages = state.signal_log[lane, : state.lanes[lane]["logged"]]["page"]
            np.add.at(self._signal_counts[lane], pages, 1)

    def _restart(self, chosen: BoolArray) -> None:
        self._signal_counts[chosen] = 0
        for lane in map(int, np.flatnonzero(chosen)):
            self._declared.pop(lane, None)
        super()._restart(chosen)

    def _kind(self) -> dict[str, Any]:
        own = {"epoch": self.epoch, "overspend": self.overspend, "bucket": self.bucket}
        return {**super()._kind(), **own}

    def get_state(self) -> dict[str, Any]:
        """Return a copy of the complete state."""
        return {**super().get_state(), "declared": dict(self._declared)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state, as :meth:`Lanes.set_state`."""
        super().set_state(state)
        self._declared = dict(state["declared"])
