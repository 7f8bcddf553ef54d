"""The schedule of a table's pages: its days, its fetches, its files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from agents.progress import ProgressBar
from policies.live.adapters import messages, page_tables
from policies.live.logs import PageTable
from scripts.live import planning
from scripts.present import tables
from scripts.study.rows import write_csv

SHARES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Budgets of the picture, over the given one."""
DATE = re.compile(r"\d{4}-\d\d-\d\d|(19|20)\d{6}")
"""A date without a time, in the extended or the basic form of ISO 8601."""


def first_day(table: PageTable | None, start: str | None) -> float:
    """Return the first day: as given, or now, or the last copy where days are bare numbers.

    A date without a time is a whole day: the schedule then begins at the last crawl of that day.
    """
    newest, dated = (-np.inf, True) if table is None else page_tables.newest_copy(table)
    if start is not None:
        day = messages.day_of(_number_or_text(start))
        return newest if DATE.fullmatch(start) and day <= newest < day + 1.0 else day
    return messages.day_of(None) if dated else newest


def _number_or_text(text: str) -> float | str:
    if DATE.fullmatch(text):
        return text
    try:
        return float(text)
    except ValueError:
        return text


def last_day(until: str, start: float) -> float:
    """Return the end of a schedule: so many days after its start, a date, or tomorrow's end."""
    if until == "tomorrow":
        return float(np.floor(start) + 2.0)
    given = _number_or_text(until)
    end = start + given if isinstance(given, float) else messages.day_of(given)
    if not start < end:
        raise ValueError(f"until must be after the start, day {start:g}, got {until!r}")
    return end


def choose(asked: planning.Schedule, end: float, recheck_gone: float | None) -> planning.Plan:
    """Return the fetches up to the day ``end``; of pages that are gone every so many days."""
    table, _, bandwidth, first, limits = asked
    assert table is not None
    newest, dated = page_tables.newest_copy(table)
    if newest > first:
        raise ValueError(
            f"start must be at least {_text(newest, dated)}, the last crawl of the table, "
            f"got {_text(first, dated)}"
        )
    again = planning.Plan.empty()
    if recheck_gone is not None:
        if limits:
            raise ValueError("recheck-gone must be left out with --limit, which it does not keep")
        again = planning.rechecks(table, recheck_gone, first, end, 1.0 / max(bandwidth, 1e-300))
    left = bandwidth - again.page.size / (end - first)
    if not left > 0.0 and bandwidth > 0.0:
        raise ValueError(
            f"recheck-gone must leave a part of the bandwidth, {bandwidth:g} per day, got "
            f"{tables.counted(again.page.size, 'fetch', 'fetches')} of pages that are gone"
        )
    if page_tables.living(table).size == 0:
        if again.page.size == 0:
            raise ValueError(f"pages must not all be gone, got {table.num_pages} that are")
        return again
    if not table.importance[page_tables.living(table)].any():
        raise ValueError("importance must be above 0 for a page that is not gone, got 0 for all")
    rows = np.arange(table.num_pages)
    scheduler = asked._replace(bandwidth=left).scheduler(ids=rows)
    page_tables.report_signals(scheduler, table, rows, first)
    planning.limit_hosts(scheduler, limits, table.host.tolist())
    with ProgressBar("{task.percentage:.0f}%") as progress:
        bar = progress.add_task("choosing", total=end - first)
        found = planning.plan(
            scheduler,
            page_tables.copies_of(table),
            end,
            lambda time: progress.update(bar, completed=time - first),
        )
    return planning.merged(found, again)


def write(
    asked: planning.Schedule, found: planning.Plan, end: float, cautions: list[str], folder: Path
) -> None:
    """Write the fetches up to the day ``end`` and the picture, and print the first fetches."""
    from scripts.live.pictures import draw_budgets

    table, policy, bandwidth, first, _ = asked
    assert table is not None
    _, dated = page_tables.newest_copy(table)
    times = [_text(time, dated) for time in found.time]
    reasons = planning.reasons(found, table, first)
    urls = table.urls[found.page]
    write_csv(
        folder / "schedule.csv", ("time", "url", "why"), zip(times, urls, reasons, strict=True)
    )
    console = tables.console()
    for line in zip(times[:5], urls[:5], reasons[:5], strict=True):
        console.print("  ".join(line), soft_wrap=True)
    for caution in cautions:
        console.print(caution, soft_wrap=True)
    if table.change_rate is not None and page_tables.living(table).size:
        bandwidths = [bandwidth * share for share in SHARES]
        expected = planning.expected_freshness(table, bandwidths)
        draw_budgets(folder / "schedule.png", bandwidths, expected, bandwidth)
        console.print(
            f"long-run freshness by these rates: {expected[SHARES.index(1.0)]:.3f} at best"
        )
    console.print(
        f"{tables.counted(len(times), 'fetch', 'fetches')} of "
        f"{tables.counted(np.unique(found.page).size, 'page')} with {policy}, "
        f"{_text(first, dated)} to {_text(end, dated)} -> {folder}",
        soft_wrap=True,
    )


def _text(day: float, dated: bool) -> str:
    """Return a time as a date and time, or as a number of days."""
    return str(messages.date_of(float(day))) if dated else f"{day:.6f}"
