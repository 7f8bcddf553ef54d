"""Busa-Fekete et al., figure 13 (appendix E): the bias of counting intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from crawl_envs.evaluation import Row
from scripts.experiments.ncis.setup import signal_estimates
from scripts.experiments.ncis.setup.signal_estimates import EVEN, NAIVE, POISSON
from scripts.present.verdicts import Claim, Range
from scripts.study.settings import Measurement

TITLE = "Precision and recall by counting intervals (NCIS paper, figure 13)"
CLAIM = (
    "The shares of intervals between crawls with a signal and a change overestimate both. "
    "A long interval contains both changes and signals that are unrelated."
)
METRIC = "precision_bias"
QUICK_REPETITIONS = 5

EVERYWHERE = (EVEN, POISSON)
PAPER = "appendix E, figure 13"
CLAIMS = (
    Claim(
        "The statistical estimator of precision and recall is clearly biased",
        PAPER,
        tuple(
            Range(NAIVE, 0.05, math.inf, EVERYWHERE, "margin ours", metric=f"{name}_bias")
            for name in signal_estimates.ESTIMATED
        ),
        "mean over pages of estimate minus truth; in the paper's formula of precision the "
        "denominator repeats the numerator; read here as intervals with a signal",
    ),
)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return the measurements of the naive estimator, with either kind of crawls."""
    return signal_estimates.measurements(quick, NAIVE)


derive = signal_estimates.derive
PICTURES = {
    name: partial(signal_estimates.draw, title=TITLE, estimator=NAIVE, setting=setting)
    for name, setting in (("even_crawls", EVEN), ("poisson_crawls", POISSON))
}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw estimates against the truth, for evenly spaced crawls."""
    PICTURES["even_crawls"](rows, path)
