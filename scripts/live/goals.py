"""Goals for the freshness or age of groups of pages, and the least budgets that keep them.

Gone pages do not count. Goals of pages without signals become longest intervals between fetches.
With signals the mean freshness is that of NCIS, which no interval enforces. Budgets have audits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table
from scipy.optimize import brentq

import policies
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import quantity, within_domain
from policies.live.adapters.messages import AUDIT_SHARE
from policies.live.adapters.page_tables import living
from policies.live.logs import PageTable, write_page_table
from policies.solvers import periodic_freshness
from policies.values.promises import lead_of
from scripts.live.planning import LIMIT, Schedule, costs_of, optimum
from scripts.present.tables import console

ABOVE_0 = r"(?=[\d.]*[1-9])"
FORM = re.compile(
    rf"\s*(.+?)\s*:\s*(?:age\s+({ABOVE_0}\d*\.?\d+)|"
    rf"fresh\s+({ABOVE_0}0?\.\d+)(?:\s+of\s+({ABOVE_0}0?\.\d+|1))?)\s*"
)
"""Form of a goal: GROUP: age DAYS, or GROUP: fresh LEVEL, or GROUP: fresh LEVEL of SHARE."""
ROUNDING, MAX_NAMES = 1e-9, 30


class Goal(NamedTuple):
    """A goal for a group of pages of a table.

    Attributes:
        text: its text.
        kind: ``age``, ``mean`` for the importance-weighted freshness, ``each`` for that of a page.
        level: the largest age in days, or the least freshness in (0, 1).
        rows: the pages, (n,); of ``each`` the cheapest ones that have the share of the importance,
            which is at most one page more than needed.
        cost: cost of a fetch, (n,).
        change_rate: changes per day, (n,); 1 for ``age``.
    """

    text: str
    kind: str
    level: float
    rows: IntArray
    cost: FloatArray
    change_rate: FloatArray

    def best_level(self, table: PageTable, bandwidth: float) -> float:
        """Return the least age or largest freshness if the bandwidth serves this goal alone."""
        if self.kind == "mean":
            return optimum(table, self.rows, bandwidth).objective
        changes = float(self.cost @ self.change_rate) / bandwidth
        return changes if self.kind == "age" else periodic_freshness(1.0, changes, 1.0)

    def least_rates(self, table: PageTable, floor: FloatArray) -> FloatArray:
        """Return the cheapest fetches per day that keep the goal, at least ``floor``, (m,)."""
        changes, bound, rates = self.level, floor[self.rows], floor.copy()
        if self.kind != "age":
            changes = brentq(
                lambda x: periodic_freshness(1.0, x, 1.0) - self.level, 0.0, 1.0 / self.level
            )
        rates[self.rows] = np.maximum(bound, within_domain(self.change_rate / changes))
        enough = float(self.cost @ rates[self.rows])
        if self.kind == "mean" and enough > 0.0:

            def missing(bandwidth: float) -> float:
                return self.level - optimum(table, self.rows, bandwidth, bound).objective

            budget = max(float(self.cost @ bound), ROUNDING * enough)
            if missing(budget) > 0.0:
                budget = brentq(missing, budget, 2.0 * enough, xtol=ROUNDING * enough)
            rates[self.rows] = optimum(table, self.rows, budget, bound).rates
        return rates


def read_goal(text: str, table: PageTable) -> Goal:
    """Return the goal in a text, for a group of the table: a label of ``group``, a host, or all.

    Raises:
        ValueError: another form, an unknown group, no pages that are not gone, or no change rates.
    """
    if (match := FORM.fullmatch(text)) is None:
        raise ValueError(
            "goal must be 'GROUP: fresh LEVEL', 'GROUP: fresh LEVEL of SHARE' or 'GROUP: age DAYS',"
            f" with decimal numbers above 0, a level below 1, a share of at most 1, got {text!r}"
        )
    name, days, level, share = match.groups()
    everything = np.full(table.num_pages, "all", np.object_)
    labels = [x for x in (everything, table.group, table.host) if x is not None]
    rows = next((x for label in labels if (x := np.flatnonzero(label == name)).size), None)
    if rows is None:
        names = ", ".join(list(dict.fromkeys(filter(None, np.concatenate(labels))))[:MAX_NAMES])
        raise ValueError(f"goal must be for a group of the table, such as {names}; got {name!r}")
    cost, rate, weight = costs_of(table), table.change_rate, table.importance
    rows = np.intersect1d(rows, living(table))
    if days and rows.size:
        return Goal(text, "age", float(days), rows, cost[rows], np.ones(rows.size))
    rows = rows[weight[rows] > 0.0]
    if rows.size == 0 or rate is None:
        needed = "change rates (scripts.estimate LOG)" if rows.size else "a page that is not gone"
        needed += " with importance > 0" * (not days)
        raise ValueError(f"goal {text!r} needs {needed}, got none in {name!r}")
    if share:
        rows = rows[np.argsort(cost[rows] * rate[rows] / weight[rows], kind="stable")]
        before = np.cumsum(weight[rows]) - weight[rows]
        rows = np.sort(rows[before < float(share) * weight[rows].sum() * (1.0 - ROUNDING)])
    return Goal(text, "each" if share else "mean", float(level), rows, cost[rows], rate[rows])


def joint_rates(goals: Sequence[Goal], table: PageTable) -> FloatArray:
    """Return fetches per day that keep goals and the table's ``most_interval``, (m,).

    They are the cheapest if any two groups are nested or disjoint. Where an age is combined with a
    mean freshness with signals, they are a lower bound.
    """
    rates = np.zeros(table.num_pages)
    if table.most_interval is not None:
        rates[living(table)] = 1.0 / table.most_interval[living(table)]
    for goal in sorted(goals, key=lambda goal: (goal.kind == "mean", goal.rows.size)):
        rates = goal.least_rates(table, rates)
    return rates


def verdict(rates: FloatArray, table: PageTable, bandwidth: float, limits: Sequence[str]) -> str:
    """Return no, no: limit of HOST, likely, or yes (proved) for intervals 1 / ``rates``, (m,)."""
    cost, promised = costs_of(table), rates > 0.0
    if (spend := float(cost @ rates)) > bandwidth * (1.0 + ROUNDING):
        return "no"
    gaps, (hosts, codes) = np.zeros(rates.size), np.unique(table.host, return_inverse=True)
    for host, gap, _ in (match.groups() for match in map(LIMIT.fullmatch, limits) if match):
        gaps[(table.host == host) | (not host)] = float(gap)
    if (taken := np.bincount(codes, rates * gaps)).max() > 1.0 + ROUNDING:
        return f"no: limit of {hosts[taken.argmax()]}"
    lead = lead_of(spend / bandwidth, float(cost.max()) / bandwidth, 1.0)
    is_proved = 2.0 * lead.share + lead.wait * rates.max() <= 1.0 - lead.shortening
    if len({*zip(rates[promised], cost[promised], strict=True)}) == 1:
        is_proved |= spend / bandwidth + lead.wait * rates.max() <= 1.0
    return "yes" if is_proved and not gaps.any() else "likely"


def promise(texts: Sequence[str], schedule: Schedule, folder: Path) -> Schedule:
    """Return a schedule with the ``most_interval`` of pages that keep goals, and report them.

    A goal is kept if the bandwidth and the limits of hosts suffice for it and for the earlier ones
    that are kept. Prints the goals, and writes goals.png and promised.csv, the pages, to a folder.
    """
    from scripts.live.pictures import draw_budgets

    bandwidth = quantity("bandwidth", schedule.bandwidth, above=0.0)
    assert schedule.table is not None
    table, family, cost = schedule.table, policies.find(schedule.policy), costs_of(schedule.table)
    longest = np.full(cost.size, np.nan) if table.most_interval is None else table.most_interval
    longest = np.where(np.isnan(longest), schedule.more.get("most_interval") or np.inf, longest)
    table = replace(table, cost=cost / (1.0 - AUDIT_SHARE), most_interval=longest)
    signals = table.recall is not None and getattr(family, "uses_signals", False)
    table = table if signals else replace(table, recall=None, false_signal_rate=None)
    names = ("goal", "least budget per day", "of the bandwidth", "kept", "best level")
    report = Table(*names, title="Goals", title_justify="left")

    def add(text: str, budget: float, word: str = "", level: str = "") -> None:
        report.add_row(text, f"{budget:,.4g}", f"{budget / bandwidth:.1%}", word, level)

    goals = {text: read_goal(text, table) for text in texts}
    rates_of = cache(lambda *names: joint_rates([goals[name] for name in names], table))
    words, possible, curves = dict[str, str](), list[str](), {}
    for text in goals:
        words[text] = verdict(rates_of(*possible, text), table, bandwidth, schedule.limits)
        possible += [text] * (not words[text].startswith("no"))
    enforced = [text for text in possible if not (signals and goals[text].kind == "mean")]
    words |= dict.fromkeys(possible, "enough, not enforced")
    rates = rates_of(*enforced)
    words |= dict.fromkeys(enforced, verdict(rates, table, bandwidth, schedule.limits))
    for text, goal in goals.items():
        budget = float(goal.cost @ rates_of(text)[goal.rows])
        what, unit = ("age (days)", " days") if goal.kind == "age" else ("freshness", "")
        best_level = partial(goal.best_level, table)
        add(text, budget, words[text], f"{best_level(bandwidth):.3g}{unit}")
        curves[f"{text}: {budget:,.4g}"] = what, best_level, budget or bandwidth
    word = next((x for x in words.values() if x.startswith("no")), min(words.values()))
    add("all goals", float(costs_of(table) @ rates_of(*texts)), word)
    with np.errstate(divide="ignore"):
        promised = replace(schedule.table, most_interval=1.0 / rates)
    if (rate := table.change_rate) is not None and (high := table.change_rate_high) is not None:
        fastest = within_domain(np.fmax(rate, np.where(high < np.inf, high, 0.0)))
        faster = replace(table, change_rate=fastest)
        rates = joint_rates([read_goal(text, faster) for text in texts], faster)
        add("all goals, highest rates", float(costs_of(table) @ rates))
    console().print(report)
    draw_budgets(folder / "goals.png", curves, bandwidth, schedule.table.cost is not None)
    write_page_table(folder / "promised.csv", promised)
    return schedule._replace(table=promised)
