"""Schedule the next fetches of the pages of a table, or serve a running crawler.

The table has the column url and any of importance, change_rate, recall and false_signal_rate of
signals, signals (their number since the last crawl), cost of a crawl, last_crawl, most_interval
and gone. scripts.estimate writes such a table from a crawl log. Without change rates, pages are
fetched in turn. Gone pages are skipped, unless --recheck-gone fetches them again.

Writes schedule.csv (time, url, why, with costs also cost) and schedule.png (freshness by budget);
with --goal also goals.png and promised.csv, the table with most_interval, which --live reads.

With --live it writes no files and serves a crawler: it answers lines of JSON from standard input on
standard output (see policies/live/adapters/messages.py), or requests over HTTP with --port
(policies/live/adapters/endpoint.py). With --folder its state survives a restart. Each --feed is
polled as a source of signals, and with --learn also of new pages (policies/live/adapters/feeds.py;
needs the extra feeds).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from policies.live.adapters import messages
from policies.live.logs import read_page_table
from scripts.cli.commands import command_of
from scripts.cli.options import changed, input_folder, named_values
from scripts.live import goals, live_answers, planning, schedules
from scripts.live.options import Column
from scripts.study.rows import check_folder


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions:
    """Arguments of ``scripts.schedule``."""

    bandwidth: Annotated[float, Option(help="Fetches per day; with costs, cost per day.")]
    pages: Annotated[
        Path | None, Argument(help="Page table: CSV, JSON lines or Parquet.", show_default="none")
    ] = None
    column: Column = None
    policy: Annotated[
        str | None,
        Option(
            help="An index policy, or a policy that allocates rates.",
            show_default="GreedyNCIS with signals or --learn; RoundRobin without rates; or Greedy",
        ),
    ] = None
    start: Annotated[
        str | None,
        Option(
            help="First day: a number, or a date and time.",
            show_default="now; the last last_crawl if these are numbers",
        ),
    ] = None
    until: Annotated[
        str, Option(help="End: a number of days, a date and time, or tomorrow (its end).")
    ] = "tomorrow"
    live: Annotated[bool, Option("--live", help="Answer lines of standard input.")] = False
    port: Annotated[
        int | None, Option(min=1, max=65535, help="With --live, answer HTTP on this local port.")
    ] = None
    learn: Annotated[
        bool, Option("--learn", help="Learn rates from the reports of a live scheduler.")
    ] = False
    recheck_gone: Annotated[
        float | None, Option(help="Days until a gone page is fetched again.", show_default="never")
    ] = None
    goal: Annotated[
        list[str] | None,
        Option(
            help="Goal of a group, a host or all: 'GROUP: fresh 0.9', 'GROUP: fresh 0.9 of 0.95' "
            "(each of the pages with 95% of the importance) or 'GROUP: age DAYS'. Repeatable."
        ),
    ] = None
    limit: Annotated[
        list[str] | None,
        Option(
            help="Limit of a host, HOST:GAP or HOST:GAP:MOST, or of all, :GAP: days between two "
            "fetches, fetches at once. Repeatable."
        ),
    ] = None
    feed: Annotated[
        list[str] | None,
        Option(
            help="With --live, URL or file of a feed or sitemap, a source of signals; in the order "
            "of the sources of the table. Repeatable."
        ),
    ] = None
    poll: Annotated[float, Option(min=1e-4, help="Days between two polls of feeds.")] = 1.0 / 24.0
    cap: Annotated[float | None, Option(help="Hard limit of spend, in the unit of costs.")] = None
    cap_period: Annotated[float, Option(help="Days of a period of --cap.")] = 1.0
    max_cost: Annotated[float | None, Option(help="Largest cost of a fetch, for --cap.")] = None
    most_interval: Annotated[float | None, Option(help="Longest age of a copy, in days.")] = None
    audit_share: Annotated[
        float,
        Option(min=0.0, max=1.0, help="With --live, share of fetches that measure freshness."),
    ] = messages.AUDIT_SHARE
    folder: Annotated[Path | None, Option(help="Folder of the state of a live scheduler.")] = None
    out: Annotated[Path | None, Option(help="Folder.", show_default="runs/schedule-TABLE")] = None


def main(options: ScheduleOptions) -> None:
    """Write a schedule, or answer a crawler."""
    source, columns = options.pages, named_values(options.column or [], "column", str)
    table = None if source is None else read_page_table(source, columns)
    signals = options.learn or (table is not None and table.recall is not None)
    unrated = table is not None and table.change_rate is None and not options.learn
    policy = options.policy
    if policy is None:
        policy = "RoundRobin" if unrated else "GreedyNCIS" if signals else "Greedy"
    if options.live and options.recheck_gone is not None:
        raise ValueError("recheck-gone must be left out with --live: report a page to restore it")
    caps = {name: getattr(options, name) for name in ("cap", "cap_period", "max_cost")}
    live = {"port", "feed", "learn", "folder", "poll", "audit_share", *caps}
    for name in live & changed(options).keys() if not options.live else ():
        raise ValueError(f"{name} must be left out without --live")
    if options.live and options.goal:
        raise ValueError("goal must be left out with --live: it writes promised.csv for --live")
    start = schedules.first_day(table, options.start)
    settings = caps if caps.keys() & changed(options).keys() else {}
    settings |= {"audit_share": options.audit_share if options.live else 0.0}
    settings |= {"most_interval": options.most_interval}
    limits = options.limit or []
    schedule = planning.Schedule(table, policy, options.bandwidth, start, limits, settings)
    if options.live:
        feeds = live_answers.Polled(options.feed or [], options.poll)
        live_answers.answer(schedule, options.folder, feeds, learn=options.learn, port=options.port)
        return
    if source is None or table is None:
        raise ValueError("PAGES must be given: a table of pages")
    place = options.out or input_folder("schedule", source)
    check_folder(place)
    end = schedules.last_day(options.until, start)
    if options.goal:
        schedule = goals.promise(options.goal, schedule, place)
    plan = schedules.choose(schedule, end, options.recheck_gone)
    cautions = planning.cautions(table, options.recheck_gone is not None, policy)
    cautions += planning.policy_cautions(table, policy)
    schedules.write(schedule, plan, end, cautions, place)


app = command_of(main, ScheduleOptions, __doc__)

if __name__ == "__main__":
    app()
