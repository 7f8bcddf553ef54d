"""Change rates from crawl histories: equation 10 of Kolobov et al. (2019), smoothed.

The estimate is the maximum of the likelihood of the crawls and of two imaginary ones, half a day
apart from the crawl before, of which one found a change and the other none (section 5 of the paper;
that it is one of each is what the public code does). The public code then keeps rates to
[0.0005, 7] a day and solves to 1e-4; here they are solved to rounding and not kept to a range.
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

    The error is that of the second derivative of the likelihood, imaginary crawls included. A URL
    without any crawl gets ln(2) / IMAGINARY, what the imaginary ones say.
    """
    if histories.url_id.size == 0:
        return np.empty(0), np.empty(0)
    fit = fit_change_rates(
        histories.intervals, histories.changed, histories.offsets, smoothing=IMAGINARY
    )
    return fit.change_rate, fit.stderr
