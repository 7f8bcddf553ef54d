"""Fits of pages under given Gamma priors."""

from __future__ import annotations

import numpy as np

from policies.estimators.signal_likelihood import fit_pages
from policies.estimators.signal_quality import as_signal_fit, crawls_of_pages


def fit_with_prior(elapsed, signals, changed, prior=None, page=None, num_pages=None):
    crawls = crawls_of_pages(elapsed, signals, changed, page, num_pages)
    size = len(crawls.offsets) - 1, crawls.design.shape[1]
    shape, rate = np.zeros((2, *size))
    if prior is not None:
        shape[:], rate[:] = prior
    result = fit_pages(crawls, shape, rate, np.zeros(size))
    return as_signal_fit(crawls, result, signals is not None and np.ndim(signals) == 1)
