"""Summarise a crawl log: rows by outcome, pages, times, signals, and notes of the reader."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from crawl_envs.types import FloatArray
from policies.estimators.source_times import silent_spans
from policies.live.logs import CrawlLog
from policies.live.logs.costs import expected_costs, with_unit
from policies.live.logs.crawl_log import OUTCOMES
from scripts.live.fitting import ALWAYS, NEVER, ONCE, evidence_of
from scripts.present import tables
from scripts.study.rows import write_csv

MANY_FAILED, MANY_CHANGED = 0.1, 0.9
"""Shares of failed rows, and of intervals with a change, above which a remark is printed."""

WEB = "1991"


class Fact(NamedTuple):
    """A line of a summary: its name, a number or time, and a remark on the consequence."""

    name: str
    value: str
    remark: str = ""


def facts(log: CrawlLog) -> list[Fact]:
    """Return the lines of a log's summary: rows, pages, times, signals and notes."""
    notes = (Fact("note", "", note) for note in log.notes)
    return [*_rows(log), *_pages(log), *_costs(log), *_times(log), *_signals(log), *notes]


def print_summary(log: CrawlLog, title: str) -> None:
    """Print the summary of a log as a table with a title."""
    table = Table(title=f"{title}: what the log contains", title_justify="left")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("what follows")
    for fact in facts(log):
        table.add_row(*fact)
    tables.console().print(table)


def write_summary(log: CrawlLog, title: str, folder: Path) -> None:
    """Write summary.csv, and log.png with the outcome of every row by page and time."""
    from scripts.live.pictures import draw_log

    write_csv(folder / "summary.csv", Fact._fields, facts(log))
    draw_log(folder / "log.png", log, title)


def date_of(log: CrawlLog, day: float) -> str:
    """Return a day of a log as a date and time, or as a number if the log has no dates."""
    if not log.origin:
        return f"day {day:g}"
    date = datetime.fromisoformat(log.origin) + timedelta(days=day)
    return date.strftime("%Y-%m-%d %H:%M")


def _in_future(log: CrawlLog, date: str) -> bool:
    """Return whether a date (as text) is later than now; False for a log without dates."""
    return bool(log.origin) and date > f"{datetime.now(UTC):%Y-%m-%d %H:%M}"


def _rows(log: CrawlLog) -> Iterator[Fact]:
    """Yield a line for each outcome with its number of rows, and lines for omitted rows."""
    count, dropped = np.bincount(log.history.outcome, minlength=len(OUTCOMES)), log.dropped
    total = int(count.sum())
    yield Fact("rows with a time", f"{total}")
    for name, number in zip(OUTCOMES, count.tolist(), strict=True):
        remark = ""
        if name == "failed" and number > MANY_FAILED * total:
            remark = f"{number / total:.0%} of the rows have no content"
        if name == "redirected" and number:
            remark = _targets(log) or "no copy of content; the file names no targets"
        yield Fact(f"  {name}", f"{number}", remark)
    for name, number in (
        ("unreadable rows", dropped.unreadable),
        ("repeated rows and signals", dropped.duplicates),
        ("signals of unknown pages", dropped.signals),
        ("pages never found", dropped.absent),
    ):
        if number:
            yield Fact(name, f"{number}", "left out")


def _targets(log: CrawlLog) -> str:
    """Return a text with the three most frequent targets of redirects; empty without targets."""
    targets, count = np.unique(log.redirect[log.redirect != ""].astype(str), return_counts=True)
    if targets.size == 0:
        return ""
    top = np.argsort(-count, kind="stable")[:3]
    named = ", ".join(f"{targets[k]} ({tables.counted(int(count[k]), 'page')})" for k in top)
    return f"no copy of content; to {named}{', ..' if targets.size > top.size else ''}"


def _pages(log: CrawlLog) -> Iterator[Fact]:
    """Yield lines with the number of pages by what their crawls show about the change rate."""
    evidence = evidence_of(log.intervals(), log.num_pages)
    yield Fact("pages", f"{log.num_pages}")
    for name, pages, remark in (
        ("crawled once", evidence == ONCE, "a rate only from similar pages"),
        ("never changed", evidence == NEVER, "an upper bound of the rate only"),
        (
            "changed at every crawl",
            evidence == ALWAYS,
            "a lower bound of the rate only; check that digests exclude headers and session ids, "
            "and that the file lists unchanged crawls",
        ),
        ("gone at the end", np.isin(np.arange(log.num_pages), log.page[log.gone]), "not scheduled"),
        ("redirected at the end", log.redirected, "scheduled under their old names"),
    ):
        number = int(pages.sum())
        yield Fact(f"  {name}", f"{number}", remark if number else "")


def _costs(log: CrawlLog) -> Iterator[Fact]:
    """Yield lines with the spend of all fetches, and the expected costs of the pages' crawls."""
    if log.cost is None or log.history.cost is None:
        return
    cost = expected_costs(log)
    low, high = (with_unit(x, log.unit) for x in np.quantile(cost, (0.1, 0.9)))
    yield Fact("spend", with_unit(np.nansum(log.history.cost), log.unit), "of all rows")
    remark = f"a tenth of the pages below {low}, a tenth above {high}"
    yield Fact("mean cost of a page's crawl", with_unit(cost.mean(), log.unit), remark)


def _times(log: CrawlLog) -> Iterator[Fact]:
    """Yield lines about the first and last time, and the lengths of intervals between crawls."""
    first, last = (date_of(log, log.history.time[k]) for k in (0, -1))
    wrong = "perhaps a wrong time, which stretches the log; remove the row, or set --time-unit"
    yield Fact("first row", first, f"before the Web: {wrong}" * bool(log.origin and first < WEB))
    yield Fact("last row", last, f"in the future: {wrong}" * _in_future(log, last))
    intervals = log.intervals()
    elapsed = intervals.elapsed[intervals.elapsed > 0.0]
    if elapsed.size == 0:
        return
    lengths = np.quantile(elapsed, (0.0, 0.5, 1.0))
    for name, days in zip(("shortest", "median", "longest"), lengths, strict=True):
        yield Fact(f"{name} interval", f"{days:.4g} day{'' if days == 1.0 else 's'}")
    share = float(intervals.changed.mean())
    remark = "most changes are missed: crawls are too rare for reliable rates"
    yield Fact("intervals with a change", f"{share:.1%}", remark if share > MANY_CHANGED else "")


def _signals(log: CrawlLog) -> Iterator[Fact]:
    """Yield a line for each source: its number of signals, their times, and its silences."""
    gaps = log.intervals()
    valid = gaps.elapsed > 0.0
    intervals = gaps.start[valid], gaps.elapsed[valid], gaps.changed[valid]
    for source, name in enumerate(log.sources):
        time = log.signal_time[log.signal_source == source]
        if time.size == 0:
            yield Fact(f"signals of {name}", "0", "none for a page of the log")
            continue
        remark = f"{date_of(log, time[0])} to {date_of(log, time[-1])}"
        if _in_future(log, date_of(log, time[-1])):
            remark += "; in the future: perhaps wrong times or another time zone"
        if not log.timed[source]:
            remark += "; only counts between crawls are known, so there is no delay"
        remarks = remark, *words_of(log, silent_spans(time, *intervals))
        yield Fact(f"signals of {name}", f"{time.size}", "; ".join(remarks))


def words_of(log: CrawlLog, silences: FloatArray) -> list[str]:
    """Return a sentence for each silence, a row (first day, last day) of ``silences``."""
    return [
        f"no signals from {date_of(log, first)} to {date_of(log, last)}: left out of recall"
        for first, last in silences
    ]
