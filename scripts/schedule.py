"""Schedule the next fetches of the pages of a table, or answer a crawler live.

The table has a url, and what is known of each page: importance, change_rate, recall and
false_signal_rate of signals, last_crawl, gone. scripts.estimate writes such a table from a crawl
log. Pages that are gone are not fetched, unless --recheck-gone asks for them again.

Writes schedule.csv (time, url, why) and schedule.png (the freshness that a budget can reach).
With --live nothing is written: lines of JSON are read from standard input and answered on standard
output (see policies/live/messages.py), or with --port over HTTP (policies/live/endpoint.py); with
--folder the scheduler outlives the process. Each --feed is a source of signals, which is polled,
and with --learn of new pages (policies/live/feeds.py, the extra feeds).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crawl_envs.logs import PageTable, read_page_table
from scripts.cli.commands import command, default_folder
from scripts.logs import live_answers, options, planning, schedules
from scripts.study.rows import check_folder

Table = Annotated[
    Path | None, typer.Argument(help="Page table: CSV, JSON lines or Parquet.", show_default="none")
]
Bandwidth = Annotated[float, typer.Option(help="Fetches per day.")]
Policy = Annotated[
    str | None,
    typer.Option(
        help="An index policy, or one that allocates rates.",
        show_default="GreedyNCIS with signals or --learn, else Greedy",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        help="First day: a number, or a date and time.",
        show_default="now; the last last_crawl if these are numbers",
    ),
]
Until = Annotated[
    str, typer.Option(help="End: a number of days, a date and time, or tomorrow (its end).")
]
Live = Annotated[bool, typer.Option("--live", help="Answer lines of standard input.")]
Learn = Annotated[
    bool, typer.Option("--learn", help="Learn rates from the reports of a live scheduler.")
]
RecheckGone = Annotated[
    float | None,
    typer.Option(help="Days after which a gone page is fetched again.", show_default="never"),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(help="HOST:GAP or HOST:GAP:MOST of a host, in days; :GAP of all. Repeatable."),
]
Port = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="With --live, answer HTTP on this port of the machine."),
]
Feeds = Annotated[
    list[str] | None,
    typer.Option(
        "--feed",
        help="With --live, the URL or file of a feed or sitemap: a source of signals, in the order "
        "of the table's. Repeatable.",
    ),
]
Poll = Annotated[float, typer.Option(min=1e-4, help="Days between two polls of feeds.")]
Folder = Annotated[Path | None, typer.Option(help="Folder of a live scheduler that goes on.")]
Out = Annotated[Path | None, typer.Option(help="Folder.", show_default="runs/schedule-TABLE")]


def main(
    bandwidth: Bandwidth,
    pages: Table = None,
    column: options.Column = None,
    policy: Policy = None,
    start: Start = None,
    until: Until = "tomorrow",
    live: Live = False,
    port: Port = None,
    learn: Learn = False,
    recheck_gone: RecheckGone = None,
    limit: Limit = None,
    feed: Feeds = None,
    poll: Poll = 1.0 / 24.0,
    folder: Folder = None,
    out: Out = None,
) -> None:
    """Write a schedule, or answer a crawler."""
    place = out or default_folder("schedule", pages.name if pages else "live")
    table = None if pages is None else read_page_table(pages, options.columns(column))
    name = policy or default_policy(table, learn)
    if live and recheck_gone is not None:
        raise ValueError("recheck-gone must be left out with --live: report a page to have it back")
    if port is not None and not live:
        raise ValueError("port must be left out without --live")
    if feed and not live:
        raise ValueError("feed must be left out without --live")
    if live:
        feeds = live_answers.Polled(feed or [], poll)
        first = schedules.first_day(table, start)
        kept = folder, limit or [], feeds
        live_answers.answer(table, name, bandwidth, first, *kept, learn=learn, port=port)
    elif table is None:
        raise ValueError("PAGES must be given: a table of pages")
    else:
        check_folder(place)
        first = schedules.first_day(table, start)
        span = first, schedules.last_day(until, first)
        found = schedules.choose(table, name, bandwidth, span, limit or [], recheck_gone)
        cautions = planning.cautions(table, rechecked=recheck_gone is not None)
        schedules.write(table, found, cautions, name, bandwidth, span, place)


def default_policy(table: PageTable | None, learn: bool) -> str:
    """Return the name of the default policy for what is known, or learned."""
    known = table is not None and table.recall is not None
    return "GreedyNCIS" if known or learn else "Greedy"


app = command(main, __doc__)

if __name__ == "__main__":
    app()
