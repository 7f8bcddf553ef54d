"""Busa-Fekete et al., section 5.1: three readings of GREEDY-CIS where signals are noisy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import policies as crawl_policies
from crawl_envs.evaluation import Bound, PolicyFactory, Row
from scripts.experiments.ncis.setup import sweep as ncis_sweep
from scripts.present.verdicts import Expected, Trend
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum

TITLE = "Three readings of GREEDY-CIS on noisy signals (NCIS paper, figure 6)"
CLAIM = (
    "GREEDY-CIS takes signals for noiseless, and the paper does not define the signal rate that it "
    "then assumes: I1 no false signals, I2 the true rate, I3 the true rate with the limit that "
    "agrees with it. On many pages each of them is worse than using no signals at all."
)
ID = ncis_sweep.ID
SETTINGS = {
    name: arguments
    for name, arguments in ncis_sweep.sweep("noisy").items()
    if arguments["num_pages"] in (100, 300, 1000, 10000)
}
METRIC = "accuracy"
REFERENCE = BASELINE
FURTHER_REFERENCES = (OPTIMUM,)

MANY_PAGES = ("m=1000", "m=10000")
READINGS = ("I1", "I2", "I3")
CLAIMS = ()
EXPECTED: tuple[Expected, ...] = tuple(
    Trend(BASELINE, "above", f"GREEDY-CIS {reading}", MANY_PAGES, "our reading of section 6.6")
    for reading in READINGS
)


def policies() -> Mapping[str, PolicyFactory]:
    """Return GREEDY-CIS under each reading."""
    return {
        f"GREEDY-CIS {reading}": partial(crawl_policies.make, "GreedyCIS", reading=reading)
        for reading in READINGS
    }


def bounds() -> Mapping[str, Bound]:
    """Return the optima of the continuous class, with signals and without."""
    return {OPTIMUM: optimum, BASELINE: baseline}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw accuracy against the number of pages."""
    ncis_sweep.draw_accuracy(rows, path, TITLE)
