"""Compare beliefs that learn on recorded sites, with and without earlier days of the site."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import agents
import policies as crawl_policies
from agents.index import LearnedIndex
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.evaluation import Row
from crawl_envs.instances import traces
from policies.ncis.belief import History
from scripts.data.replays import Split, past
from scripts.experiments.measures import recorded
from scripts.experiments.measures.recorded import IMPORTANCES, freshness_of, name_of
from scripts.experiments.measures.site_logs import fitted_to_log, index_of_log
from scripts.present.experiment import Experiment
from scripts.present.filled_tables import Key, markdown
from scripts.present.verdicts import Trend, minus
from scripts.study import intervals
from scripts.study.equal_freshness import Saved, median_saved, saved
from scripts.study.settings import Measurement, spec

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Beliefs on recorded histories"
ID = "CrawlTrace-v0"
METRIC = "normalised score"
REFERENCE = "round robin"
STARTS = (0.5, 0.4, 0.45, 0.55, 0.6)
"""Start of the simulated days as a share of a record, by seed."""
LENGTH = 0.5
"""Longest simulated part, as a share of the record. Parts overlap."""

BUDGETS = (10, 30, 100, 3)
EVERY_SPLIT = "uniform"
"""The importance with which all splits are simulated; with others only the first."""
CLAIRVOYANT = "clairvoyant"
SHIPPED = {"Nutch": "NutchAdaptive", "StormCrawler": "StormCrawlerAdaptive"}
"""Rules of public crawlers; each slot of the budget goes to the page that is due first."""
FORMULA = "GREEDY-NCIS, both"
LEARNING = "LEARNING, from nothing"
BELIEF = "BELIEF, from nothing"
INDEX, FORMULA_OF_LOG = "INDEX, from a log", "GREEDY-NCIS, from a log"
LOGGED, REFUSED = (10, 30), "log refused"
"""Budgets at which policies know a log of a crawler with that budget; and a metric."""
HISTORY = "BELIEF, with history"
FITTED = "BELIEF, fitted parameters"
AGENT, SAVED_AS = "agent", "histories"
LABELS = (
    AGENT,
    HISTORY,
    FITTED,
    BELIEF,
    LEARNING,
    FORMULA,
    INDEX,
    FORMULA_OF_LOG,
    "GREEDY",
    *SHIPPED,
)
MEMORY, PACE_MEMORY = 400.0, 120.0
"""Days, the same for all sites. They were chosen on the second quarter of the records after
learning from the first; splits that start before the middle simulate part of that quarter."""

EIGHT_SITES = recorded.SITES[1:]
"""Sites whose traces come from public repositories, without the shipped trace."""
TOGETHER, EIGHT = recorded.ALL_SITES, recorded.EIGHT_SITES
"""Settings of means over sites and splits, with the ends of their 95% intervals."""
STALE = "stale, percent"
"""100 (1 - freshness), the share of page-time, weighted by importance as freshness is."""
SPLITS = "splits"
"""Number of splits in a mean over sites and splits."""
SHIFT = 1.04
"""Ratio of horizontal positions of two labels, so that their points do not overlap."""
COMPARED = (FORMULA, LEARNING)
"""Labels whose score is subtracted from that of every other; PAIRS are compared as well."""
PAIRS = (
    (HISTORY, FORMULA),
    (HISTORY, BELIEF),
    (HISTORY, FITTED),
    (FITTED, FORMULA),
    (BELIEF, LEARNING),
    (AGENT, HISTORY),
    (INDEX, FORMULA_OF_LOG),
    (FORMULA_OF_LOG, FORMULA),
)
SAVED = {label: f"crawls saved against {label}, percent" for label in (FORMULA, REFERENCE)}
"""Share of a label's crawls that HISTORY saves at equal freshness; a range where it is unknown."""


@spec("overlapping-splits")
def split_of(days: float, number: int) -> Split:
    """Return the days to simulate of a split, and the earlier days to fit and learn from."""
    start = STARTS[number] * days
    return Split(0.0, start, start, min(start + LENGTH * days, days))


def env_with_hidden_rates(seed: int, setting: Mapping[str, Any]) -> CrawlEnv:
    """Return the environment of a site's split ``seed``, with both signals and hidden rates."""
    options: Any = {"signals": "both", "reveal": "importance", "splitting": split_of}
    return recorded.reset_env(seed, **setting, **options)


@spec("recorded-belief-with-history")
def remembered(
    seed: int, *, memory: float, pace_memory: float, **setting: Any
) -> Mapping[str, float]:
    """Return the freshness of BELIEF-NCIS, given importance and the history of all earlier days."""
    env, history = env_with_hidden_rates(seed, setting), before(setting["site"], seed)
    policy = crawl_policies.make(
        "BeliefNCIS", env, history=history, memory=memory, pace_memory=pace_memory
    )
    return freshness_of(env, policy, seed)


@spec("recorded-agent-with-history")
def learned(
    seed: int, *, name: str, memory: float, pace_memory: float, **setting: Any
) -> Mapping[str, float]:
    """Return the freshness of a trained correction of BELIEF-NCIS that knows all earlier days."""
    env, history = env_with_hidden_rates(seed, setting), before(setting["site"], seed)
    agent: Any = agents.load(name, env)
    agent.history, agent.memory, agent.pace_memory = history, memory, pace_memory
    return freshness_of(env, agent, seed)


@spec("recorded-from-log")
def by_log(seed: int, *, index: bool, site: str, days: int, importance: str) -> Mapping[str, float]:
    """Return the freshness of GREEDY-NCIS or a learned index, fitted to a log of earlier days.

    Freshness is NaN and REFUSED is 1 if the log is too small or the fit does not converge.
    """
    log = site, days, seed, split_of(recorded.record(site).days, seed).start
    try:
        parameters = fitted_to_log(*log)
        learned_index = index_of_log(*log) if index else None
    except ValueError:
        return {"freshness": math.nan, REFUSED: 1.0}
    setting: Any = {"site": site, "days": days, "importance": importance, "splitting": split_of}
    env = recorded.reset_env(seed, **setting, signals="both", known=parameters)
    if learned_index is None:
        policy = crawl_policies.make("GreedyNCIS", env)
    else:
        policy = crawl_policies.bind(LearnedIndex(index=learned_index), env)
    return {**freshness_of(env, policy, seed), REFUSED: 0.0}


def before(site: str, seed: int) -> History:
    """Return the history of all days before the split of this seed, with both kinds of signals."""
    trace = recorded.record(site)
    split = split_of(trace.days, seed)
    return past(trace, split.fit_start, split.fit_end, "both")


crawled = partial(recorded.crawled, splitting=split_of)
MEASURES: dict[str, Any] = {
    REFERENCE: partial(crawled, policy="RoundRobin", signals="none"),
    CLAIRVOYANT: partial(recorded.foreseen, splitting=split_of),
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
"""Measures by label, and that of the trained agent if it is available."""
BY_LOG: dict[str, Any] = {
    INDEX: partial(by_log, index=True),
    FORMULA_OF_LOG: partial(by_log, index=False),
}
if SAVED_AS in agents.names():
    MEASURES[AGENT] = partial(learned, name=SAVED_AS, memory=MEMORY, pace_memory=PACE_MEMORY)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return a measurement for each available site, budget and importance."""
    sites = tuple(recorded.sites()) if not quick else traces.shipped()
    cells = [(days, importance) for importance in IMPORTANCES for days in BUDGETS]
    return [
        Measurement(
            name_of(site, days, importance),
            MEASURES | (BY_LOG if days in LOGGED and importance == EVERY_SPLIT else {}),
            {"site": site, "days": days, "importance": importance},
            ID,
            most=len(STARTS) if importance == EVERY_SPLIT else 1,
        )
        for days, importance in (cells if not quick else [(30, "uniform")])
        for site in sites
    ]


def played_of(rows: Sequence[Row]) -> pd.DataFrame:
    """Return a table of freshness: a column per label; rows by importance, days, site and seed."""
    from scripts.study.means import table

    fresh = recorded.with_cells(table(rows, "freshness"))
    keys = ["importance", "days", "site", "seed"]
    return fresh.pivot(index=keys, columns="policy", values="value")


def scores_of(fresh: pd.DataFrame) -> pd.DataFrame:
    """Return scores from freshness: round robin is 0, the clairvoyant 1; clipped to [-1, 1]."""
    ends = fresh.reindex(columns=[REFERENCE, CLAIRVOYANT])
    low, high = ends[REFERENCE], ends[CLAIRVOYANT]
    scores = fresh.drop(columns=ends.columns, errors="ignore").sub(low, axis=0)
    return scores.div((high - low).where(high > low), axis=0).clip(-1.0, 1.0)


def groups_of(fresh: pd.DataFrame) -> dict[str, Sequence[str]]:
    """Return the names of the sites in each group of sites, by the group's name."""
    return {TOGETHER: sorted(set(fresh.index.get_level_values("site"))), EIGHT: EIGHT_SITES}


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of scores and stale page-time by site and by group, and of saved crawls.

    A group has a label's mean only if all its sites have the label; it covers their common splits.
    """
    fresh = played_of(rows)
    derived = []
    for metric, values in ((METRIC, scores_of(fresh)), (STALE, 100.0 * (1.0 - fresh))):
        for (importance, days, site, seed), by_label in values.iterrows():
            name = name_of(site, days, importance)
            numbers = by_label.dropna().items()
            derived += [Row(ID, name, label, seed, metric, value) for label, value in numbers]
        for (importance, days), cell in values.groupby(level=["importance", "days"]):
            for group, sites in groups_of(fresh).items():
                derived += _together(name_of(group, days, importance), metric, cell, sites)
    return derived + list(_saved(fresh))


def _together(name: str, metric: str, cell: pd.DataFrame, sites: Sequence[str]) -> Iterator[Row]:
    """Yield rows of mean scores and score differences over sites and splits, with intervals."""
    by_label = {
        label: values.droplevel(["importance", "days"]).unstack().reindex(sites).dropna(axis=1)
        for label, values in cell.items()
    }
    for label, scores in by_label.items():
        measured = {metric: scores}
        for second in (*COMPARED, *(second for first, second in PAIRS if first == label)):
            if metric == METRIC and second in by_label and second != label:
                measured[minus(metric, second)] = (scores - by_label[second]).dropna(axis=1)
        for name_of_mean, values in measured.items():
            if values.size:
                mean = intervals.mean(values.to_numpy()).rows(ID, name, label, name_of_mean)
                yield from mean if metric == METRIC else mean[:1]
        if scores.size and metric == METRIC:
            yield Row(ID, name, label, 0, SPLITS, scores.shape[1])


def _saved(freshness: pd.DataFrame) -> Iterator[Row]:
    """Yield the shares of crawls that HISTORY saves at equal freshness, by site, and their medians.

    Freshness is a mean over common splits, at the budgets with the largest number of splits.
    """
    shares: dict[tuple[str, int, str], dict[str, Saved]] = {}
    for base in SAVED:
        pair = freshness.reindex(columns=[HISTORY, base]).dropna()
        for (importance, site), part in pair.groupby(level=["importance", "site"]):
            both = part.unstack("days")
            splits = both.count()
            fresh = both.loc[:, splits == splits.max()].dropna().mean()  # by label and days
            curve = fresh[HISTORY][::-1]  # from the fewest crawls
            for days, level in fresh[base].items():
                share = saved(level, 1.0 / days, 1.0 / curve.index, curve)
                shares.setdefault((importance, days, base), {})[site] = share
    for (importance, days, base), by_site in shares.items():
        for group, sites in groups_of(freshness).items():
            if {*sites} <= {*by_site}:
                by_site = by_site | {group: median_saved([by_site[site] for site in sites])}
        for site, share in by_site.items():
            yield from share.rows(ID, name_of(site, days, importance), HISTORY, SAVED[base])


def _of_sites(rows: Sequence[Row], path: Path) -> None:
    """Draw the score of each site, as its mean over splits.

    A budget is left out if some importance that has rows lacks rows of all sites at this budget.
    """
    from scripts.study.means import means, table

    values = recorded.with_cells(table(rows, METRIC))
    counts = values[values.site == TOGETHER].groupby("days").importance.nunique()
    complete = values.days.isin(counts.index[counts == counts.max()])
    single = ~values.site.isin([TOGETHER, EIGHT])
    drawn = means(values[single & complete]).rename(columns={"mean": "value"})
    recorded.draw_scores(drawn, path, title=TITLE, labels=LABELS)


def _against_budget(rows: Sequence[Row], path: Path) -> None:
    """Draw the group's mean scores with their intervals, against the days per crawl."""
    from scripts.present import charts
    from scripts.study.means import table

    group = _group(rows)
    cells = recorded.cells_of(row.setting for row in rows)
    ends = dict(zip((METRIC + end for end in intervals.ENDS), ("y", "low", "high"), strict=True))
    values = table([row for row in rows if cells[row.setting].site == group], *ends)
    values = values.pivot(index=["setting", "policy"], columns="metric", values="value")
    data = recorded.with_cells(values.rename(columns=ends).reset_index())
    drawn = [label for label in LABELS if label not in BY_LOG]  # these have one budget
    place = data.policy.map({label: k for k, label in enumerate(drawn)}) - (len(drawn) - 1) / 2
    charts.lines(
        data.assign(
            panel=data.importance + " importance", label=data.policy, x=data.days * SHIFT**place
        ),
        path,
        charts.Frame(
            f"{TITLE}, {group}\n"
            "means over sites and splits, and bootstrap 95% intervals over sites",
            charts.Axis("days per crawl of a page", "log", ticks=sorted(set(data.days))),
            charts.Axis("normalised score, round robin 0, clairvoyant 1"),
            across=[charts.Rule(0.0, dash="-")],
        ),
        labels=drawn,
    )


def _group(rows: Sequence[Row]) -> str:
    """Return the name of the group to show: the eight sites if they have rows, else all sites."""
    cells = recorded.cells_of(row.setting for row in rows)
    return EIGHT if EIGHT in {cell.site for cell in cells.values()} else TOGETHER


def _table(rows: Sequence[Row], importance: str, lines: Mapping[str, Key], *more: str) -> str:
    """Return a Markdown table with a line per site, label and metric, and columns per budget."""
    days = sorted(BUDGETS)
    keys = {
        line: [
            (name_of(place, n, importance), label, name) for n in days for name in (metric, *more)
        ]
        for line, (place, label, metric) in lines.items()
    }
    return markdown(rows, [head for n in days for head in (f"{n} days", *more)], keys)


def _scores_table(rows: Sequence[Row], importance: str) -> str:
    labels, group = (REFERENCE, *reversed(LABELS), CLAIRVOYANT), _group(rows)
    return _table(rows, importance, {label: (group, label, METRIC) for label in labels}, STALE)


def _differences_table(rows: Sequence[Row], importance: str) -> str:
    compared = [(first, second) for second in COMPARED for first in reversed(LABELS)]
    lines = {
        f"{first} minus {second}": (_group(rows), first, minus(METRIC, second))
        for first, second in dict.fromkeys((*compared, *PAIRS))
    }
    return _table(rows, importance, lines)


def _saved_table(rows: Sequence[Row], base: str) -> str:
    places = {"median of the eight": EIGHT, "median of all": TOGETHER}
    places = {site: site for site in recorded.SITES} | places
    lines = {line: (place, HISTORY, SAVED[base]) for line, place in places.items()}
    return _table(rows, EVERY_SPLIT, lines)


EXPERIMENT = Experiment(
    name="agents-real",
    title=TITLE,
    claim=(
        "With earlier days of the same site to learn from, BELIEF-NCIS has a higher normalised "
        "score (round robin 0, clairvoyant 1) than GREEDY-NCIS with parameters fitted to those "
        "days."
    ),
    metric=METRIC,
    references=(REFERENCE,),
    intervals="bootstraps over sites, of their means over splits",
    repetitions=len(STARTS),
    quick_repetitions=1,
    settings=measurements,
    derive=derive,
    expected=tuple(
        Trend(
            first,
            "above",
            second,
            tuple(
                name_of(group, days, EVERY_SPLIT) for group in (TOGETHER, EIGHT) for days in BUDGETS
            ),
            "over sites and splits, which overlap",
        )
        for first, second in PAIRS
        if first in MEASURES | BY_LOG
    ),
    pictures={"sites": _of_sites, "budgets": _against_budget},
    tables={
        **{f"scores, {name}": partial(_scores_table, importance=name) for name in IMPORTANCES},
        **{
            f"differences, {name}": partial(_differences_table, importance=name)
            for name in IMPORTANCES
        },
        **{metric: partial(_saved_table, base=base) for base, metric in SAVED.items()},
    },
)
