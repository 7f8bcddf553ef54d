"""Schedules of fetches from a table of pages, and what freshness a budget can reach."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import policies as crawl_policies
from crawl_envs.types import FloatArray, Instance, IntArray
from crawl_envs.types.evidence import signal_evidence
from policies import solvers
from policies.live.adapters.page_tables import (
    SECOND,
    add_pages,
    columns_of,
    copies_of,
    living,
    living_copies,
    newest_copy,
)
from policies.live.logs import PageTable
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from scripts.live.fitting import ALWAYS, NEVER, ONCE
from scripts.present.tables import counted

OF_INSTANCE = ("importance", "change_rate", "recall", "false_signal_rate")
ROUNDING = 1e-9
"""Days by which a fetch may be after the end, as sums of days are rounded."""
KEEP_GONE = 30.0
"""Days for which a page that is gone is not brought back by a feed."""
LIMIT = re.compile(r"(.*?):(-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?::(\d+))?")
"""HOST:GAP or HOST:GAP:MOST."""
MOST_TIMES = 200_000
"""Times at which fetches are chosen; with more fetches, several are chosen at once."""


class Plan(NamedTuple):
    """Fetches in order.

    Attributes:
        page: row of the page, (n,) int64.
        time: days, (n,) float64.
        elapsed: days since the page's copy, NaN without one, (n,) float64.
    """

    page: IntArray
    time: FloatArray
    elapsed: FloatArray

    @classmethod
    def empty(cls) -> Plan:
        """Return a plan without fetches."""
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


class Schedule(NamedTuple):
    """What is to be scheduled.

    Attributes:
        table: the pages, if any are known.
        policy: name of a policy.
        bandwidth: fetches per day.
        start: the first day.
        limits: limits of hosts, as of :func:`limit_hosts`.
    """

    table: PageTable | None
    policy: str
    bandwidth: float
    start: float
    limits: Sequence[str] = ()

    def scheduler(
        self, ids: IntArray | None = None, learn: bool = False, feeds: int = 0
    ) -> CrawlScheduler:
        """Return a scheduler of the table's pages that are not gone, or one without pages.

        Its hosts are not limited yet.

        Args:
            ids: ids of the pages in place of their URLs, (m,).
            learn: whether rates are learned from what fetches find.
            feeds: number of feeds; with some, pages that are gone are kept, so that none brings
                them back.

        Raises:
            ValueError: the policy needs a column that the table lacks, or a copy is after the
                start; the table's sources are fewer than the feeds, or its days are no dates.
        """
        table = self.table
        sources = len(table.sources) if table is not None else 0
        if feeds and table is not None and not newest_copy(table)[1]:
            raise ValueError(
                "feed must be left out where last_crawl are numbers, as feeds have dates"
            )
        if feeds > sources and (sources or not learn):
            raise ValueError(
                f"feed must be given with --learn, or once for each source of the table, which has "
                f"{counted(sources, 'source')}, got {feeds}"
            )
        about: dict[str, Any] = {"num_sources": max(sources, feeds, 1), "learn": learn}
        if self.policy == "RoundRobin":
            about["new_share"] = 1.0  # a page without a copy is next
        if feeds:
            about |= {"keep_gone": KEEP_GONE, "resolution": SECOND}  # dates of feeds are rounded
        scheduler = CrawlScheduler(self.policy, self.bandwidth, start=self.start, **about)
        if table is not None:
            rows = np.arange(table.num_pages) if feeds else living(table)
            add_pages(scheduler, table, rows, self.start, ids)
        return scheduler


def limit_hosts(
    scheduler: CrawlScheduler | DurableScheduler,
    limits: Sequence[str],
    hosts: Sequence[str] | None = None,
) -> None:
    """Limit the fetches of hosts by texts ``HOST:GAP`` or ``HOST:GAP:MOST``; no host is all.

    ``hosts`` are those of the pages, if no others may come.

    Raises:
        ValueError: a text is another, a limit is out of its range, or no page has the host.
    """
    for text in limits:
        found = LIMIT.fullmatch(text)
        if found is None:
            raise ValueError(f"limit must be HOST:GAP or HOST:GAP:MOST, got {text!r}")
        host, gap, most = found.groups()
        if hosts is not None and host and host not in hosts:
            expected = f"expected one of {reprlib.repr(sorted(set(hosts)))}"
            raise ValueError(f"limit must name the host of a page, got {host!r}, {expected}")
        scheduler.limit_hosts(host or None, gap=float(gap), most=int(most) if most else None)


def plan(
    scheduler: CrawlScheduler,
    copies: FloatArray,
    until: float,
    progress: Callable[[float], None] = lambda time: None,
) -> Plan:
    """Return the fetches of a scheduler whose ids are rows, if each one succeeds at once.

    Args:
        scheduler: the scheduler, at its start.
        copies: time of the copy of each page, NaN without one, (m,).
        until: the last day.
        progress: called with the time now and then.
    """
    time = scheduler.time
    at_once = max(1, round((until - time) * scheduler.bandwidth / MOST_TIMES))
    copies = copies.copy()
    pages, times, elapsed = [], [], []
    while time <= until:
        page = np.asarray(scheduler.next_batch(time, at_once), np.int64)
        if page.size == 0:
            time = scheduler.next(time).ask_again
            continue
        scheduler.report(page, time)
        pages.append(page)
        times.append(np.full(page.size, time))
        elapsed.append(time - copies[page])
        copies[page] = time
        if len(pages) % 256 == 0:
            progress(time)
        time += (at_once - 1) / scheduler.bandwidth
    columns = zip(Plan.empty(), (pages, times, elapsed), strict=True)
    return Plan(*(np.concatenate([none, *parts]) for none, parts in columns))


def rechecks(table: PageTable, days: float, start: float, until: float, gap: float = 0.0) -> Plan:
    """Return fetches of the pages that are gone, each ``days`` after the last, sorted by time.

    Args:
        table: the pages.
        days: days between two fetches of a page, > 0.
        start: the first day; fetches that were due before it are made then.
        until: the last day.
        gap: least time between two of these fetches.

    Raises:
        ValueError: ``days`` is not above 0, or the table does not tell which pages are gone.
    """
    if table.gone is None or not days > 0.0:
        expected = "above 0" if table.gone is not None else "used with a column gone of the table"
        raise ValueError(f"recheck-gone must be {expected}, got {days:g}")
    rows, until = np.flatnonzero(table.gone), until + ROUNDING
    copies = np.nan_to_num(copies_of(table)[rows], nan=start - days)
    first = np.maximum(copies + days, start)
    count = np.where(first <= until, 1 + np.floor((until - first) / days), 0).astype(np.int64)
    of = np.repeat(np.arange(rows.size), count)
    turn = np.arange(of.size) - np.repeat(np.cumsum(count) - count, count)
    elapsed = np.where(turn == 0, first[of] - copies[of], days)
    due = first[of] + days * turn
    order = np.argsort(due, kind="stable")
    wait = gap * np.arange(order.size)
    time = np.maximum.accumulate(due[order] - wait) + wait
    elapsed = elapsed[order] + time - due[order]
    kept = time <= until
    return Plan(rows[of[order]][kept], time[kept], elapsed[kept])


def merged(first: Plan, second: Plan) -> Plan:
    """Return the fetches of two plans in the order of time."""
    order = np.argsort(np.concatenate([first.time, second.time]), kind="stable")
    return Plan(*(np.concatenate(pair)[order] for pair in zip(first, second, strict=True)))


def reasons(plan: Plan, table: PageTable, start: float) -> list[str]:
    """Return why each page is fetched then, in words; signals are those before the start."""
    words = []
    gone = np.zeros(table.num_pages, np.bool_) if table.gone is None else table.gone
    known = np.full(table.num_pages, table.signals is not None)
    expected, stale = changes_since_copies(plan, table, start)
    for row, (page, _, elapsed) in enumerate(zip(*map(np.ndarray.tolist, plan), strict=True)):
        first, known[page] = known[page], False
        if elapsed != elapsed:
            words.append("no copy yet")
            continue
        text = f"copy {elapsed:.3g} days old"
        if gone[page]:
            text = f"gone when last asked, {elapsed:.3g} days ago"
        if first:
            text += f"; {signals_in_words(table, page) or 'no signal'} before the start"
        if table.change_rate is not None and not gone[page]:
            text += f"; {expected[row]:.3g} changes expected since"
            text += f", stale with probability {stale[row]:.3g}" * bool(first)
        words.append(text)
    return words


def signals_in_words(table: PageTable, pages: Any) -> str:
    """Return the signals of some pages since their copies, such as ``2 signals of feed``."""
    if table.signals is None:
        return ""
    numbers = np.atleast_2d(table.signals[:, pages].T).sum(axis=0).tolist()
    named = zip(table.sources, numbers, strict=True)
    words = (counted(n, "signal") + f" of {name}" * (name != "signals") for name, n in named if n)
    return ", ".join(words)


def changes_since_copies(
    plan: Plan, table: PageTable, start: float
) -> tuple[FloatArray, FloatArray]:
    """Return the expected number of changes since copies, and the probability of any, (n,) each.

    Until the start signals are known: changes without one have the rate alpha, and a signal is one
    of a change with probability 1 - nu / gamma (:mod:`crawl_envs.types.evidence`).
    """
    page, time, elapsed = plan
    if table.change_rate is None:
        return elapsed, elapsed
    rate = table.change_rate[page]
    expected = rate * elapsed
    level = expected.copy()
    if table.signals is not None:
        first = np.unique(page, return_index=True)[1]
        known, number = columns_of(table, page[first]), table.signals[:, page[first]]
        recall, false = (np.atleast_2d(known[name]) for name in OF_INSTANCE[2:])
        recall = np.maximum(recall, known.get("complete", 0.0))
        evidence = np.minimum(signal_evidence(rate[first], recall, false), 1e3)  # no inf * 0
        until_start = np.maximum(elapsed[first] - (time[first] - start), 0.0)
        signalled = np.minimum(recall.sum(axis=0), 1.0)
        expected[first] -= rate[first] * signalled * until_start
        level[first] = expected[first] + (number * evidence).sum(axis=0)
        expected[first] -= (number * np.expm1(-evidence)).sum(axis=0)
    return expected, -np.expm1(-level)


def cautions(table: PageTable, rechecked: bool = False, policy: str = "Greedy") -> list[str]:
    """Return what a schedule of the table leaves out or only supposes, in sentences."""
    said, rows = list(table.notes), living(table)
    if rows.size < table.num_pages and not rechecked:
        pages = counted(table.num_pages - rows.size, "page")
        said.append(f"{pages} gone: fetched only with --recheck-gone DAYS")
    unwanted = int((table.importance[rows] == 0.0).sum())
    if unwanted and "importance" in crawl_policies.find(policy).needs:
        pages = counted(unwanted, "page")
        said.append(f"{pages} of importance 0: never fetched, but once without a copy")
    if table.evidence is not None:
        kinds = table.evidence[rows]
        count = {kind: n for kind in (ONCE, NEVER, ALWAYS) if (n := int((kinds == kind).sum()))}
        if count:
            of = ", ".join(f"{n} {kind}" for kind, n in count.items())
            said.append(
                f"{sum(count.values())} of {counted(rows.size, 'rate')} rest on pages like them, "
                f"as their own crawls give no estimate ({of})"
            )
    return said


def policy_cautions(table: PageTable, policy: str, learn: bool = False) -> list[str]:
    """Return what a policy does not use of a table, and supposes of signals, in sentences."""
    chosen, sentences, rows = crawl_policies.find(policy), [], living_copies(table)
    if policy == "RoundRobin" and table.change_rate is None:
        sentences.append(
            "no column change_rate, as python -m scripts.estimate LOG writes: pages are fetched "
            "in turn (RoundRobin), whatever their importance"
        )
    readable = learn or table.recall is not None or "recall" not in chosen.needs
    uses = getattr(chosen, "uses_signals", False) and readable
    if uses and table.sources and table.signals is None and rows.size:
        sentences.append("no column signals: it is supposed that none came since the last crawls")
    unused = np.setdiff1d(np.arange(table.num_pages), rows if uses else [])
    if words := signals_in_words(table, unused):
        why = f"{policy} uses none" if readable else "there is no column recall"
        why = "their pages are gone or have no copy" if uses else why
        sentences.append(f"{words} since the last crawls not used: {why}")
    return sentences


def expected_freshness(table: PageTable, bandwidths: Sequence[float]) -> FloatArray:
    """Return the largest long-run freshness with each bandwidth, by the known rates.

    It is that of NCIS, Theorem 1, which uses the signals as they come; a share of the importance.
    The table must have change rates.
    """
    given = columns_of(table, living(table))
    known = {name: given[name] for name in OF_INSTANCE}
    instances = (Instance(bandwidth=bandwidth, **known) for bandwidth in bandwidths)
    return np.array([solvers.ncis(instance).objective for instance in instances])
