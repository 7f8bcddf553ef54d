"""The data of the page to watch: freshness and fetches over time, and the next pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import VALUE, compiled, ready
from crawl_envs.compiled.lazy_argmax import lazy_at, value_at
from crawl_envs.compiled.promises import DUE
from crawl_envs.types import FloatArray, IntArray
from policies.live.adapters.messages import Scheduler, date_of, measured
from policies.live.scheduler.describing import description, stale, troubles
from policies.live.scheduler.states import GONE, NEW, PARKED, READY, SENT, WAITING

BINS = 240
MINUTE = 1.0 / 1440.0
MAX_ROWS, FIRST = 12, 10
"""Most rows of a table; ``FIRST`` is for tables of gone, failing, starved or likely stale pages."""
LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")
UNITS = ("days", 1.0), ("hours", 1.0 / 24.0), ("minutes", MINUTE), ("seconds", MINUTE / 60.0)


class History:
    """A history in bins of time: fetches by outcome (``outcomes``) and freshness.

    ``expected`` is the freshness that is believed, ``measured`` that of the day so far, by audits.
    When there are ``BINS`` bins, their width in days doubles.
    """

    def __init__(self) -> None:
        self.width, self.bins = MINUTE, dict[int, dict[str, Any]]()

    def bin_at(self, time: float) -> dict[str, Any]:
        """Return the bin that contains a time; merge bins if there would be too many."""
        while int(time // self.width) not in self.bins and len(self.bins) >= BINS:
            before, self.bins = sorted(self.bins.items()), {}
            self.width *= 2.0
            for place, part in before:
                merged = self.bins.setdefault(place // 2, {"outcomes": Counter()})
                merged |= part | {"outcomes": merged["outcomes"] + part["outcomes"]}
        return self.bins.setdefault(int(time // self.width), {"outcomes": Counter()})

    def table(self) -> list[dict[str, Any]]:
        """Return the bins in order, each with the ``time`` at which it begins, in days."""
        return [{"time": k * self.width, **part} for k, part in sorted(self.bins.items())]


def overview_of(scheduler: Scheduler, now: float) -> dict[str, Any]:
    """Return the data of the page to watch: states of pages, sources and hosts, and next pages."""
    with scheduler.lock:
        pages, rows, now = scheduler.pages, scheduler.pages.living(), max(now, scheduler.time)
        probability = stale(pages, rows, now)
        facts, day = scheduler.overview(now), audits_on(scheduler, now)
        return {
            **facts,
            "measured": None if day is None else {"day": day, "all": measured(scheduler)},
            "bandwidth": scheduler.bandwidth,
            "saved": facts.pop("allowance"),
            "most_saved": scheduler.most_saved,
            "interval": rows.size / scheduler.pace.fetch_rate,
            "mean_cost": scheduler.pace.mean_cost,
            "sources": _sources(pages, rows),
            "num_hosts": len(pages.hosts),
            "hosts": _hosts(pages, rows, probability, now),
            "next": _next(pages, rows, now),
            "first": _troubled(pages, rows, probability, now, scheduler.pace.fetch_rate),
        }


def audits_on(scheduler: Scheduler, now: float) -> dict[str, Any] | None:
    """Return what the latest audits measured on the day (UTC) so far; None without audits."""
    if scheduler.audits is None:
        return None
    day, times = float(np.floor(now)), scheduler.audits.records()["time"]
    facts = measured(scheduler, since=max([day, *times[:1].tolist()]))
    return {"since": day, **facts, "calibration": None}  # it needs more audits than of a day


def _sources(pages: Any, rows: IntArray) -> list[dict[str, Any]]:
    """Return the recall and precision of each source.

    ``basis`` says where the precision comes from: ``given`` (with the pages), ``prior`` (no
    evidence) or ``fetches``. ``crawls`` is the number of fetches learned from, None without
    learning. ``compared`` is the number of signals before them; a given rate counts as some.
    """
    columns = {name: np.atleast_2d(column)[:, rows] for name, column in pages.columns.items()}
    if not {"change_rate", "recall", "false_signal_rate"} <= columns.keys():
        return []
    change = columns["change_rate"].sum()
    emitted = (columns["recall"] * columns["change_rate"]).sum(axis=1)
    signals = emitted + columns["false_signal_rate"].sum(axis=1)
    compared, crawls = np.ones(emitted.size), None
    if (learner := pages.learner) is not None:
        compared = learner.counts[rows, 1 + emitted.size :].sum(axis=0, dtype=np.float64)
        crawls = int(learner.fetches[0])
    return [
        {
            "recall": float(e / change) if change else None,
            "precision": float(e / s) if s else None,
            "basis": "prior" if count == 0.0 else "fetches" if crawls else "given",
            "crawls": crawls,
            "compared": None if crawls is None else count,
        }
        for e, s, count in zip(emitted, signals, compared.tolist(), strict=True)
    ]


def _hosts(
    pages: Any, rows: IntArray, probability: FloatArray | None, now: float
) -> list[dict[str, Any]]:
    """Describe the hosts that are held, then the hosts with most pages, a dict each."""
    codes, labels, choices = pages.choices.host[rows], list(pages.hosts), pages.choices
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    held, hosts = choices.held[: len(labels)], []
    for code in np.lexsort((-counts, held <= now))[:MAX_ROWS].tolist():
        on_host = None if probability is None or not counts[code] else probability[codes == code]
        opens = max(choices.opens[code], held[code])
        until = date_of(held[code]) or "further notice"
        about = {"host": str(labels[code]), "pages": int(counts[code])}
        about |= {"stale": None if on_host is None else float(on_host.mean())}
        about |= {"fetches": int(choices.busy[code])}
        about |= {"opens": date_of(opens) if opens > now else None}
        hosts.append(about | {"held_until": until if held[code] > now else None})
    return hosts


def _next(pages: Any, rows: IntArray, now: float) -> list[dict[str, Any]]:
    """Describe the next pages: due by promises, new ones, then those of largest crawl values."""
    status, host = pages.choices.status[rows], pages.choices.host[rows]
    over = np.isin(status, (WAITING, SENT)) & (pages.choices.due[rows] <= now)
    free = over | np.isin(status, (READY, NEW, PARKED))
    free &= (host < 0) | (pages.choices.held[host] <= now)
    there = np.isfinite(pages.lazy.pages["last_crawl"][rows])
    new, old = rows[free & ~there], rows[free & there]
    values = np.empty(old.size)
    ready(values_of)(pages.arguments[1], pages.values.value, now, old, values)
    best, num_due = old[np.argsort(-values, kind="stable")][:MAX_ROWS], (values >= DUE).sum()
    price = float(pages.choices.lines[0]["level"]) if pages.values.apart else 1.0
    rows_next = []
    listed = *best[:num_due], *new[: MAX_ROWS // 3], *best[num_due:]
    for place, row in enumerate(listed[:MAX_ROWS], 1 - min(num_due, MAX_ROWS)):
        facts = description(pages, int(row), now)
        line = f"{place} of {new.size} pages without a copy"
        why = line if facts["copy"] is None else reason_of(facts, now, price)
        rows_next.append({**_about(pages, row, facts), "why": why})
    return rows_next


def reason_of(facts: Mapping[str, Any], now: float, price: float) -> str:
    """Return a sentence on why a page is due soon, from the ``facts`` of its ``description``."""
    age = now - facts["copy"]
    unit, days = next((pair for pair in UNITS if age >= 2.0 * pair[1]), UNITS[-1])
    parts = [f"its copy is {age / days:.3g} {unit} old"]
    if until := date_of(facts.get("deadline", np.inf)):
        parts.append(f"promised until {until}")
    if "change_rate" in facts:
        parts.append(f"{age * facts['change_rate']:.3g} changes expected since")
    if "recall" in facts:
        parts.append(f"{facts['signals']} signal{'s' * (facts['signals'] != 1)}")
    if facts["stale"] is not None:
        parts.append(f"stale with {facts['stale']:.1%}")
    if "cost" in facts:
        parts.append(f"cost {facts['cost']:,.4g}")
    if price > 0.0:
        parts.append(f"value {facts['value'] / price:.3g} of that fetched last")
    return ", ".join(parts)


def _troubled(
    pages: Any, rows: IntArray, probability: FloatArray | None, now: float, rate: float
) -> dict[str, list[dict[str, Any]]]:
    """Describe the first pages of each trouble: gone, failing, starved or likely stale."""
    choices, copies = pages.choices, pages.lazy.pages["last_crawl"]
    some = {"gone": np.flatnonzero((choices.status == GONE) & np.isfinite(choices.due))}
    for name, which in troubles(pages, rows, probability, now, rate).items():
        some[name] = rows[which]
    orders, tables = {"gone": -choices.due, "failing": -choices.fails}, {}
    for name, candidates in some.items():
        first = candidates[np.argsort(orders.get(name, copies)[candidates], kind="stable")][:FIRST]
        tables[name] = [_about(pages, row, description(pages, row, now)) for row in first.tolist()]
    return tables


def _about(pages: Any, row: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a page by its facts; ``until`` is when its wait ends, or it is forgotten as gone."""
    url, until = str(pages.ids.ids(np.array([row]))[0]), float(pages.choices.due[row])
    names = "state", "failures", "stale", "signals", "change_rate"
    times = {"copy": facts["copy"], "due": facts["due"], "until": until}
    dates = {k: None if t is None else date_of(t) for k, t in times.items()}
    return {"url": without_login(url), **{name: facts.get(name) for name in names}, **dates}


def feeds_of(polls: Any) -> list[dict[str, Any]]:
    """Describe the feeds and their polls; feeds with faults come first."""
    due, last, feeds = dict(polls.due), dict(polls.last), []
    for feed in due:
        polled, faults = (last[feed].time, last[feed].faults) if feed in last else (None, ())
        fault = "; ".join(faults)
        dates = {"polled": None if polled is None else date_of(polled), "next": date_of(due[feed])}
        feeds.append({"feed": without_login(feed), "fault": without_login(fault, feed), **dates})
    return sorted(feeds, key=lambda each: not each["fault"])


def without_login(text: str, address: str = "") -> str:
    """Remove users and passwords of URLs from a text, and also the login of ``address``."""
    login = LOGIN.search(address)
    return LOGIN.sub("", text if login is None else text.replace(login[0], ""))


@compiled(types.void(types.int64[::1], VALUE, types.float64, types.int64[::1], types.float64[::1]))
def values_of(
    search: IntArray, value: Any, now: float, pages: IntArray, values: FloatArray
) -> None:
    """Write the crawl value of each page at a time to ``values``."""
    lazy = lazy_at(search)
    for position in range(pages.shape[0]):
        values[position] = value_at(lazy, value, pages[position], now)
