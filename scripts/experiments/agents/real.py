"""Beliefs that learn on recorded histories, with and without earlier days of the same site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import agents
import policies as crawl_policies
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.evaluation import Row, play
from crawl_envs.instances import traces
from crawl_envs.instances.traces import Signals
from crawl_envs.types import FloatArray, Reveal
from policies.ncis.belief import BeliefNCIS, History
from scripts.experiments.real.setup import sites as histories
from scripts.experiments.real.setup.clairvoyant import clairvoyant
from scripts.experiments.real.setup.history import past
from scripts.experiments.real.setup.sites import Split
from scripts.reporting import intervals
from scripts.reporting.settings import Measurement
from scripts.reporting.verdicts import Expected, Trend

TITLE = "Beliefs on recorded histories"
CLAIM = (
    "With earlier days of the same site to learn from, BELIEF-NCIS has a higher normalised score "
    "(round robin 0, clairvoyant 1) than GREEDY-NCIS with parameters fitted to those days."
)
METRIC = "normalised score"
REFERENCE = "round robin"
STARTS = (0.5, 0.4, 0.45, 0.55, 0.6)
"""Starts of the days that are played, as shares of a record; seed i plays the i-th."""
LENGTH = 0.5
"""Longest stretch that is played, as a share of the record. Stretches overlap."""
REPETITIONS, QUICK_REPETITIONS = len(STARTS), 1

BUDGETS = (10, 30, 100, 3)
EVERY_SPLIT = "uniform"
"""The importance with which every split is played; with others only the first is."""
IMPORTANCES = ("uniform", "zipf")
CLAIRVOYANT = "clairvoyant"
SHIPPED = {"Nutch": "NutchAdaptive", "StormCrawler": "StormCrawlerAdaptive"}
"""Rules of public crawlers. Each slot of the budget goes to the page that is due first."""
FORMULA = "GREEDY-NCIS, both"
LEARNING = "LEARNING, from nothing"
BELIEF = "BELIEF, from nothing"
HISTORY = "BELIEF, with history"
FITTED = "BELIEF, fitted parameters"
AGENT, SAVED_AS = "agent", "histories"
LABELS = (AGENT, HISTORY, FITTED, BELIEF, LEARNING, FORMULA, "GREEDY", *SHIPPED)
MEMORY, PACE_MEMORY = 400.0, 120.0
"""Days, the same for all sites; chosen on the second quarter of the records, given the first.
Splits that start before the middle play some of these days again; the others none."""

EIGHT_SITES = histories.SITES[1:]
"""Sites whose traces come from public repositories; one other trace is shipped."""
TOGETHER, EIGHT = "all sites", "eight sites"
OVER_SITES = f"{METRIC}, bootstrap over sites"
"""Mean over splits and sites; the ends of its interval are ``<this>, low`` and ``<this>, high``."""
OVER_FORMULA = f"{METRIC} minus that of {FORMULA}, bootstrap over sites"
"""The same for differences on the same sites and splits."""


def name_of(site: str, days: int, importance: str) -> str:
    """Return the name of a setting."""
    return f"{site}, {days} days, {importance}"


def split_of(days: float, number: int) -> Split:
    """Return the days to play on a seed, and all days before them to fit to and to learn from."""
    start = STARTS[number] * days
    return Split(0.0, start, start, min(start + LENGTH * days, days))


def environment(
    seed: int, signals: Signals, site: str, days: int, importance: str, reveal: Reveal
) -> CrawlEnv:
    """Return the environment of a split of a record, reset."""
    trace = histories.record(site)
    env = histories.replayed(
        trace,
        split_of(trace.days, seed),
        signals=signals,
        days_per_crawl=float(days),
        importance=importance,
        reveal=reveal,
    )
    env.reset(seed=seed)
    return env


def crawled(
    seed: int,
    *,
    policy: str,
    signals: Signals,
    site: str,
    days: int,
    importance: str,
    reveal: Reveal = "parameters",
) -> Mapping[str, float]:
    """Return freshness of a policy on a split of a record."""
    env = environment(seed, signals, site, days, importance, reveal)
    return {"freshness": play(env, crawl_policies.make(policy, env), seed).freshness}


def remembered(
    seed: int, *, memory: float, pace_memory: float, site: str, days: int, importance: str
) -> Mapping[str, float]:
    """Return freshness of BELIEF-NCIS with importance and the history of all earlier days."""
    env = environment(seed, "both", site, days, importance, "importance")
    policy = BeliefNCIS(env, history=before(site, seed), memory=memory, pace_memory=pace_memory)
    return {"freshness": play(env, policy, seed).freshness}


def learned(
    seed: int,
    *,
    name: str,
    memory: float,
    pace_memory: float,
    site: str,
    days: int,
    importance: str,
) -> Mapping[str, float]:
    """Return freshness of a trained correction of BELIEF-NCIS with that history."""
    env = environment(seed, "both", site, days, importance, "importance")
    agent: Any = agents.load(name, env)
    agent.history, agent.memory, agent.pace_memory = before(site, seed), memory, pace_memory
    return {"freshness": play(env, agent, seed).freshness}


def before(site: str, seed: int) -> History:
    """Return the history of all days before a split, with both signals."""
    trace = histories.record(site)
    split = split_of(trace.days, seed)
    return past(trace, split.fit_start, split.fit_end, "both")


def foreseen(seed: int, *, site: str, days: int, importance: str) -> Mapping[str, float]:
    """Return freshness of the clairvoyant."""
    env = environment(seed, "none", site, days, importance, "parameters")
    tape, instance = env.lanes.tape, env.instance
    assert tape is not None
    pages = clairvoyant(tape, instance.importance, instance.bandwidth, env.lanes.horizon)
    for page in pages:
        env.step(page)
    return {"freshness": env.ledger().freshness}


MEASURES: dict[str, Any] = {
    REFERENCE: partial(crawled, policy="RoundRobin", signals="none"),
    CLAIRVOYANT: foreseen,
    **{
        label: partial(crawled, policy=name, signals="none", reveal="importance")
        for label, name in SHIPPED.items()
    },
    "GREEDY": partial(crawled, policy="Greedy", signals="none"),
    FORMULA: partial(crawled, policy="GreedyNCIS", signals="both"),
    LEARNING: partial(crawled, policy="LearningGreedyNCIS", signals="both", reveal="importance"),
    BELIEF: partial(crawled, policy="BeliefNCIS", signals="both", reveal="importance"),
    HISTORY: partial(remembered, memory=MEMORY, pace_memory=PACE_MEMORY),
    FITTED: partial(crawled, policy="BeliefNCIS", signals="both"),
}
"""Measures by label; with the trained agent, if there is one."""
if SAVED_AS in agents.names():
    MEASURES[AGENT] = partial(learned, name=SAVED_AS, memory=MEMORY, pace_memory=PACE_MEMORY)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return measurements of every available site, at every budget and importance."""
    sites = tuple(histories.sites()) if not quick else traces.shipped()
    cells = [(days, importance) for importance in IMPORTANCES for days in BUDGETS]
    return [
        Measurement(
            name_of(site, days, importance),
            MEASURES,
            {"site": site, "days": days, "importance": importance},
            "CrawlTrace-v0",
            most=len(STARTS) if importance == EVERY_SPLIT else 1,
        )
        for days, importance in (cells if not quick else [(30, "uniform")])
        for site in sites
    ]


def _expected() -> tuple[Expected, ...]:
    """Return the expectations on all sites together, and on the eight that are not shipped."""
    where = tuple(
        name_of(group, days, EVERY_SPLIT) for group in (TOGETHER, EIGHT) for days in BUDGETS
    )
    source = "over splits, as if they did not overlap"
    return tuple(
        Trend(first, "above", second, where, source)
        for first, second in (
            (HISTORY, FORMULA),
            (HISTORY, BELIEF),
            (HISTORY, FITTED),
            (FITTED, FORMULA),
            (BELIEF, LEARNING),
            *(((AGENT, HISTORY),) if AGENT in MEASURES else ()),
        )
    )


CLAIMS = ()
EXPECTED = _expected()

Scores = dict[tuple[int, str], dict[str, dict[str, dict[int, float]]]]
"""By budget and importance, label, site and split."""


def scores_of(rows: Sequence[Row]) -> Scores:
    """Return normalised scores, round robin 0 and the clairvoyant 1, clipped to [-1, 1]."""
    fresh = {(row.setting, row.policy, row.seed): row.value for row in rows}
    scores: Scores = {}
    for (setting, label, seed), value in fresh.items():
        low, high = (
            fresh.get((setting, other, seed), np.nan) for other in (REFERENCE, CLAIRVOYANT)
        )
        if label in (REFERENCE, CLAIRVOYANT) or not high > low:
            continue
        site, days, importance = setting.split(", ")
        cell = scores.setdefault((int(days.removesuffix(" days")), importance), {})
        score = min(max((value - low) / (high - low), -1.0), 1.0)
        cell.setdefault(label, {}).setdefault(site, {})[seed] = score
    return scores


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return scores of every site and split, their means over sites, and a bootstrap over sites.

    A group of sites has a mean of a label only where all its sites have rows.
    """
    derived = []
    sites = sorted({row.setting.partition(",")[0] for row in rows})
    for (days, importance), by_label in scores_of(rows).items():
        for label, by_site in by_label.items():
            for site, by_split in by_site.items():
                name = name_of(site, days, importance)
                derived += [_row(name, label, seed, METRIC, by_split[seed]) for seed in by_split]
        for group, members in ((TOGETHER, sites), (EIGHT, EIGHT_SITES)):
            derived += _together(name_of(group, days, importance), by_label, members)
    return derived


def _together(
    name: str, by_label: Mapping[str, Mapping[str, Mapping[int, float]]], sites: Sequence[str]
) -> Iterator[Row]:
    """Yield means over sites on each split that all of them have, and bootstraps over the sites."""
    formula = [by_label.get(FORMULA, {}).get(site, {}) for site in sites]
    for label, by_site in by_label.items():
        table = _table([by_site.get(site, {}) for site in sites])
        for seed, value in table.items():
            yield _row(name, label, seed, METRIC, float(value.mean()))
        reference = _table(formula)
        both = [table[seed] - reference[seed] for seed in table if seed in reference]
        for metric, values in ((OVER_SITES, list(table.values())), (OVER_FORMULA, both)):
            if values:
                estimate = intervals.mean(np.mean(values, axis=0)[:, None])
                for end, value in zip(("", ", low", ", high"), estimate, strict=True):
                    yield _row(name, label, 0, metric + end, value)


def _table(by_site: Sequence[Mapping[int, float]]) -> dict[int, FloatArray]:
    """Return values of all sites on each split that all of them have."""
    splits = sorted(set.intersection(*(set(by_split) for by_split in by_site)))
    return {seed: np.array([by_split[seed] for by_split in by_site]) for seed in splits}


def _row(setting: str, label: str, seed: int, metric: str, value: float) -> Row:
    return Row("CrawlTrace-v0", setting, label, seed, metric, value)


def _of_sites(rows: Sequence[Row], path: Path) -> None:
    """Draw the scores of single sites, the mean over their splits.

    Only budgets that were played on all sites, at every importance that has rows.
    """
    from scripts.experiments.real.setup.charts import scores
    from scripts.reporting.means import means, table

    values = table(rows, METRIC)
    site = values.setting.str.partition(", ")
    budgets = set(site[2][site[0].isin([TOGETHER])])
    days = {text.partition(",")[0] for text in budgets}
    importances = {text.partition(", ")[2] for text in budgets}
    whole = {each for each in days if all(f"{each}, {name}" in budgets for name in importances)}
    single = ~site[0].isin([TOGETHER, EIGHT]) & site[2].str.partition(",")[0].isin(whole)
    drawn = means(values[single]).rename(columns={"mean": "value"})
    scores(drawn, path, title=TITLE, labels=LABELS)


def _against_budget(rows: Sequence[Row], path: Path) -> None:
    """Draw mean scores against the budget."""
    from scripts.experiments.real.setup.charts import mean_scores
    from scripts.reporting.means import table

    group = EIGHT if any(row.setting.startswith(EIGHT) for row in rows) else TOGETHER
    kept = [row for row in rows if row.setting.startswith(group)]
    ends = {OVER_SITES: "value", f"{OVER_SITES}, low": "low", f"{OVER_SITES}, high": "high"}
    values = table(kept, *ends).pivot(index=["setting", "policy"], columns="metric", values="value")
    values = values.rename(columns=ends).reset_index()
    mean_scores(values, path, title=f"{TITLE}, {group}", labels=LABELS)


PICTURES = {"sites": _of_sites, "budgets": _against_budget}
