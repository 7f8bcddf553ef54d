"""Histories of crawls, drawn from the model of signals."""

from __future__ import annotations

import numpy as np


def crawled(rng, alpha, b, gamma, intervals):
    """Simulate the model: page of each crawl, time since the last, signals (S, n), changed.

    ``alpha`` is (m,), ``b`` and ``gamma`` are (S, m), ``intervals`` is (m, k).
    """
    page = np.repeat(np.arange(len(alpha)), intervals.shape[1])
    elapsed = intervals.ravel()
    signals = rng.poisson(gamma[:, page] * elapsed)
    exponent = alpha[page] * elapsed + (np.where(signals > 0, b[:, page], 0.0) * signals).sum(0)
    return page, elapsed, signals, rng.random(len(page)) < -np.expm1(-exponent)
