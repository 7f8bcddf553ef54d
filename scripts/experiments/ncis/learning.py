"""Compare GREEDY-NCIS that learns all rates, knowing importance, with one that knows all rates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd

import policies as crawl_policies
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.evaluation import Row
from crawl_envs.instances import make
from crawl_envs.sim.tape import Tape
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import FloatArray, Instance, Policy
from crawl_envs.worlds.lanes import Lanes
from scripts.experiments.measures.courses import course
from scripts.present import charts
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Range, Trend
from scripts.study.means import means
from scripts.study.rows import gathered, indexed
from scripts.study.specs import spec

METRIC = "area"
REFERENCE = "GREEDY-NCIS"

ID = "CrawlNCIS-v0"
NUM_PAGES, BANDWIDTH, HORIZON = 100, 100.0, 100.0
STRETCH = 2.0
"""Length of the parts of an episode over which freshness is averaged."""

WINDOW = 10.0
"""Length of the windows in which the mean gap is compared with 1%."""

STEADY, SHIFTING = "steady", "shifting"
ROUND_ROBIN = "ROUND ROBIN"
LEARNING, FIRST_HALF = "LEARNING", "first half's parameters"
VARIANTS: dict[str, dict[str, Any]] = {
    LEARNING: {},
    "never forgetting": {"memory": math.inf},
    "always forgetting": {"memory": 30.0},
    "each page alone": {"pooled": False},
}
WITHIN = 0.01
LATE = f"freshness from {0.4 * HORIZON:g} on"
AFTER = "freshness after the shift"
SOURCE = "not in the paper"


class SwitchingPolicy:
    """A policy that acts by its first policy up to half time, then by its last."""

    def __init__(self, env: CrawlEnv, half: float, *acting: Policy) -> None:
        self.env, self.half, self.acting = env, half, acting

    def predict(self, observation: Any, *state: Any, **options: Any) -> tuple[Any, Any]:
        """Return the action of the policy of the current half."""
        late = self.env.tracker().time > self.half
        return self.acting[-1 if late else 0].predict(observation, *state, **options)


def halves(seed: int, num_pages: int, bandwidth: float) -> tuple[Instance, Instance]:
    """Return an instance, and a copy whose pages swap all parameters except importance."""
    rng = np.random.default_rng([seed, 20])
    first = make("noisy", num_pages=num_pages, bandwidth=bandwidth, seed=seed)
    order = rng.permutation(num_pages)
    second = Instance(
        first.importance,
        first.change_rate[order],
        first.recall[order],
        first.false_signal_rate[order],
        bandwidth=bandwidth,
    )
    return first, second


def events(rng: np.random.Generator, rates: FloatArray, start: float, end: float) -> Any:
    """Draw Poisson events from ``start`` to ``end``; return times and pages; a rate per page."""
    counts = rng.poisson(rates * (end - start))
    return rng.uniform(start, end, counts.sum()), np.repeat(np.arange(rates.size), counts)


def shifting_tape(seed: int, first: Instance, second: Instance, horizon: float) -> Tape:
    """Return an episode's events, drawn from ``first`` up to half time and then from ``second``."""
    rng = np.random.default_rng([seed, 21])
    lists: dict[str, list[Any]] = {"changes": [], "signals": [], "requests": []}
    for half, instance in enumerate((first, second)):
        span = 0.5 * half * horizon, 0.5 * (half + 1) * horizon
        signalled = events(rng, instance.recall * instance.change_rate, *span)
        lists["changes"] += [signalled, events(rng, instance.unsignalled_rate, *span)]
        lists["signals"] += [signalled, events(rng, instance.false_signal_rate, *span)]
        lists["requests"] += [events(rng, instance.importance, *span)]
    joined = {
        name: tuple(np.concatenate(part) for part in zip(*parts, strict=True))
        for name, parts in lists.items()
    }
    return Tape.of_events(first.num_pages, **joined)  # type: ignore[arg-type]


class FixedInstance:
    """A generator that returns its instance, always the same, at every reset."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.num_pages = instance, instance.num_pages

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Return the instance, whatever the random generator."""
        return self.instance


def _shifting(seed: int, label: str, num_pages: int, horizon: float) -> tuple[Any, Policy]:
    first, second = halves(seed, num_pages, BANDWIDTH)

    def env(instance: Instance, reveal: Any) -> CrawlEnv:
        form = action_form("page", num_pages, 1)
        tape = shifting_tape(seed, first, second, horizon)
        lanes = partial(Lanes, generator=FixedInstance(instance), form=form, horizon=horizon)
        return CrawlEnv(partial(lanes, reveal=reveal, tape=tape), Objective("freshness"))

    if label in VARIANTS:
        played = env(first, "importance")
        return played, crawl_policies.make("LearningGreedyNCIS", played, **VARIANTS[label])
    played = env(first, "parameters")
    if label == ROUND_ROBIN:
        return played, SwitchingPolicy(played, horizon, crawl_policies.make("RoundRobin", played))

    def informed(instance: Instance) -> Any:
        known = instance.problem("parameters")
        return crawl_policies.make("GreedyNCIS", played, believed=lambda problem: known)

    if label == FIRST_HALF:
        return played, SwitchingPolicy(played, horizon, informed(first))
    return played, SwitchingPolicy(played, 0.5 * horizon, informed(first), informed(second))


def _steady(seed: int, label: str, num_pages: int, horizon: float) -> tuple[Any, Policy]:
    reveal = "importance" if label in VARIANTS else "parameters"
    env = gymnasium.make(
        ID,
        num_pages=num_pages,
        bandwidth=BANDWIDTH,
        horizon=horizon,
        instance="noisy",
        reveal=reveal,
    )
    if label in VARIANTS:
        return env, crawl_policies.make("LearningGreedyNCIS", env, **VARIANTS[label])
    name = "RoundRobin" if label == ROUND_ROBIN else "GreedyNCIS"
    return env, crawl_policies.make(name, env)


@spec("ncis-learning-freshness")
def crawled(
    seed: int, *, label: str, shifting: bool, num_pages: int, horizon: float
) -> Mapping[str, float]:
    """Simulate a policy; return freshness in each stretch of time, and over larger parts."""
    build = _shifting if shifting else _steady
    env, policy = build(seed, label, num_pages, horizon)
    every = round(STRETCH * BANDWIDTH)
    episode = course(env, policy, seed, every=every)
    fresh, alive = np.diff(episode.fresh_time), np.diff(episode.alive_time)
    end = episode.time[1:] / horizon

    def over(part: Any) -> float:
        return float(fresh[part].sum() / alive[part].sum())

    metrics = {
        "freshness": over(end > 0.0),
        "accuracy": float(episode.hits[-1] / episode.requests[-1]),
        LATE: over(end > 0.4 + 1e-9),
        **indexed("freshness", fresh / alive),
    }
    if shifting:
        metrics[AFTER] = over(end > 0.5 + 1e-9)
    return metrics


LABELS = (REFERENCE, ROUND_ROBIN, FIRST_HALF, *VARIANTS)
ONLY = {STEADY: tuple(label for label in LABELS if label != FIRST_HALF)}
"""Labels by setting; STEADY has no shift, so no parameters of a first half."""


def gaps(rows: Sequence[Row], setting: str, label: str) -> FloatArray:
    """Return the freshness of the reference minus that of a label, (seeds, stretches)."""
    curves = gathered((row for row in rows if row.setting == setting), "freshness")
    seeds = sorted(seed for _, policy, seed in curves if policy == label)
    return np.array(
        [
            curves[setting, REFERENCE, seed] - curves[setting, label, seed]
            for seed in seeds
            if (setting, REFERENCE, seed) in curves
        ]
    )


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of how much freshness, summed over time, each label loses to the reference."""
    curves = gathered(rows, "freshness")
    areas = {
        key: STRETCH * float(np.nansum(curves[key[0], REFERENCE, key[2]] - fresh))
        for key, fresh in curves.items()
        if key[1] != REFERENCE and (key[0], REFERENCE, key[2]) in curves
    }
    return [Row(ID, *key, METRIC, area) for key, area in areas.items()]


def time_within(gap: FloatArray) -> float:
    """Return the time from which the mean gap of every window is within 1%."""
    long = max(1, min(round(WINDOW / STRETCH), gap.shape[1]))
    windows = gap.mean(axis=0)[: gap.shape[1] // long * long].reshape(-1, long).mean(axis=1)
    beyond = np.flatnonzero(windows > WITHIN)
    return float(STRETCH * long * (beyond[-1] + 1 if beyond.size else 0))


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the gap in freshness to the reference over time, with 95% intervals over seeds."""
    titles = {STEADY: "fixed parameters", SHIFTING: "parameters swapped at half time"}
    learned = gaps(rows, STEADY, LEARNING)
    if learned.size:
        titles[STEADY] += (
            f":\n{WINDOW:g}-unit means within .01 from time {time_within(learned):g} on"
        )
    parts = []
    for setting, title in titles.items():
        for label in (*VARIANTS, FIRST_HALF):
            gap = pd.DataFrame(gaps(rows, setting, label)).melt(var_name="x", value_name="value")
            half = (int(gap.x.max()) + 1) // 25 or 1 if len(gap) else 1
            gap = gap.assign(x=STRETCH * half * (gap.x // half + 0.5), label=label, panel=title)
            parts.append(gap)
    data = means(pd.concat(parts), ("panel", "label", "x")).rename(columns={"mean": "y"})
    banded = (LEARNING, "never forgetting")
    charts.lines(
        data.assign(half=data.half.where(data.label.isin(banded))),
        path,
        charts.Frame(
            "Learning while crawling: 100 pages, 100 crawls per unit of time; bands: 95% intervals",
            charts.Axis("time (crawls per page, on average)"),
            charts.Axis("freshness below that of GREEDY-NCIS\nwith true parameters"),
            across=[charts.Rule(0.0, dash="-"), charts.Rule(WITHIN, dash=":")],
        ),
        bands=True,
    )


EXPERIMENT = Experiment(
    name="ncis-learning",
    title="Learning while crawling",
    claim=(
        "A policy that knows only importance comes within 1% of GREEDY-NCIS with the true "
        "parameters. Forgetting helps if parameters change, and costs nearly nothing otherwise."
    ),
    metric=METRIC,
    references=(REFERENCE,),
    repetitions=20,
    settings=measure_settings(
        {
            name: {"shifting": name == SHIFTING, "num_pages": NUM_PAGES, "horizon": HORIZON}
            for name in (STEADY, SHIFTING)
        },
        {label: partial(crawled, label=label) for label in LABELS},
        ID,
        only=ONLY,
        quick={"num_pages": 20, "horizon": 10.0},
    ),
    derive=derive,
    expected=(
        Trend(LEARNING, "about", REFERENCE, (STEADY,), SOURCE, margin=WITHIN, metric=LATE),
        Trend(LEARNING, "above", ROUND_ROBIN, (STEADY, SHIFTING), SOURCE, metric="freshness"),
        Trend(LEARNING, "about", "never forgetting", (STEADY,), SOURCE, margin=0.001, metric=LATE),
        Trend(LEARNING, "above", "never forgetting", (SHIFTING,), SOURCE, metric=AFTER),
        Range(LEARNING, -math.inf, WITHIN * HORIZON, (STEADY,), SOURCE),
    ),
    pictures={METRIC: plot},
)
