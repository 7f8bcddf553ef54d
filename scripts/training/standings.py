"""How an agent stands among policies: means, differences on the same seeds, share of the way."""

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
ONE_HISTORY = "A recorded trace is one history: seeds differ in the policies' coins only."
COLUMNS = (
    "policy",
    "repetitions",
    "mean",
    "half_width_95",
    "behind_agent",
    "behind_agent_half_width_95",
    "share_of_way",
)


class Standing(NamedTuple):
    """How a policy did, over seeds; half-widths are of 95% Student intervals.

    ``behind`` is the mean over seeds of the agent's number minus the policy's on the same seed.
    ``share`` is the share of the way from RandomCrawl (0) to the best analytic policy (1), NaN
    where one of them is missing.
    """

    policy: str
    seeds: int
    mean: float
    half_width: float
    behind: float
    behind_half_width: float
    share: float


def standings(
    rows: Sequence[Row], metric: str, agent: str, best: str | None, *, lower: bool = False
) -> list[Standing]:
    """Return how all policies did in a metric, the best first.

    Args:
        rows: of the agent and the policies.
        metric: which metric.
        agent: the agent's label.
        best: the label of the best analytic policy, None without one.
        lower: whether less is better.
    """
    found = summarize(rows, metric, agent)
    means = {item.policy: item.mean for item in found}
    start, end = means.get(RANDOM, math.nan), means.get(best or "", math.nan)
    ranked = sorted(found, key=lambda item: item.mean if lower else -item.mean)
    return [
        Standing(
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


def table_of(found: Sequence[Standing], agent: str, measured: str, note: str) -> Table:
    """Return the table that is printed; the agent's line is bold."""
    table = Table(caption=note, caption_justify="left")
    table.add_column("policy", no_wrap=True)
    table.add_column(measured, justify="right")
    table.add_column(f"{agent} minus it", justify="right")
    table.add_column("share of the way", justify="right")
    for item in found:
        table.add_row(
            f"{item.policy} (oracle)" if is_oracle(item.policy) else item.policy,
            plus_minus(item.mean, item.half_width),
            "" if item.policy == agent else plus_minus(item.behind, item.behind_half_width, True),
            "-" if math.isnan(item.share) else f"{100.0 * item.share:.1f} %",
            style="bold" if item.policy == agent else "",
        )
    return table


def note_of(found: Sequence[Standing], best: str | None) -> str:
    """Say what the numbers of the table are."""
    seeds = max(item.seeds for item in found)
    way = f"; the way: from {RANDOM} to {best}" if not math.isnan(found[0].share) else ""
    return f"95% intervals over {seeds} seeds, differences on the same seeds{way}"
