"""Busa-Fekete et al., figure 4 (section 6.5): signals for some changes, without false signals."""

from __future__ import annotations

from scripts.experiments.measures import over_pages
from scripts.present.experiment import Experiment, policy_settings
from scripts.present.verdicts import Claim, Trend
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum

TITLE = "Signals for some of the changes, none of them false (NCIS paper, figure 4)"
SETTINGS = over_pages.sweep("partial")

EVERYWHERE = tuple(SETTINGS)
PAPER = "section 6.5, figure 4"
NOT_THERE = "not in the paper; an episode, which starts all fresh, can end above the optimum"

EXPERIMENT = Experiment(
    name="ncis-fig4",
    title=TITLE,
    claim=(
        "GREEDY-CIS, which gives a signalled page the value mu/Delta, is far more accurate than "
        "GREEDY, at every ratio of bandwidth to changes."
    ),
    metric="accuracy",
    references=(BASELINE, OPTIMUM),
    settings=policy_settings(
        over_pages.ID,
        SETTINGS,
        {"GREEDY": "Greedy", "GREEDY-CIS": "GreedyCIS"},
        {OPTIMUM: optimum, BASELINE: baseline},
        quick=over_pages.QUICK,
        quick_settings=over_pages.QUICK_SETTINGS,
    ),
    claims=(
        Claim(
            "Signals improve the performance significantly, whatever bandwidth and changes are.",
            PAPER,
            (
                Trend("GREEDY-CIS", "above", "GREEDY", EVERYWHERE, PAPER),
                Trend("GREEDY-CIS", "above", "BASELINE", EVERYWHERE, PAPER),
            ),
        ),
    ),
    expected=(
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
    ),
    pictures={"accuracy": over_pages.accuracy(TITLE)},
)
