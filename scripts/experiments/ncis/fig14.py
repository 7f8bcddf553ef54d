"""Busa-Fekete et al., figure 14 (appendix E): maximum likelihood estimates have no bias."""

from __future__ import annotations

from scripts.experiments.measures import signal_estimates
from scripts.experiments.measures.signal_estimates import EVEN, MLE, POISSON
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range

TITLE = "Precision and recall by maximum likelihood (NCIS paper, figure 14)"

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
        "The mean absolute error is .01, the least that the Fisher information of so many crawls "
        "allows an unbiased estimator: 1e-4 would take a horizon some 10,000 times as long. The "
        "mean squared error is of the order of 1e-4; the mean error over 2,000 pages, the bias "
        "of the caption, is no larger and does not differ from 0.",
    ),
    Claim(
        "Its estimates are more faithful than those of figure 13: their mean error is below 1e-3",
        PAPER,
        _everywhere("bias", -1e-3, 1e-3, "margin ours"),
    ),
)

EXPERIMENT = Experiment(
    name="ncis-fig14",
    title=TITLE,
    claim=(
        "The model of crawl outcomes, fitted by maximum likelihood, has no visible bias. Its "
        "error on a page, about .01, is the smallest that the number of crawls permits."
    ),
    metric="precision_absolute_error",
    settings=measure_settings(
        signal_estimates.SETTINGS, signal_estimates.measures(MLE), quick=signal_estimates.QUICK
    ),
    derive=signal_estimates.derive,
    claims=CLAIMS,
    expected=_everywhere("error_ratio", 0.9, 1.1, "theory: the standard errors hold"),
    pictures={"estimates": signal_estimates.picture(TITLE, MLE)},
)
