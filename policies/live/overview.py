"""What the page of an endpoint shows: how a scheduler does, over time, and what comes next."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import VALUE, compiled, ready
from crawl_envs.compiled.lazy_argmax import lazy_at, value_at
from crawl_envs.types import FloatArray, IntArray
from policies.live.messages import Scheduler, date_of
from policies.scheduler.describing import description, stale
from policies.scheduler.states import NEW, READY, SENT, WAITING

BINS = 240
MINUTE = 1.0 / 1440.0
SHOWN = 12
"""Rows of a table."""


class History:
    """Fetches by outcome and freshness over time.

    Attributes:
        width: width of a bin in days; it doubles when there are ``BINS`` of them.
        bins: by the time over the width: ``outcomes``, and the last ``expected`` and ``true``
            freshness.
    """

    def __init__(self) -> None:
        self.width, self.bins = MINUTE, dict[int, dict[str, Any]]()

    def at(self, time: float) -> dict[str, Any]:
        """Return the bin of a time."""
        while int(time // self.width) not in self.bins and len(self.bins) >= BINS:
            before, self.bins = sorted(self.bins.items()), {}
            self.width *= 2.0
            for place, told in before:
                found = self.bins.setdefault(place // 2, {**told, "outcomes": Counter()})
                outcomes = found["outcomes"] + told["outcomes"]
                found |= told | {"outcomes": outcomes}
        return self.bins.setdefault(int(time // self.width), {"outcomes": Counter()})

    def begin(self, now: float) -> float:
        """Return the time at which the first bin begins, in days; that of now, if there is none."""
        return min(self.bins, default=int(now // self.width)) * self.width

    def table(self) -> list[dict[str, Any]]:
        """Return the bins in order, each with the ``time`` at which it begins, in days."""
        return [{"time": k * self.width, **told} for k, told in sorted(self.bins.items())]


def overview_of(scheduler: Scheduler, now: float) -> dict[str, Any]:
    """Return what is known of all pages at a time, of sources and hosts, and what comes next."""
    with scheduler.lock:
        told = scheduler.overview(now)
        pages, rows = scheduler.pages, scheduler.pages.living()
        probability = stale(pages, rows, now)
        budget = {"bandwidth": scheduler.bandwidth, "saved": told.pop("allowance")}
        budget["most_saved"] = 1.0 + scheduler.burst * scheduler.bandwidth
        return {
            **told,
            **budget,
            "sources": _sources(pages, rows),
            "hosts": _hosts(pages, rows, probability, now),
            "next": _next(pages, rows, now),
        }


def _sources(pages: Any, rows: IntArray) -> list[dict[str, float | None]]:
    """Return the shares of changes that are signalled, and of signals that a change emitted."""
    columns = {name: np.atleast_2d(column)[:, rows] for name, column in pages.columns.items()}
    if not {"change_rate", "recall", "false_signal_rate"} <= columns.keys():
        return []
    change = columns["change_rate"].sum()
    emitted = (columns["recall"] * columns["change_rate"]).sum(axis=1)
    signals = emitted + columns["false_signal_rate"].sum(axis=1)
    return [
        {"recall": float(e / change) if change else None, "precision": float(e / s) if s else None}
        for e, s in zip(emitted, signals, strict=True)
    ]


def _hosts(
    pages: Any, rows: IntArray, probability: FloatArray | None, now: float
) -> list[dict[str, Any]]:
    """Return the hosts with most pages."""
    codes, labels, choices = pages.choices.host[rows], list(pages.hosts), pages.choices
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    found = []
    for code in np.argsort(-counts, kind="stable")[:SHOWN]:
        own = None if probability is None or not counts[code] else probability[codes == code]
        opens = float(max(choices.opens[code], choices.held[code]))
        about = {"host": str(labels[code]), "pages": int(counts[code])}
        about |= {"stale": None if own is None else float(own.mean())}
        about |= {
            "fetches": int(choices.busy[code]),
            "opens": date_of(opens) if opens > now else None,
        }
        found.append(about)
    return found


def _next(pages: Any, rows: IntArray, now: float) -> list[dict[str, Any]]:
    """Return new pages, and the pages of the largest values, that may be fetched next."""
    status, copy = pages.choices.status[rows], pages.lazy.pages["last_crawl"][rows]
    over = np.isin(status, (WAITING, SENT)) & (pages.choices.due[rows] <= now)
    free, there = over | np.isin(status, (READY, NEW)), np.isfinite(copy)
    new, old = rows[free & ~there][: SHOWN // 3], rows[free & there]
    values = np.empty(old.size)
    ready(values_of)(pages.arguments[1], pages.values.value, now, old, values)
    best = old[np.argsort(-values, kind="stable")][: SHOWN - new.size]
    found = []
    for row in (*new, *best):
        known = description(pages, int(row), now)
        url = str(pages.ids.ids(np.array([row]))[0])
        names = ("copy", "due")
        dates = {
            k: date_of(x) if (x := known[k]) is not None and math.isfinite(x) else None
            for k in names
        }
        kept = {k: known.get(k) for k in ("why", "stale", "signals", "change_rate")}
        found.append({"url": url, **kept, **dates})
    return found


@compiled(types.void(types.int64[::1], VALUE, types.float64, types.int64[::1], types.float64[::1]))
def values_of(
    search: IntArray, value: Any, now: float, pages: IntArray, values: FloatArray
) -> None:
    """Write the values of pages at a time."""
    lazy = lazy_at(search)
    for position in range(pages.shape[0]):
        values[position] = value_at(lazy, value, pages[position], now)
