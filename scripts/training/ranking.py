"""Rank an agent and policies by their means; write, draw and print the ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich.table import Table

from agents.sb3.arguments import TrainArguments
from crawl_envs import FAMILIES
from crawl_envs.evaluation import Row, summarize
from scripts.present import charts
from scripts.present.comparison import means_and_differences
from scripts.present.tables import console, plus_minus
from scripts.study.budget import COLUMN, NOTE, Spending, spending_of
from scripts.study.comparisons import LOWER, METRICS
from scripts.study.entrants import OF_FRAGMENTS, SIMPLE, is_oracle, is_policy
from scripts.study.rows import write_csv
from scripts.study.settings import Setting
from scripts.training.baselines import REWARD

RANDOM = "RandomCrawl"
NUM_BEST = 4
"""Number of analytic policies, besides the simple ones, that are ranked with a trained agent."""
TRACE = "CrawlTrace-v0"
ONE_HISTORY = "A recorded trace is one history: seeds only change the randomness of policies."
COLUMNS = (
    *("policy", "repetitions", "mean", "half_width_95", "behind_agent"),
    *("behind_agent_half_width_95", "normalised_score", "budget_share", "over_budget"),
)
AGENT, POLICY = "agent", "policy"


class RankedPolicy(NamedTuple):
    """Results of a policy over seeds; half-widths are of 95% Student intervals.

    ``difference`` is the mean over seeds of the agent's value minus the policy's on the same seed.
    ``score`` is the normalised score: linear in the mean, 0 for RandomCrawl and 1 for the best
    analytic policy; NaN if one of them is missing, or the policy is over the budget.
    """

    policy: str
    seeds: int
    mean: float
    half_width: float
    difference: float
    difference_half_width: float
    score: float
    spending: Spending


def measured(arguments: TrainArguments) -> str:
    """Return a text that says what the mean reward per step of an environment measures."""
    if arguments.env_id not in FAMILIES:
        return "mean reward per step"
    penalised = arguments.env_id == "CrawlHarmonic-v0"
    reward = arguments.env_args.get("reward") or ("penalty" if penalised else "freshness")
    if arguments.env_id == OF_FRAGMENTS and arguments.env_args.get("objective") != "holistic":
        reward = "fragments"
    unit = {
        "freshness": " (importance-weighted freshness)",
        "requests": " (fresh requests)",
        "penalty": " (minus the mean penalty)",
        "fragments": " (1 minus the mean divergence)",
    }
    return f"mean reward per step{unit.get(reward, '')}"


def best_first(rows: Sequence[Row], metric: str = REWARD, agent: str = "") -> list[str]:
    """Return the labels of the analytic policies sorted by their means, the best first.

    Simple policies, oracles, the agent and policies over the budget are left out.
    """
    sign = 1.0 if metric in LOWER else -1.0
    ranked = sorted(summarize(rows, metric), key=lambda item: sign * item.mean)
    labels = [item.policy for item in ranked if item.policy not in (agent, *SIMPLE)]
    spending = spending_of(rows)
    labels = [label for label in labels if not spending[label].over]
    return [label for label in labels if is_policy(label) and not is_oracle(label)]


def best_in_words(rows: Sequence[Row]) -> str:
    """Return name and mean reward of the best analytic policy as text, for a progress bar."""
    means = {item.policy: item.mean for item in summarize(rows, REWARD)}
    return "".join(f"best analytic {label} {means[label]:.4f}" for label in best_first(rows)[:1])


def without_duplicates(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """Return the labels, without labels that have the same values as an earlier label."""
    values: dict[str, list[float]] = {label: [] for label in labels}
    for row in rows:
        if row.policy in values:
            values[row.policy].append(row.value)
    first = {tuple(numbers): label for label, numbers in reversed(values.items())}
    return [label for label, numbers in values.items() if first[tuple(numbers)] == label]


def rank_policies(
    rows: Sequence[Row], metric: str, agent: str, best: str | None
) -> list[RankedPolicy]:
    """Return the results of all policies in a metric, the best first, over budget last.

    ``best`` is the label of the best analytic policy, which scores 1, if there is one.
    """
    summaries = summarize(rows, metric, agent)
    means = {item.policy: item.mean for item in summaries}
    start, end = means.get(RANDOM, math.nan), means.get(best or "", math.nan)
    sign = 1.0 if metric in LOWER else -1.0
    spending = spending_of(rows)
    results = [
        RankedPolicy(
            item.policy,
            item.seeds,
            item.mean,
            item.half_width,
            0.0 - item.difference if item.policy != agent else math.nan,
            item.difference_half_width if item.policy != agent else math.nan,
            math.nan if paid.over or start == end else (item.mean - start) / (end - start),
            paid,
        )
        for item in summaries
        for paid in [spending[item.policy]]
    ]
    return sorted(results, key=lambda item: (item.spending.over, sign * item.mean))


def compared(
    agent_rows: Sequence[Row], baselines: Sequence[Row], label: str
) -> tuple[list[RankedPolicy], str | None]:
    """Return the ranking of agent and policies, and the label of the best policy or None.

    Simple policies and the NUM_BEST best analytic policies are ranked. So are oracles and other
    agents if they were evaluated; they are never the best policy.
    """
    ranked = without_duplicates(baselines, best_first(baselines))
    hidden = {*best_first(baselines)} - {*ranked[:NUM_BEST]}
    rows = [*agent_rows, *(row for row in baselines if row.policy not in hidden)]
    best = ranked[0] if ranked else None
    return rank_policies(rows, REWARD, label, best), best


def publish(
    folder: Path,
    rows: Sequence[Row],
    ranking: Sequence[RankedPolicy],
    best: str | None,
    *,
    agent: str,
    title: str,
    metric: str,
    measured: str,
) -> None:
    """Write a ranking as rows.csv, ranking.csv and ranking.png to ``folder``, and print it.

    ``metric`` and ``measured`` name the ranked values in the table and in the picture.
    """
    write_csv(folder / "rows.csv", Row._fields, rows)
    write_csv(folder / "ranking.csv", COLUMNS, ((*item[:-1], *item.spending) for item in ranking))
    draw_ranking(folder / "ranking.png", ranking, agent=agent, title=title, measured=measured)
    console().print(table_of(ranking, agent, metric, best))
    if rows[0].id == TRACE:
        console().print(ONE_HISTORY)


def publish_setting(
    setting: Setting, stored: Sequence[Row], agent: str, metric: str, folder: Path
) -> None:
    """Write, draw and print the ranking of an agent and policies in a setting, by a metric.

    Raises:
        ValueError: the environment does not have the metric.
    """
    rows = [row for row in stored if row.policy in setting.labels]
    if agent not in {row.policy for row in rows if row.metric == metric}:
        metrics = ", ".join(sorted({row.metric for row in rows}))
        raise ValueError(f"metric must be one of {setting.id} ({metrics}), got {metric!r}")
    best = next(iter(best_first(rows, metric, agent)), None)
    arguments = ", ".join(f"{name}={value}" for name, value in setting.arguments.items())
    title = f"{agent} in {setting.id}" + (f": {arguments}" if arguments else "")
    console().print(title, soft_wrap=True)
    measured = f"{metric} ({METRICS[metric]}{', lower is better' if metric in LOWER else ''})"
    look = {"agent": agent, "title": title, "metric": metric, "measured": measured}
    publish(folder, rows, rank_policies(rows, metric, agent, best), best, **look)


def draw_ranking(
    path: Path, ranking: Sequence[RankedPolicy], *, agent: str, title: str, measured: str
) -> None:
    """Draw the mean of every policy and its difference to the agent, with 95% intervals."""
    level, difference = f"{measured}, with 95% intervals", f"{agent} minus each, on the same seeds"
    data = pd.DataFrame(ranking)
    data = data.assign(label=(data.policy == agent).map({True: AGENT, False: POLICY}))
    data["policy"] += data.spending.map(lambda spending: spending.mark)
    rule = charts.Rule(0.0, panel=difference)
    charts.dots(
        means_and_differences(data, level, difference),
        path,
        charts.Frame(title, shared="y", upright=[rule], legend="none"),
        labels=(POLICY, AGENT),
    )


def draw_curve(
    path: Path,
    curves: pd.DataFrame,
    levels: Sequence[RankedPolicy],
    *,
    unit: str,
    title: str,
    measured: str,
) -> None:
    """Draw learning curves with bands of intervals, and a line for the mean of each policy.

    ``curves`` has the columns ``x`` in units ``unit``, ``y``, ``half`` and ``label``; ``levels``
    are the policies.
    """
    dashes = (*charts.DASHES, (0, (5, 1, 1, 1)), (0, (1, 3)))
    rules = [
        charts.Rule(item.mean, item.policy, dash)
        for item, dash in zip(levels, dashes, strict=False)
    ]
    frame = charts.Frame(title, charts.Axis(unit), charts.Axis(measured), across=rules)
    charts.lines(curves, path, frame, bands=curves.label.value_counts().min() >= 3)


def table_of(ranking: Sequence[RankedPolicy], agent: str, metric: str, best: str | None) -> Table:
    """Return the table of a ranking for the terminal, with the agent in bold."""
    seeds = max(item.seeds for item in ranking)
    scored = not math.isnan(ranking[0].score)
    scale = f"; score: {RANDOM} 0 %, {best} 100 %" if scored else ""
    note = f"95% intervals over {seeds} seeds, differences on the same seeds{scale}"
    note += f"; {NOTE}" if any(item.spending.over for item in ranking) else ""
    table = Table(caption=note, caption_justify="left")
    table.add_column("policy", no_wrap=True)
    for name in (metric, f"{agent} minus it", "normalised score", COLUMN):
        table.add_column(name, justify="right")
    for item in ranking:
        difference = plus_minus(item.difference, item.difference_half_width, True)
        table.add_row(
            f"{item.policy} (oracle)" if is_oracle(item.policy) else item.policy,
            plus_minus(item.mean, item.half_width),
            "" if item.policy == agent else difference,
            "-" if math.isnan(item.score) else f"{100.0 * item.score:.1f} %",
            item.spending.words,
            style="bold" if item.policy == agent else "",
        )
    return table
