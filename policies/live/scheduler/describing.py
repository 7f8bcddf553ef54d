"""Describe in words the state of a page, and why no page can be fetched now."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.scheduler.choices import is_free
from policies.live.scheduler.page_promises import bandwidth_of, rates_at
from policies.live.scheduler.page_values import evidence_of
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.states import GONE, NEW, PARKED, READY, SENT, STATES, WAITING

plain_is_free = cast(Any, is_free).py_func  # without a compilation
FARTHEST = 2.0**60
"""Longest time within which a page's due time is searched, in multiples of its copy's age."""
STARVED = 10.0
"""Age of a copy, in mean intervals between fetches of a page, above which it is starved."""
LIKELY_STALE = 0.95
"""Probability of a stale copy above which a page counts as likely stale."""


def description(
    pages: PageTables, row: int, now: float, price: float | None = None
) -> dict[str, Any]:
    """Describe the page of a row in a dict; see :meth:`CrawlScheduler.describe`.

    ``due`` is the time at which the page's crawl value reaches ``price``; None for the value of
    the pages that are fetched now.
    """
    choices, page = pages.choices, pages.lazy.pages[row]
    columns = {name: column[..., row].tolist() for name, column in pages.columns.items()}
    copy = float(page["last_crawl"]) if math.isfinite(page["last_crawl"]) else None
    state = int(choices.status[row])
    earliest, why = _earliest(pages, row, state, now)
    facts: dict[str, Any] = {"state": STATES[state], "copy": copy, "why": why}
    facts["signals"] = int(pages.signal_counts(np.array([row])).sum())
    facts["failures"] = int(choices.fails[row])
    facts["value"] = facts["stale"] = None
    facts["due"] = earliest if state != GONE else math.inf
    if copy is not None:
        probability = stale(pages, np.array([row]), now)
        facts["stale"] = None if probability is None else float(probability[0])
        facts["value"] = _value(pages, row, now)
        facts["due"] = _due(pages, row, facts["due"], price)
    if choices.promises.size:
        facts["deadline"] = float(page["last_crawl"] + choices.most_interval[row])
        columns["most_interval"] = float(choices.most_interval[row])
        begin = float(page["last_crawl"] + pages.lazy.promises[row, 0])
        if begin < math.inf and begin <= max(now, facts["due"]):
            facts["due"] = max(earliest, min(begin, facts["due"]))
            since = f"it is due by its promise {'since' if begin <= now else 'at'} {begin:g}"
            facts["why"] = since if why.startswith("it is due") else why
    if pages.uses_costs:
        columns["cost"] = float(pages.choices.cost[row])
    return {**columns, "least_interval": float(choices.least[row]), **facts}


def _earliest(pages: PageTables, row: int, state: int, now: float) -> tuple[float, str]:
    """Return the time from which on a page may be fetched, and the reason in words."""
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
    if host >= 0 and (state == PARKED or not plain_is_free(choices, host)):
        return now, f"its host has {choices.busy[host]} fetches"
    if state == NEW:
        return now, f"it is one of {lines['num_new']} pages without a copy"
    return now, "it is due when its value is the largest"


def _value(pages: PageTables, row: int, time: float) -> float:
    """Return a page's crawl value at a time if no further signal arrives."""
    page = pages.lazy.pages[row]
    elapsed = max(time - float(page["last_crawl"]), 0.0)
    value = pages.values.value(pages.lazy.parameters, row, elapsed, float(page["counted"]))
    return float(value)


def stale(pages: PageTables, rows: IntArray, now: float) -> FloatArray | None:
    """Return the probability that each page's copy is stale, (n,); 1 without a copy.

    The answer is None if no change rates are known.
    """
    columns = {name: column[..., rows] for name, column in pages.columns.items()}
    if "change_rate" not in columns:
        return None
    copies = pages.lazy.pages["last_crawl"][rows]
    there = np.isfinite(copies)
    signals = pages.signal_counts(rows)
    level = columns["change_rate"] * np.maximum(now - copies, 0.0)
    if "recall" in columns:
        level = level * (1.0 - np.atleast_2d(columns["recall"]).sum(axis=0))
        evidence = np.atleast_2d(evidence_of(columns))
        with np.errstate(invalid="ignore"):  # no signal of endless evidence
            levels = np.where(signals.T > 0.0, signals.T * evidence, 0.0)
        level += levels.sum(axis=0) + pages.lost(rows, copies).sum(axis=0)
    probability = -np.expm1(-level)
    if "complete" in columns:  # every change is signalled
        probability = np.where(columns["complete"] > 0.5, signals.any(axis=1), probability)
    return np.where(there, probability, 1.0)


def states_at(pages: PageTables, now: float) -> IntArray:
    """Return the number of pages in each state at a time; waits that are over then have ended."""
    choices = pages.choices
    passed = (choices.due <= now) & np.isin(choices.status, (WAITING, SENT))
    status = np.where(np.isfinite(pages.lazy.pages["last_crawl"]), READY, NEW)
    return np.bincount(np.where(passed, status, choices.status), minlength=len(STATES))


def troubles(
    pages: PageTables, rows: IntArray, probability: FloatArray | None, now: float, rate: float
) -> dict[str, BoolArray]:
    """Return which pages fail, starve or are likely stale, (n,), by ``probability`` if known."""
    ages = now - pages.lazy.pages["last_crawl"][rows]
    is_likely = probability is not None and probability > LIKELY_STALE
    return {
        "failing": pages.choices.fails[rows] > 0,
        "starved": ages > STARVED * rows.size / rate,
        "likely_stale": is_likely & np.isfinite(ages),
    }


def promises_at(pages: PageTables, rows: IntArray, now: float) -> dict[str, Any]:
    """Return how promises of pages are kept; see :meth:`CrawlScheduler.overview`; {} without."""
    if not pages.choices.promises.size:
        return {}
    longest, ages = pages.choices.most_interval[rows], now - pages.lazy.pages["last_crawl"][rows]
    facts = {"promised": np.isfinite(longest).sum(), "overdue": (ages > longest).sum()}
    facts |= {"promised_share": rates_at(pages, rows).sum() / bandwidth_of(pages)}
    lines, late = pages.choices.promises[0], (ages - longest).max(initial=0.0)
    facts |= {"late_fetches": lines["late_fetches"], "most_late": max(lines["most_late"], late)}
    return {name: number.item() for name, number in facts.items()}


def _due(pages: PageTables, row: int, earliest: float, price: float | None) -> float:
    """Return the time at which a page's value reaches a price, inf for never."""
    fetched = 1.0 if not pages.values.apart else float(pages.choices.lines[0]["level"])
    bar = fetched if price is None else price
    if earliest == math.inf or _value(pages, row, earliest) >= bar:
        return earliest
    age = step = max(earliest - float(pages.lazy.pages[row]["last_crawl"]), 1e-12)
    while _value(pages, row, earliest + step - age) < bar:
        step *= 2.0
        if step > FARTHEST * age:
            return math.inf
    low, high = 0.0, step - age
    for _ in range(60):
        middle = 0.5 * (low + high)
        reached = _value(pages, row, earliest + middle) >= bar
        low, high = (low, middle) if reached else (middle, high)
    return earliest + high
