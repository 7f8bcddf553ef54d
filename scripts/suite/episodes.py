"""Record episodes: when each page was stale, and the events of an episode for the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from crawl_envs.evaluation import PolicyFactory, make_env, play, rollout_of
from crawl_envs.sim.tape import CHANGE, CODE_STRIDE, KIND_MASK, SIGNAL, Tape, draw_block
from crawl_envs.types import FloatArray, Instance, IntArray
from crawl_envs.worlds.rollouts import ONE_LANE
from scripts.suite.tasks import FIRST_SEED, NCIS

TENTH = 0.1
ARGUMENTS: Mapping[str, Any] = {
    "instance": "noisy",
    "num_pages": 20,
    "bandwidth": 10.0,
    "horizon": 16.0,
}
"""Arguments of the episode that the report shows: half a crawl per page and unit of time."""
EPISODE_POLICIES = {"GreedyNCIS": "GREEDY-NCIS", "Greedy": "GREEDY"}
"""Policies of the episode that the report shows, and their names in the paper."""
KINDS = ("change with a signal", "change without a signal", "false signal")


class Crawls(NamedTuple):
    """Times, pages and results of the crawls of an episode; ``changed``: the page had changed."""

    time: FloatArray
    page: IntArray
    changed: IntArray


class Spell(NamedTuple):
    """A period from ``start`` to ``end`` in which the copy of a page was stale."""

    page: int
    start: float
    end: float


class Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that uses one instance for all seeds and keeps the logs of its steps."""

    def __init__(self, env: gymnasium.Env[Any, Any], instance: Instance) -> None:
        super().__init__(env)
        self.core: Any = env.unwrapped
        self.instance = instance
        self.logs: list[tuple[Any, ...]] = []

    @property
    def end(self) -> float:
        """Time at which an episode ends: the end of its last slot."""
        origin = self.core.lanes.origin_of(self.instance)
        return float(origin + (self.core.num_slots() + 1) / self.instance.bandwidth)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        """Start an episode with the recorder's instance, and forget earlier crawls."""
        self.logs = []
        return super().reset(seed=seed, options={"instance": self.instance})

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        """Execute an action and keep the crawls of the step."""
        result = super().step(action)
        log = self.core.last_log()
        self.logs.append((log.time.copy(), log.page.copy(), log.changed.copy()))
        return result

    def crawls(self) -> Crawls:
        """Return all crawls of the episode so far."""
        return Crawls(*map(np.concatenate, zip(*self.logs, strict=True)))


def recorder(id: str, arguments: Mapping[str, Any], seed: int) -> Recorder:
    """Return a recorder of an environment; all its episodes use the instance of ``seed``."""
    env: Any = make_env(id, **arguments)
    env.reset(seed=seed)
    return Recorder(env, env.unwrapped.instance)


def tape_of(env: Recorder, seed: int) -> Tape:
    """Return all events, with requests, that the environment draws for a seed, as a tape."""
    lanes = env.core.make_lanes(1, observed=False)
    lanes.begin(ONE_LANE, [seed], [env.instance], play=False)
    state, blocks = lanes.world.state, list[Any]()
    while not blocks or blocks[-1]["time"][-1] <= env.end:
        draw_block(state, 0)
        blocks.append(state.tape[0].copy())
    drawn = np.concatenate(blocks)
    drawn = drawn[drawn["time"] <= env.end]
    alive = np.ones(env.instance.num_pages, np.bool_)
    return Tape(drawn["time"].copy(), drawn["code"].copy(), alive)


def stale_spells(tape: Tape, crawls: Crawls, end: float) -> list[Spell]:
    """Return stale periods of all pages: from a fresh copy's first change to the next crawl."""
    changes = (tape.code & KIND_MASK & CHANGE) > 0
    happened = [
        *((time, code // CODE_STRIDE, True) for time, code in events_where(tape, changes)),
        *zip(crawls.time.tolist(), crawls.page.tolist(), [False] * crawls.time.size, strict=True),
    ]
    since: dict[int, float] = {}
    spells = []
    for time, page, change in sorted(happened):
        if change:
            since.setdefault(page, time)
        elif page in since:
            spells.append(Spell(page, since.pop(page), time))
    return [*spells, *(Spell(page, start, end) for page, start in sorted(since.items()))]


def events_where(tape: Tape, mask: Any) -> list[tuple[float, int]]:
    """Return the times and codes of the events of a tape for which ``mask`` is True."""
    return list(zip(tape.time[mask].tolist(), tape.code[mask].tolist(), strict=True))


def page_freshness(spells: Sequence[Spell], num_pages: int, end: float) -> FloatArray:
    """Return the share of time in which the copy of each page was fresh, (m,)."""
    stale = np.zeros(num_pages)
    for spell in spells:
        stale[spell.page] += spell.end - spell.start
    return 1.0 - stale / end


def least_served(id: str, arguments: Mapping[str, Any], factory: PolicyFactory, seed: int) -> float:
    """Return the mean freshness of the tenth of pages that are least fresh in an episode.

    The environment must take a page per slot. NaN if the policy does not act crawl by crawl.
    """
    env = recorder(id, arguments, seed)
    policy = factory(env)
    if not getattr(getattr(policy, "policy", None), "acts", True):
        return math.nan
    play(env, policy, seed, compiled=False)
    pages = env.instance.num_pages
    spells = stale_spells(tape_of(env, seed), env.crawls(), env.end)
    fresh = np.sort(page_freshness(spells, pages, env.end))
    return float(fresh[: math.ceil(TENTH * pages)].mean())


def largest_age(id: str, arguments: Mapping[str, Any], factory: PolicyFactory, seed: int) -> float:
    """Return the largest age of any copy from the start of an episode to its end, in units of m/R.

    Pages must exist all the time, and all cost 1.
    """
    env: Any = make_env(id, **arguments)
    env.reset(seed=seed)
    core = env.unwrapped
    tracker, instance = core.tracker(), core.instance
    rollout = rollout_of(env, factory(env), seed)
    every, end = np.arange(instance.num_pages), core.lanes.origin_of(instance) + rollout.ledger.time
    pages = np.concatenate([every, rollout.crawls, every])
    copied = tracker.time - tracker.elapsed
    times = np.concatenate([copied, rollout.times, np.full(every.size, end)])
    order = np.lexsort((times, pages))
    ages = np.diff(times[order])[np.diff(pages[order]) == 0]
    return float(ages.max() * instance.bandwidth / instance.num_pages)


def record(factories: Mapping[str, PolicyFactory]) -> dict[str, Any]:
    """Return one episode's events, and crawls and stale periods of each policy, as plain values.

    The policies are ``EPISODE_POLICIES``. Pages are numbered from 1 by rising change rate.
    """
    env = recorder(NCIS, ARGUMENTS, FIRST_SEED)
    tape = tape_of(env, FIRST_SEED)
    order = np.argsort(env.instance.change_rate, kind="stable").tolist()
    numbers = {page: number for number, page in enumerate(order, 1)}
    kinds = tape.code & KIND_MASK
    events = [
        {"time": round(time, 4), "page": numbers[code // CODE_STRIDE], "kind": _kind_of(code)}
        for time, code in events_where(tape, (kinds == CHANGE) | (kinds >= SIGNAL))
    ]
    recordings = []
    for label, name in EPISODE_POLICIES.items():
        env.reset(seed=FIRST_SEED)
        play(env, factories[label](env), FIRST_SEED, compiled=False)
        crawls = env.crawls()
        spells = stale_spells(tape, crawls, env.end)
        recordings.append(
            {
                "policy": name,
                "crawls": [
                    {"time": round(time, 4), "page": numbers[page], "changed": bool(changed)}
                    for time, page, changed in zip(*(part.tolist() for part in crawls), strict=True)
                ],
                "spells": [
                    {"page": numbers[page], "start": round(start, 4), "end": round(end, 4)}
                    for page, start, end in spells
                ],
            }
        )
    env.close()
    weights = env.instance.importance / env.instance.importance.sum()
    shares = {numbers[page]: round(float(weight), 6) for page, weight in enumerate(weights)}
    step = 1.0 / float(ARGUMENTS["bandwidth"])
    return {"end": env.end, "step": step, "weights": shares, "events": events, "played": recordings}


def _kind_of(code: int) -> str:
    """Return the kind of an event (one of ``KINDS``) from its code on a tape."""
    signalled, silent, false = KINDS
    kind = code & KIND_MASK
    if kind == CHANGE:
        return silent
    return signalled if kind & CHANGE else false
