"""Ranking of an agent and policies: means, paired differences, normalised scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table

from crawl_envs.evaluation import Row, summarize
from scripts.reporting.comparisons import is_oracle
from scripts.reporting.tables import plus_minus

RANDOM = "RandomCrawl"
TRACE = "CrawlTrace-v0"
ONE_HISTORY = "A recorded trace is one history: seeds only change the randomness of policies."
COLUMNS = (
    "policy",
    "repetitions",
    "mean",
    "half_width_95",
    "behind_agent",
    "behind_agent_half_width_95",
    "normalised_score",
)


class RankedPolicy(NamedTuple):
    """Results of a policy over seeds; half-widths are of 95% Student intervals.

    ``difference`` is the mean over seeds of the agent's value minus the policy's on the same seed.
    ``score`` is the normalised score: linear in the mean, 0 for RandomCrawl and 1 for the best
    analytic policy; NaN if one of them is missing.
    """

    policy: str
    seeds: int
    mean: float
    half_width: float
    difference: float
    difference_half_width: float
    score: float


def rank_policies(
    rows: Sequence[Row], metric: str, agent: str, best: str | None, *, lower: bool = False
) -> list[RankedPolicy]:
    """Return the results of all policies in a metric, the best first.

    Args:
        rows: rows of the agent and the policies.
        metric: metric of the ranking.
        agent: label of the agent.
        best: label of the best analytic policy, or None.
        lower: whether lower is better.
    """
    summaries = summarize(rows, metric, agent)
    means = {item.policy: item.mean for item in summaries}
    start, end = means.get(RANDOM, math.nan), means.get(best or "", math.nan)
    ranked = sorted(summaries, key=lambda item: item.mean if lower else -item.mean)
    return [
        RankedPolicy(
            item.policy,
            item.seeds,
            item.mean,
            item.half_width,
            0.0 - item.difference if item.policy != agent else math.nan,
            item.difference_half_width if item.policy != agent else math.nan,
            (item.mean - start) / (end - start) if start != end else math.nan,
        )
        for item in ranked
    ]


def table_of(ranking: Sequence[RankedPolicy], agent: str, measured: str, note: str) -> Table:
    """Return the printed table, with the agent in bold."""
    table = Table(caption=note, caption_justify="left")
    table.add_column("policy", no_wrap=True)
    table.add_column(measured, justify="right")
    table.add_column(f"{agent} minus it", justify="right")
    table.add_column("normalised score", justify="right")
    for item in ranking:
        difference = plus_minus(item.difference, item.difference_half_width, True)
        table.add_row(
            f"{item.policy} (oracle)" if is_oracle(item.policy) else item.policy,
            plus_minus(item.mean, item.half_width),
            "" if item.policy == agent else difference,
            "-" if math.isnan(item.score) else f"{100.0 * item.score:.1f} %",
            style="bold" if item.policy == agent else "",
        )
    return table


def note_of(ranking: Sequence[RankedPolicy], best: str | None) -> str:
    """Return the caption of the table."""
    seeds = max(item.seeds for item in ranking)
    scale = "" if math.isnan(ranking[0].score) else f"; score: {RANDOM} 0 %, {best} 100 %"
    return f"95% intervals over {seeds} seeds, differences on the same seeds{scale}"
