"""Slow, obvious twins of the schedules, and their discrepancy and accuracy."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np


def shares(rates):
    total = sum(Fraction(rate) for rate in rates)
    return [Fraction(rate) / total for rate in rates]


def deadline(rates, slots):
    """Return for every slot the released crawl that is due first, in exact arithmetic."""
    share = shares(rates)
    crawls = [0] * len(share)
    chosen = []
    for slot in range(slots):
        waiting = [
            (ceil((crawls[i] + 1) / p), i)
            for i, p in enumerate(share)
            if p > 0 and floor(crawls[i] / p) <= slot
        ]
        _, page = min(waiting)
        crawls[page] += 1
        chosen.append(page)
    return chosen


def discrepancy(rates, pages):
    """Return the largest distance, over all slots and pages, of crawls made from their share."""
    share = np.asarray(rates) / np.sum(rates)
    made = np.zeros((len(pages) + 1, len(share)))
    made[np.arange(1, len(pages) + 1), pages] = 1.0
    due = np.arange(len(pages) + 1)[:, None] * share
    return float(np.abs(np.cumsum(made, axis=0) - due).max())


def expected_accuracy(pages, importance, change_rate, bandwidth):
    """Return the expected share of fresh requests, when crawl j of ``pages`` is made at j / R."""
    horizon = len(pages) / bandwidth
    total = 0.0
    for page, (weight, rate) in enumerate(zip(importance, change_rate, strict=True)):
        crawls = (np.flatnonzero(np.asarray(pages) == page) + 1) / bandwidth
        gaps = np.diff(np.concatenate([[0.0], crawls, [horizon]]))
        total += weight * float(np.sum(-np.expm1(-rate * gaps))) / rate
    return total / (horizon * float(np.sum(importance)))
