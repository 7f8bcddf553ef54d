"""Busa-Fekete et al., figure 13 (appendix E): the bias of counting intervals."""

from __future__ import annotations

import math

from scripts.experiments.measures import signal_estimates
from scripts.experiments.measures.signal_estimates import EVEN, NAIVE, POISSON
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range

TITLE = "Precision and recall by counting intervals (NCIS paper, figure 13)"

EVERYWHERE = (EVEN, POISSON)
PAPER = "appendix E, figure 13"

EXPERIMENT = Experiment(
    name="ncis-fig13",
    title=TITLE,
    claim=(
        "The shares of intervals between crawls with a signal and a change overestimate both. A "
        "long interval contains both changes and signals that are unrelated."
    ),
    metric="precision_bias",
    settings=measure_settings(
        signal_estimates.SETTINGS, signal_estimates.measures(NAIVE), quick=signal_estimates.QUICK
    ),
    derive=signal_estimates.derive,
    claims=(
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
    ),
    pictures={"estimates": signal_estimates.picture(TITLE, NAIVE)},
)
