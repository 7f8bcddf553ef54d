"""Plan fetches from a table of pages, and compute the freshness that a budget can reach."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
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
"""Allowed rounding error of the last day of a schedule, in days."""
KEEP_GONE = 30.0
"""Days during which an entry in a feed does not bring back a gone page."""
LIMIT = re.compile(r"(.*?):(-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?::(\d+))?")
"""Form of a limit: HOST:GAP or HOST:GAP:MOST."""
MOST_TIMES = 200_000
"""Largest number of times at which fetches are chosen; more fetches are chosen in batches."""


class Plan(NamedTuple):
    """Fetches in order of time.

    Attributes:
        page: row of the page, (n,) int64.
        time: days, (n,) float64.
        elapsed: days since the last copy of the page, NaN without a copy, (n,) float64.
    """

    page: IntArray
    time: FloatArray
    elapsed: FloatArray

    @classmethod
    def empty(cls) -> Plan:
        """Return a plan without fetches."""
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


class Schedule(NamedTuple):
    """What a schedule is computed from: pages, policy, budget, first day and limits.

    Attributes:
        table: the pages, if any are known.
        policy: name of a policy.
        bandwidth: fetches per day; with costs, their cost per day.
        start: the first day.
        limits: limits of hosts, texts that :func:`limit_hosts` accepts.
        more: further arguments of the scheduler, such as ``cap`` and ``audit_share``.
    """

    table: PageTable | None
    policy: str
    bandwidth: float
    start: float
    limits: Sequence[str] = ()
    more: Mapping[str, Any] = {}

    def scheduler(
        self, ids: IntArray | None = None, learn: bool = False, feeds: int = 0
    ) -> CrawlScheduler:
        """Return a scheduler of the table's pages that are not gone; without a table, of no pages.

        The limits of hosts are not applied yet.

        Args:
            ids: ids of the pages that replace their URLs, (m,).
            learn: whether rates are learned from the results of fetches.
            feeds: number of feeds; if there are any, gone pages are kept, so that no feed brings
                them back.

        Raises:
            ValueError: the policy needs a column that the table lacks, a copy is after the start,
                the table has fewer sources than feeds, or its days are not dates.
        """
        table = self.table
        sources = len(table.sources) if table is not None else 0
        if feeds and table is not None and not newest_copy(table)[1]:
            raise ValueError(
                "feed must be left out if last_crawl has numbers, since feeds have dates"
            )
        if feeds > sources and (sources or not learn):
            raise ValueError(
                f"feed must be given with --learn, or once for each source of the table, which has "
                f"{counted(sources, 'source')}, got {feeds}"
            )
        about: dict[str, Any] = {"num_sources": max(sources, feeds, 1), "learn": learn, **self.more}
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
    """Limit a scheduler's fetches by host: texts ``HOST:GAP`` or ``HOST:GAP:MOST``.

    An empty HOST limits all hosts. ``hosts`` are the hosts of the pages, if no page can be added.

    Raises:
        ValueError: a text has another form, a limit is out of range, or no page has the host.
    """
    for text in limits:
        match = LIMIT.fullmatch(text)
        if match is None:
            raise ValueError(f"limit must be HOST:GAP or HOST:GAP:MOST, got {text!r}")
        host, gap, at_once = match.groups()
        if hosts is not None and host and host not in hosts:
            expected = reprlib.repr(sorted(set(hosts)))
            raise ValueError(f"limit must name a host of a page, one of {expected}, got {host!r}")
        scheduler.limit_hosts(host or None, gap=float(gap), most=int(at_once) if at_once else None)


def plan(
    scheduler: CrawlScheduler,
    copies: FloatArray,
    until: float,
    progress: Callable[[float], None] = lambda time: None,
    costs: FloatArray | None = None,
) -> Plan:
    """Return the fetches that a scheduler chooses until a day, if each fetch succeeds at once.

    Args:
        scheduler: the scheduler at its start; the ids of its pages are rows of the table.
        copies: time of the copy of each page, NaN without a copy, (m,).
        until: the last day.
        progress: called regularly with the time.
        costs: cost of a fetch of each page, (m,); None for 1.
    """
    time, paid = scheduler.time, np.ones(copies.size) if costs is None else costs
    fetches = (until - time) * scheduler.bandwidth / paid.mean()
    at_once = max(1, round(fetches / MOST_TIMES))
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
        time += (at_once - 1) * float(paid[page].mean()) / scheduler.bandwidth
    if not pages:
        return Plan.empty()
    return Plan(np.concatenate(pages), np.concatenate(times), np.concatenate(elapsed))


def rechecks(table: PageTable, days: float, start: float, until: float, gap: float = 0.0) -> Plan:
    """Return fetches of the gone pages, sorted by time; each page is due every ``days`` days.

    Args:
        table: the pages.
        days: days between two fetches of a page, > 0.
        start: the first day; fetches that were due before it are made then.
        until: the last day.
        gap: least days between two fetches of gone pages, per unit of cost.

    Raises:
        ValueError: ``days`` is not above 0, or the table has no column ``gone``.
    """
    if table.gone is None or not days > 0.0:
        expected = "above 0" if table.gone is not None else "used with a column gone of the table"
        raise ValueError(f"recheck-gone must be {expected}, got {days:g}")
    rows, until = np.flatnonzero(table.gone), until + ROUNDING
    copies = np.nan_to_num(copies_of(table)[rows], nan=start - days)
    first = np.maximum(copies + days, start)
    count = np.where(first <= until, 1 + np.floor((until - first) / days), 0).astype(np.int64)
    row = np.repeat(np.arange(rows.size), count)
    turn = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    elapsed = np.where(turn == 0, first[row] - copies[row], days)
    due = first[row] + days * turn
    order = np.argsort(due, kind="stable")
    paid = costs_of(table)[rows[row[order]]]
    wait = gap * (np.cumsum(paid) - paid)
    time = np.maximum.accumulate(due[order] - wait) + wait
    elapsed = elapsed[order] + time - due[order]
    inside = time <= until
    return Plan(rows[row[order]][inside], time[inside], elapsed[inside])


def costs_of(table: PageTable) -> FloatArray:
    """Return the cost of a crawl of each page, (m,); 1 in a table without costs."""
    return np.ones(table.num_pages) if table.cost is None else table.cost


def merged(first: Plan, second: Plan) -> Plan:
    """Return one plan with the fetches of two plans, sorted by time."""
    order = np.argsort(np.concatenate([first.time, second.time]), kind="stable")
    return Plan(*(np.concatenate(pair)[order] for pair in zip(first, second, strict=True)))


def reasons(plan: Plan, table: PageTable, start: float) -> list[str]:
    """Return why each fetch is made: age of the copy, signals before ``start``, likely changes."""
    words = []
    gone = np.zeros(table.num_pages, np.bool_) if table.gone is None else table.gone
    has_signals = np.full(table.num_pages, table.signals is not None)
    expected, stale = changes_since_copies(plan, table, start)
    for row, (page, _, elapsed) in enumerate(zip(*map(np.ndarray.tolist, plan), strict=True)):
        first, has_signals[page] = has_signals[page], False
        if elapsed != elapsed:
            words.append("no copy yet")
            continue
        text = f"copy {elapsed:.3g} days old"
        if gone[page]:
            text = f"gone at its last fetch, {elapsed:.3g} days ago"
        if first:
            text += f"; {signals_in_words(table, page) or 'no signal'} before the start"
        if table.change_rate is not None and not gone[page]:
            text += f"; {expected[row]:.3g} changes expected since"
            text += f", stale with probability {stale[row]:.3g}" * bool(first)
        words.append(text)
    return words


def signals_in_words(table: PageTable, pages: Any) -> str:
    """Return in words how many signals pages had since their copies: ``2 signals of feed``."""
    if table.signals is None:
        return ""
    numbers = np.atleast_2d(table.signals[:, pages].T).sum(axis=0).tolist()
    named = zip(table.sources, numbers, strict=True)
    words = (counted(n, "signal") + f" of {name}" * (name != "signals") for name, n in named if n)
    return ", ".join(words)


def changes_since_copies(
    plan: Plan, table: PageTable, start: float
) -> tuple[FloatArray, FloatArray]:
    """Return the expected changes of each fetch's page since its copy, and P(changed), (n,) each.

    Signals are known until the start. Changes without a signal have the rate alpha; a signal
    follows a change with probability 1 - nu / gamma (:mod:`crawl_envs.types.evidence`). Without
    change rates, both arrays are the elapsed days.
    """
    page, time, elapsed = plan
    if table.change_rate is None:
        return elapsed, elapsed
    rate = table.change_rate[page]
    expected = rate * elapsed
    level = expected.copy()
    if table.signals is not None:
        first = np.unique(page, return_index=True)[1]
        columns, number = columns_of(table, page[first]), table.signals[:, page[first]]
        recall, false = (np.atleast_2d(columns[name]) for name in OF_INSTANCE[2:])
        recall = np.maximum(recall, columns.get("complete", 0.0))
        evidence = np.minimum(signal_evidence(rate[first], recall, false), 1e3)  # no inf * 0
        until_start = np.maximum(elapsed[first] - (time[first] - start), 0.0)
        signalled = np.minimum(recall.sum(axis=0), 1.0)
        expected[first] -= rate[first] * signalled * until_start
        level[first] = expected[first] + (number * evidence).sum(axis=0)
        expected[first] -= (number * np.expm1(-evidence)).sum(axis=0)
    return expected, -np.expm1(-level)


def cautions(table: PageTable, rechecked: bool = False, policy: str = "Greedy") -> list[str]:
    """Return sentences about pages that a schedule omits, and about rates from similar pages."""
    sentences, rows = list(table.notes), living(table)
    if rows.size < table.num_pages and not rechecked:
        pages = counted(table.num_pages - rows.size, "page")
        sentences.append(f"{pages} gone: fetched only with --recheck-gone DAYS")
    unwanted = int((table.importance[rows] == 0.0).sum())
    if unwanted and "importance" in crawl_policies.find(policy).needs:
        pages = counted(unwanted, "page")
        sentences.append(f"{pages} of importance 0: fetched only for a first copy or a promise")
    if table.evidence is not None:
        kinds = table.evidence[rows]
        count = {kind: n for kind in (ONCE, NEVER, ALWAYS) if (n := int((kinds == kind).sum()))}
        if count:
            by_kind = ", ".join(f"{n} {kind}" for kind, n in count.items())
            sentences.append(
                f"{sum(count.values())} of {counted(rows.size, 'rate')} rest on similar pages: "
                f"crawls of the page alone give no estimate ({by_kind})"
            )
    return sentences


def policy_cautions(table: PageTable, policy: str, learn: bool = False) -> list[str]:
    """Return sentences about columns that are missing, and about signals that a policy ignores."""
    family, sentences, rows = crawl_policies.find(policy), [], living_copies(table)
    if policy == "RoundRobin" and table.change_rate is None:
        sentences.append(
            "no column change_rate (python -m scripts.estimate LOG writes it): pages are fetched "
            "in turn (RoundRobin), regardless of importance"
        )
    readable = learn or table.recall is not None or "recall" not in family.needs
    uses = getattr(family, "uses_signals", False) and readable
    if uses and table.sources and table.signals is None and rows.size:
        sentences.append("no column signals: assuming no signals since the last crawls")
    unused = np.setdiff1d(np.arange(table.num_pages), rows if uses else [])
    if words := signals_in_words(table, unused):
        why = f"{policy} uses none" if readable else "there is no column recall"
        why = "their pages are gone or have no copy" if uses else why
        sentences.append(f"{words} since the last crawls not used: {why}")
    return sentences


def optimum(
    table: PageTable, rows: IntArray, bandwidth: float, floor: FloatArray | float = 0.0
) -> solvers.Allocation:
    """Return rates, >= ``floor``, of the largest long-run freshness of pages with change rates.

    It is weighted by importance, and uses future signals: the optimum of NCIS (Theorem 1).
    """
    columns = columns_of(table, rows)
    parameters: dict[str, Any] = {name: columns.get(name) for name in (*OF_INSTANCE, "cost")}
    return solvers.ncis(Instance(bandwidth=bandwidth, **parameters), floor=floor)
