"""Busa-Fekete et al., section 5.1: three readings of GREEDY-CIS where signals are noisy."""

from __future__ import annotations

from scripts.experiments.measures import over_pages
from scripts.present.verdicts import Expected, Trend
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum

NAME = "ncis-readings"
TITLE = "Three readings of GREEDY-CIS on noisy signals (NCIS paper, figure 6)"
CLAIM = (
    "GREEDY-CIS takes signals for noiseless, and the paper does not define the signal rate that it "
    "then assumes: I1 no false signals, I2 the true rate, I3 the true rate with the limit that "
    "agrees with it. On many pages each of them is worse than using no signals at all."
)
ID = over_pages.ID
SETTINGS = {
    name: arguments
    for name, arguments in over_pages.sweep("noisy").items()
    if arguments["num_pages"] in (100, 300, 1000, 10000)
}
QUICK, QUICK_SETTINGS = over_pages.QUICK, ("m=100", "m=300", "m=1000")
READINGS = ("I1", "I2", "I3")
POLICIES = {f"GREEDY-CIS {reading}": f"GreedyCIS:reading={reading}" for reading in READINGS}
BOUNDS = {OPTIMUM: optimum, BASELINE: baseline}
METRIC = "accuracy"
REFERENCE = BASELINE
FURTHER_REFERENCES = (OPTIMUM,)

MANY_PAGES = ("m=1000", "m=10000")
EXPECTED: tuple[Expected, ...] = tuple(
    Trend(BASELINE, "above", f"GREEDY-CIS {reading}", MANY_PAGES, "our reading of section 6.6")
    for reading in READINGS
)

PICTURES = {METRIC: over_pages.accuracy(TITLE)}
