"""Promises of a scheduler: the bandwidth that they need, and from when on pages are due by them.

The lead (:mod:`policies.values.promises`) follows what changes: costs, pages, the bandwidth, and
the cost of one choice, of a page or of a batch, in whose time no other page can be chosen. Its
largest of late, rounded up to a power of two, is the lead's ``wait``; it falls again after as many
fetches as there are pages. A lead that changes is that of all pages, so changes are few.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from crawl_envs.compiled.lazy_argmax import lazy_table
from crawl_envs.types import FloatArray, IntArray
from policies.live.scheduler.states import Choices, choices_table, with_room
from policies.values.promises import SHARES, Lead, lead_of, promise_rows

if TYPE_CHECKING:
    from policies.live.scheduler.pages import PageTables

ROUNDING = 1e-9
"""Relative amount by which sums of costs may exceed what they are, as they are rounded."""


def check_promises(
    pages: PageTables,
    rows: IntArray | None,
    most_interval: FloatArray | None,
    least_interval: FloatArray | None,
    costs: FloatArray | None,
) -> FloatArray:
    """Return the longest intervals of pages, (n,), after a change to these; inf for none.

    Args:
        pages: the tables before the change.
        rows: the rows of the pages, (n,); None for new ones.
        most_interval: their new longest intervals, NaN for the scheduler's; None if these stay.
        least_interval: their new least intervals; None if these stay.
        costs: their new costs, NaN where they are not known; None if these stay.

    Raises:
        ValueError: the promises cannot be kept.
    """
    choices, spending, bandwidth = pages.choices, pages.pace.spending, promised_bandwidth(pages)
    present = np.zeros(0, np.int64) if rows is None else rows
    longest = choices.most_interval[present] if most_interval is None else most_interval
    longest = np.where(np.isnan(longest), pages.most_interval, longest)
    least = choices.least[present] if least_interval is None else least_interval
    if (early := longest < least).any():
        first = f"{least[early][0]:g}, got {longest[early][0]:g}"
        raise ValueError(f"most_interval must be at least least_interval, {first}")
    usual: Any = 1.0 if spending is None else spending.mean_known
    if rows is not None and spending is not None:
        usual = choices.cost[rows]
    elif spending is None and costs is not None and not np.isnan(costs).all():
        usual = np.nanmean(costs)
    rates = (usual if costs is None else np.where(np.isnan(costs), usual, costs)) / longest
    present, last = np.unique(present[::-1], return_index=True)  # of equal ones the last counts
    before, needed = 0.0, float(rates.sum() if rows is None else rates[::-1][last].sum())
    if choices.promises.size:
        before = float(choices.promises[0]["rate"])
        needed += before - float(choices.promised_rate[present].sum())
    if needed > max(bandwidth * (1.0 + ROUNDING), before):
        raise ValueError(
            "most_interval must leave u, the sum of cost / most_interval over the bandwidth, at "
            f"most 1, got {needed / bandwidth:.4g}: promise longer intervals or fewer pages, or "
            f"give a bandwidth of {needed:.6g}, not {bandwidth:.6g}"
        )
    return longest


def promised_bandwidth(pages: PageTables) -> float:
    """Return the bandwidth that is there for promises: all but the share of audits."""
    return pages.pace.bandwidth * (1.0 - pages.audit_share)


def promise(pages: PageTables, rows: IntArray, most_interval: FloatArray) -> None:
    """Set the longest intervals of pages, (n,), inf for none; the caller must then admit them."""
    longest = most_interval[np.isfinite(most_interval)].max(initial=0.0)
    if not pages.choices.promises.size:
        if longest == 0.0:
            return
        room = pages.choices.status.size
        pages.choices = with_room(pages.choices, {"D": room, "L": 1})
        pages.lazy = pages.lazy._replace(promises=np.full((room, 3), math.inf))
        pages.arguments = choices_table(pages.choices), lazy_table(pages.lazy)
        pages.choices.promises["wait_cost"] = power_above(pages.pace.mean_cost)
    lines = pages.choices.promises[0]
    lines["longest"] = max(lines["longest"], longest)
    pages.choices.most_interval[rows] = most_interval
    count_promises(pages.choices, rows)
    renew_promises(pages)
    pages.lazy.promises[rows] = due_rows(pages.choices, rows)


def power_above(number: float) -> float:
    """Return the least power of two that is not below a number, up to rounding; 0 of 0."""
    return float(2.0 ** math.ceil(math.log2(number) - ROUNDING)) if number > 0.0 else 0.0


def count_promises(choices: Choices, rows: IntArray) -> None:
    """Let the bandwidth that promises need follow the costs and longest intervals of pages."""
    if choices.promises.size and rows.size:
        rows = np.unique(rows)
        costs = choices.cost[rows] if choices.cost.size else 1.0
        rates = costs / choices.most_interval[rows]
        choices.promises["rate"] += (rates - choices.promised_rate[rows]).sum()
        choices.promised_rate[rows] = rates


def note_choice(choices: Choices, cost: float, fetches: int = 0) -> None:
    """Note the cost of one choice, of some fetches, for which other pages had to wait."""
    if choices.promises.size:
        lines = choices.promises[0]
        lines["recent_cost"] = max(lines["recent_cost"], cost)
        lines["recent_fetches"] += fetches


def renew_promises(pages: PageTables) -> None:
    """Let the lead follow what changed; if it is another one, so are the rows of all pages."""
    if not pages.choices.promises.size:
        return
    lines, bandwidth = pages.choices.promises[0], promised_bandwidth(pages)
    lead, wait_cost = lead_at(pages.choices), power_above(float(lines["recent_cost"]))
    if lines["recent_fetches"] >= len(pages.ids):
        lines["recent_cost"] = lines["recent_fetches"] = 0
    else:
        wait_cost = max(wait_cost, float(lines["wait_cost"]))
    needed = lead_of(lines["rate"] / bandwidth, wait_cost / bandwidth, lines["longest"])
    if needed.share <= lead.share <= needed.share + 1.0 / SHARES:
        needed = needed._replace(share=lead.share)
    if needed == lead:
        return
    lines["rate"] = pages.choices.promised_rate.sum()
    lines["wait_cost"] = wait_cost
    lines["share"], lines["wait"], lines["scale"] = needed
    rows = np.flatnonzero(np.isfinite(pages.choices.most_interval))
    pages.lazy.promises[rows] = due_rows(pages.choices, rows)
    pages.admit(rows, only_ready=True)


def lead_at(choices: Choices) -> Lead:
    """Return the lead by which pages are due now."""
    lines = choices.promises[0]
    return Lead(float(lines["share"]), float(lines["wait"]), float(lines["scale"]))


def due_rows(choices: Choices, rows: IntArray) -> FloatArray:
    """Return from when on pages are due, (n, 3), as in the search for the best page."""
    return promise_rows(choices.most_interval[rows], rows, lead_at(choices))
