"""Compare the freshness of formulas and learners on recorded histories of real sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.instances import traces
from scripts.experiments.measures import recorded
from scripts.experiments.measures.assumptions import ASSUMED, assumptions
from scripts.experiments.measures.recorded import BUDGETS, IMPORTANCES, name_of
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Trend
from scripts.study.settings import Measurement, spec

TITLE = "Recorded histories of real sites"
METRIC, SCORE = "freshness", "normalised score"
REFERENCE = "round robin"

CLAIRVOYANT = "clairvoyant"
LEARNING = "LEARNING, both"
RECORD = "record"
TOGETHER = recorded.ALL_SITES


def record_of(site: str) -> str:
    """Return the name of the setting that measures a site's full record."""
    return f"{site}, {RECORD}"


@spec("recorded-assumptions")
def assumptions_of(seed: int, *, site: str) -> Mapping[str, float]:
    """Return how far a quarter of a site's record is from the assumptions of the formulas."""
    trace = recorded.record(site)
    return assumptions(trace, recorded.quarter(trace.days, seed))


crawled = partial(recorded.crawled, splitting=recorded.quarter)
LEARNER = {"policy": "LearningGreedyNCIS", "reveal": "importance"}
MEASURES: dict[str, Any] = {
    REFERENCE: partial(crawled, policy="RoundRobin", signals="none"),
    CLAIRVOYANT: partial(recorded.foreseen, splitting=recorded.quarter),
    "GREEDY": partial(crawled, policy="Greedy", signals="none"),
    "GREEDY, rates of the days played": partial(
        crawled, policy="Greedy", signals="none", fit_to_played=True
    ),
    "GREEDY-CIS, mentions": partial(crawled, policy="GreedyCIS", signals="mentions"),
    "GREEDY-NCIS, directories": partial(crawled, policy="GreedyNCIS", signals="directory"),
    "GREEDY-NCIS, mentions": partial(crawled, policy="GreedyNCIS", signals="mentions"),
    "GREEDY-NCIS, both": partial(crawled, policy="GreedyNCIS", signals="both"),
    "LEARNING, no signals": partial(crawled, **LEARNER, signals="none"),
    LEARNING: partial(crawled, **LEARNER, signals="both"),
    "LEARNING, both, a group per directory": partial(
        crawled, **LEARNER, signals="both", grouped=True
    ),
}
"""Measures by label, except threshold policies, which overspend without Poisson events."""


def _expected() -> tuple[Trend, ...]:
    """Return the expected order of policies, over all sites together and for single sites."""
    cells = [(days, importance) for importance in IMPORTANCES for days in BUDGETS]
    together = tuple(name_of(TOGETHER, *cell) for cell in cells)
    by_site = tuple(name_of(site, *cell) for cell in cells for site in recorded.SITES)
    single = "four quarters tell little of a single site"
    return (
        *(
            Trend(label, "above", REFERENCE, together, "over all sites and quarters")
            for label in ("GREEDY", "GREEDY-NCIS, both", "LEARNING, no signals", LEARNING)
        ),
        Trend(LEARNING, "above", "GREEDY-NCIS, both", together, "over all sites and quarters"),
        Trend(LEARNING, "not below", REFERENCE, by_site, single),
    )


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return measurements of every available site: of its record, and by budget and importance."""
    sites = tuple(recorded.sites()) if not quick else traces.shipped()
    records = [
        Measurement(
            record_of(site),
            {RECORD: assumptions_of},
            {"site": site},
            "CrawlTrace-v0",
            most=recorded.QUARTERS,
        )
        for site in sites
    ]
    return records + [
        Measurement(
            name_of(site, days, importance),
            MEASURES,
            {"site": site, "days": days, "importance": importance},
            "CrawlTrace-v0",
            most=recorded.QUARTERS,
        )
        for importance in IMPORTANCES[: 1 if quick else None]
        for days in BUDGETS[2 if quick else 0 : 3 if quick else None]
        for site in sites
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of scores (round robin 0, clairvoyant 1), and the rows of all sites together.

    A score is of means over the quarters (seed 0). Together, each quarter of a site is a seed.
    """
    fresh = [row for row in rows if row.metric == METRIC]
    means: dict[str, dict[str, list[float]]] = {}
    for row in fresh:
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
    cells = recorded.cells_of(means)
    names = sorted({cell.site for cell in cells.values()})
    together = [
        row._replace(
            setting=name_of(TOGETHER, days, importance),
            seed=recorded.QUARTERS * names.index(site) + row.seed,
        )
        for row in fresh
        for site, days, importance in (cells[row.setting],)
    ]
    return scores + together


def draw_scores(rows: Sequence[Row], path: Path) -> None:
    """Draw the normalised scores of all policies, a dot per site."""
    from scripts.study.means import table

    recorded.draw_scores(table(rows, SCORE), path, title=TITLE, labels=tuple(MEASURES))


def draw_differences(rows: Sequence[Row], path: Path) -> None:
    """Draw how much freshness some policies add to round robin's, for uniform importance."""
    from scripts.present import charts
    from scripts.study.means import means, paired, table

    values = table(rows, METRIC)
    data = recorded.with_cells(means(paired(values, values[values.policy == REFERENCE])))
    data = data[(data.importance == IMPORTANCES[0]) & (data.site != TOGETHER)]
    data = data.rename(columns={"policy": "label", "mean": "x", "site": "y"})
    charts.dots(
        data.assign(panel=data.days.map("a crawl per page in {:g} days".format)),
        path,
        charts.Frame(
            f"{TITLE}, uniform importance: freshness less that of {REFERENCE}\n"
            "bars: 95% intervals over the stretches played",
            charts.Axis("difference in freshness"),
            shared="y",
            upright=[charts.Rule(0.0, dash="-")],
        ),
        labels=("GREEDY", "GREEDY-NCIS, both", LEARNING),
        names=sorted(set(data.y)),
    )


def draw_assumptions(rows: Sequence[Row], path: Path) -> None:
    """Draw how far sites are from the formulas' assumptions, a dot per site and quarter."""
    from scripts.present import charts
    from scripts.study.means import table

    records = [row for row in rows if row.policy == RECORD]
    data = table(records, *ASSUMED).rename(columns={"value": "x"})
    titles = {metric: title for metric, (title, _, _) in ASSUMED.items()}
    names = {record_of(site): site for site in recorded.places()}
    sites = recorded.look_up(data.setting, names)
    data = data.assign(y=data.setting.map(sites), panel=data.metric.map(titles))
    data = data.sort_values("panel", key=lambda names: names.map(list(titles.values()).index))
    charts.points(
        data,
        path,
        charts.Frame(
            "What formulas assume (dashed), and what sites do: "
            "a dot per quarter of the days played",
            {title: charts.Axis(scale=scale) for title, _, scale in ASSUMED.values()},
            columns=4,
            size=(2.7, 0.0),
            shared="y",
            upright=[charts.Rule(ideal, panel=title) for title, ideal, _ in ASSUMED.values()],
        ),
        names=sorted(set(data.y)),
        medians=False,
    )


EXPERIMENT = Experiment(
    name="real-histories",
    title=TITLE,
    claim=(
        "A policy that knows only importance and learns while crawling is fresher than round "
        "robin at every budget. With many crawls it is as fresh as GREEDY-NCIS with parameters "
        "fitted to all earlier days."
    ),
    metric=METRIC,
    references=(REFERENCE,),
    repetitions=recorded.QUARTERS,
    settings=measurements,
    derive=derive,
    expected=_expected(),
    pictures={
        "scores": draw_scores,
        "differences": draw_differences,
        "assumptions": draw_assumptions,
    },
)
