"""Write Tables 5 and 6 of Han et al. 2020 from rows, next to the paper's numbers, as CSV.

Numbers are medians of freshness by policy and budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from scripts.experiments.measures.offer_freshness import (
    CLICK,
    CLICK_DAY,
    CLICK_GAIN,
    NAMES,
    OFFER,
    OFFER_DAY,
    OFFER_GAIN,
)
from scripts.experiments.measures.offer_strategies import KAB5, LAMBDA_ML
from scripts.study.intervals import median_of, signed_rank
from scripts.study.means import entries
from scripts.study.rows import write_csv

Table = Mapping[str, tuple[float, ...]]

TABLE_5: Table = {
    "Uniform": (0.7460, 0.8162, 0.8512, 0.8720, 0.8840, 0.8928, 0.9029, 0.9105, 0.9165),
    "Delta_h": (0.1951, 0.2508, 0.2817, 0.3007, 0.3171, 0.3294, 0.3412, 0.3507, 0.3549),
    "mu_h": (0.8840, 0.8933, 0.8978, 0.9006, 0.9030, 0.9051, 0.9068, 0.9083, 0.9097),
    "nu_h": (0.9013, 0.9153, 0.9224, 0.9266, 0.9295, 0.9314, 0.9328, 0.9341, 0.9351),
    "lambda_h": (0.8843, 0.9079, 0.9184, 0.9244, 0.9291, 0.9322, 0.9350, 0.9371, 0.9385),
    "Delta_ml": (0.4067, 0.5177, 0.5857, 0.6339, 0.6664, 0.6935, 0.7159, 0.7344, 0.7483),
    "mu_ml": (0.8976, 0.9098, 0.9199, 0.9251, 0.9357, 0.9380, 0.9437, 0.9463, 0.9494),
    "nu_ml": (0.8835, 0.9054, 0.9222, 0.9301, 0.9320, 0.9362, 0.9409, 0.9435, 0.9461),
    "lambda_ml": (0.8983, 0.9152, 0.9284, 0.9384, 0.9424, 0.9456, 0.9486, 0.9505, 0.9518),
    "KAB5": (0.9027, 0.9238, 0.9373, 0.9425, 0.9478, 0.9497, 0.9517, 0.9533, 0.9543),
}
"""Click-weighted freshness."""
GAIN_5 = (0.0093, 0.0071, 0.0044, 0.0035, 0.0033, 0.0028, 0.0023, 0.0022, 0.0015)
"""Median increase of KAB5 over lambda_ml, as a share."""

TABLE_6: Table = {
    "Uniform": (0.7426, 0.8135, 0.8454, 0.8637, 0.8758, 0.8849, 0.8917, 0.8971, 0.9015),
    "Delta_h": (0.1589, 0.2031, 0.2268, 0.2423, 0.2539, 0.2632, 0.2713, 0.2782, 0.2846),
    "mu_h": (0.0724, 0.1008, 0.1269, 0.1513, 0.1746, 0.1966, 0.2175, 0.2375, 0.2565),
    "nu_h": (0.1239, 0.1582, 0.1792, 0.1946, 0.2063, 0.2157, 0.2237, 0.2304, 0.2363),
    "lambda_h": (0.3424, 0.4884, 0.5722, 0.6247, 0.6630, 0.6921, 0.7130, 0.7291, 0.7427),
    "Delta_ml": (0.4611, 0.5779, 0.6404, 0.6812, 0.7106, 0.7333, 0.7513, 0.7662, 0.7786),
    "mu_ml": (0.4447, 0.5894, 0.6608, 0.7033, 0.7314, 0.7528, 0.7693, 0.7830, 0.7943),
    "nu_ml": (0.6033, 0.7095, 0.7584, 0.7875, 0.8082, 0.8233, 0.8351, 0.8446, 0.8523),
    "lambda_ml": (0.6550, 0.7561, 0.8023, 0.8289, 0.8463, 0.8588, 0.8684, 0.8759, 0.8818),
    "KAB5": (0.6604, 0.7635, 0.8064, 0.8319, 0.8495, 0.8612, 0.8709, 0.8782, 0.8845),
}
"""Offer-level freshness."""
GAIN_6 = (0.0107, 0.0109, 0.0072, 0.0049, 0.0044, 0.0036, 0.0038, 0.0034, 0.0035)
"""Median increase of KAB5 over lambda_ml, as a share."""

Groups = Mapping[str, Sequence[str]]
OWN_CRAWLS = {"Delta_h": ("Delta_own",), "lambda_h": ("lambda_own", "lambda_own rest")}
"""Alternative readings of labels, since the paper does not say which price changes it counts."""
BOLD, BEST, BETTER = "**", "*", "†"
P_VALUE = 0.05


class Record(NamedTuple):
    """Statistics of a policy at a budget, over runs and over all days of all runs; NaN: undefined.

    They are the median, the median gain over lambda_ml, and the p-value of the difference to
    lambda_ml.
    """

    budget: str
    policy: str
    runs: int
    median: float
    low_95: float
    high_95: float
    gain: float
    gain_low_95: float
    gain_high_95: float
    p_runs: float
    days_median: float = np.nan
    days_low_95: float = np.nan
    days_high_95: float = np.nan
    days_gain: float = np.nan
    days_gain_low_95: float = np.nan
    days_gain_high_95: float = np.nan
    p_days: float = np.nan


class PaperTable(NamedTuple):
    """A table of the paper: metrics of a run, of its gain and its days; the paper's numbers."""

    title: str
    value: str
    gain: str
    day: str
    numbers: Table
    gains: Sequence[float]


CLICK_TITLE = "Table 5: clicks that saw the right price"
OFFER_TITLE = "Table 6: offers with the right price at midnight"
CLICK_TABLE = PaperTable(CLICK_TITLE, CLICK, CLICK_GAIN, CLICK_DAY, TABLE_5, GAIN_5)
OFFER_TABLE = PaperTable(OFFER_TITLE, OFFER, OFFER_GAIN, OFFER_DAY, TABLE_6, GAIN_6)


def by_run(rows: Sequence[Row], metric: str) -> dict[tuple[str, str], dict[int, float]]:
    """Return the values of a metric by setting and policy, and in turn by seed."""
    result: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row.metric == metric:
            result.setdefault((row.setting, row.policy), {})[row.seed] = row.value
    return result


def write_tables(
    rows: Sequence[Row],
    path: Path,
    *,
    table: PaperTable,
    groups: Groups,
    beyond: Sequence[str],
) -> None:
    """Write the table to ``path``, and next to it intervals with tests, and the paper's numbers.

    Args:
        rows: rows with the budgets of the paper's tables.
        path: ``table5.csv``, in the form of the paper. Bold: best of its group. Star: best of
            all. Dagger: KAB5 is above lambda_ml with p < .05 over runs.
        table: the paper's table.
        groups: labels by group.
        beyond: labels with hidden information, which cannot be the best.
    """
    records = list(_records(rows, table))
    names = [name for name in NAMES if any(record.budget == name for record in records)]
    write_csv(path, ("group", "policy", *names), _wide(records, names, groups, beyond))
    write_csv(path.with_name(f"{path.stem}_intervals.csv"), Record._fields, records)
    ends = ("here", "here_low_95", "here_high_95", "difference")
    write_csv(
        path.with_name(f"paper_{path.name}"),
        ("policy", "here_as", "budget", "paper", *ends),
        _paired(records, table.numbers, table.gains),
    )


def write_gains(
    rows: Sequence[Row], path: Path, *, metrics: Sequence[str], labels: Sequence[str]
) -> None:
    """Write a CSV file of median gains over lambda_ml, by budget and policy, with intervals."""
    records = [
        (metric, name, label, len(runs), *median_of(list(runs.values())))
        for metric in metrics
        for (name, label), runs in by_run(rows, metric).items()
        if label in labels
    ]
    columns = ("metric", "budget", "policy", "runs", "median", "low_95", "high_95")
    write_csv(path, columns, records)


def _wide(
    records: Sequence[Record], names: Sequence[str], groups: Groups, beyond: Sequence[str]
) -> Iterator[list[str]]:
    """Yield a table's lines, as in the paper: a policy per line, a budget per column."""
    by_key = {record[:2]: record for record in records}
    compared = [record for record in records if record.policy not in beyond]
    best = {name: max(r.median for r in compared if r.budget == name) for name in names}
    for group, labels in groups.items():
        available = [label for label in labels if (names[0], label) in by_key]
        for label in available:
            cells = []
            for name in names:
                value = by_key[name, label].median
                top = max(by_key[name, rival].median for rival in available)
                bold = BOLD * (value == top and len(available) > 1)
                marked = value == best[name] and label not in beyond
                cells.append(f"{bold}{value:.4f}{bold}{BEST * marked}")
            yield [group, label, *cells]
            if label == KAB5:
                increases = (
                    f"{100.0 * record.gain:+.2f}%"
                    + BETTER * (record.gain > 0.0 and record.p_runs < P_VALUE)
                    for record in (by_key[name, label] for name in names)
                )
                yield [group, f"+% vs. {LAMBDA_ML}", *increases]


def _records(rows: Sequence[Row], table: PaperTable) -> Iterator[Record]:
    """Yield the statistics of each policy, at each budget of the paper's tables.

    Intervals and p-values over runs assume that runs are independent, which is true. Over days they
    assume, as in the paper, that all days of all runs are independent, which is false.
    """
    values, more = (pd.DataFrame(by_run(rows, name)) for name in (table.value, table.gain))
    days = {
        key: part.set_index(["seed", "index"])["value"]
        for key, part in entries(rows, table.day).groupby(["setting", "policy"])
    }
    for name, label in values:
        if name not in NAMES:
            continue
        runs, reference = values[name, label], (name, LAMBDA_ML)
        numbers = [*median_of(runs), *median_of(more.get((name, label), np.nan))]
        numbers.append(signed_rank(runs, values.get(reference, np.nan)))
        if (name, label) in days:
            of_days = days[name, label]
            base = days.get(reference, pd.Series(dtype=float)).reindex(of_days.index)
            ratio = np.nan if label == LAMBDA_ML else of_days / base.where(base > 0.0) - 1.0
            numbers += [*median_of(of_days), *median_of(ratio), signed_rank(of_days, base)]
        yield Record(name, label, int(runs.count()), *numbers)


def _paired(records: Sequence[Record], paper: Table, gains: Sequence[float]) -> Iterator[list[Any]]:
    """Yield lines of the paper's number, the number measured here, and the difference."""
    ours = {record[:2]: record for record in records}
    for label, numbers in paper.items():
        for reading in (label, *OWN_CRAWLS.get(label, ())):
            for name, number in zip(NAMES, numbers, strict=True):
                if (name, reading) in ours:
                    interval = ours[name, reading][3:6]
                    yield [label, reading, name, number, *interval, interval[0] - number]
    for name, number in zip(NAMES, gains, strict=True):
        if (name, KAB5) in ours:
            gain = ours[name, KAB5][6:9]
            yield [f"{KAB5} over {LAMBDA_ML}, share", KAB5, name, number, *gain, gain[0] - number]
