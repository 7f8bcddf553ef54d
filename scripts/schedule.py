"""Schedule the next fetches of the pages of a table, or answer a crawler live.

The table has a url, and what is known of each page: importance, change_rate, recall and
false_signal_rate of signals, signals (their number since the last crawl), last_crawl, gone.
scripts.estimate writes such a table from a crawl log. Pages of a table without rates are fetched in
turn. Pages that are gone are not fetched, unless --recheck-gone asks for them again.

Writes schedule.csv (time, url, why) and schedule.png (the freshness that a budget can reach).
With --live nothing is written: lines of JSON are read from standard input and answered on standard
output (see policies/live/messages.py), or with --port over HTTP (policies/live/endpoint.py); with
--folder the scheduler outlives the process. Each --feed is a source of signals, which is polled,
and with --learn of new pages (policies/live/feeds.py, the extra feeds).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from crawl_envs.logs import read_page_table
from scripts.cli.commands import command_of, default_folder
from scripts.logs import live_answers, options, planning, schedules
from scripts.study.rows import check_folder


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions:
    """Arguments of ``scripts.schedule``."""

    POSITIONAL: ClassVar = ("pages",)

    bandwidth: float
    """Fetches per day."""
    pages: Path | None = None
    """Page table: CSV, JSON lines or Parquet [none]."""
    column: options.Column = None
    policy: str | None = None
    """An index policy, or one that allocates rates [GreedyNCIS with signals or --learn; RoundRobin
    without rates; else Greedy]."""
    start: str | None = None
    """First day: a number, or a date and time [now; the last last_crawl if these are numbers]."""
    until: str = "tomorrow"
    """End: a number of days, a date and time, or tomorrow (its end)."""
    live: bool = False
    """Answer lines of standard input."""
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="With --live, answer HTTP on this port of the machine."
        ),
    ] = None
    learn: bool = False
    """Learn rates from the reports of a live scheduler."""
    recheck_gone: float | None = None
    """Days after which a gone page is fetched again [never]."""
    limit: list[str] | None = None
    """HOST:GAP or HOST:GAP:MOST of a host, in days; :GAP of all. Repeatable."""
    feed: list[str] | None = None
    """With --live, the URL or file of a feed or sitemap: a source of signals, in the order of the
    table's. Repeatable."""
    poll: Annotated[float, typer.Option(min=1e-4, help="Days between two polls of feeds.")] = (
        1.0 / 24.0
    )
    folder: Path | None = None
    """Folder of a live scheduler that goes on."""
    out: Path | None = None
    """Folder [runs/schedule-TABLE]."""


def main(given: ScheduleOptions) -> None:
    """Write a schedule, or answer a crawler."""
    source, columns = given.pages, options.column_names(given.column, "column")
    table = None if source is None else read_page_table(source, columns)
    signals = given.learn or (table is not None and table.recall is not None)
    unrated = table is not None and table.change_rate is None and not given.learn
    usual = "RoundRobin" if unrated else "GreedyNCIS" if signals else "Greedy"
    name = given.policy or usual
    if given.live and given.recheck_gone is not None:
        raise ValueError("recheck-gone must be left out with --live: report a page to have it back")
    for option in ("port", "feed", "learn", "folder", "poll"):
        if getattr(given, option) != getattr(ScheduleOptions, option) and not given.live:
            raise ValueError(f"{option} must be left out without --live")
    if source is None and not given.live:
        raise ValueError("PAGES must be given: a table of pages")
    start = schedules.first_day(table, given.start)
    asked = planning.Schedule(table, name, given.bandwidth, start, given.limit or [])
    if source is None or given.live:
        feeds = live_answers.Polled(given.feed or [], given.poll)
        live_answers.answer(asked, given.folder, feeds, learn=given.learn, port=given.port)
        return
    place = given.out or default_folder("schedule", source.name)
    check_folder(place)
    end = schedules.last_day(given.until, start)
    found = schedules.choose(asked, end, given.recheck_gone)
    cautions = planning.cautions(table, given.recheck_gone is not None, name)
    cautions += planning.policy_cautions(table, name)
    schedules.write(asked, found, end, cautions, place)


app = command_of(main, ScheduleOptions, __doc__)

if __name__ == "__main__":
    app()
