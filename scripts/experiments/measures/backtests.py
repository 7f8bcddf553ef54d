"""Test whether the intervals of backtests contain the true values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crawl_envs.evaluation import Row
from policies.live.logs.imputation import Changes
from scripts.live.backtesting import Backtest, estimate, fewer_crawls

METRIC = "contained"
POLICIES = ("Greedy", "GreedyNCIS")
LEAST_COVERAGE = 0.9
QUANTITIES = ("", " of freshness", " of own freshness")
"""Suffixes of metrics: saved crawls, freshness of the policy, and freshness of the log."""


def against_truth(
    test: Backtest, true: Changes, policy: str, shares: Sequence[float]
) -> dict[str, float]:
    """Return estimates of quantities from a log, their half-widths and the true values.

    ``contained`` is 1 if the interval contains the true value, which is called ``record``.
    """
    logged = [test.own_freshness(changes) for changes in (*test.changes, true)]
    curves = [
        [test.freshness(policy, share, changes) for share in shares]
        for changes in (*test.changes, true)
    ]
    saved = [fewer_crawls(mine, shares, curve) for mine, curve in zip(logged, curves, strict=True)]
    same = [curve[shares.index(1.0)] for curve in curves]
    measured = {"widening": test.widening}
    for name, values in zip(QUANTITIES, (saved, same, logged), strict=True):
        *drawn, record = values
        mean, half_width = estimate(drawn, test.widening)
        measured[f"contained{name}"] = float(abs(record - mean) <= half_width)
        measured |= {f"log{name}": mean, f"half width{name}": half_width, f"record{name}": record}
    return measured


def logs_together(rows: Sequence[Row], setting: str) -> list[Row]:
    """Return the coverage by intervals of all logs, as rows of one setting with a seed per log."""
    logs = list(dict.fromkeys((row.setting, row.seed) for row in rows))
    number = {log: place for place, log in enumerate(logs)}
    return [
        row._replace(setting=setting, seed=number[row.setting, row.seed])
        for row in rows
        if row.metric.startswith(METRIC)
    ]


def draw_saved(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw the saved crawls that logs estimate, with intervals, against the true savings.

    Each policy has a panel. Intervals that miss the truth have another colour; very long ones are
    cut off.
    """
    from scripts.present import charts
    from scripts.study.means import table

    keys = ["policy", "setting", "seed"]
    values = table(rows, "record", "log", "half width", METRIC)
    logs = values.pivot(index=keys, columns="metric", values="value").reset_index()
    names = {1.0: "contains the record's value", 0.0: "misses it"}
    columns = {"record": "x", "log": "y", "half width": "half", "policy": "panel"}
    plain = {"linestyle": "none", "markersize": 4, "elinewidth": 1, "alpha": 0.7, "capsize": 0}
    charts.lines(
        logs.assign(label=logs.contained.map(names)).rename(columns=columns),
        path,
        charts.Frame(
            title,
            charts.Axis("share of crawls saved at equal freshness, by the full record"),
            charts.Axis("by the log, with 95% intervals", limits=(-1.7, 1.3)),
            diagonal=True,
        ),
        labels=tuple(names.values()),
        looks=dict.fromkeys(names.values(), plain),
    )
