"""Compare a trained agent with every analytic policy if assumptions of the formulas fail."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import agents
import policies as crawl_policies
from crawl_envs.evaluation import PolicyFactory, Row
from crawl_envs.instances import STRESS
from crawl_envs.types import Delay
from scripts.experiments.figures import Axis, Frame, Rule, Series, dots
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Expected, Range, Trend
from scripts.study import intervals, means
from scripts.study.settings import Setting, spec

TITLE = "An agent under stress"
REFERENCE = "RoundRobin"
BEST = "best analytic"
BEST_IN_SLOTS = "best analytic, slot by slot"
FURTHER_REFERENCES = (BEST, BEST_IN_SLOTS)
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
MAX_DIFFERENCE = 0.03
"""Largest difference to the best in the panel of small differences."""
MAX_DRAWN, MIN_SCORE = 12, -1.5
"""Number of the best policies to draw, and the left end of their axis."""
OVERSPENT = 0.01
"""Largest share by which a compared policy may exceed the bandwidth."""

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
"""Policies with arguments other than their defaults, in every setting; times in units of time."""

AT_INSTANTS = "ThresholdNCIS"
"""A policy that crawls at any instant, several pages at once, and keeps the bandwidth on average
only. Agents may not, so the best other policy is also a reference."""
LATER = ("FixedTiers", "SoftwareHeritageLag")
"""Policies that are younger than the rows, and are not among the rivals."""

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
"""Additional variants by the setting for which they are made."""


@spec("stress-formula")
def analytic(
    env: Any,
    *,
    policy: str,
    grouped: bool = False,
    delay_means: Sequence[float] = (),
    **arguments: Any,
) -> Any:
    """Return the analytic policy of this name for an environment.

    If ``grouped``, the policy gets the host of each page. With ``delay_means`` it is a bandit whose
    arms are GREEDY-NCIS for exponential delays with these means.
    """
    if grouped:
        arguments["groups"] = env.unwrapped.problem.group
    if delay_means:
        arguments["arms"] = {
            f"mean {mean:g}": crawl_policies.GreedyNCISDelayed(delay=Delay("exponential", mean))
            for mean in delay_means
        }
    return crawl_policies.make(policy, env, **arguments)


@spec("stress-generalist")
def generalist(env: Any) -> Any:
    """Return the trained agent for an environment."""
    return agents.load(AGENT, env)


def _variants(setting: str) -> dict[str, Variant]:
    """Return the names and arguments of all analytic policies to compare in a setting, by label."""
    names = {*crawl_policies.names("page"), AT_INSTANTS} - {BELIEF_POLICY, *LATER}
    defaults: dict[str, Variant] = {name: (name, {}) for name in sorted(names)}
    return {**defaults, **VARIANTS, **OWN_VARIANTS.get(setting, {})}


def ours() -> dict[str, PolicyFactory]:
    """Return functions that make the agent and the belief policy (OURS), by label."""
    return {AGENT: generalist, BELIEF: partial(analytic, policy=BELIEF_POLICY)}


@cache
def left_out(setting: str) -> tuple[str, ...]:
    """Return the labels of analytic policies from which the setting hides what they need."""
    if STRESS[setting]["reveal"] == "parameters":
        return ()
    names = {label: name for label, (name, _) in _variants(setting).items()}
    kinds = ((label, getattr(crawl_policies, name)) for label, name in names.items())
    return tuple(label for label, kind in kinds if {*getattr(kind, "needs", ())} - {"importance"})


def acting(setting: str) -> dict[str, PolicyFactory]:
    """Return functions that make the analytic policies which can act in a setting, by label."""
    return {
        label: partial(analytic, policy=policy, **arguments)
        for label, (policy, arguments) in _variants(setting).items()
        if label not in left_out(setting)
    }


def measurements(quick: bool) -> Sequence[Setting]:
    """Return every stress setting, with the agent, the belief and all policies that can act."""
    shorter = {"horizon": QUICK_HORIZON} if quick else {}
    return [
        Setting(name, ID, {**arguments, **shorter}, {**acting(name), **ours()})
        for name, arguments in STRESS.items()
    ]


def _expected() -> tuple[Expected, ...]:
    """Return the expected results of the agent, the belief policy and LearningGreedyNCIS."""
    best = [Range(label, 0.0, math.inf, tuple(STRESS), SOURCE, OVER_BEST) for label in OURS]
    where: dict[str, list[str]] = {}
    for setting in STRESS:
        for label in (*acting(setting), BELIEF):
            where.setdefault(label, []).append(setting)
    single = [Trend(AGENT, "above", label, tuple(names), SOURCE) for label, names in where.items()]
    basic = Trend("LearningGreedyNCIS", "above", REFERENCE, tuple(STRESS), SOURCE)
    return (*best, *single, basic)


def by_seed(rows: Sequence[Row], metric: str) -> dict[str, pd.DataFrame]:
    """Return a table of a metric for each setting, with a row per seed and a column per label."""
    parts = means.table(rows, metric).groupby("setting", sort=False)
    return {
        str(setting): part.pivot(index="seed", columns="policy", values="value")[
            part.policy.unique()
        ]
        for setting, part in parts
    }


def ranked(rows: Sequence[Row], setting: str) -> list[str]:
    """Return the labels of a setting's analytic policies by mean freshness, the best first.

    A policy is left out if it exceeds the bandwidth on average, or lacks some seeds.
    """
    analytic_rows = [
        row
        for row in rows
        if row.setting == setting and row.policy not in (*OURS, *FURTHER_REFERENCES)
    ]
    fresh = by_seed(analytic_rows, "freshness").get(setting, pd.DataFrame()).dropna(axis=1)
    if fresh.empty:
        return []
    spent = by_seed(analytic_rows, "crawl_rate")[setting].mean()
    limit = (1.0 + OVERSPENT) * float(STRESS[setting]["bandwidth"])
    within = fresh.mean()[spent[fresh.columns] <= limit]
    return list(within.sort_values(ascending=False, kind="stable").index)


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of the best analytic policy by setting, gains over it, and overall scores.

    Normalised freshness is 0 for round robin and 1 for the best analytic policy: the difference to
    round robin on each seed, over the mean difference of the best. Intervals are computed by
    :mod:`scripts.study.intervals` for fixed best policies and mean differences.
    """
    fresh = by_seed(rows, "freshness")
    order = {name: ranked(rows, name) for name in STRESS if REFERENCE in fresh.get(name, ())}
    best = {setting: labels[0] for setting, labels in order.items() if labels}
    in_slots = {
        setting: next((label for label in order[setting] if label != AT_INSTANTS), "")
        for setting in best
    }
    derived = [
        row._replace(policy=name)
        for name, by_setting in ((BEST, best), (BEST_IN_SLOTS, in_slots))
        for row in rows
        if by_setting.get(row.setting) == row.policy
    ]
    for setting, rival in best.items():
        derived += _over_best(setting, fresh[setting], rival)
        derived += [Row(ID, setting, label, 0, LEFT_OUT, 1.0) for label in left_out(setting)]
    return derived + list(_together(fresh, best))


def _over_best(setting: str, fresh: pd.DataFrame, rival: str) -> Iterator[Row]:
    """Yield by seed how far OURS are above the best analytic policy, and the two kinds of means."""
    for label in (name for name in OURS if name in fresh):
        paired = (fresh[label] - fresh[rival]).dropna()
        for seed, value in paired.items():
            yield Row(ID, setting, label, int(str(seed)), OVER_BEST, float(value))
        scores = paired.to_numpy()[:, None]
        middle = intervals.interquartile_mean(scores)
        yield from intervals.mean(scores).rows(ID, setting, label, f"{OVER_BEST}, mean")
        yield from middle.rows(ID, setting, label, f"{OVER_BEST}, IQM")


def _together(fresh: Mapping[str, pd.DataFrame], best: Mapping[str, str]) -> Iterator[Row]:
    """Yield rows of each policy's normalised freshness over all its settings, by common seeds.

    Settings in which round robin is the best are left out.
    """
    labels = dict.fromkeys(label for setting in best for label in fresh[setting])
    gaps = {
        name: fresh[name][rival].mean() - fresh[name][REFERENCE].mean()
        for name, rival in best.items()
    }
    for label in (*labels, BEST):
        parts = {
            name: fresh[name][[rival if label == BEST else label, REFERENCE, rival]].set_axis(
                ["own", "low", "top"], axis=1
            )
            for name, rival in best.items()
            if rival != REFERENCE and (label == BEST or label in fresh[name])
        }
        if not parts:
            continue
        common = pd.concat(parts, axis=1).dropna().swaplevel(axis=1)
        scores, low, top = (common[kind].to_numpy() for kind in ("own", "low", "top"))
        if not len(scores):
            continue
        middle = intervals.interquartile_mean((scores - low) / [gaps[name] for name in parts])
        yield from middle.rows(ID, TOGETHER, label, NORMALISED)
        yield Row(ID, TOGETHER, label, 0, SETTINGS_PLAYED, float(len(parts)))
        if label in OURS:
            better = intervals.probability_of_improvement(scores, top)
            yield from better.rows(ID, TOGETHER, label, IMPROVEMENT)
            share = intervals.share_improved(scores - top)
            yield from share.rows(ID, TOGETHER, label, SHARE_IMPROVED)


def draw_together(rows: Sequence[Row], path: Path) -> None:
    """Draw the interquartile mean of each policy's normalised freshness, the best on top."""
    from scripts.present import charts

    together = [row for row in rows if row.setting == TOGETHER]
    ends = dict(
        zip((NORMALISED + end for end in intervals.ENDS), ("x", "low", "high"), strict=True)
    )
    data = means.table(together, *ends, SETTINGS_PLAYED)
    data = data.pivot(index="policy", columns="metric", values="value").rename(columns=ends)
    data = data[data[SETTINGS_PLAYED] > len(STRESS) / 2].sort_values("x", ascending=False)
    always = (*OURS, "Greedy", "LambdaCrawl", "UniformCrawl", REFERENCE, "RandomCrawl")
    drawn = data[(np.arange(len(data)) < MAX_DRAWN) | data.index.isin(always)].drop(
        columns=SETTINGS_PLAYED
    )
    names = [name if x > MIN_SCORE else f"{name} ({x:.1f})" for name, x in drawn.x.items()]
    charts.dots(
        drawn.clip(lower=MIN_SCORE).assign(y=names),
        path,
        charts.Frame(
            f"{TITLE}: interquartile mean over settings and seeds, 95% bootstrap intervals\n"
            f"the best {MAX_DRAWN} of {len(data)}, and some others",
            charts.Axis(
                f"{NORMALISED}: round robin 0, best analytic policy of each setting 1",
                limits=(MIN_SCORE, 1.15),
            ),
            size=(5.6, 0.0),
            upright=[charts.Rule(0.0), charts.Rule(1.0)],
        ),
    )


COMPARED = (*OURS, REFERENCE)
WITHIN = {f"differences up to {MAX_DIFFERENCE:g}": MAX_DIFFERENCE, "all policies": math.inf}
"""Largest differences to the best that panels show."""

EXPERIMENT = Experiment(
    name="agents-stress",
    title=TITLE,
    claim=(
        "If an assumption of the formulas fails, one trained agent may be fresher than every "
        "formula on the same events, even the best formula chosen afterwards, and than the "
        "belief that it corrects."
    ),
    metric="freshness",
    references=(REFERENCE, *FURTHER_REFERENCES),
    repetitions=30,
    settings=measurements,
    derive=derive,
    expected=_expected(),
    pictures={
        "over_best": dots(
            [
                Series("freshness", panel, "{policy}", COMPARED, tuple(STRESS), BEST, within=within)
                for panel, within in WITHIN.items()
            ],
            Frame(
                f"{TITLE}: freshness less that of the {BEST} policy of each setting,\n"
                "which is chosen afterwards; {seeds} paired seeds, 95% intervals",
                Axis("difference in freshness"),
                shared="y",
                upright=[Rule(0.0, dash="-")],
            ),
            y="{setting}",
            labels=COMPARED,
        ),
        "together": draw_together,
    },
)
