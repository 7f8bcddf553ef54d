"""Whole episodes of one lane by compiled policies, in any world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import ready
from crawl_envs.compiled.heap import empty_heap
from crawl_envs.compiled.lazy_argmax import LazyArgmax, lazy_table, new_lazy_argmax
from crawl_envs.sim.advance import DONE, PAUSED
from crawl_envs.sim.clock import slot_time, slot_times
from crawl_envs.sim.divergence import Penalty
from crawl_envs.sim.law import has_mortal_pages
from crawl_envs.sim.rollouts.first_round import Round
from crawl_envs.sim.rollouts.slotted import (
    Responses,
    count_alike,
    roll_index,
    roll_learner,
    roll_sequence,
)
from crawl_envs.sim.rollouts.timed import Agenda, roll_rates, roll_thresholds
from crawl_envs.sim.streams import PageSets, rewind
from crawl_envs.sim.tape import Tape
from crawl_envs.spaces.actions import PageChoice
from crawl_envs.types import FloatArray, Instance, IntArray, Ledger
from crawl_envs.types.compiled_policies import (
    UNDEFINED,
    Compiled,
    CompiledIndex,
    CompiledLearner,
    CompiledRates,
    CompiledSequence,
    CompiledThresholds,
    RateRule,
    ThresholdRule,
)
from crawl_envs.worlds.first_round import FirstRound
from crawl_envs.worlds.lanes import Lanes

CRAWLS_AT_ONCE = 4096
"""Most crawls per compiled call, for policies of thresholds or rates."""

TIME_RESOLUTION = 2.0**-48
"""Least time between crawls of a page, as a share of the horizon, so that their times differ."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """The crawls and totals of one episode of a compiled policy.

    ``crawls`` are the pages of the crawls (int64), for a slotted policy one per decision, ``times``
    their times, and ``ledger`` the totals of the episode.
    """

    crawls: IntArray
    times: FloatArray
    ledger: Ledger
    num_pages: int

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
        """Number of crawls of each page, (m,); times the instance's ``cost``, its spend."""
        return np.bincount(self.crawls, minlength=self.num_pages)


NO_ROUND = Round(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
ONE_LANE = np.ones(1, np.bool_)
"""Mask that selects the only lane of a batch of one."""


class Pinned(NamedTuple):
    """A generator of no instances: only the sizes of the instances that each reset is given."""

    num_pages: int
    num_sources: int = 1
    least_cost: float | None = None
    mortal: bool = False

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Raise an AssertionError, because every reset must be given its instance."""
        raise AssertionError("every reset is given an instance")


def play_form(
    form: Compiled,
    instance: Instance,
    horizon: float,
    seed: int = 0,
    *,
    tape: Tape | None = None,
    penalty: Penalty | None = None,
    requests: bool = True,
    pages: PageSets = "any",
) -> Rollout:
    """Play the first episode of a seed by a compiled policy, in a world of pages without content.

    The seed gives the events and the crawls at random instants. Other arguments are as in
    :class:`crawl_envs.worlds.lanes.Lanes`.

    Raises:
        ValueError: invalid rules, or a tape of another number of pages.
    """
    least_cost = None if instance.cost is None else float(instance.cost.min())
    lanes = Lanes(
        1,
        Pinned(instance.num_pages, instance.num_sources, least_cost, has_mortal_pages(instance)),
        PageChoice(instance.num_pages),
        horizon=horizon,
        tape=tape,
        penalty=penalty,
        requests=requests,
        pages=pages,
        observed=False,
        at_random=isinstance(form, CompiledRates),
    )
    lanes.begin(ONE_LANE, [seed], [instance], play=False)
    return roll(lanes, form)


def roll(lanes: Lanes, form: Compiled) -> Rollout:
    """Play a whole episode by a compiled policy, in a batch of one lane that is at time 0.

    Crawls before an episode, of ``start="crawled"``, are not in the result. Times are those of the
    world.

    A policy that chooses a page per slot plays from the first crawl to the end of the last slot; a
    policy of thresholds or rates plays exactly to the horizon, or to the end of the last epoch. The
    events are the same for all policies. A policy of rates needs a lane whose actions are rates.

    Raises:
        ValueError: invalid rules, or an index that was NaN.
    """
    slots, lead = lanes.num_slots(0), float(lanes.world.state.lanes["lead"][0])
    if isinstance(form, CompiledRates) and not lanes.crawls_at_random:
        raise ValueError("policy must not be of rates where crawls are not at random instants")
    before = FirstRound(lanes) if lanes.start == "crawled" else None
    if before is not None and not isinstance(form, CompiledLearner):
        before.play_at_once()
    state = lanes.world.state
    if isinstance(form, CompiledThresholds | CompiledRates):
        end = float(state.lanes["origin"][0]) + lanes.horizon
        end = end if lanes.epoch is None else slot_time(state.clock[0], lead + slots)
        crawls, times = _roll_timed(lanes, form, end)
    else:
        crawls = np.zeros(slots, np.int64)
        kernel, arguments, queue = _slotted(
            form, lanes, NO_ROUND if before is None else before.round
        )
        while not kernel(lanes.world.table.view(np.int64), *arguments, crawls):
            lanes.supply()
            if lanes.costs and lanes.world.state.lanes[0]["slot"] > crawls.size:
                crawls = np.concatenate([crawls, np.zeros_like(crawls)])
        instants, state = np.arange(1.0, slots + 1.0), lanes.world.state
        if lanes.costs:
            crawls = crawls[: state.lanes[0]["crawls"]]
            instants = 1.0 + np.cumsum(np.append(0.0, state.cost[0][crawls[:-1]]))
        times = slot_times(state.clock[0], lead + instants)
        if queue is not None and queue.search[0]["undefined"]:
            raise ValueError(UNDEFINED.format(queue.search[0]["undefined"] - 1))
    return Rollout(crawls, times, lanes.ledger(0), lanes.num_pages)


def _slotted(
    form: CompiledIndex | CompiledSequence | CompiledLearner, lanes: Lanes, before: Round
) -> tuple[Callable[..., bool], tuple[Any, ...], LazyArgmax | None]:
    """Return the kernel that plays a policy of a page per slot, its arguments, and its search.

    The search is None unless the policy has an index. The arguments hold addresses of its arrays.
    """
    num_pages = lanes.num_pages
    if isinstance(form, CompiledLearner):
        elapsed_state = np.zeros(num_pages), np.ones(num_pages, np.bool_)
        arguments = form.memory, form.promises, *elapsed_state, before
        return ready(roll_learner), (*map(ready, form[:4]), *arguments), None
    if isinstance(form, CompiledIndex):
        lazy = new_lazy_argmax(form.parameters, num_pages, promises=form.promises)
        weight = ready(form.signal_weight or count_alike)
        rule = ready(form.value), weight, form.delay_window
        return ready(roll_index), (lazy_table(lazy), *rule), lazy
    share = np.zeros(0) if form.answered is None else form.answered
    empty = np.zeros(share.size), empty_heap(share.size), np.zeros(2, np.int64)
    return roll_sequence, (form.pages, Responses(share, *empty)), None


def _roll_timed(
    lanes: Lanes, form: CompiledThresholds | CompiledRates, end: float
) -> tuple[IntArray, FloatArray]:
    """Play a policy of thresholds or rates to time ``end``; return each crawl's page and time."""
    num_pages, world = lanes.num_pages, lanes.world
    world.lengthen(crawled=CRAWLS_AT_ONCE)
    now = float(world.state.lanes["time"][0])
    world.state.lanes["signals"] = 0  # signals before the episode are not in its ledger
    if isinstance(form, CompiledThresholds):
        rng = np.zeros(4, np.uint64)
        rewind(rng, np.uint64(form.seed), np.uint64(0))
        memory = np.zeros(num_pages), empty_heap(num_pages), rng
    rules: Sequence[ThresholdRule | RateRule] = form.rules
    for rule in rules:
        check_rule(rule, lanes.instance(0), end)
    pages, times = [np.zeros(0, np.int64)], [np.zeros(0)]
    starts = [min(max(rule.start, now), end) for rule in rules] + [end]
    for rule, (start, until) in zip(rules, pairwise(starts), strict=True):
        status, begins = DONE if start == until else PAUSED, True
        while status != DONE:
            table = world.table.view(np.int64)
            if isinstance(rule, ThresholdRule):
                status = roll_thresholds(table, Agenda(rule, *memory), until, begins)
            else:
                status = roll_rates(table, rule.rates, rule.chances, until, begins)
            begins = False
            if status != PAUSED:
                log = world.state.crawl_log[0, : world.state.lanes[0]["slot_crawls"]]
                pages.append(log["page"].copy())
                times.append(log["time"].copy())
                lanes.supply()
    return np.concatenate(pages), np.concatenate(times)


UPPER_LIMITS = {"rates": np.finfo(np.float64).max, "chances": 1.0, "later_share": 1.0}
"""Largest number in each array of a rule; arrays without an entry may have inf."""


def check_rule(rule: ThresholdRule | RateRule, instance: Instance, horizon: float) -> None:
    """Raise ValueError unless a rule's arrays have a valid number for every page of an instance."""
    num_pages = instance.num_pages
    for name, array in rule._asdict().items():
        if name == "start":
            continue
        shape = (instance.num_sources, num_pages) if name == "signal_weight" else (num_pages,)
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
        limit = UPPER_LIMITS.get(name, np.inf)
        sound = (array >= 0.0) & (array <= limit)
        if not np.all(sound):
            raise ValueError(f"{name} must lie in [0, {limit:g}], got {array[~sound].flat[0]}")
    if isinstance(rule, RateRule):
        return
    min_threshold = np.where(rule.timed, TIME_RESOLUTION * horizon, 0.0)
    if not np.all(rule.threshold > min_threshold):
        raise ValueError(
            f"threshold must be > {min_threshold.max():g} up to the horizon {horizon:g}, so that "
            f"crawls of a page differ in time, got {rule.threshold.min()}"
        )
    if not np.all(rule.later_threshold >= rule.threshold):
        raise ValueError("later_threshold must be >= threshold")
