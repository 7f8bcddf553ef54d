"""Draw logs, backtests, audits of signals and schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from policies.estimators import SignalAudit
from policies.live.logs import CrawlLog
from policies.live.logs.costs import with_unit
from policies.live.logs.crawl_log import OUTCOMES
from scripts.live.backtesting import LOG, Outcome
from scripts.present import charts

SHARES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Budgets in a picture, divided by the budget of the schedule."""
Curve = tuple[str, Callable[[float], float], float]
MOST_PAGES = 150
"""Largest number of pages in the picture of a log."""
MARKS = {
    "unchanged": {"marker": ".", "markersize": 2.5, "color": charts.COLOURS[5]},
    "changed": {"marker": "D", "markersize": 3.2, "color": charts.COLOURS[1]},
    "failed": {"marker": "x", "markersize": 3.5, "color": charts.LINE_COLOUR},
    "redirected": {"marker": ">", "markersize": 3.5, "color": charts.COLOURS[3]},
    "gone": {"marker": "s", "markersize": 3.5, "color": charts.COLOURS[2]},
}
"""Markers of the outcomes in the picture of a log; a first copy is drawn as unchanged."""


def draw_log(path: Path, log: CrawlLog, title: str) -> None:
    """Draw each row of a log by time, with one line per page, fewest changes on top."""
    rows = log.history
    changes = np.bincount(log.page[log.changed], minlength=log.num_pages)
    order = np.argsort(-changes, kind="stable")
    sample = order[np.linspace(0, order.size - 1, min(order.size, MOST_PAGES)).astype(np.int64)]
    line = np.full(log.num_pages + 1, -1)  # the last one is that of page -1
    line[sample] = np.arange(sample.size)
    names = np.array(["unchanged" if name == "first" else name for name in OUTCOMES])
    drawn = pd.DataFrame({"x": rows.time, "y": line[rows.page], "label": names[rows.outcome]})
    drawn = drawn[(drawn.y >= 0) & drawn.label.isin(MARKS)]
    part = "" if sample.size == log.num_pages else f", {sample.size} of {log.num_pages} pages"
    since = f" since {log.origin[:16].replace('T', ' ')}" if log.origin else ""
    charts.lines(
        drawn,
        path,
        charts.Frame(
            f"{title}{part}",
            charts.Axis(f"days{since}"),
            charts.Axis("a line per page, fewest changes on top", ticks=[]),
            size=(8.0, 5.0),
            grid=False,
        ),
        labels=[name for name in MARKS if name in set(drawn.label)],
        looks={name: {"linestyle": "none", **look} for name, look in MARKS.items()},
    )


def draw_backtest(
    path: Path, outcomes: Sequence[Outcome], budget: float, title: str, unit: str | None = None
) -> None:
    """Draw each policy's freshness against crawls per day, and a mark for the log's crawls.

    ``budget`` is the crawls per day of the log. With a ``unit`` of costs it is the log's spend, and
    policies are drawn at theirs.
    """
    log = outcomes[0]
    assert log.policy == LOG
    spends = [x.share * budget if unit is None else x.spend for x in outcomes]
    rows = [(x.policy, spend, *x.freshness) for x, spend in zip(outcomes, spends, strict=True)]
    data = pd.DataFrame([*rows[1:], rows[0]], columns=["label", "x", "y", "half"])
    ticks = sorted({item.share * budget for item in outcomes})
    names = [f"{tick:.3g}" if unit is None else with_unit(tick, unit) for tick in ticks]
    budgets = "crawls per day" if unit is None else "spend in the simulated days"
    look = {"color": charts.LINE_COLOUR, "marker": "D", "linestyle": "none", "zorder": 5}
    charts.lines(
        data,
        path,
        charts.Frame(
            title,
            charts.Axis(f"{budgets} (logarithmic scale)", "log", ticks=ticks, names=names),
            charts.Axis("share of time fresh, with 95% intervals"),
            across=[charts.Rule(log.freshness.mean)],
        ),
        looks={LOG: look},
    )


def draw_budgets(path: Path, curves: Mapping[str, Curve], bandwidth: float, costs: bool) -> None:
    """Draw what each budget per day can reach, and mark ``bandwidth``, a cost with ``costs``.

    ``curves`` has by label what is reached, in words and as a function, and a budget to mark.
    """
    ticks, parts, looks = [bandwidth * share for share in SHARES], [], {}
    for label, (name, reached, marked) in curves.items():
        x = np.unique([*ticks, marked])
        y = [reached(budget) for budget in x]
        parts.append(pd.DataFrame({"x": x, "y": y, "label": label, "panel": name}))
        looks[label] = {"markevery": [int(np.searchsorted(x, marked))], "markersize": 9.0}
    unit = "cost per day" if costs else "fetches per day"
    charts.lines(
        pd.concat(parts),
        path,
        charts.Frame(
            "What a budget can reach",
            charts.Axis(f"{unit} (logarithmic scale)", "log", ticks=ticks),
            {x: charts.Axis(x, "log" if "age" in x else "linear") for x, *_ in curves.values()},
            shared="x",
            upright=[charts.Rule(bandwidth, "this schedule")],
        ),
        looks=looks,
    )


def draw_signal_audit(path: Path, sources: Sequence[str], audit: SignalAudit) -> None:
    """Draw precision, recall and delay of each source, with 95% intervals."""
    names = [f"{s}: {verdict}" for s, verdict in zip(sources, audit.verdict, strict=True)]
    titles = {"precision": "precision", "recall": "recall", "delay": "mean delay (days)"}
    parts = []
    for name, title in titles.items():
        value, (low, high) = getattr(audit, name), getattr(audit, f"{name}_interval").T
        columns = {"x": value, "low": np.minimum(low, value), "high": np.maximum(high, value)}
        parts.append(pd.DataFrame({**columns, "y": names, "panel": title}))
    share = charts.Axis(limits=(-0.03, 1.03))
    charts.dots(
        pd.concat(parts),
        path,
        charts.Frame(
            "Audit of signals, with 95% intervals",
            {title: charts.Axis() if name == "delay" else share for name, title in titles.items()},
            columns=3,
            size=(3.2, 0.0),
            shared="y",
        ),
    )
