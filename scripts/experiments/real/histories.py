"""Recorded histories of real sites: freshness of formulas and learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import policies as crawl_policies
from crawl_envs.evaluation import Row, play
from crawl_envs.instances import traces
from crawl_envs.instances.traces import Signals
from scripts.experiments.real.setup import sites as histories
from scripts.experiments.real.setup.assumptions import assumptions
from scripts.present.verdicts import Trend
from scripts.study.clairvoyant import clairvoyant
from scripts.study.settings import Measurement

TITLE = "Recorded histories of real sites"
CLAIM = (
    "A policy that is given importance alone and learns while crawling is fresher than round "
    "robin at every budget, and where crawls are many as fresh as GREEDY-NCIS with parameters "
    "fitted to all earlier days."
)
METRIC, SCORE = "freshness", "normalised score"
REFERENCE = "round robin"
REPETITIONS, QUICK_REPETITIONS = histories.QUARTERS, 2

BUDGETS = (3, 10, 30, 100)
IMPORTANCES = ("uniform", "zipf")
CLAIRVOYANT = "clairvoyant"
LEARNING = "LEARNING, both"
RECORD = "record"
TOGETHER = "all sites"


def name_of(site: str, days: int, importance: str) -> str:
    """Return the name of a setting."""
    return f"{site}, {days} days, {importance}"


def crawled(
    seed: int,
    *,
    policy: str,
    signals: Signals,
    site: str,
    days: int,
    importance: str,
    fit_to_played: bool = False,
    reveal: Any = "parameters",
    grouped: bool = False,
    **arguments: Any,
) -> Mapping[str, float]:
    """Return freshness of a policy on one quarter of the second half of a record."""
    trace = histories.record(site)
    env = histories.replayed(
        trace,
        histories.quarter(trace.days, seed),
        signals=signals,
        days_per_crawl=float(days),
        importance=importance,
        fit_to_played=fit_to_played,
        reveal=reveal,
    )
    env.reset(seed=seed)
    if grouped:
        arguments["groups"] = trace.directory
    ledger = play(env, crawl_policies.make(policy, env, **arguments), seed)
    return {"freshness": ledger.freshness}


def foreseen(seed: int, *, site: str, days: int, importance: str) -> Mapping[str, float]:
    """Return freshness of the clairvoyant."""
    trace = histories.record(site)
    env = histories.replayed(
        trace,
        histories.quarter(trace.days, seed),
        signals="none",
        days_per_crawl=float(days),
        importance=importance,
    )
    env.reset(seed=seed)
    tape, instance = env.lanes.tape, env.instance
    assert tape is not None
    pages = clairvoyant(tape, instance.importance, instance.bandwidth, env.lanes.horizon)
    for page in pages:
        env.step(page)
    return {"freshness": env.ledger().freshness}


def recorded(seed: int, *, site: str) -> Mapping[str, float]:
    """Return how far a quarter of a record is from the assumptions of the formulas."""
    trace = histories.record(site)
    return assumptions(trace, histories.quarter(trace.days, seed))


MEASURES: dict[str, Any] = {
    REFERENCE: partial(crawled, policy="RoundRobin", signals="none"),
    CLAIRVOYANT: foreseen,
    "GREEDY": partial(crawled, policy="Greedy", signals="none"),
    "GREEDY, rates of the days played": partial(
        crawled, policy="Greedy", signals="none", fit_to_played=True
    ),
    "GREEDY-CIS, mentions": partial(crawled, policy="GreedyCIS", signals="mentions"),
    "GREEDY-NCIS, directories": partial(crawled, policy="GreedyNCIS", signals="directory"),
    "GREEDY-NCIS, mentions": partial(crawled, policy="GreedyNCIS", signals="mentions"),
    "GREEDY-NCIS, both": partial(crawled, policy="GreedyNCIS", signals="both"),
    "LEARNING, no signals": partial(
        crawled, policy="LearningGreedyNCIS", signals="none", reveal="importance"
    ),
    LEARNING: partial(crawled, policy="LearningGreedyNCIS", signals="both", reveal="importance"),
    "LEARNING, both, a group per directory": partial(
        crawled, policy="LearningGreedyNCIS", signals="both", reveal="importance", grouped=True
    ),
}
"""Measures by label. Threshold policies are left out: without Poisson events they overspend."""


def _expected() -> tuple[Trend, ...]:
    """Return the expectations on all sites together, and on each."""
    cells = [(days, importance) for importance in IMPORTANCES for days in BUDGETS]
    together = tuple(name_of(TOGETHER, *cell) for cell in cells)
    each = tuple(name_of(site, *cell) for cell in cells for site in histories.SITES)
    single = "four quarters tell little of a single site"
    return (
        *(
            Trend(label, "above", REFERENCE, together, "over all sites and quarters")
            for label in ("GREEDY", "GREEDY-NCIS, both", "LEARNING, no signals", LEARNING)
        ),
        Trend(LEARNING, "above", "GREEDY-NCIS, both", together, "over all sites and quarters"),
        Trend(LEARNING, "not below", REFERENCE, each, single),
    )


CLAIMS = ()
EXPECTED = _expected()


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return measurements of every available site, at every budget and importance."""
    sites = tuple(histories.sites()) if not quick else traces.shipped()
    records = [
        Measurement(
            f"{site}, {RECORD}",
            {RECORD: recorded},
            {"site": site},
            "CrawlTrace-v0",
            most=histories.QUARTERS,
        )
        for site in sites
    ]
    return records + [
        Measurement(
            name_of(site, days, importance),
            MEASURES,
            {"site": site, "days": days, "importance": importance},
            "CrawlTrace-v0",
            most=histories.QUARTERS,
        )
        for importance in IMPORTANCES[: 1 if quick else None]
        for days in BUDGETS[2 if quick else 0 : 3 if quick else None]
        for site in sites
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return normalised scores, round robin 0 and the clairvoyant 1, and all sites together.

    A score is of the means over the quarters (seed 0). Together, each quarter of a site is a seed.
    """
    kept = [row for row in rows if row.metric == METRIC]
    means: dict[str, dict[str, list[float]]] = {}
    for row in kept:
        means.setdefault(row.setting, {}).setdefault(row.policy, []).append(row.value)
    scores = []
    for setting, by_label in means.items():
        mean = {label: float(np.mean(values)) for label, values in by_label.items()}
        low, high = mean.get(REFERENCE, np.nan), mean.get(CLAIRVOYANT, np.nan)
        scores += [
            Row("CrawlTrace-v0", setting, label, 0, SCORE, (value - low) / (high - low))
            for label, value in mean.items()
            if high > low and label not in (REFERENCE, CLAIRVOYANT)
        ]
    sites = {site: number for number, site in enumerate(sorted({_site(row) for row in kept}))}
    together = [
        row._replace(
            setting=row.setting.replace(_site(row), TOGETHER, 1),
            seed=histories.QUARTERS * sites[_site(row)] + row.seed,
        )
        for row in kept
    ]
    return scores + together


def _site(row: Row) -> str:
    return row.setting.partition(",")[0]


def _scores(rows: Sequence[Row], path: Path) -> None:
    """Draw the normalised scores of all policies."""
    from scripts.experiments.real.setup.charts import scores
    from scripts.study.means import table

    scores(table(rows, SCORE), path, title=TITLE, labels=tuple(MEASURES))


def _differences(rows: Sequence[Row], path: Path) -> None:
    """Draw freshness minus that of round robin, of some policies under uniform importance."""
    from scripts.experiments.real.setup.charts import differences

    kept = [row for row in rows if row.setting.endswith(IMPORTANCES[0]) and _site(row) != TOGETHER]
    labels = ("GREEDY", "GREEDY-NCIS, both", LEARNING)
    title = f"{TITLE}, uniform importance"
    differences(kept, path, title=title, labels=labels, reference=REFERENCE)


def _assumptions(rows: Sequence[Row], path: Path) -> None:
    """Draw how far sites are from the assumptions of the formulas."""
    from scripts.experiments.real.setup.charts import distances

    distances([row for row in rows if row.policy == RECORD], path)


PICTURES = {"scores": _scores, "differences": _differences, "assumptions": _assumptions}
