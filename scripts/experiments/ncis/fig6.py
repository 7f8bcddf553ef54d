"""Busa-Fekete et al., figure 6 (section 6.6): signals for some changes, and false signals."""

from __future__ import annotations

from scripts.experiments.measures import over_pages
from scripts.present.experiment import Experiment, policy_settings
from scripts.present.verdicts import Claim, Trend, trends
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum

TITLE = "Noisy signals (NCIS paper, figure 6)"
SETTINGS = over_pages.sweep("noisy")
POLICIES = {
    "GREEDY": "Greedy",
    "GREEDY-CIS": "GreedyCIS",
    "GREEDY-NCIS": "GreedyNCIS",
    "G-NCIS-APPROX-1": "GreedyNCISApprox:terms=1",
    "G-NCIS-APPROX-2": "GreedyNCISApprox:terms=2",
}
"""GREEDY-CIS has reading I2 (see :class:`policies.GreedyCIS`)."""

EVERYWHERE = tuple(SETTINGS)
FEW_PAGES = ("m=100", "m=200", "m=300", "m=500")  # the paper's figure 6 leaves 300 out
MANY_PAGES = ("m=750", "m=1000", "m=10000")
PAPER = "section 6.6, figure 6"
APPROXIMATIONS = ("G-NCIS-APPROX-1", "G-NCIS-APPROX-2")
CLAIMS = (
    Claim(
        "GREEDY-NCIS is superior to GREEDY and GREEDY-CIS.",
        PAPER,
        trends("GREEDY-NCIS", "above", ("GREEDY", "GREEDY-CIS"), EVERYWHERE, PAPER),
    ),
    Claim(
        "So are its approximations, in almost every case.",
        PAPER,
        trends(APPROXIMATIONS, "above", ("GREEDY", "GREEDY-CIS"), EVERYWHERE, PAPER),
    ),
    Claim(
        "Up to 500 pages the approximations are very close to GREEDY-NCIS.",
        PAPER,
        trends(
            APPROXIMATIONS, "about", "GREEDY-NCIS", FEW_PAGES, f"{PAPER}; margin ours", margin=0.005
        ),
    ),
    Claim(
        "With more pages GREEDY-NCIS is superior to them.",
        PAPER,
        trends("GREEDY-NCIS", "above", APPROXIMATIONS, MANY_PAGES, PAPER),
    ),
    Claim(
        "With more pages the approximations cannot make use of the signals.",
        PAPER,
        trends("GREEDY", "above", APPROXIMATIONS, MANY_PAGES, f"our reading of {PAPER}"),
        note="Read as: they do not beat GREEDY.",
    ),
    Claim(
        "GREEDY-CIS, which takes signals for noiseless, deteriorates with the number of pages.",
        PAPER,
        (Trend("GREEDY", "above", "GREEDY-CIS", MANY_PAGES, f"our reading of {PAPER}"),),
        note="Read as: on many pages it is worse than to use no signals.",
    ),
)
NOT_THERE = "not in the paper; an episode, which starts all fresh, can end above the optimum"

EXPERIMENT = Experiment(
    name="ncis-fig6",
    title=TITLE,
    claim=(
        "GREEDY-NCIS and its approximations by one or two terms are more accurate than GREEDY and "
        "GREEDY-CIS in almost every case, and GREEDY-CIS falls behind as pages are added. The "
        "approximations are very close to GREEDY-NCIS up to 500 pages and lose to it beyond."
    ),
    metric="accuracy",
    references=(BASELINE, OPTIMUM),
    settings=policy_settings(
        over_pages.ID,
        SETTINGS,
        POLICIES,
        {OPTIMUM: optimum, BASELINE: baseline},
        quick=over_pages.QUICK,
        quick_settings=over_pages.QUICK_SETTINGS,
    ),
    claims=CLAIMS,
    expected=(
        Trend("GREEDY-NCIS", "about", OPTIMUM, EVERYWHERE[:-1], NOT_THERE, margin=0.005),
        *over_pages.levels("BASELINE", "GREEDY"),
    ),
    pictures={"accuracy": over_pages.accuracy(TITLE)},
)
