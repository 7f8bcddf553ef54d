"""Expect the costs of fetches by page: given at first, then learned from reports.

A page's cost is the mean of its last reports, of which the cost given for it counts as one. A page
without any has the mean of all costs of its host so far, else that of all pages, else 1; it follows
when the number of known costs has doubled, or has grown by the number of pages. Then rates are
allocated again, too. The crawl value is per unit of cost.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import compiled, ready
from crawl_envs.types import FloatArray, IntArray
from policies.live.scheduler.page_promises import count_promises
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.spending import Spending
from policies.live.scheduler.states import (
    FIELDS,
    INITIAL,
    SENT,
    choices_at,
    choices_table,
    with_room,
)

MAX_SAMPLES = 8
"""Number of costs after which the mean of a page forgets its oldest ones."""
PAGE_FIELDS = [field.name for field in FIELDS if "P" in field.axes]
_ROWS, _TIMES, _REAL = types.int64[::1], types.float64[::1], types.float64


@compiled(types.void(_ROWS, _ROWS, *(_TIMES, _TIMES, _REAL, _REAL, _REAL, _TIMES)))
def settle(
    table: IntArray,
    pages: IntArray,
    times: FloatArray,
    costs: FloatArray,
    latest: float,
    period: float,
    max_cost: float,
    changes: FloatArray,
) -> None:
    """Replace the expected costs of fetches by those reported, which are learned; NaN is no cost.

    ``times`` are those of the fetches, (n,); one after ``latest`` counts as that. A report from
    before a page was handed out again is of an earlier fetch, which was lost. ``changes``, (2,),
    get the changes of the spend, and of that of fetches handed out in ``period``, where each has
    reserved ``max_cost``.
    """
    choices = choices_at(table)
    for position in range(pages.shape[0]):
        page, time, cost, expected = pages[position], times[position], costs[position], 0.0
        if time < choices.lost_until[page] and choices.lost_fetches[page] > 0:
            expected = choices.lost_cost[page] / choices.lost_fetches[page]
            choices.lost_cost[page] -= expected
            choices.lost_fetches[page] -= 1
        elif time >= choices.lost_until[page] and time > choices.reported[page]:
            choices.reported[page] = min(time, latest)
            expected, choices.paid_cost[page] = choices.paid_cost[page], 0.0
            if expected > 0.0 and cost > 0.0 and choices.sent_period[page] == period:
                changes[1] += cost - max_cost
        else:  # it was reported before
            continue
        if math.isnan(cost):
            continue
        changes[0] += cost - expected if expected > 0.0 else 0.0
        samples = min(choices.cost_samples[page] + 1, MAX_SAMPLES)
        mean = choices.cost[page] if samples > 1 else cost
        choices.cost[page], choices.cost_samples[page] = mean + (cost - mean) / samples, samples
        choices.cost_sums[0] += cost
        choices.cost_counts[0] += 1
        group = choices.host[page] + 1
        if group > 0:
            choices.cost_sums[group] += cost
            choices.cost_counts[group] += 1


def use_costs(pages: PageTables, costs: FloatArray) -> None:
    """Begin to count costs if some, (n,), are known."""
    if pages.pace.spending is None and not np.isnan(costs).all():
        begin_costs(pages, Spending(mean_known=float(np.nanmean(costs))))


def begin_costs(pages: PageTables, spending: Spending) -> None:
    """Begin to count costs; fetches under way have cost 1."""
    room, choices = pages.choices.status.size, pages.choices
    pages.choices = choices = with_room(choices, {"P": room, "G": choices.first.size})
    pages.arguments = choices_table(choices), pages.arguments[1]
    choices.paid_cost[choices.status == SENT] = 1.0
    pages.pace.use_costs(spending)
    spending.spend = float(choices.paid_cost.sum())
    spending.fetches = spending.before = int(spending.spend)


def give_costs(
    pages: PageTables, rows: IntArray, costs: FloatArray, new: IntArray | None = None
) -> None:
    """Set the costs of pages, (n,), where they are not NaN, and forget earlier ones of these.

    ``new`` rows had other pages before; reports of earlier times are of those.
    """
    use_costs(pages, costs)
    if not pages.uses_costs or not rows.size:
        return
    if new is not None:
        for name in PAGE_FIELDS:
            getattr(pages.choices, name)[new] = INITIAL.get(name, 0)
        pages.choices.lost_until[new] = pages.pace.time
    choices, is_known = pages.choices, ~np.isnan(costs)
    priced, costs = rows[is_known], costs[is_known]
    choices.cost[priced], choices.cost_samples[priced] = costs, 1
    hosts = choices.host[priced]
    for groups, some in ((np.zeros_like(hosts), costs), (hosts[hosts >= 0] + 1, costs[hosts >= 0])):
        np.add.at(choices.cost_sums, groups, some)
        np.add.at(choices.cost_counts, groups, 1)
    write_costs(pages, rows)
    look_up(pages)


def settle_costs(
    pages: PageTables, rows: IntArray, times: FloatArray, costs: FloatArray, latest: float
) -> None:
    """Replace the expected costs of fetches at some times by those reported, (n,), NaN for none."""
    use_costs(pages, costs)
    pace, changes = pages.pace, np.zeros(2)
    if (spending := pace.spending) is None:
        return
    limits = latest, spending.period, spending.max_cost
    ready(settle)(pages.arguments[0], rows, times, costs, *limits, changes)
    spend, period_spend = changes.tolist()
    pace.taken += spend
    spending.spend += spend
    if spending.has_cap:
        spending.period_spend += period_spend
        spending.overcharged += int((costs > spending.max_cost).sum())
    changed = np.unique(rows[~np.isnan(costs) & (pages.choices.cost_samples[rows] > 0)])
    if changed.size and pages.values.apart:
        write_costs(pages, changed)
        pages.admit(changed, only_ready=True)
    look_up(pages)


def write_costs(pages: PageTables, rows: IntArray) -> None:
    """Let the costs of pages without any follow those of others, and crawl values of all rows."""
    choices, hosts = pages.choices, pages.choices.host[rows] + 1
    groups = np.where(choices.cost_counts[hosts] > 0, hosts, 0)
    if choices.cost_counts[0]:
        means = choices.cost_sums[groups] / choices.cost_counts[groups]
        choices.cost[rows] = np.where(choices.cost_samples[rows] > 0, choices.cost[rows], means)
    columns = pages.columns_at(rows)
    pages.write(rows, columns, pages.parameters(columns))
    pages.weigh(rows)


def look_up(pages: PageTables) -> None:
    """Let all costs and crawl values follow the known costs, when these are many more."""
    spending, choices = pages.pace.spending, pages.choices
    count = int(choices.cost_counts[0])
    if spending is None or count < spending.next_lookup:
        return
    spending.mean_known = float(choices.cost_sums[0]) / count
    spending.next_lookup = min(2 * count, count + max(len(pages.ids), 1))
    if pages.learner is not None:
        pages.learner.rescale(len(pages.ids) / pages.pace.fetch_rate)
    rows = pages.living()
    if pages.values.apart:
        rows = rows[choices.cost_samples[rows] == 0]
    if rows.size:
        write_costs(pages, rows)
        pages.admit(rows, only_ready=True)
    count_promises(pages)
