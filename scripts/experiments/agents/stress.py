"""A trained agent against every analytic policy where assumptions of the formulas fail."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import agents
import policies as crawl_policies
from crawl_envs.evaluation import PolicyFactory, Row
from crawl_envs.instances import STRESS
from crawl_envs.types import Delay, FloatArray, Policy
from scripts.present.verdicts import Expected, Range, Trend
from scripts.study import intervals
from scripts.study.settings import Setting

TITLE = "An agent under stress"
CLAIM = (
    "Where an assumption of the formulas fails, one trained agent may be fresher than every "
    "formula on the same events, even the best by its mean, chosen afterwards, and than the "
    "belief that it corrects."
)
METRIC = "freshness"
REFERENCE = "RoundRobin"
BEST = "best analytic"
BEST_IN_SLOTS = "best analytic, slot by slot"
FURTHER_REFERENCES = (BEST, BEST_IN_SLOTS)
REPETITIONS, QUICK_REPETITIONS = 30, 2
QUICK_HORIZON = 1.0

ID = "CrawlNCIS-v0"
AGENT, BELIEF = "generalist", "BELIEF"
OURS = (AGENT, BELIEF)
BELIEF_POLICY = "BeliefNCIS"

TOGETHER = "all settings"
OVER_BEST = "freshness over the best analytic policy"
NORMALISED = "normalised freshness"
SHARE_IMPROVED = "share of seeds above the best analytic policy"
IMPROVEMENT = "probability of improvement over the best analytic policy"
SETTINGS_PLAYED = "settings"
LEFT_OUT = "left out"
OVERSPENT = 0.01
"""A policy that exceeds the bandwidth by a larger share is not compared with."""

SOURCE = "against the mean; choosing the best policy afterwards favours it"

Variant = tuple[str, Mapping[str, Any]]
VARIANTS: Mapping[str, Variant] = {
    "GreedyCIS, I1": ("GreedyCIS", {"reading": "I1"}),
    "GreedyCIS, I3": ("GreedyCIS", {"reading": "I3"}),
    "GreedyCISPlus, I1": ("GreedyCISPlus", {"reading": "I1"}),
    "BinaryLambdaCrawl, floor .4": ("BinaryLambdaCrawl", {"floor": 0.4}),
    "ContextualBandit, freshness": ("ContextualBandit", {"aim": "freshness"}),
    "ExploreThenCommit, binary, 2": ("ExploreThenCommit", {"objective": "binary", "explore": 2.0}),
    "ExploreThenCommit, binary": ("ExploreThenCommit", {"objective": "binary"}),
    "ExploreThenCommit, binary, 8": ("ExploreThenCommit", {"objective": "binary", "explore": 8.0}),
    "LambdaLearnAndCrawlBinary, no floor": ("LambdaLearnAndCrawlBinary", {"floor": 0.0}),
    "LambdaLearnAndCrawlBinary, last 5": ("LambdaLearnAndCrawlBinary", {"window": 5.0}),
    "LearningGreedyNCIS, never forgets": ("LearningGreedyNCIS", {"memory": math.inf}),
    "LearningGreedyNCIS, memory 8": ("LearningGreedyNCIS", {"memory": 8.0}),
    "LearningGreedyNCIS, pages alone": ("LearningGreedyNCIS", {"pooled": False}),
    "NutchAdaptive, from 1": ("NutchAdaptive", {"fetch_interval_default": 86_400.0}),
}
"""Policies with other arguments than their defaults, in every setting; times in units of time."""

AT_INSTANTS = "ThresholdNCIS"
"""It crawls at any instant, several pages at once, and keeps to the bandwidth on average only; an
agent may not. So the best of the other policies is a reference too."""

MEANS = (0.1, 0.3, 0.5, 1.0)
ARM_MEANS = (0.05, 0.15, 0.5, 1.5)
OWN_VARIANTS: Mapping[str, Mapping[str, Variant]] = {
    "unknown delay": {
        **{f"GreedyNCIS, window {w:g}": ("GreedyNCIS", {"delay_window": w}) for w in MEANS},
        **{
            f"GreedyNCISDelayed, mean {mean:g}": (
                "GreedyNCISDelayed",
                {"delay": Delay("exponential", mean)},
            )
            for mean in MEANS
        },
        **{
            f"{name}, delays": (name, {"delay_means": ARM_MEANS})
            for name in ("Exp3", "Exp3IX", "Exp3PlusPlus")
        },
    },
    **{
        setting: {
            "LearningGreedyNCIS, by host": ("LearningGreedyNCIS", {"grouped": True}),
            "LearningGreedyNCIS, by host, memory 8": (
                "LearningGreedyNCIS",
                {"grouped": True, "memory": 8.0},
            ),
        }
        for setting in ("deploys", "shifting habits")
    },
}
"""Further variants, in the setting that they are meant for."""


def analytic(
    env: Any,
    *,
    policy: str,
    grouped: bool = False,
    delay_means: Sequence[float] = (),
    **arguments: Any,
) -> Policy:
    """Return an analytic policy.

    If ``grouped``, it is given the host of each page; with ``delay_means`` it is a bandit over
    GREEDY-NCIS for exponential delays of these means.
    """
    if grouped:
        arguments["groups"] = env.unwrapped.problem.group
    if delay_means:
        arguments["arms"] = {
            f"mean {mean:g}": crawl_policies.GreedyNCISDelayed(
                env, delay=Delay("exponential", mean)
            )
            for mean in delay_means
        }
    return crawl_policies.make(policy, env, **arguments)


def generalist(env: Any) -> Policy:
    """Return the trained agent."""
    return agents.load(AGENT, env)


def _given(setting: str) -> dict[str, Variant]:
    """Return names and arguments of all analytic policies of a setting, by label."""
    names = {*crawl_policies.names("page"), AT_INSTANTS} - {BELIEF_POLICY}
    known: dict[str, Variant] = {name: (name, {}) for name in sorted(names)}
    return {**known, **VARIANTS, **OWN_VARIANTS.get(setting, {})}


def ours() -> dict[str, PolicyFactory]:
    """Return the policies of OURS by label; they act in every setting."""
    return {AGENT: generalist, BELIEF: partial(analytic, policy=BELIEF_POLICY)}


@cache
def left_out(setting: str) -> tuple[str, ...]:
    """Return the analytic policies that need parameters which a setting does not reveal."""
    if STRESS[setting]["reveal"] == "parameters":
        return ()
    given = ((label, getattr(crawl_policies, name)) for label, (name, _) in _given(setting).items())
    return tuple(label for label, kind in given if {*getattr(kind, "needs", ())} - {"importance"})


def acting(setting: str) -> dict[str, PolicyFactory]:
    """Return the analytic policies that can act in a setting, by label."""
    return {
        label: partial(analytic, policy=policy, **arguments)
        for label, (policy, arguments) in _given(setting).items()
        if label not in left_out(setting)
    }


def measurements(quick: bool) -> Sequence[Setting]:
    """Return every stress setting, with all policies that can act in it."""
    shorter = {"horizon": QUICK_HORIZON} if quick else {}
    return [
        Setting(name, ID, {**arguments, **shorter}, {**acting(name), **ours()})
        for name, arguments in STRESS.items()
    ]


def _expected() -> tuple[Expected, ...]:
    """Return expectations: the agent is above all policies; learning ones are above round robin."""
    best = [Range(label, 0.0, math.inf, tuple(STRESS), SOURCE, OVER_BEST) for label in OURS]
    where: dict[str, list[str]] = {}
    for setting in STRESS:
        for label in (*acting(setting), BELIEF):
            where.setdefault(label, []).append(setting)
    each = [Trend(AGENT, "above", label, tuple(names), SOURCE) for label, names in where.items()]
    basic = Trend("LearningGreedyNCIS", "above", REFERENCE, tuple(STRESS), SOURCE)
    return (*best, *each, basic)


CLAIMS = ()
EXPECTED = _expected()

BySeed = dict[int, float]


def table(rows: Sequence[Row], metric: str) -> dict[str, dict[str, BySeed]]:
    """Return values of a metric by setting, label and seed."""
    values: dict[str, dict[str, BySeed]] = {}
    for row in rows:
        if row.metric == metric:
            values.setdefault(row.setting, {}).setdefault(row.policy, {})[row.seed] = row.value
    return values


def ranked(rows: Sequence[Row], setting: str) -> list[str]:
    """Return the analytic policies of a setting by mean freshness, the best first.

    Policies that exceed the bandwidth on average, or have fewer seeds than others, are left out.
    """
    fresh, spent = table(rows, METRIC).get(setting, {}), table(rows, "crawl_rate").get(setting, {})
    most = (1.0 + OVERSPENT) * float(STRESS[setting]["bandwidth"])
    played = {
        label: values
        for label, values in fresh.items()
        if label not in (*OURS, *FURTHER_REFERENCES)
    }
    seeds = max(map(len, played.values()), default=0)
    means = {
        label: _mean(values)
        for label, values in played.items()
        if len(values) == seeds and _mean(spent[label]) <= most
    }
    return sorted(means, key=lambda label: -means[label])


def _mean(values: BySeed) -> float:
    return sum(values.values()) / len(values)


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return the best analytic policy by setting, differences to it, and all settings together.

    Normalised freshness is 0 for round robin and 1 for the best analytic policy: the difference to
    round robin on each seed, over the mean difference of the best. Intervals are those of
    :mod:`scripts.study.intervals`, and take the best policy, and that mean, as given.
    """
    fresh = table(rows, METRIC)
    best = {
        setting: order[0]
        for setting in STRESS
        if REFERENCE in fresh.get(setting, {}) and (order := ranked(rows, setting))
    }
    in_slots = {
        setting: next((label for label in ranked(rows, setting) if label != AT_INSTANTS), "")
        for setting in best
    }
    derived = [
        row._replace(policy=name)
        for name, chosen in ((BEST, best), (BEST_IN_SLOTS, in_slots))
        for row in rows
        if chosen.get(row.setting) == row.policy
    ]
    for setting, rival in best.items():
        derived += _over_best(setting, fresh[setting], rival)
        derived += [Row(ID, setting, label, 0, LEFT_OUT, 1.0) for label in left_out(setting)]
    return derived + list(_together(fresh, best))


def _over_best(setting: str, fresh: Mapping[str, BySeed], rival: str) -> list[Row]:
    """Return paired differences of OURS to the best analytic policy, and intervals of two means."""
    derived = []
    for label in OURS:
        paired = {
            seed: value - fresh[rival][seed]
            for seed, value in fresh.get(label, {}).items()
            if seed in fresh[rival]
        }
        if not paired:
            continue
        scores = np.array(list(paired.values()))[:, None]
        derived += [
            Row(ID, setting, label, seed, OVER_BEST, value) for seed, value in paired.items()
        ]
        middle = intervals.interquartile_mean(scores)
        derived += intervals.mean(scores).rows(ID, setting, label, f"{OVER_BEST}, mean")
        derived += middle.rows(ID, setting, label, f"{OVER_BEST}, IQM")
    return derived


class Scores(NamedTuple):
    """Freshness on n common seeds in k settings, (n, k) each; ``gap``, (k,): of the means."""

    own: FloatArray
    low: FloatArray
    top: FloatArray
    gap: FloatArray

    @property
    def normalised(self) -> FloatArray:
        """Scores, 0 for round robin and on average 1 for the best analytic policy, (n, k)."""
        score: FloatArray = (self.own - self.low) / self.gap
        return score


def _scores(
    fresh: Mapping[str, Mapping[str, BySeed]], best: Mapping[str, str], label: str
) -> Scores | None:
    """Return scores of a label in settings where round robin is not the best; None if in none."""
    columns = []
    for setting, rival in best.items():
        played = fresh[setting]
        chosen = rival if label == BEST else label
        if chosen in played and rival != REFERENCE:
            columns.append((played[chosen], played[REFERENCE], played[rival]))
    common = [set(seeds) for setting in columns for seeds in setting]
    seeds = sorted(set.intersection(*common)) if common else []
    if not seeds:
        return None
    own, low, top = (
        np.array([[column[seed] for column in kind] for seed in seeds])
        for kind in zip(*columns, strict=True)
    )
    return Scores(own, low, top, np.array([_mean(top) - _mean(low) for _, low, top in columns]))


def _together(fresh: Mapping[str, Mapping[str, BySeed]], best: Mapping[str, str]) -> Iterator[Row]:
    """Yield rows of each policy over all settings with rows of it, by their common seeds."""
    labels = dict.fromkeys(label for setting in best for label in fresh[setting])
    for label in (*labels, BEST):
        scores = _scores(fresh, best, label)
        if scores is None:
            continue
        middle = intervals.interquartile_mean(scores.normalised)
        yield from middle.rows(ID, TOGETHER, label, NORMALISED)
        yield Row(ID, TOGETHER, label, 0, SETTINGS_PLAYED, float(scores.gap.size))
        if label in OURS:
            better = intervals.probability_of_improvement(scores.own, scores.top)
            yield from better.rows(ID, TOGETHER, label, IMPROVEMENT)
            share = intervals.share_improved(scores.own - scores.top)
            yield from share.rows(ID, TOGETHER, label, SHARE_IMPROVED)


def _differences(rows: Sequence[Row], path: Path) -> None:
    """Draw freshness minus that of the best analytic policy, setting by setting."""
    from scripts.experiments.agents.setup.charts import over_best

    kept = [row for row in rows if row.setting in STRESS]
    over_best(kept, path, title=TITLE, labels=(*OURS, REFERENCE), reference=BEST)


def _aggregate(rows: Sequence[Row], path: Path) -> None:
    """Draw the interquartile mean of normalised freshness over most settings."""
    from scripts.experiments.agents.setup.charts import aggregate

    together = [row for row in rows if row.setting == TOGETHER]
    wide = {
        row.policy
        for row in together
        if row.metric == SETTINGS_PLAYED and row.value > len(STRESS) / 2
    }
    aggregate(
        [row for row in together if row.policy in wide],
        path,
        title=TITLE,
        metric=NORMALISED,
        labels=(*OURS, "Greedy", "LambdaCrawl", "UniformCrawl", REFERENCE, "RandomCrawl"),
        best=12,
    )


PICTURES = {"over_best": _differences, "together": _aggregate}
