"""Whole episodes of compiled policies, from an instance and a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from crawl_envs.sim.advance import DONE, PAUSED, restart
from crawl_envs.sim.clock import clock_rows, slot_times
from crawl_envs.sim.heap import empty_heap
from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.penalties import Penalty, penalty_increments
from crawl_envs.sim.rollouts.index import (
    Responses,
    count_alike,
    new_search,
    roll_index,
    roll_sequence,
)
from crawl_envs.sim.rollouts.learner import roll_learner
from crawl_envs.sim.rollouts.rates import begin_rates, rewind_rng, roll_rates
from crawl_envs.sim.rollouts.thresholds import begin_rule, roll_thresholds, stream_words
from crawl_envs.sim.streams import generator, roots
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.world import World
from crawl_envs.types import FloatArray, Instance, IntArray, Ledger
from crawl_envs.types.arguments import quantity
from crawl_envs.types.compiled_policies import (
    Compiled,
    CompiledIndex,
    CompiledLearner,
    CompiledRates,
    CompiledSequence,
    CompiledThresholds,
    RateRule,
    ThresholdRule,
)
from crawl_envs.types.compiling import ready

CRAWLS_AT_ONCE = 4096
"""Most crawls per call, for policies that crawl at their own times."""

TIME_RESOLUTION = 2.0**-48
"""Least time between crawls of a page, as a share of the horizon, so that their times differ."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """An episode.

    ``crawls`` are the pages of the crawls (int64), for a slotted policy one per slot, ``times``
    their times, and ``ledger`` the totals of the episode.
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


@dataclass(frozen=True, eq=False)
class Episode:
    """The parameters of the first episode of a seed.

    Attributes:
        instance: the truth.
        horizon: length in the instance's unit of time, > 0.
        seed: seed of the events, and of crawls at random instants.
        tape: recorded events, in place of drawn ones.
        penalty: penalty of undetected changes, as for
            :class:`crawl_envs.worlds.pages.lanes.Lanes`; None counts no penalty.
        requests: whether requests are simulated.
    """

    instance: Instance
    horizon: float
    seed: int = 0
    tape: Tape | None = None
    penalty: Penalty | None = None
    requests: bool = True

    def __post_init__(self) -> None:
        quantity("horizon", self.horizon, above=0.0)

    def world(self, crawls: int = 1, at_random: bool = False) -> World:
        """Return a world of one lane at the start, with a log of ``crawls`` crawls per slot."""
        instance, root = self.instance, roots(self.seed)
        world = World(
            1,
            instance.num_pages,
            horizon=self.horizon,
            requests=self.requests,
            num_sources=instance.num_sources,
            crawls_per_slot=crawls,
            at_random=at_random,
            increments=None if self.penalty is None else penalty_increments(self.penalty),
            tape=self.tape,
        )
        world.set_instance(0, instance)
        if self.tape is None and isinstance(instance, CustomEvents):
            world.set_tape(0, instance.draw_tape(generator(root.tape, 0), self.horizon))
        world.state.lanes["root"], world.state.lanes["rng_root"] = root.tape, root.rng
        restart(world.state, 0)
        if at_random:
            rewind_rng(world.state, 0)
        return world


def play_form(episode: Episode, form: Compiled, slots: int) -> Rollout:
    """Play an episode by a compiled policy.

    A policy that chooses a page per slot plays ``slots`` slots, from the first crawl to the end of
    the last slot; a policy of thresholds or rates plays exactly to the horizon. The events are the
    same for all policies.

    Raises:
        ValueError: invalid rules, or a tape of another number of pages.
    """
    instance, horizon = episode.instance, episode.horizon
    if isinstance(form, CompiledThresholds):
        for rule in form.rules:
            _check_rule(rule, instance, horizon)
        world = episode.world(CRAWLS_AT_ONCE)
        crawls, times = _roll_thresholds(world, form, horizon)
    elif isinstance(form, CompiledRates):
        for rates in form.rules:
            _check_rates(rates, instance)
        world = episode.world(CRAWLS_AT_ONCE, at_random=True)
        crawls, times = _roll_rates(world, form, horizon)
    else:
        world = episode.world()
        crawls = _roll_slots(world, form, slots)
        times = slot_times(clock_rows(instance.bandwidth, instance.bandwidth_steps), slots)
    return Rollout(crawls, times, world.ledger(0), world.num_pages)


def _roll_slots(
    world: World, form: CompiledIndex | CompiledSequence | CompiledLearner, slots: int
) -> IntArray:
    """Play a policy for a number of slots; return the page of each."""
    crawls = np.zeros(slots, np.int64)
    if isinstance(form, CompiledLearner):
        known = np.zeros(world.num_pages), np.ones(world.num_pages, np.bool_)
        arguments = (*map(ready, form[:4]), *form.memory, *known)
        while not ready(roll_learner)(world.table, *arguments, crawls):
            world.grow_logs()
        return crawls
    if isinstance(form, CompiledIndex):
        roll, value, signal_weight = (
            ready(roll_index),
            ready(form.value),
            ready(form.signal_weight or count_alike),
        )
        counted, search = np.zeros(world.num_pages), new_search(world.num_pages)
        arguments = (form.parameters, signal_weight, form.delay_window)
        while not roll(world.table, value, *arguments, counted, search, crawls):
            world.grow_logs()
    else:
        share = np.zeros(0) if form.answered is None else form.answered
        empty = np.zeros(share.shape), np.zeros(share.shape, np.int64), np.zeros(3, np.int64)
        responses = Responses(share, *empty)
        while not roll_sequence(world.table, form.pages, responses, crawls):
            world.grow_logs()
    return crawls


def _roll_thresholds(
    world: World, form: CompiledThresholds, horizon: float
) -> tuple[IntArray, FloatArray]:
    """Play rules of thresholds up to the horizon; return the page and the time of each crawl."""
    heap, target = empty_heap(world.num_pages), np.zeros(world.num_pages)
    rng, made = stream_words(np.uint64(form.seed)), MadeCrawls()
    for rule, end in _spans(form.rules, horizon):
        begin_rule(world.table, rule, target, heap, rng)
        status = PAUSED
        while status != DONE:
            status = roll_thresholds(world.table, rule, target, heap, rng, end)
            made.take(world, status)
    return made.crawls()


def _roll_rates(world: World, form: CompiledRates, horizon: float) -> tuple[IntArray, FloatArray]:
    """Play rules of rates up to the horizon; return the page and the time of each crawl."""
    made = MadeCrawls()
    for rule, end in _spans(form.rules, horizon):
        begin_rates(world.table, rule.rates, rule.chances)
        status = PAUSED
        while status != DONE:
            status = roll_rates(world.table, end)
            made.take(world, status)
    return made.crawls()


Rule = TypeVar("Rule", ThresholdRule, RateRule)


def _spans(rules: tuple[Rule, ...], horizon: float) -> Iterator[tuple[Rule, float]]:
    """Yield the rules that apply for some time, each with its end."""
    ends = [rule.start for rule in rules[1:]] + [horizon]
    for rule, end in zip(rules, ends, strict=True):
        if rule.start < min(end, horizon):
            yield rule, min(end, horizon)


class MadeCrawls:
    """The crawls of an episode, collected from the logs of successive slots."""

    def __init__(self) -> None:
        self._pages, self._times = [np.zeros(0, np.int64)], [np.zeros(0)]

    def take(self, world: World, status: int) -> None:
        """Add the crawls of a finished slot of lane 0, and grow full logs."""
        if status == PAUSED:
            return
        record = world.state.lanes[0]
        log = world.state.crawl_log[0, : record["slot_crawls"]]
        self._pages.append(log["page"].copy())
        self._times.append(log["time"].copy())
        if record["logged"] == world.state.signal_log.shape[1]:
            world.grow_logs()

    def crawls(self) -> tuple[IntArray, FloatArray]:
        """Return the page and the time of each crawl."""
        return np.concatenate(self._pages), np.concatenate(self._times)


def _check_rates(rule: RateRule, instance: Instance) -> None:
    """Raise ValueError unless a rule has valid rates and chances for every page."""
    for name, most in (("rates", np.inf), ("chances", 1.0)):
        array = getattr(rule, name)
        if array.shape != (instance.num_pages,):
            raise ValueError(f"{name} must have shape ({instance.num_pages},), got {array.shape}")
        sound = np.isfinite(array) & (array >= 0.0) & (array <= most)
        if not np.all(sound):
            raise ValueError(f"{name} must lie in [0, {most:g}], got {array[~sound][0]}")


def _check_rule(rule: ThresholdRule, instance: Instance, horizon: float) -> None:
    """Raise ValueError unless a rule has valid thresholds and weights for every page."""
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
