"""Lanes that are crawled at rates: a decision says how often, for an epoch, and not which page now.

The budget is kept by what is declared: the sum of the crawl rates and, where every change is
signalled, of the probabilities times the change rates that the tracker believes. What is really
spent follows chance and the truth, and a bucket of tokens can cap it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike

from crawl_envs.actions import Actions, CrawlRates
from crawl_envs.arguments import real
from crawl_envs.compiled_forms import CompiledRates
from crawl_envs.lanes import InstanceGenerator, Lanes
from crawl_envs.lockstep import LOG_FULL, resume_rates, step_rates
from crawl_envs.sim.clock import clock_rows, crawls_between, slots_until
from crawl_envs.sim.state import CRAWLS, DECLARED, DENIED
from crawl_envs.types import BoolArray, FloatArray, Instance

Overspend: TypeAlias = Literal["scale", "error"]
SPEND_ROUNDING = 1e-9
"""Share of the budget by which what is declared may exceed it through rounding."""


def within_budget(
    action: FloatArray,
    complete: BoolArray,
    change_rate: FloatArray,
    bandwidth: float,
    overspend: Overspend,
) -> tuple[FloatArray, float]:
    """Return an action that keeps to the budget, and what it is expected to spend.

    Args:
        action: crawl rates, and probabilities where ``complete``, (m,).
        complete: which pages have complete observation, (m,) bool.
        change_rate: changes per unit of time that the tracker believes, (m,); it matters only where
            ``complete``.
        bandwidth: crawls per unit of time.
        overspend: ``scale`` takes probabilities above 1 for 1, and brings an action that spends too
            much down to the budget, all pages by the same factor; ``error`` objects to both.

    Raises:
        ValueError: with ``error``, a probability above 1, or an action that spends too much.
    """
    if np.any(action[complete] > 1.0):
        if overspend == "error":
            raise ValueError(
                "action must be a probability in [0, 1] where every change is signalled, got "
                f"{action[complete].max()}"
            )
        action = np.where(complete, np.minimum(action, 1.0), action)
    spent = float(np.sum(np.where(complete, action * change_rate, action)))
    if spent <= bandwidth * (1.0 + SPEND_ROUNDING):
        return action, spent
    if overspend == "error":
        raise ValueError(
            f"action must spend at most the bandwidth {bandwidth:g} crawls per unit of time, got "
            f"{spent:g}"
        )
    return action * (bandwidth / spent), bandwidth


class EpochLanes(Lanes):
    """N lanes whose actions are crawl rates for the epoch that follows.

    The first decision is at time 0, the k-th at time k * epoch. ``form`` is that of rates.

    Args:
        num_lanes: number of lanes, N.
        generator: draws the instance of a lane at every seeded reset.
        epoch: length of an epoch, > 0.
        overspend: what becomes of actions that declare more than the budget; see
            :func:`within_budget`.
        highest: a rate that no page needs to exceed, where the space of actions ends.
        bucket: crawls that can be saved up in a bucket of tokens, >= 1: it starts full and is
            refilled at the bandwidth, and a crawl without a token is denied. None caps nothing.
        **more: of :class:`crawl_envs.lanes.Lanes`.

    Raises:
        ValueError: an argument outside its range.
    """

    _OWN = (*Lanes._OWN, "_heard")
    reported = (("crawls", CRAWLS), ("denied", DENIED), ("declared", DECLARED))

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
        self.epoch = real("epoch", epoch, above=0.0)
        if overspend not in get_args(Overspend):
            raise ValueError(f"overspend must be one of {get_args(Overspend)}, got {overspend!r}")
        self.overspend: Overspend = overspend
        self.bucket = None if bucket is None else real("bucket", bucket, least=1.0)
        form = CrawlRates(generator.num_pages, highest)
        super().__init__(num_lanes, generator, form, **more)
        self._heard = np.zeros((num_lanes, self.num_pages), np.int64)
        self._declared: dict[int, FloatArray] = {}

    def _world_arguments(self) -> dict[str, Any]:
        bucket = np.inf if self.bucket is None else self.bucket
        return {"epoch": self.epoch, "at_random": True, "bucket": bucket}

    def _last_slot_of(self, instance: Instance) -> int:
        epochs = slots_until(clock_rows(1.0 / self.epoch), self.horizon)
        if epochs < 1:
            raise ValueError(
                f"horizon must hold at least one epoch, got {self.horizon} with epoch {self.epoch}"
            )
        return epochs - 1

    def num_slots(self, lane: int) -> int:
        """Return the number of epochs of a lane's episode."""
        return int(self._last_slot[lane]) + 1

    def crawls_allowed(self, lane: int) -> float:
        """Return the budget of a lane's episode, in crawls; chance may spend more, or less."""
        instance = self.instance(lane)
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        return crawls_between(clock, 0.0, self.num_slots(lane) / (1.0 / self.epoch))

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Say how often the tracker believes that pages change, for the budget of the next step.

        Only pages with complete observation matter. Without it, what is revealed is believed, and
        where change rates are hidden, (N + 1/2) / (t + 1/2) of the N signals heard up to time t.

        Raises:
            ValueError: not one finite number >= 0 per page.
        """
        rates = np.array(change_rate, np.float64)
        if rates.shape != (self.num_pages,) or not np.all(np.isfinite(rates) & (rates >= 0.0)):
            raise ValueError(
                f"change_rate must be finite and >= 0, of shape ({self.num_pages},), got "
                f"{change_rate!r}"
            )
        self._declared[lane] = rates

    def _believed(self, lane: int) -> FloatArray:
        """Return the change rates by which a lane's spending is declared."""
        if lane in self._declared:
            return self._declared[lane]
        instance = self.instance(lane)
        if self.reveal == "parameters":
            return instance.change_rate
        now = float(self._world.state.lanes[lane]["time"])
        rates: FloatArray = (self._heard[lane] + 0.5) / (now + 0.5)
        return rates

    def budget(self, lane: int) -> float:
        """Return the mean bandwidth of the epoch that follows."""
        instance, slot = self.instance(lane), int(self._world.state.lanes[lane]["slot"])
        clock = clock_rows(instance.bandwidth, instance.bandwidth_steps)
        start, end = slot / (1.0 / self.epoch), (slot + 1) / (1.0 / self.epoch)
        return crawls_between(clock, start, end) / (end - start)

    def keeps_to(self, form: CompiledRates) -> bool:
        """Return whether lane 0 would let a policy of rates crawl as it says, in all its epochs.

        So it is where no bucket can deny crawls, change rates are revealed, the rules begin with
        epochs and answer the signals of pages with complete observation alone, and none declares
        more than the budget of any epoch that it holds for.
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
        if not np.all(np.isin(starts[starts < edges[-1]], edges)):
            return False
        for start, end in pairwise(edges):
            rule = form.rules[int(np.searchsorted(starts, start, side="right")) - 1]
            spent = rule.rates.sum() + rule.chances @ instance.signal_rate
            budget = crawls_between(clock, start, end) / (end - start)
            if spent > budget * (1.0 + SPEND_ROUNDING):
                return False
        return True

    def play(self, actions: Actions) -> tuple[FloatArray, ...]:
        """Crawl at the given rates for an epoch, in lanes not ended; as :meth:`Lanes.play`."""
        if self._steps_left == 0:
            raise ResetNeeded("call reset before step")
        (wanted,) = actions
        rates, chances = np.zeros(wanted.shape), np.zeros(wanted.shape)
        budgets, declared = np.zeros(self.num_lanes), np.zeros(self.num_lanes)
        for lane in map(int, np.flatnonzero(~self.ended)):
            complete = self.instance(lane).complete
            budgets[lane] = self.budget(lane)
            action, declared[lane] = within_budget(
                wanted[lane], complete, self._believed(lane), budgets[lane], self.overspend
            )
            rates[lane] = np.where(complete, 0.0, action)
            chances[lane] = np.where(complete, action, 0.0)
        self._declared.clear()
        if step_rates(self._world.table, rates, chances, budgets) == LOG_FULL:
            self._resume(resume_rates)
        self._world.outcomes[DECLARED][:] = declared
        self._hear()
        return self._world.outcomes

    def _hear(self) -> None:
        """Count the signals of the last epoch, where the tracker is not told change rates."""
        if self.reveal == "parameters":
            return
        state = self._world.state
        for lane in map(int, np.flatnonzero(~self.ended)):
            pages = state.signal_log[lane, : state.lanes[lane]["logged"]]["page"]
            np.add.at(self._heard[lane], pages, 1)

    def _restart(self, chosen: BoolArray) -> None:
        self._heard[chosen] = 0
        super()._restart(chosen)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take on a state, as :meth:`Lanes.set_state`; what was declared is forgotten."""
        super().set_state(state)
        self._declared.clear()
