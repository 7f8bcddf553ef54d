"""Busa-Fekete et al., figure 14 (appendix E): a fitted model judges signals without bias."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from crawl_envs.evaluation import Row
from scripts.experiments.ncis.setup import signal_estimates
from scripts.experiments.ncis.setup.signal_estimates import EVEN, MLE, POISSON
from scripts.reporting.settings import Measurement
from scripts.reporting.verdicts import Claim, Range

TITLE = "Precision and recall by maximum likelihood (NCIS paper, figure 14)"
CLAIM = (
    "The model of what crawls find, fitted by maximum likelihood, has no bias that shows. "
    "Its error on a page is what the number of crawls allows, about .01."
)
METRIC = "precision_absolute_error"
QUICK_REPETITIONS = 5

EVERYWHERE = (EVEN, POISSON)
PAPER = "appendix E, figure 14"
ORDER = (10.0**-4.5, 10.0**-3.5)
"""Numbers of the order of 1e-4."""


def _everywhere(kind: str, low: float, high: float, source: str) -> tuple[Range, ...]:
    return tuple(
        Range(MLE, low, high, EVERYWHERE, source, metric=f"{name}_{kind}")
        for name in signal_estimates.ESTIMATED
    )


CLAIMS = (
    Claim(
        "The absolute error of the maximum likelihood estimator is of the order of 1e-4",
        PAPER,
        _everywhere("absolute_error", *ORDER, PAPER),
        "The mean absolute error is .01, which is what the Fisher information of so many crawls "
        "allows an unbiased estimator: 1e-4 would take a horizon some 10,000 times as long. Of "
        "the order of 1e-4 is the mean squared error; the mean error over 2,000 pages, the bias "
        "of the caption, is no larger and does not differ from 0.",
    ),
    Claim(
        "Its estimates are more faithful than those of figure 13: their mean error is below 1e-3",
        PAPER,
        _everywhere("bias", -1e-3, 1e-3, "margin ours"),
    ),
)
EXPECTED = _everywhere("error_ratio", 0.9, 1.1, "theory: the standard errors hold")


def measurements(quick: bool) -> Sequence[Measurement]:
    """The maximum likelihood estimator, with either kind of crawls."""
    return signal_estimates.measurements(quick, MLE)


derive = signal_estimates.derive
PICTURES = {
    name: partial(signal_estimates.draw, title=TITLE, estimator=MLE, setting=setting)
    for name, setting in (("even_crawls", EVEN), ("poisson_crawls", POISSON))
}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw estimates against the truth, for evenly spaced crawls."""
    PICTURES["even_crawls"](rows, path)
