"""Busa-Fekete et al., figure 3 (section 6.4): crawling without signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import policies as crawl_policies
from crawl_envs.evaluation import Bound, PolicyFactory, Row
from scripts.experiments.ncis.setup import sweep as ncis_sweep
from scripts.present.verdicts import Claim, Expected, Trend
from scripts.study.bounds import BASELINE, baseline

TITLE = "Crawling without signals (NCIS paper, figure 3)"
CLAIM = (
    "GREEDY and LDS have very similar accuracy whatever the number of pages. "
    "Both are on par with BASELINE, the optimal continuous policy."
)
ID = ncis_sweep.ID
SETTINGS = ncis_sweep.sweep("uniform")
METRIC = "accuracy"
REFERENCE = BASELINE

EVERYWHERE = tuple(SETTINGS)
PAPER = "section 6.4, figure 3"
CLAIMS = (
    Claim(
        "GREEDY and LDS perform very similarly, whatever the number of pages.",
        PAPER,
        (Trend("GREEDY", "about", "LDS", EVERYWHERE, f"{PAPER}; margin ours", margin=0.002),),
    ),
    Claim(
        "Both are on par with BASELINE.",
        PAPER,
        tuple(
            Trend(label, "about", "BASELINE", EVERYWHERE, f"{PAPER}; margin ours", margin=0.005)
            for label in ("GREEDY", "LDS")
        ),
    ),
    Claim(
        "GREEDY is better than LDS by a small but significant amount.",
        "section 5",
        (
            Trend("GREEDY", "above", "LDS", EVERYWHERE, "section 5"),
            Trend("GREEDY", "above", "LDS", EVERYWHERE, "section 5", metric="freshness"),
        ),
        note="Freshness is accuracy without the chance of requests.",
    ),
)
EXPECTED: tuple[Expected, ...] = (
    Trend("GREEDY", "above", "round robin", EVERYWHERE, "not in the paper"),
    *ncis_sweep.levels("BASELINE", "GREEDY", "LDS", "round robin"),
)


def policies() -> Mapping[str, PolicyFactory]:
    """Return the paper's policies, and round robin, which needs no parameters."""
    return {
        "GREEDY": partial(crawl_policies.make, "Greedy"),
        "LDS": partial(crawl_policies.make, "LowDiscrepancy"),
        "round robin": partial(crawl_policies.make, "RoundRobin"),
    }


def bounds() -> Mapping[str, Bound]:
    """Return BASELINE, the red line of the paper's figures."""
    return {BASELINE: baseline}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw accuracy against the number of pages."""
    ncis_sweep.draw_accuracy(rows, path, TITLE)
