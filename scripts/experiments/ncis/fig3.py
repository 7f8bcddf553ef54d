"""Busa-Fekete et al., figure 3 (section 6.4): crawling without signals."""

from __future__ import annotations

from scripts.experiments.measures import over_pages
from scripts.present.experiment import Experiment, policy_settings
from scripts.present.verdicts import Claim, Trend
from scripts.study.bounds import BASELINE, baseline

TITLE = "Crawling without signals (NCIS paper, figure 3)"
SETTINGS = over_pages.sweep("uniform")

EVERYWHERE = tuple(SETTINGS)
PAPER = "section 6.4, figure 3"

EXPERIMENT = Experiment(
    name="ncis-fig3",
    title=TITLE,
    claim=(
        "GREEDY and LDS have very similar accuracy whatever the number of pages. Both are on par "
        "with BASELINE, the optimal continuous policy."
    ),
    metric="accuracy",
    references=(BASELINE,),
    settings=policy_settings(
        over_pages.ID,
        SETTINGS,
        {"GREEDY": "Greedy", "LDS": "LowDiscrepancy", "round robin": "RoundRobin"},
        {BASELINE: baseline},
        quick=over_pages.QUICK,
        quick_settings=over_pages.QUICK_SETTINGS,
    ),
    claims=(
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
    ),
    expected=(
        Trend("GREEDY", "above", "round robin", EVERYWHERE, "not in the paper"),
        *over_pages.levels("BASELINE", "GREEDY", "LDS", "round robin"),
    ),
    pictures={"accuracy": over_pages.accuracy(TITLE)},
)
