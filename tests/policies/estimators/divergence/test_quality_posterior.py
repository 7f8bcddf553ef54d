"""How far signals can be trusted: the posterior over qualities, and its two means."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies.estimators.divergence.posterior import (
    FALSE_RATES,
    QUALITY_BASE,
    QUALITY_FIRST_PAGES,
    RECALLS,
    QualityPosterior,
)
from policies.estimators.divergence.posterior_kernels import PageCrawls
from tests.policies.estimators.divergence.test_posterior_kernels import naive_log_change

INTERVAL = 4.0
RATES = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
EVERY_SECOND = (0.0, 0.05, 0.2, 0.8)
PAIRS = [(recall, false / INTERVAL) for recall in RECALLS for false in FALSE_RATES]


def means(weights):
    """The mean of recalls, and the geometric one of false-signal rates."""
    recall = sum(w * recall for w, (recall, _) in zip(weights, PAIRS, strict=True))
    product = math.prod(false**w for w, (_, false) in zip(weights, PAIRS, strict=True))
    return recall, product


def likelihood(elapsed, signals, changed, recall, false):
    """Of all crawls, up to a factor, averaged over rates of updates."""
    total = 0.0
    for rate in EVERY_SECOND:
        log = 0.0
        for when, count, has_changed in zip(elapsed, signals, changed, strict=True):
            log += naive_log_change(rate, float(when), int(count), bool(has_changed), recall, false)
            if recall == 0.0:  # which the twin does not count
                log += int(count) * math.log(false * float(when)) - false * float(when)
        total += math.exp(log) / len(EVERY_SECOND)
    return total


def test_of_a_page_of_which_nothing_is_known():
    recall, false_rate = QualityPosterior(INTERVAL, RATES).typical()
    assert recall == pytest.approx(np.mean(RECALLS), rel=1e-12)
    assert false_rate == pytest.approx(np.prod(FALSE_RATES) ** (1 / 7) / INTERVAL, rel=1e-12)


def test_means_are_those_of_the_posterior_by_brute_force():
    quality = QualityPosterior(INTERVAL, RATES)
    history = (
        np.array([3.0, 6.0, 2.0], np.float32),
        np.array([1, 2, 0], np.int16),
        np.array([True, True, False]),
    )
    crawls = PageCrawls(*history, np.zeros((3, 0), np.float32), np.zeros((3, 0), np.int8))
    prior = np.full(len(PAIRS), 1.0 / len(PAIRS))
    pooled = prior.copy()
    for visit in range(1, 3):
        weights = (1.0 - QUALITY_BASE) * pooled + QUALITY_BASE * prior
        weights *= [likelihood(*history, *pair) for pair in PAIRS]
        weights /= weights.sum()
        assert quality.estimate(crawls, 10) == pytest.approx(means(weights), rel=1e-9)
        pooled += (weights - pooled) / (visit + QUALITY_FIRST_PAGES)
        assert quality.typical() == pytest.approx(means(pooled), rel=1e-9)
