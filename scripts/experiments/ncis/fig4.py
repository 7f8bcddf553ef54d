"""Busa-Fekete et al., figure 4 (section 6.5): signals for some changes, and no false ones."""

from __future__ import annotations

from scripts.experiments.measures import over_pages
from scripts.present.verdicts import Claim, Expected, Trend
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum

NAME = "ncis-fig4"
TITLE = "Signals for some of the changes, none of them false (NCIS paper, figure 4)"
CLAIM = (
    "GREEDY-CIS, which gives a signalled page the value mu/Delta, is far more accurate than "
    "GREEDY, at every ratio of bandwidth to changes."
)
ID = over_pages.ID
SETTINGS = over_pages.sweep("partial")
QUICK, QUICK_SETTINGS = over_pages.QUICK, over_pages.QUICK_SETTINGS
POLICIES = {
    "GREEDY": "Greedy",
    "GREEDY-CIS": "GreedyCIS",
}
BOUNDS = {OPTIMUM: optimum, BASELINE: baseline}
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
    *over_pages.levels("BASELINE", "GREEDY", "GREEDY-CIS"),
)

PICTURES = {METRIC: over_pages.accuracy(TITLE)}
