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

import re
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import numpy as np
import typer

from agents.progress import ProgressBar
from crawl_envs.logs import PageTable, read_page_table
from policies.live import messages
from policies.scheduler import CrawlScheduler, DurableScheduler
from scripts.cli.commands import command, default_folder
from scripts.logs import options, planning
from scripts.present import tables
from scripts.study.rows import check_folder, write_csv

SHARES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Budgets of the picture, over the given one."""
FETCHES_SAVED = 20.0
"""Least number of fetches that may be saved where pages are asked for over HTTP."""
DATE = re.compile(r"\d{4}-\d\d-\d\d|(19|20)\d{6}")
"""A date without a time, in the extended or the basic form of ISO 8601."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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
        feeds = Polled(feed or [], poll)
        answer(table, name, bandwidth, start, folder, limit or [], feeds, learn=learn, port=port)
    elif table is None:
        raise ValueError("PAGES must be given: a table of pages")
    else:
        check_folder(place)
        first = first_day(table, start)
        span = first, last_day(until, first)
        found = choose(table, name, bandwidth, span, limit or [], recheck_gone)
        cautions = planning.cautions(table, rechecked=recheck_gone is not None)
        write(table, found, cautions, name, bandwidth, span, place)


def default_policy(table: PageTable | None, learn: bool) -> str:
    """Return the name of the default policy for what is known, or learned."""
    known = table is not None and table.recall is not None
    return "GreedyNCIS" if known or learn else "Greedy"


def first_day(table: PageTable | None, start: str | None) -> float:
    """Return the first day: as given, or now, or the last copy where days are bare numbers.

    A date without a time is a whole day: the schedule then begins at the last crawl of that day.
    """
    newest, dated = (-np.inf, True) if table is None else planning.newest_copy(table)
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


def answer(
    table: PageTable | None,
    policy: str,
    bandwidth: float,
    start: str | None,
    folder: Path | None,
    limits: Sequence[str],
    feeds: Polled,
    *,
    learn: bool,
    port: int | None,
) -> None:
    """Answer lines of standard input, or requests to a port."""
    count = len(feeds.addresses)
    listening = None if port is None else listen(port)
    first = first_day(table, start)
    if port is not None and bandwidth > 0.0:
        first -= FETCHES_SAVED / bandwidth
    kept = folder is not None and DurableScheduler.holds(folder)
    if kept:
        said = f"{folder} goes on with its own pages, policy and bandwidth, not those given here"
        typer.echo(said, err=True)
    scheduler = (
        None
        if kept
        else planning.new_scheduler(table, policy, bandwidth, first, learn=learn, feeds=count)
    )
    with nullcontext(scheduler) if folder is None else DurableScheduler(folder, scheduler) as asked:
        assert asked is not None
        planning.limit_hosts(asked, limits)
        with polling(asked, feeds, folder):
            if listening is not None:
                serve_requests(asked, listening)
                return
            for line in messages.answers(asked, sys.stdin):
                print(line, flush=True)


class Polled(NamedTuple):
    """Feeds, and the days between two polls of them."""

    addresses: Sequence[str]
    every: float


@contextmanager
def polling(
    scheduler: CrawlScheduler | DurableScheduler, feeds: Polled, folder: Path | None
) -> Iterator[None]:
    """Poll feeds at once, and then again and again until the end."""
    if not feeds.addresses:
        yield
        return
    from policies.live.feeds import PATIENCE, poll

    if len(feeds.addresses) > scheduler.num_sources:
        raise ValueError(
            f"feed must be given once for each source of signals, there are "
            f"{scheduler.num_sources}, got {len(feeds.addresses)}"
        )
    end, columns = threading.Event(), {} if scheduler.learns else None

    def poll_all(place: Path) -> None:
        for source, address in enumerate(feeds.addresses):
            if not end.is_set():
                for fault in poll(scheduler, address, place, source, columns):
                    typer.echo(fault, err=True)

    def poll_on(place: Path) -> None:
        while not end.wait(feeds.every * messages.SECONDS_PER_DAY):
            poll_all(place)

    with TemporaryDirectory() if folder is None else nullcontext(folder / "feeds") as place:
        poll_all(Path(place))
        thread = threading.Thread(target=poll_on, args=(Path(place),), daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join(PATIENCE)


def listen(port: int) -> socket.socket:
    """Return a socket that listens to a port of this machine.

    Raises:
        ValueError: it is in use, or may not be used.
    """
    # with its protocol named, asyncio sends answers without delay (TCP_NODELAY)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise ValueError(f"port must be free, got {port}: {error.strerror}") from None
    return listening


def serve_requests(scheduler: CrawlScheduler | DurableScheduler, listening: socket.socket) -> None:
    """Answer requests over HTTP until an interrupt."""
    from policies.live.endpoint import serve

    if scheduler.burst * scheduler.bandwidth < FETCHES_SAVED:
        scheduler.configure(scheduler.time, burst=FETCHES_SAVED / scheduler.bandwidth)
    port = listening.getsockname()[1]
    tables.console().print(f"http://127.0.0.1:{port}/due?url=...", soft_wrap=True)
    serve(scheduler, listening)


def choose(
    table: PageTable,
    policy: str,
    bandwidth: float,
    span: tuple[float, float],
    limits: Sequence[str],
    recheck_gone: float | None,
) -> planning.Plan:
    """Return the fetches from the first day of ``span`` to the last."""
    first, end = span
    newest, dated = planning.newest_copy(table)
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
    if planning.living(table).size == 0:
        if again.page.size == 0:
            raise ValueError(f"pages must not all be gone, got {table.num_pages} that are")
        return again
    rows = np.arange(table.num_pages)
    scheduler = planning.new_scheduler(table, policy, left, first, ids=rows)
    planning.limit_hosts(scheduler, limits)
    with ProgressBar("{task.percentage:.0f}%") as progress:
        bar = progress.add_task("choosing", total=end - first)
        found = planning.plan(
            scheduler,
            planning.copies_of(table),
            end,
            lambda time: progress.update(bar, completed=time - first),
        )
    return planning.merged(found, again)


def write(
    table: PageTable,
    found: planning.Plan,
    cautions: list[str],
    policy: str,
    bandwidth: float,
    span: tuple[float, float],
    folder: Path,
) -> None:
    """Write the schedule and the picture, and print the first fetches."""
    from scripts.logs.pictures import draw_budgets

    _, dated = planning.newest_copy(table)
    times = [_text(time, dated) for time in found.time]
    reasons = planning.reasons(found, table)
    urls = table.urls[found.page]
    write_csv(
        folder / "schedule.csv", ("time", "url", "why"), zip(times, urls, reasons, strict=True)
    )
    console = tables.console()
    for line in zip(times[:5], urls[:5], reasons[:5], strict=True):
        console.print("  ".join(line), soft_wrap=True)
    for caution in cautions:
        console.print(caution, soft_wrap=True)
    if table.change_rate is not None and planning.living(table).size:
        bandwidths = bandwidth * np.array(SHARES)
        expected = planning.expected_freshness(table, bandwidths)
        draw_budgets(folder / "schedule.png", bandwidths, expected, bandwidth)
        console.print(
            f"long-run freshness by these rates: {expected[SHARES.index(1.0)]:.3f} at best"
        )
    console.print(
        f"{tables.counted(len(times), 'fetch', 'fetches')} of "
        f"{tables.counted(np.unique(found.page).size, 'page')} with {policy}, "
        f"{_text(span[0], dated)} to {_text(span[1], dated)} -> {folder}",
        soft_wrap=True,
    )


def _text(day: float, dated: bool) -> str:
    """Return a time as a date and time, or as a number of days."""
    if not dated:
        return f"{day:.6f}"
    return (EPOCH + timedelta(days=float(day))).isoformat(timespec="seconds")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
