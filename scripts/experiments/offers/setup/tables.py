"""Tables 5 and 6 of Han et al. 2020 from rows: medians by policy and budget, as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.offers.setup.measures import NAMES
from scripts.experiments.offers.setup.paper import Table
from scripts.experiments.offers.setup.strategies import KAB5, LAMBDA_ML
from scripts.study.intervals import Interval, median_of, signed_rank
from scripts.study.rows import gathered, write_csv

Groups = Mapping[str, Sequence[str]]
OWN_CRAWLS = {"Delta_h": ("Delta_own",), "lambda_h": ("lambda_own", "lambda_own rest")}
"""Alternative readings of labels: the paper does not say which price changes it counts."""
BOLD, BEST, BETTER = "**", "*", "†"
P_VALUE = 0.05
LONG_COLUMNS = (
    "budget",
    "policy",
    "runs",
    "median",
    "low_95",
    "high_95",
    "gain",
    "gain_low_95",
    "gain_high_95",
    "p_runs",
    "days_median",
    "days_low_95",
    "days_high_95",
    "days_gain",
    "days_gain_low_95",
    "days_gain_high_95",
    "p_days",
)


class Measure(NamedTuple):
    """Metrics of a measure: of a run, of its gain over lambda_ml, and of its days."""

    value: str
    gain: str
    day: str


def by_run(rows: Sequence[Row], metric: str) -> dict[tuple[str, str], dict[int, float]]:
    """Return a metric by setting and policy, and by seed."""
    result: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row.metric == metric:
            result.setdefault((row.setting, row.policy), {})[row.seed] = row.value
    return result


def paired(
    values: Mapping[int, float], others: Mapping[int, float]
) -> tuple[list[float], list[float]]:
    """Return the values of two policies on their common seeds."""
    seeds = sorted(values.keys() & others.keys())
    return [values[seed] for seed in seeds], [others[seed] for seed in seeds]


def write_tables(
    rows: Sequence[Row],
    path: Path,
    *,
    measure: Measure,
    groups: Groups,
    beyond: Sequence[str],
    paper: Table,
    gains: Sequence[float],
) -> None:
    """Write three files: ``path``; beside it, with intervals and tests; and the paper's numbers.

    Args:
        rows: of budgets named as in the paper's tables.
        path: ``table5.csv``, in the form of the paper. Bold is the best of its group, a star the
            best of all; a dagger: KAB5 is above lambda_ml with p < .05 over runs.
        measure: of the table.
        groups: labels by group.
        beyond: labels with hidden information, which cannot be the best.
        paper: the paper's numbers.
        gains: the paper's gains of KAB5 over lambda_ml.
    """
    values = by_run(rows, measure.value)
    middles = {key: float(np.median(list(by_seed.values()))) for key, by_seed in values.items()}
    names = [name for name in NAMES if any(key[0] == name for key in middles)]
    long = list(_long(rows, measure, names))
    write_csv(path, ("group", "policy", *names), _wide(middles, names, groups, beyond, long))
    write_csv(path.with_name(f"{path.stem}_intervals.csv"), LONG_COLUMNS, long)
    write_csv(
        path.with_name(f"paper_{path.name}"),
        (
            "policy",
            "here_as",
            "budget",
            "paper",
            "here",
            "here_low_95",
            "here_high_95",
            "difference",
        ),
        _beside(long, paper, gains),
    )


def write_gains(
    rows: Sequence[Row], path: Path, *, metrics: Sequence[str], labels: Sequence[str]
) -> None:
    """Write the medians over runs of gains over lambda_ml, by budget, with intervals."""
    records = [
        (metric, name, label, len(runs), *median_of(list(runs.values())))
        for metric in metrics
        for (name, label), runs in by_run(rows, metric).items()
        if label in labels
    ]
    columns = ("metric", "budget", "policy", "runs", "median", "low_95", "high_95")
    write_csv(path, columns, records)


def _wide(
    middles: Mapping[tuple[str, str], float],
    names: Sequence[str],
    groups: Groups,
    beyond: Sequence[str],
    long: Sequence[Sequence[Any]],
) -> Iterator[list[str]]:
    """Yield the lines of the table in the form of the paper."""
    best = {
        name: max(
            value
            for (there, label), value in middles.items()
            if there == name and label not in beyond
        )
        for name in names
    }
    for group, labels in groups.items():
        known = [label for label in labels if (names[0], label) in middles]
        for label in known:
            cells = []
            for name in names:
                value = middles[name, label]
                top = max(middles[name, other] for other in known)
                text = f"{value:.4f}"
                if value == top and len(known) > 1:
                    text = f"{BOLD}{text}{BOLD}"
                marked = value == best[name] and label not in beyond
                cells.append(text + BEST * marked)
            yield [group, label, *cells]
            if label == KAB5:
                yield [group, f"+% vs. {LAMBDA_ML}", *_increases(long, names)]


def _increases(long: Sequence[Sequence[Any]], names: Sequence[str]) -> list[str]:
    records = {row[0]: dict(zip(LONG_COLUMNS, row, strict=True)) for row in long if row[1] == KAB5}
    cells = []
    for name in names:
        gain, p_value = records[name]["gain"], records[name]["p_runs"]
        cells.append(f"{100.0 * gain:+.2f}%" + BETTER * (gain > 0.0 and p_value < P_VALUE))
    return cells


def _long(rows: Sequence[Row], measure: Measure, names: Sequence[str]) -> Iterator[list[Any]]:
    """Yield records of LONG_COLUMNS.

    Intervals and p-values over runs assume independent runs, which holds. Those over days assume,
    as the paper does, that all days of all runs are independent, which does not hold.
    """
    values, more = by_run(rows, measure.value), by_run(rows, measure.gain)
    days = gathered(rows, measure.day)
    for (name, label), by_seed in values.items():
        if name not in names:
            continue
        record: list[Any] = [name, label, len(by_seed), *median_of(list(by_seed.values()))]
        record += median_of(list(more.get((name, label), {}).values()))
        record.append(signed_rank(*paired(by_seed, values.get((name, LAMBDA_ML), {}))))
        yield [*record, *_of_days(days, name, label, sorted(by_seed))]


def _of_days(
    days: Mapping[tuple[str, str, int], FloatArray], name: str, label: str, seeds: Sequence[int]
) -> list[float]:
    """Return the columns over all days of all runs, NaN for policies without stored days."""
    both = [seed for seed in seeds if (name, label, seed) in days]
    if not both:
        return [np.nan] * 7
    own = np.array([days[name, label, seed] for seed in both])
    base = np.array(
        [days.get((name, LAMBDA_ML, seed), np.full(own.shape[1], np.nan)) for seed in both]
    )
    ratio = np.divide(own, base, out=np.full(own.shape, np.nan), where=base > 0.0) - 1.0
    gain = Interval(np.nan, np.nan, np.nan) if label == LAMBDA_ML else median_of(ratio)
    return [*median_of(own), *gain, signed_rank(own, base)]


def _beside(
    long: Sequence[Sequence[Any]], paper: Table, gains: Sequence[float]
) -> Iterator[list[Any]]:
    """Yield the paper's numbers, ours, and the differences."""
    ours = {(row[0], row[1]): row for row in long}
    for label, numbers in paper.items():
        for own in (label, *OWN_CRAWLS.get(label, ())):
            for name, number in zip(NAMES, numbers, strict=True):
                if (name, own) in ours:
                    interval = ours[name, own][3:6]
                    yield [label, own, name, number, *interval, interval[0] - number]
    for name, number in zip(NAMES, gains, strict=True):
        if (name, KAB5) in ours:
            gain = ours[name, KAB5][6:9]
            yield [f"{KAB5} over {LAMBDA_ML}, share", KAB5, name, number, *gain, gain[0] - number]
