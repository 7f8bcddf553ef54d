"""Busa-Fekete et al., figure 4 (section 6.5): signals for some changes, and no false ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import policies as crawl_policies
from crawl_envs.evaluation import Bound, PolicyFactory, Row
from scripts.experiments.ncis.setup import sweep as ncis_sweep
from scripts.present.verdicts import Claim, Expected, Trend
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum

TITLE = "Signals for some of the changes, none of them false (NCIS paper, figure 4)"
CLAIM = (
    "GREEDY-CIS, which gives a signalled page the value mu/Delta, is far more accurate than "
    "GREEDY, at every ratio of bandwidth to changes."
)
ID = ncis_sweep.ID
SETTINGS = ncis_sweep.sweep("partial")
METRIC = "accuracy"
REFERENCE = BASELINE
FURTHER_REFERENCES = (OPTIMUM,)

EVERYWHERE = tuple(SETTINGS)
PAPER = "section 6.5, figure 4"
CLAIMS = (
    Claim(
        "Signals improve the performance significantly, whatever bandwidth and changes are.",
        PAPER,
        (
            Trend("GREEDY-CIS", "above", "GREEDY", EVERYWHERE, PAPER),
            Trend("GREEDY-CIS", "above", "BASELINE", EVERYWHERE, PAPER),
        ),
    ),
)
NOT_THERE = "not in the paper; an episode, which starts all fresh, can end above the optimum"
EXPECTED: tuple[Expected, ...] = (
    Trend(
        "GREEDY",
        "about",
        "BASELINE",
        EVERYWHERE,
        "section 6.4, figure 3; margin ours",
        margin=0.005,
    ),
    Trend("GREEDY-CIS", "about", OPTIMUM, EVERYWHERE, NOT_THERE, margin=0.005),
    *ncis_sweep.levels("BASELINE", "GREEDY", "GREEDY-CIS"),
)


def policies() -> Mapping[str, PolicyFactory]:
    """Return the policies of the figure."""
    return {
        "GREEDY": partial(crawl_policies.make, "Greedy"),
        "GREEDY-CIS": partial(crawl_policies.make, "GreedyCIS"),
    }


def bounds() -> Mapping[str, Bound]:
    """Return the optima of the continuous class, with signals and without."""
    return {OPTIMUM: optimum, BASELINE: baseline}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw accuracy against the number of pages."""
    ncis_sweep.draw_accuracy(rows, path, TITLE)
