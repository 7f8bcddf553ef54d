"""Busa-Fekete et al., figure 3 (section 6.4): crawling without signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import policies as crawl_policies
from crawl_envs.evaluation import Bound, PolicyFactory, Row
from scripts.comparing import ncis_sweep
from scripts.comparing.bounds import BASELINE, baseline
from scripts.comparing.verdicts import Expected, Level, Trend

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
INDEPENDENT = "independent code, 100 repetitions"
TOLERANCE = 0.005
"""Means over 100 other instances differ by .0012 to .002 (one standard error), by setting."""
LEVELS = {
    "m=100": {"BASELINE": 0.8340, "GREEDY": 0.8340, "LDS": 0.8337, "round robin": 0.7979},
    "m=300": {"BASELINE": 0.6254, "GREEDY": 0.6254, "LDS": 0.6253, "round robin": 0.5640},
    "m=1000": {"BASELINE": 0.3663, "GREEDY": 0.3671, "LDS": 0.3671, "round robin": 0.2905},
}
EXPECTED: tuple[Expected, ...] = (
    Trend("GREEDY", "about", "LDS", EVERYWHERE, PAPER, margin=0.002),
    Trend("GREEDY", "about", "BASELINE", EVERYWHERE, PAPER, margin=0.005),
    Trend("LDS", "about", "BASELINE", EVERYWHERE, PAPER, margin=0.005),
    Trend("GREEDY", "above", "LDS", EVERYWHERE, "section 5"),
    Trend("GREEDY", "above", "round robin", EVERYWHERE, "not in the paper"),
    *(
        Level(setting, policy, value, TOLERANCE, INDEPENDENT)
        for setting, values in LEVELS.items()
        for policy, value in values.items()
    ),
)


def policies() -> Mapping[str, PolicyFactory]:
    """The paper's policies, and round robin, which needs to be told nothing."""
    return {
        "GREEDY": partial(crawl_policies.make, "Greedy"),
        "LDS": partial(crawl_policies.make, "LowDiscrepancy"),
        "round robin": partial(crawl_policies.make, "RoundRobin"),
    }


def bounds() -> Mapping[str, Bound]:
    """The red line of the paper's figures."""
    return {BASELINE: baseline}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw accuracy against the number of pages."""
    from scripts.comparing.charts import accuracy_by_pages

    accuracy_by_pages(rows, path, title=TITLE, reference=REFERENCE, metric=METRIC)
