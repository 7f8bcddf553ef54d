"""Expect the costs of fetches by page: given at first, then learned from reports.

A page's cost is the mean of its last reports, of which the cost given for it counts as one. A page
without any has the mean of all costs of its host so far, else that of all pages, else 1. It is
looked up when the page is handed out. The crawl value is per unit of cost; for pages without a cost
it follows when the number of known costs has doubled, or has grown by the number of pages. Then
rates are allocated again, too.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import compiled, inlined, ready
from crawl_envs.types import FloatArray, IntArray
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.spending import Spending
from policies.live.scheduler.states import (
    SENT,
    Choices,
    choices_at,
    choices_table,
    expected_cost,
    with_room,
)

MAX_SAMPLES = 8
"""Number of costs after which the mean of a page forgets its oldest ones."""
_ROWS, _TIMES, _REAL = types.int64[::1], types.float64[::1], types.float64


@inlined()
def learn_cost(choices: Choices, page: int, cost: float) -> None:
    """Add a cost to the means of its page, of its host, and of all pages."""
    samples = min(choices.cost_samples[page] + 1, MAX_SAMPLES)
    if samples == 1:
        choices.mean_cost[page] = cost
    else:
        choices.mean_cost[page] += (cost - choices.mean_cost[page]) / samples
    choices.cost_samples[page] = samples
    host = choices.host[page]
    choices.cost_sums[0] += cost
    choices.cost_counts[0] += 1
    if host >= 0:
        choices.cost_sums[host + 1] += cost
        choices.cost_counts[host + 1] += 1


@compiled(types.void(_ROWS, _ROWS, _TIMES))
def learn_costs(table: IntArray, pages: IntArray, costs: FloatArray) -> None:
    """Learn costs of pages; NaN is no cost."""
    choices = choices_at(table)
    for position in range(pages.shape[0]):
        if not math.isnan(costs[position]):
            learn_cost(choices, pages[position], costs[position])


@compiled(types.void(_ROWS, _ROWS, _TIMES))
def expect_costs(table: IntArray, pages: IntArray, costs: FloatArray) -> None:
    """Write the expected cost of each page to ``costs``, (n,)."""
    choices = choices_at(table)
    for position in range(pages.shape[0]):
        costs[position] = expected_cost(choices, pages[position])


@compiled(types.void(_ROWS, _ROWS, *(_TIMES, _REAL, _TIMES, _REAL, _REAL, _TIMES)))
def settle(
    table: IntArray,
    pages: IntArray,
    times: FloatArray,
    latest: float,
    costs: FloatArray,
    period: float,
    max_cost: float,
    changes: FloatArray,
) -> None:
    """Replace the expected costs of fetches by those reported, which are learned; NaN is no cost.

    ``times`` are those of the fetches, (n,), ``latest`` at most. A report from before a page was handed out again is of
    an earlier fetch, which was lost. ``changes``, (2,), get the changes of the spend, and of that
    of fetches handed out in ``period``, where each has reserved ``max_cost``.
    """
    choices = choices_at(table)
    for position in range(pages.shape[0]):
        page, cost, expected = pages[position], costs[position], 0.0
        if times[position] < choices.lost_until[page]:
            if choices.lost_fetches[page] == 0:
                continue
            expected = choices.lost_cost[page] / choices.lost_fetches[page]
            choices.lost_cost[page] -= expected
            choices.lost_fetches[page] -= 1
        elif times[position] > choices.reported[page]:
            choices.reported[page] = min(times[position], latest)
            expected, choices.paid_cost[page] = choices.paid_cost[page], 0.0
            if expected > 0.0 and cost > 0.0 and choices.sent_period[page] == period:
                changes[1] += cost - max_cost
        else:  # it was reported before
            continue
        if cost > 0.0:
            learn_cost(choices, page, cost)
            changes[0] += cost - expected if expected > 0.0 else 0.0


def use_costs(pages: PageTables, costs: FloatArray) -> None:
    """Begin to count costs if some, (n,), are known; fetches under way have cost 1."""
    known = costs[~np.isnan(costs)]
    if pages.uses_costs or not known.size:
        return
    room, pace = pages.choices.status.size, pages.pace
    pages.choices = with_room(pages.choices, {"P": room, "G": pages.choices.first.size})
    pages.arguments = choices_table(pages.choices), pages.arguments[1]
    if pages.columns:
        pages.columns["cost"] = np.ones(room)
    sent = pages.choices.status == SENT
    pages.choices.paid_cost[sent] = 1.0
    pace.spending = Spending() if pace.spending is None else pace.spending
    pace.spending.fetches = pace.spending.before = int(sent.sum())
    pace.spending.spend = float(sent.sum())
    pace.spending.set_mean_known(float(known.mean()))
    pace.unit = pace.spending.unit


def give_costs(pages: PageTables, rows: IntArray, costs: FloatArray) -> None:
    """Set the costs of pages, (n,), where they are not NaN, and forget earlier ones of these."""
    known = ~np.isnan(costs)
    pages.choices.cost_samples[rows[known]] = 0
    ready(learn_costs)(pages.arguments[0], rows, costs)
    write_costs(pages, rows)
    look_up(pages)


def settle_costs(
    pages: PageTables, rows: IntArray, times: FloatArray, latest: float, costs: FloatArray
) -> None:
    """Replace the expected costs of fetches at some times by those reported, (n,), NaN for none."""
    use_costs(pages, costs)
    if not pages.uses_costs:
        return
    spending, changes = pages.pace.spending, np.zeros(2)
    assert spending is not None
    period = spending.period if spending.has_cap else math.nan
    ready(settle)(
        *(pages.arguments[0], rows, times, latest, costs, period, spending.max_cost, changes)
    )
    pages.pace.settle(*changes.tolist())
    if spending.has_cap:
        spending.overcharged += int((costs > spending.max_cost).sum())
    changed = np.unique(rows[~np.isnan(costs) & (pages.choices.cost_samples[rows] > 0)])
    if changed.size and pages.values.apart:
        write_costs(pages, changed)
        pages.admit(changed, only_ready=True)
    look_up(pages)


def costs_at(pages: PageTables, rows: IntArray) -> FloatArray:
    """Return the costs that fetches of some rows are expected to have, (n,)."""
    costs = np.empty(rows.size)
    ready(expect_costs)(pages.arguments[0], rows, costs)
    return costs


def write_costs(pages: PageTables, rows: IntArray) -> None:
    """Store the expected costs of pages, by which their crawl values change."""
    columns = pages.columns_at(rows)
    before, columns["cost"] = columns["cost"], costs_at(pages, rows)
    if np.array_equal(before, columns["cost"]):
        return
    pages.write(rows, columns, pages.parameters(columns))
    pages.weigh(rows)


def look_up(pages: PageTables) -> None:
    """Let crawl values follow the known costs, when there are twice as many, or by as many pages.

    Values of pages with a cost of their own follow at once.
    """
    spending, choices = pages.pace.spending, pages.choices
    assert spending is not None
    count = int(choices.cost_counts[0])
    if count:
        spending.set_mean_known(float(choices.cost_sums[0]) / count)
        pages.pace.unit = spending.unit
    if count < spending.next_lookup:
        return
    spending.next_lookup = min(2 * count, count + max(len(pages.ids), 1))
    if pages.learner is not None:
        pages.learner.rescale(len(pages.ids) / pages.pace.fetch_rate)
    rows = pages.living()
    if pages.values.apart:
        rows = rows[choices.cost_samples[rows] == 0]
    if rows.size:
        write_costs(pages, rows)
        pages.admit(rows, only_ready=True)
