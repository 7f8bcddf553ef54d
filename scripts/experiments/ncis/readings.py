"""Busa-Fekete et al., section 5.1: three readings of GREEDY-CIS where signals are noisy."""

from __future__ import annotations

from scripts.experiments.measures import over_pages
from scripts.present.experiment import Experiment, policy_settings
from scripts.present.verdicts import Trend
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum

TITLE = "Three readings of GREEDY-CIS on noisy signals (NCIS paper, figure 6)"
READINGS = ("I1", "I2", "I3")

MANY_PAGES = ("m=1000", "m=10000")

EXPERIMENT = Experiment(
    name="ncis-readings",
    title=TITLE,
    claim=(
        "GREEDY-CIS assumes noiseless signals, and the paper does not define their assumed rate. "
        "Readings: I1 no false signals, I2 the true rate, I3 the true rate and the limit that "
        "agrees with it. On many pages each reading is worse than using no signals."
    ),
    metric="accuracy",
    references=(BASELINE, OPTIMUM),
    settings=policy_settings(
        over_pages.ID,
        {
            name: arguments
            for name, arguments in over_pages.sweep("noisy").items()
            if arguments["num_pages"] in (100, 300, 1000, 10000)
        },
        {f"GREEDY-CIS {reading}": f"GreedyCIS:reading={reading}" for reading in READINGS},
        {OPTIMUM: optimum, BASELINE: baseline},
        quick=over_pages.QUICK,
        quick_settings=("m=100", "m=300", "m=1000"),
    ),
    expected=tuple(
        Trend(BASELINE, "above", f"GREEDY-CIS {reading}", MANY_PAGES, "our reading of section 6.6")
        for reading in READINGS
    ),
    pictures={"accuracy": over_pages.accuracy(TITLE)},
)
