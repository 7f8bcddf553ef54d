"""Whole episodes of compiled policies, from an instance and a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawl_envs.arguments import real
from crawl_envs.compiled_forms import (
    Compiled,
    CompiledIndex,
    CompiledSequence,
    CompiledThresholds,
    ThresholdRule,
)
from crawl_envs.kernels import ready
from crawl_envs.sim.advance import restart
from crawl_envs.sim.agenda import empty_agenda
from crawl_envs.sim.clock import clock_rows, slot_times
from crawl_envs.sim.rollout import count_alike, roll_index, roll_sequence
from crawl_envs.sim.streams import roots
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.thresholds import begin_rule, coins_of, roll_thresholds
from crawl_envs.sim.world import World
from crawl_envs.types import FloatArray, Instance, IntArray, Ledger

CRAWLS_AT_ONCE = 4096
"""Crawls at instants of their own that are made in one call."""

TIME_RESOLUTION = 2.0**-48
"""Share of the horizon by which crawls of a page must be apart, so that their times differ."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """An episode.

    ``crawls`` is the page of each crawl (int64), in a slotted policy one per slot, and ``times``
    when it was made; ``ledger`` is all that happened.
    """

    crawls: IntArray
    times: FloatArray
    ledger: Ledger
    num_pages: int

    @property
    def requests(self) -> int:
        """Number of requests."""
        return self.ledger.requests

    @property
    def hits(self) -> int:
        """Number of requests served with a fresh copy."""
        return self.ledger.hits

    @property
    def accuracy(self) -> float:
        """Share of requests served fresh."""
        return self.ledger.accuracy

    @property
    def freshness(self) -> float:
        """Importance-weighted share of page time that was fresh."""
        return self.ledger.freshness

    @property
    def crawl_counts(self) -> IntArray:
        """Number of crawls of each page, (m,)."""
        return np.bincount(self.crawls, minlength=self.num_pages)


def play_form(
    instance: Instance, form: Compiled, *, horizon: float, slots: int, seed: int, tape: Tape | None
) -> Rollout:
    """Play the first episode of a seed by a compiled policy.

    A policy that chooses a page per slot plays ``slots`` slots, from the first crawl to the end of
    the last slot; one of thresholds plays exactly to the horizon. Both meet the same events.

    Raises:
        ValueError: thresholds that are no thresholds; a tape of another number of pages.
    """
    if isinstance(form, CompiledThresholds):
        for rule in form.rules:
            _check_rule(rule, instance, horizon)
        world = _world_at_start(instance, horizon, seed, tape, CRAWLS_AT_ONCE)
        crawls, times = _roll_thresholds(world, form, horizon)
    else:
        world = _world_at_start(instance, horizon, seed, tape, 1)
        crawls = _roll_slots(world, form, slots)
        times = slot_times(clock_rows(instance.bandwidth, instance.bandwidth_steps), slots)
    return Rollout(crawls, times, world.ledger(0), world.num_pages)


def _world_at_start(
    instance: Instance, horizon: float, seed: int, tape: Tape | None, crawls_per_slot: int
) -> World:
    """Return a world of one lane at the start of the first episode of a seed."""
    real("horizon", horizon, above=0.0)
    world = World(
        1,
        instance.num_pages,
        num_sources=instance.num_sources,
        horizon=horizon,
        crawls_per_slot=crawls_per_slot,
        tape=tape,
    )
    world.set_instance(0, instance)
    world.state.lanes["root"] = roots(seed).tape
    restart(world.state, 0)
    return world


def _roll_slots(world: World, form: CompiledIndex | CompiledSequence, slots: int) -> IntArray:
    """Play a policy for a number of slots; returns the page of each."""
    crawls = np.zeros(slots, np.int64)
    if isinstance(form, CompiledIndex):
        roll, value, heed = ready(roll_index), ready(form.value), ready(form.heed or count_alike)
        counted = np.zeros(world.num_pages)
        told = (form.parameters, heed, form.delay_window)
        while not roll(world.table, value, *told, counted, crawls):
            world.grow_log()
    else:
        crawls[:] = form.pages[:slots]
        while not roll_sequence(world.table, crawls):
            world.grow_log()
    return crawls


def _roll_thresholds(
    world: World, form: CompiledThresholds, horizon: float
) -> tuple[IntArray, FloatArray]:
    """Play rules of thresholds up to the horizon; returns the page and the time of each crawl."""
    agenda, target = empty_agenda(world.num_pages), np.zeros(world.num_pages)
    coins = coins_of(np.uint64(form.coins))
    pages, times = [np.zeros(0, np.int64)], [np.zeros(0)]
    ends = [rule.start for rule in form.rules[1:]] + [horizon]
    for rule, end in zip(form.rules, ends, strict=True):
        if rule.start >= horizon:
            break
        begin_rule(world.table, rule, target, agenda, coins)
        complete = False
        while not complete:
            complete = roll_thresholds(world.table, rule, target, agenda, coins, min(end, horizon))
            record = world.state.lanes[0]
            made = world.state.crawl_log[0, : record["slot_crawls"]]
            pages.append(made["page"].copy())
            times.append(made["time"].copy())
            if record["logged"] == world.state.signal_log.shape[1]:
                world.grow_log()
    return np.concatenate(pages), np.concatenate(times)


def _check_rule(rule: ThresholdRule, instance: Instance, horizon: float) -> None:
    """Raise ValueError where a rule does not say when every page of an instance is crawled."""
    pages, sources = (instance.num_pages,), (instance.num_sources, instance.num_pages)
    for name, shape in (
        ("threshold", pages),
        ("later_threshold", pages),
        ("later_share", pages),
        ("signal_weight", sources),
        ("timed", pages),
    ):
        array = getattr(rule, name)
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
        if not np.all(array >= 0):
            raise ValueError(f"{name} must be >= 0, got {array[~(array >= 0)].flat[0]}")
    least = np.where(rule.timed, TIME_RESOLUTION * horizon, 0.0)
    if not np.all(rule.threshold > least):
        raise ValueError(
            f"threshold must be > {least.max():g} up to the horizon {horizon:g}, so that crawls of "
            f"a page are apart in time, got {rule.threshold.min()}"
        )
    if not np.all(rule.later_threshold >= rule.threshold) or not np.all(rule.later_share <= 1.0):
        raise ValueError("later_threshold must be >= threshold, and later_share <= 1")
