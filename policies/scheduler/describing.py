"""What a scheduler knows of a page, and why it has no page to fetch, in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.scheduler.page_values import evidence_of
from policies.scheduler.pages import PageTables
from policies.scheduler.signal_log import signals_until
from policies.scheduler.states import GONE, NEW, PARKED, READY, SENT, STATES, WAITING

FARTHEST = 2.0**60
"""The longest time within which a due time is searched, in times since the copy."""


def description(pages: PageTables, row: int, now: float) -> dict[str, Any]:
    """Return what is known of the page of a row; see :meth:`CrawlScheduler.describe`."""
    choices, page = pages.choices, pages.lazy.pages[row]
    columns = {name: column[..., row].tolist() for name, column in pages.columns.items()}
    copy = float(page["last_crawl"]) if math.isfinite(page["last_crawl"]) else None
    state = int(choices.status[row])
    earliest, why = _earliest(pages, row, state, now)
    told: dict[str, Any] = {"state": STATES[state], "copy": copy, "why": why}
    told["signals"], told["failures"] = int(choices.logged[row]), int(choices.fails[row])
    told["value"] = told["stale"] = None
    told["due"] = earliest if state != GONE else math.inf
    if copy is not None:
        told["stale"] = _stale(pages, row, copy, now)
        told["value"] = _value(pages, row, now)
        told["due"] = _due(pages, row, told["due"])
    return {**columns, "least_interval": float(choices.least[row]), **told}


def _earliest(pages: PageTables, row: int, state: int, now: float) -> tuple[float, str]:
    """Return the time from which on a page may be fetched, and why, in words."""
    choices, lines, host = pages.choices, pages.choices.lines[0], int(pages.choices.host[row])
    if state == GONE:
        return math.inf, "it is gone"
    passed = choices.due[row] <= now
    if state == SENT and not passed:
        lost = float(choices.due[row])
        sent = lost - float(lines["timeout"])
        return lost, f"it was handed out at {sent:g}, and is lost at {lost:g}"
    if state == WAITING and not passed:
        fails = int(choices.fails[row])
        failures = f" after {fails} failure{'s' * (fails > 1)}" * bool(fails)
        return float(choices.due[row]), f"it waits until {choices.due[row]:g}{failures}"
    if host >= 0 and (opens := max(choices.opens[host], choices.held[host])) > now:
        return float(opens), f"its host may be asked from {opens:g} on"
    if host >= 0 and (state == PARKED or choices.busy[host] >= choices.most[host]):
        return now, f"its host has {choices.busy[host]} fetches"
    if state == NEW:
        return now, f"it is one of {lines['num_new']} pages without a copy"
    return now, "it is due when its value is the largest"


def _value(pages: PageTables, row: int, time: float) -> float:
    """Return the crawl value of a page at a time, without further signals."""
    page = pages.lazy.pages[row]
    elapsed = max(time - float(page["last_crawl"]), 0.0)
    value = pages.values.value(pages.lazy.parameters, row, elapsed, float(page["counted"]))
    return float(value)


def _stale(pages: PageTables, row: int, copy: float, now: float) -> float | None:
    """Return the probability that a copy is stale, None if no change rates are known."""
    columns = {name: column[..., row : row + 1] for name, column in pages.columns.items()}
    if "change_rate" not in columns:
        return None
    level = columns["change_rate"] * max(now - copy, 0.0)
    if "recall" in columns:
        level = level * (1.0 - np.atleast_2d(columns["recall"]).sum(axis=0))
        rows, copies = np.array([row]), np.array([copy])
        signals = np.zeros((1, pages.num_sources))
        signals_until(pages.arguments[0], rows, np.full(1, math.inf), signals)
        level += signals[0] @ np.atleast_2d(evidence_of(columns)) + pages.lost(rows, copies).sum()
    return float(-np.expm1(-level[0]))


def _due(pages: PageTables, row: int, earliest: float) -> float:
    """Return when a page's value reaches that of the pages that are fetched now, from a time on."""
    bar = 1.0 if not pages.values.apart else float(pages.choices.lines[0]["level"])
    if _value(pages, row, earliest) >= bar:
        return earliest
    low = step = max(earliest - float(pages.lazy.pages[row]["last_crawl"]), 1e-12)
    while _value(pages, row, earliest + step - low) < bar:
        step *= 2.0
        if step > FARTHEST * low:
            return math.inf
    least, most = 0.0, step - low
    for _ in range(60):
        middle = 0.5 * (least + most)
        reached = _value(pages, row, earliest + middle) >= bar
        least, most = (least, middle) if reached else (middle, most)
    return earliest + most


def reason(status: NDArray[Any], is_used_up: bool, ask_again: float) -> str:
    """Return why there is no page to fetch now; see :meth:`CrawlScheduler.why`."""
    counts = np.bincount(status, minlength=len(STATES))
    words = ", ".join(f"{counts[k]} {STATES[k]}" for k in (READY, NEW, SENT, WAITING, PARKED, GONE))
    if is_used_up:
        return f"the bandwidth is used up until {ask_again:g}; pages: {words}"
    if counts[READY] + counts[NEW]:
        return f"there is a page to fetch; pages: {words}"
    return f"no page may be fetched before {ask_again:g}; pages: {words}"
