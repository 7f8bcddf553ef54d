"""The rule that decides which policies exceed the crawl budget."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from crawl_envs.evaluation import BUDGET_SHARE, Row
from scripts.study.means import table

OVER, COLUMN = "over budget", "crawls / budget"
EXCESS, ERRORS, EXCESS_OF_ONE = 0.01, 3.0, 0.1
"""Tolerated excess: EXCESS of the budget plus ERRORS standard errors of the mean; a single episode
has no standard error, and EXCESS_OF_ONE of the budget is tolerated."""
NOTE = (
    f"{OVER}, not ranked: more than {EXCESS:.0%} and {ERRORS:g} standard errors above 100 %, or "
    f"{EXCESS_OF_ONE:.0%} in a single episode"
)


class Spending(NamedTuple):
    """A policy's mean crawls divided by the budget, and whether the policy is over the budget."""

    share: float = math.nan
    over: bool = False

    @property
    def mark(self) -> str:
        """Text after the name of a policy that is over the budget."""
        return f", {OVER}" if self.over else ""

    @property
    def words(self) -> str:
        """Text of the share in the table's column ``COLUMN``; empty if the share is unknown."""
        return "" if math.isnan(self.share) else f"{100.0 * self.share:.1f} %{self.mark}"


def is_over(shares: pd.Series[float]) -> bool:
    """Return whether crawls / budget, one number per episode, exceed 1 beyond the tolerance."""
    excess = shares - 1.0
    allowed = EXCESS + ERRORS * excess.sem() if len(excess) > 1 else EXCESS_OF_ONE
    return bool(excess.mean() > allowed)


def spending_of(rows: Iterable[Row]) -> defaultdict[str, Spending]:
    """Return each policy's spending from the rows of a setting; unknown for bounds."""
    groups = table(rows, BUDGET_SHARE).groupby("policy").value
    pairs = ((str(label), Spending(float(part.mean()), is_over(part))) for label, part in groups)
    return defaultdict(Spending, pairs)
