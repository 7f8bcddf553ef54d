"""Promises of a scheduler: the bandwidth that they need, and when pages are due by them."""

from __future__ import annotations

import logging

import numpy as np

from crawl_envs.compiled.lazy_argmax import lazy_table
from crawl_envs.types import FloatArray, IntArray
from policies.live.scheduler.ids import first_of_each
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.states import choices_table, with_room
from policies.values.promises import lead_of, promise_rows

logger = logging.getLogger(__name__)


def bandwidth_of(pages: PageTables) -> float:
    """Return the bandwidth that promises may take, up to rounding."""
    audited = 0.0 if pages.audits is None else pages.audits.share
    return float(pages.pace.bandwidth * (1.0 - audited) * (1.0 + 1e-9))


def rates_at(pages: PageTables, rows: IntArray) -> FloatArray:
    """Return the cost per unit of time that the promises of pages need, (n,)."""
    costs = pages.choices.cost[rows] if pages.uses_costs else 1.0
    return np.asarray(costs / pages.choices.most_interval[rows])


def count_promises(pages: PageTables, adding: IntArray | None = None) -> None:
    """Sum what the promises of all pages that are not gone need, and of rows that are added."""
    if pages.choices.promises.size:
        rows = pages.living() if adding is None else np.union1d(pages.living(), adding)
        pages.choices.promises["rate"] = rates_at(pages, rows).sum()


def checked_promises(
    pages: PageTables, rows: IntArray, arrays: dict[str, FloatArray]
) -> tuple[FloatArray, float]:
    """Return longest intervals, (n,), and the further cost per unit of time that they need.

    ``arrays`` has the columns to change of the pages in ``rows``, or of new pages if these are
    none; ``most_interval`` is removed. Of equal rows the last counts. ValueError if too much.
    """
    choices, bandwidth, is_new = pages.choices, bandwidth_of(pages), "most_interval" in arrays
    old = choices.most_interval[rows] if choices.promises.size else np.full(rows.size, np.inf)
    longest = np.where(np.isnan(new := arrays.pop("most_interval", old)), pages.most_interval, new)
    shortest = arrays.get("least_interval", choices.least[rows])
    if (early := longest < shortest).any():
        got = f"{shortest[early][0]:g}, got {longest[early][0]:g}"
        raise ValueError(f"most_interval must be at least least_interval, {got}")
    present = choices.cost[rows] if pages.uses_costs else np.ones(rows.size)
    costs = np.nan_to_num(arrays.get("cost", present), nan=pages.pace.mean_cost)
    if not choices.promises.size and np.isinf(longest).all():
        return longest, 0.0
    last = first_of_each(rows[::-1])[::-1] if rows.size > 1 else 1.0
    more = float((last * costs / longest).sum() - (last * present / old).sum())
    if more > 0.0 and choices.promises["rate"].sum() + more > bandwidth:
        count_promises(pages)
    used, total = float(choices.promises["rate"].sum() + more) / bandwidth, pages.pace.bandwidth
    if more > 0.0 and used > 1.0:
        raise ValueError(
            "most_interval must leave u = sum(cost / most_interval) / bandwidth at most 1, got "
            f"{used:.4g}: promise longer intervals or fewer pages, or give a bandwidth of at least "
            f"{used * total:.6g} in all, not {total:.6g}"
        )
    if is_new and np.isfinite(longest).any():
        present = choices.cost[pages.living()] if pages.uses_costs else present
        fetch_time = max(costs.max(), present.max(initial=0.0)) / bandwidth
        if longest.min() < fetch_time:
            raise ValueError(
                f"most_interval must be at least {fetch_time:.6g}, the time of a fetch of the "
                f"largest cost, got {longest.min():.6g}: promise longer intervals"
            )
    return longest, more


def promise(pages: PageTables, rows: IntArray, longest: FloatArray, more: float) -> None:
    """Set what :func:`checked_promises` returned; the caller must then admit the pages."""
    if not pages.choices.promises.size:
        if np.isinf(longest).all():
            return
        room = pages.choices.status.size
        pages.choices = with_room(pages.choices, {"D": room, "L": 1})
        pages.lazy = pages.lazy._replace(promises=np.full((room, 3), np.inf))
        pages.arguments = choices_table(pages.choices), lazy_table(pages.lazy)
        pages.choices.promises["wait_cost"] = pages.pace.mean_cost
    lines, pages.choices.most_interval[rows] = pages.choices.promises[0], longest
    lines["rate"] += more
    lines["longest"] = longest[np.isfinite(longest)].max(initial=lines["longest"])
    renew_promises(pages, adding=rows)
    pages.lazy.promises[rows] = promise_rows(longest, rows, pages.lead)


def renew_promises(
    pages: PageTables,
    rows: IntArray | None = None,
    recount: bool = False,
    adding: IntArray | None = None,
) -> None:
    """Renew the lead after a choice of pages, (n,); if it differs, also when pages are due.

    Rows that are being added count as well. After as many fetches as pages, the need of all
    promises is summed again, as costs have changed and pages are gone, and the largest cost of a
    choice is halved.
    """
    if not pages.choices.promises.size:
        return
    lines, bandwidth = pages.choices.promises[0], bandwidth_of(pages)
    if rows is not None and rows.size:
        cost = float(pages.choices.paid_cost[rows].sum()) if pages.uses_costs else rows.size
        cost += 0.0 if pages.audits is None else pages.pace.mean_cost
        lines["fetches"] += rows.size
        if lines["fetches"] >= len(pages.ids):
            lines["fetches"], lines["wait_cost"] = 0.0, 0.5 * lines["wait_cost"]
            count_promises(pages)
        lines["wait_cost"] = max(lines["wait_cost"], cost)
    wait = 2.0 ** np.ceil(np.log2(lines["wait_cost"])) / bandwidth
    if recount or (lines["rate"] > bandwidth and pages.lead.share <= 1.0):
        count_promises(pages, adding)  # without pages that are gone
    lead = lead_of(lines["rate"] / bandwidth, wait, lines["longest"])
    if lead != pages.lead:
        if lead.share > 1.0 >= pages.lead.share:
            logger.warning("promises are too many: u = %.4g", lines["rate"] / bandwidth)
        pages.lead, intervals = lead, pages.choices.most_interval
        rows = np.flatnonzero(np.isfinite(intervals))
        pages.lazy.promises[rows] = promise_rows(intervals[rows], rows, lead)
        pages.admit(rows, only_ready=True)
