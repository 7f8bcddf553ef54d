"""What the report takes from the results of other commands; nothing where there are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from scripts.reporting.claims import HEADS, PAGE

CELLS = re.compile(r"(?<!\\)\|")
PAPERS = ("ncis", "lambdacrawl", "longevity", "offers")
BY_PAGES = Path("ncis", "fig6", "summary.csv")
CRAWLS = 100.0
"""Crawls per unit of time in figure 6 of the NCIS paper."""
GROWTH = Path("speed", "growth.csv")


class Judged(NamedTuple):
    """A claim of a paper: its figure, its words, and the verdict."""

    figure: str
    says: str
    verdict: str


class Paper(NamedTuple):
    """The claims of a paper, and the number of claims by verdict."""

    title: str
    claims: Sequence[Judged]
    counts: dict[str, int]


def papers(results: Path) -> list[Paper]:
    """Return the verdicts on the claims of the papers whose pages are in ``results``."""
    found = []
    for name in PAPERS:
        path = results / name / PAGE
        claims = _claims(path.read_text("utf-8")) if path.exists() else []
        if claims:
            counts = pd.Series([claim.verdict for claim in claims]).value_counts()
            found.append(Paper(HEADS[name], claims, {str(k): int(v) for k, v in counts.items()}))
    return found


def _claims(page: str) -> list[Judged]:
    """Return the rows of the table of contents of a page of claims."""
    lines = page.splitlines()
    head = "| | claim | here |"
    if head not in lines:
        return []
    claims = []
    for line in lines[lines.index(head) + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip().replace("\\|", "|") for cell in CELLS.split(line)[1:-1]]
        claims.append(Judged(*cells))
    return claims


def growth(results: Path) -> pd.DataFrame:
    """Return the microseconds of a step of one environment, by pages and environments."""
    path = results / GROWTH
    if not path.exists():
        return pd.DataFrame()
    table = pd.read_csv(path)
    return pd.DataFrame(
        {
            "x": table.pages,
            "y": 1e6 * table.seconds,
            "policy": table.lanes.map(lambda lanes: f"{lanes} at once"),
        }
    )


def accuracies(results: Path) -> pd.DataFrame:
    """Return the accuracy by crawls per page of figure 6 of the NCIS paper, with 95% intervals."""
    path = results / BY_PAGES
    if not path.exists():
        return pd.DataFrame()
    table = pd.read_csv(path).query("metric == 'accuracy'")
    pages = table.setting.str.extract(r"m=(\d+)", expand=False).astype(float)
    return pd.DataFrame(
        {
            "x": CRAWLS / pages,
            "y": table["mean"],
            "low": table["mean"] - table.half_width_95,
            "high": table["mean"] + table.half_width_95,
            "policy": table.policy,
        }
    )
