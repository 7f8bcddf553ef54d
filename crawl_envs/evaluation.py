"""Policies compared on the same events.

:func:`simulate` plays a policy in compiled code, crawl for crawl as the ``step()`` loop would;
:func:`evaluate` yields flat rows for many policies and seeds; :func:`summarize` makes intervals
of them, paired by seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from crawl_envs.arguments import real, whole
from crawl_envs.kernels import ready
from crawl_envs.objectives import metrics
from crawl_envs.sim.advance import restart
from crawl_envs.sim.events import check_events
from crawl_envs.sim.rollout import roll_index, roll_sequence
from crawl_envs.sim.streams import generator, roots
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.world import World
from crawl_envs.types import (
    CompilablePolicy,
    Compiled,
    CompiledIndex,
    Instance,
    IntArray,
    Ledger,
    Policy,
)


@dataclass(frozen=True, eq=False)
class Rollout:
    """An episode.

    ``crawls`` is the page crawled in each slot (int64), ``ledger`` all that happened.
    """

    crawls: IntArray
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


def simulate(
    instance: Instance,
    policy: CompilablePolicy,
    horizon: float,
    seed: int = 0,
    tape: Tape | None = None,
) -> Rollout:
    """Play an episode in compiled code, one crawl per slot.

    The crawls are those of ``step()`` in an environment with ``action="page"`` after
    ``reset(seed=seed, options={"instance": instance})``.

    Args:
        instance: the truth; the policy is told its parameters.
        policy: one that has a compiled form.
        horizon: length of the episode in the instance's unit, at least one slot.
        seed: decides the events and the policy's coins.
        tape: given events in place of drawn ones.

    Raises:
        ValueError: a horizon shorter than one slot, a tape of another number of pages, or one
            with births and deaths for a policy that plans its crawls beforehand.
    """
    if not isinstance(instance, Instance) or not isinstance(policy, CompilablePolicy):
        raise ValueError(
            f"instance must be an Instance and policy have a compiled form, got {instance!r} and "
            f"{policy!r}"
        )
    world = _world_at_start(instance, horizon, whole("seed", seed, 0), tape)
    slots = world.num_slots(0)
    if slots < 1:
        raise ValueError(f"horizon must hold at least one crawl, got {horizon!r}")
    form = policy.compile(instance.problem(), slots, generator(roots(seed).coins, 0))
    if not isinstance(form, CompiledIndex) and tape is not None and tape.mortal:
        raise ValueError("policy must be an index policy where pages are born and die")
    return _roll(world, form, slots)


def _world_at_start(instance: Instance, horizon: float, seed: int, tape: Tape | None) -> World:
    """Return a world of one lane at the start of the first episode of a seed."""
    real("horizon", horizon, above=0.0)
    if tape is None:
        check_events(instance, horizon)
    world = World(1, instance.num_pages, horizon=horizon, tape=tape)
    world.set_instance(0, instance)
    world.state.lanes["root"] = roots(seed).tape
    restart(world.state, 0)
    return world


def _roll(world: World, form: Compiled, slots: int) -> Rollout:
    """Play a compiled policy for a number of slots."""
    crawls = np.zeros(slots, np.int64)
    if isinstance(form, CompiledIndex):
        roll, value = ready(roll_index), ready(form.value)
        counted = np.zeros(world.num_pages, np.int64)
        while not roll(world.table, value, form.parameters, form.delay_window, counted, crawls):
            world.grow_log()
    else:
        crawls[:] = form.pages[:slots]
        while not roll_sequence(world.table, crawls):
            world.grow_log()
    return Rollout(crawls, world.ledger(0), world.num_pages)


class Row(NamedTuple):
    """One number: a metric of a policy on a seed, in a setting of an environment."""

    id: str
    setting: str
    policy: str
    seed: int
    metric: str
    value: float


PolicyFactory = Callable[[Any], Policy]
Bound = Callable[[Instance], float]


def evaluate(
    id: str,
    policies: Mapping[str, PolicyFactory],
    seeds: Iterable[int],
    *,
    setting: str = "",
    bounds: Mapping[str, Bound] | None = None,
    compiled: bool = True,
    **arguments: Any,
) -> Iterator[Row]:
    """Yield the metrics of every policy on every seed; all meet the same events.

    Args:
        id: a registered environment.
        policies: for each label, a function of an environment that returns a policy for it.
        seeds: integers >= 0.
        setting: a name for the arguments, for the rows.
        bounds: for each label, a function of an instance that returns a freshness; its rows
            stand beside those of the policies.
        compiled: play policies that have a compiled form in compiled code, which is faster and
            gives the same crawls.
        **arguments: of ``gymnasium.make``.
    """
    for seed in seeds:
        env = gymnasium.make(id, **arguments)
        env.reset(seed=seed)
        instance = env.unwrapped.instance  # type: ignore[attr-defined]  # a CrawlEnv
        for label, bound in (bounds or {}).items():
            value = bound(instance)
            for metric in ("accuracy", "freshness"):
                yield Row(id, setting, label, seed, metric, value)
        for label, factory in policies.items():
            ledger = _play(env, factory(env), seed, compiled)
            for metric, value in metrics(ledger).items():
                yield Row(id, setting, label, seed, metric, value)
        env.close()


def _play(env: gymnasium.Env[Any, Any], policy: Policy, seed: int, compiled: bool) -> Ledger:
    """Play an episode and return its ledger."""
    core: Any = env.unwrapped
    if compiled and core.action_form == "page" and isinstance(policy, CompilablePolicy):
        slots, coins = core.num_slots(), core.coins()
        form = policy.compile(core.problem, slots, coins)
        tape = core.lanes.tape
        if isinstance(form, CompiledIndex) or tape is None or not tape.mortal:
            return _roll(
                _world_at_start(core.instance, core.lanes.horizon, seed, tape), form, slots
            ).ledger
    observation, _ = env.reset(seed=seed)
    state, start, over = None, np.ones(1, np.bool_), False
    learn = getattr(policy, "observe", None)
    if learn is not None:
        learn(core.last_log())
    while not over:
        action, state = policy.predict(observation, state, start, deterministic=True)
        observation, _, terminated, over, _ = env.step(action)
        over, start = over or terminated, np.zeros(1, np.bool_)
        if learn is not None:
            learn(core.last_log())
    ledger: Ledger = core.ledger()
    return ledger


class Summary(NamedTuple):
    """A metric of a policy over seeds, with half-widths of 95% Student intervals.

    ``difference`` is the mean over seeds of the difference to the reference policy on the same
    seed, NaN without one.
    """

    setting: str
    policy: str
    seeds: int
    mean: float
    half_width: float
    difference: float
    difference_half_width: float


def mean_and_half_width(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half-width of its 95% Student interval, NaN below two values."""
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return (float(values[0]) if count else math.nan), math.nan
    spread = float(np.std(values, ddof=1)) / math.sqrt(count)
    return float(np.mean(values)), float(stdtrit(count - 1, 0.975)) * spread


def summarize(rows: Iterable[Row], metric: str, reference: str | None = None) -> list[Summary]:
    """Summarize a metric per setting and policy, in the order in which they first appear.

    Args:
        rows: of :func:`evaluate`.
        metric: which metric.
        reference: the policy or bound to which paired differences are taken.
    """
    values: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row.metric == metric:
            values.setdefault((row.setting, row.policy), {})[row.seed] = row.value
    summaries = []
    for (setting, policy), by_seed in values.items():
        base = values.get((setting, reference or ""), {})
        shared = [by_seed[seed] - base[seed] for seed in by_seed if seed in base]
        mean, half = mean_and_half_width(list(by_seed.values()))
        summaries.append(
            Summary(setting, policy, len(by_seed), mean, half, *mean_and_half_width(shared))
        )
    return summaries
