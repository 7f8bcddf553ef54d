"""Busa-Fekete et al., figure 3 (section 6.4): crawling without signals."""

from __future__ import annotations

from scripts.experiments.measures import over_pages
from scripts.present.verdicts import Claim, Expected, Trend
from scripts.study.bounds import BASELINE, baseline

NAME, TITLE = "ncis-fig3", "Crawling without signals (NCIS paper, figure 3)"
CLAIM = (
    "GREEDY and LDS have very similar accuracy whatever the number of pages. "
    "Both are on par with BASELINE, the optimal continuous policy."
)
ID = over_pages.ID
SETTINGS = over_pages.sweep("uniform")
QUICK, QUICK_SETTINGS = over_pages.QUICK, over_pages.QUICK_SETTINGS
POLICIES = {
    "GREEDY": "Greedy",
    "LDS": "LowDiscrepancy",
    "round robin": "RoundRobin",
}
BOUNDS = {BASELINE: baseline}
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
    *over_pages.levels("BASELINE", "GREEDY", "LDS", "round robin"),
)

PICTURES = {METRIC: over_pages.accuracy(TITLE)}
