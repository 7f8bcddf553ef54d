"""Choose the fetches of the pages of a table, and write the schedule."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np

from agents.progress import ProgressBar
from policies.live.adapters import messages, page_tables
from policies.live.logs import PageTable
from policies.live.logs.costs import with_unit
from scripts.live import planning
from scripts.present import tables
from scripts.study.rows import write_csv

DATE = re.compile(r"\d{4}-\d\d-\d\d|(19|20)\d{6}")
"""A date without a time, in the extended or the basic form of ISO 8601."""


def first_day(table: PageTable | None, start: str | None) -> float:
    """Return the first day of a schedule: ``start`` if given; otherwise now, or the newest copy.

    The newest copy is used if the table's days are numbers. If ``start`` is a date without a time,
    the schedule begins at the newest copy on that date, if there is one.
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
    """Return the end of a schedule: a number of days after its start, a date, or tomorrow."""
    if until == "tomorrow":
        return float(np.floor(start) + 2.0)
    value = _number_or_text(until)
    end = start + value if isinstance(value, float) else messages.day_of(value)
    if not start < end:
        raise ValueError(
            f"until must be a number of days > 0, or a date after the start, day {start:g}; "
            f"got {until!r}"
        )
    return end


def choose(schedule: planning.Schedule, end: float, recheck_gone: float | None) -> planning.Plan:
    """Return the planned fetches until ``end``, with gone pages every ``recheck_gone`` days."""
    table, _, bandwidth, first, limits, *_ = schedule
    assert table is not None
    newest, dated = page_tables.newest_copy(table)
    if newest > first:
        raise ValueError(
            f"start must be at least {_text(newest, dated)}, the last crawl of the table, "
            f"got {_text(first, dated)}"
        )
    extra = planning.Plan.empty()
    if recheck_gone is not None:
        if limits:
            raise ValueError("recheck-gone must be left out with --limit: rechecks ignore limits")
        extra = planning.rechecks(table, recheck_gone, first, end, 1.0 / max(bandwidth, 1e-300))
    costs = planning.costs_of(table)
    rechecked = float(costs[extra.page].sum()) / (end - first)
    remaining = bandwidth - rechecked
    if not remaining > 0.0 and bandwidth > 0.0:
        raise ValueError(
            f"recheck-gone must leave some of the bandwidth, {bandwidth:g} per day, got "
            f"{rechecked:g} per day for rechecks; give more days between rechecks"
        )
    if page_tables.living(table).size == 0:
        if extra.page.size == 0:
            raise ValueError(f"pages must not all be gone, got {table.num_pages} gone pages")
        return extra
    if not table.importance[page_tables.living(table)].any():
        raise ValueError("importance must be > 0 for a page that is not gone, got 0 for all")
    rows = np.arange(table.num_pages)
    scheduler = schedule._replace(bandwidth=remaining).scheduler(ids=rows)
    page_tables.report_signals(scheduler, table, rows, first)
    planning.limit_hosts(scheduler, limits, table.host.tolist())
    overdue = scheduler.overview().get("overdue", 0)
    with ProgressBar("{task.percentage:.0f}%") as progress:
        bar = progress.add_task("choosing", total=end - first)
        plan = planning.plan(
            scheduler,
            page_tables.copies_of(table),
            end,
            lambda time: progress.update(bar, completed=time - first),
            table.cost,
        )
    if "promised" in (state := scheduler.overview()):
        late = f"{state['late_fetches']:.0f} fetches late, by at most {state['most_late']:.3g} days"
        early = f"{state['promised']} pages with a longest interval: {overdue} overdue at the start"
        tables.console().print(f"{early}, {late}")
    return planning.merged(plan, extra)


def write(
    schedule: planning.Schedule, plan: planning.Plan, end: float, cautions: list[str], folder: Path
) -> None:
    """Write the planned fetches and a picture of budgets to ``folder``; print the first five."""
    from scripts.live.pictures import draw_budgets

    table, policy, bandwidth, first, *_ = schedule
    assert table is not None
    _, dated = page_tables.newest_copy(table)
    times = [_text(time, dated) for time in plan.time]
    names, spend = ["time", "url", "why"], ""
    columns = [times, table.urls[plan.page].tolist(), planning.reasons(plan, table, first)]
    if table.cost is not None:
        cost = table.cost[plan.page]
        names, columns = [*names, "cost"], [*columns, [f"{x:.10g}" for x in cost]]
        spend = f" for a cost of {with_unit(cost.sum(), '')}"
    rows = list(zip(*columns, strict=True))
    console = tables.console()
    for time, url, why, *paid in rows[:5]:
        console.print("  ".join([time, url, *(f"cost {x}" for x in paid), why]), soft_wrap=True)
    write_csv(folder / "schedule.csv", names, rows)
    for caution in cautions:
        console.print(caution, soft_wrap=True)
    if table.change_rate is not None and page_tables.living(table).size:
        name = "largest long-run freshness"
        optimum = partial(planning.optimum, table, page_tables.living(table))
        curves = {"": (name, lambda budget: optimum(budget).objective, bandwidth)}
        draw_budgets(folder / "schedule.png", curves, bandwidth, table.cost is not None)
        console.print(f"{name} with these rates: {optimum(bandwidth).objective:.3f}")
    console.print(
        f"{tables.counted(len(times), 'fetch', 'fetches')} of "
        f"{tables.counted(np.unique(plan.page).size, 'page')}{spend} with {policy}, "
        f"{_text(first, dated)} to {_text(end, dated)} -> {folder}",
        soft_wrap=True,
    )


def _text(day: float, dated: bool) -> str:
    """Return a day as text: a date and time if ``dated``, otherwise the number."""
    return str(messages.date_of(float(day))) if dated else f"{day:.6f}"
