"""Change rates from crawl histories: equation 10 of Kolobov et al. (2019), smoothed.

The estimate maximises the likelihood of the crawls and of two imaginary crawls, each half a day
after the previous crawl, one with a change and one without (section 5 of the paper; one of each is
from the public code). The public code then clips rates to [0.0005, 7] a day and solves to 1e-4;
here they are solved to rounding and not clipped.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray
from policies.estimators import fit_change_rates
from scripts.data.bing.parsing import Histories

IMAGINARY = 0.5
"""Length of the imaginary intervals, in days."""


def fit_histories(histories: Histories) -> tuple[FloatArray, FloatArray]:
    """Return the change rate per day of each URL and its standard error, each (n,).

    The error is from the second derivative of the likelihood, imaginary crawls included. A URL
    without any crawl gets ln(2) / IMAGINARY, the estimate of the imaginary crawls alone.
    """
    if histories.url_id.size == 0:
        return np.empty(0), np.empty(0)
    fit = fit_change_rates(
        histories.intervals, histories.changed, histories.offsets, smoothing=IMAGINARY
    )
    return fit.change_rate, fit.stderr
