"""Helpers for tests of misspecified instances: draws, counts and bounds.

Bounds are four standard errors, or a probability of 1e-4; seeds fix the draws.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from crawl_envs import instances

CHANGE, SIGNAL, BOTH = 1, 2, 3
LEAST = 1e-4


def drawn(name, num_pages=30, seed=0, **more):
    return instances.make(name, num_pages=num_pages, bandwidth=10.0, seed=seed, **more)


def counts(instance, horizon, tapes, kinds, seed=0, until=None):
    """Count events of some kinds before a time, (tapes, m)."""
    rng = np.random.default_rng(seed)
    result = np.zeros((tapes, instance.num_pages))
    for row in result:
        tape = instance.draw_tape(rng, horizon)
        chosen = np.isin(tape.code & 63, kinds) & (tape.time <= (until or horizon))
        row += np.bincount(tape.code[chosen] // 64, minlength=instance.num_pages)
    return result


def assert_means(samples, expected):
    """Assert that samples (n, k) of independent columns have the expected means, (k,)."""
    error = samples.std(0, ddof=1) / math.sqrt(len(samples))
    z = (samples.mean(0) - expected) / error
    assert np.abs(z).max() < 4.0
    assert abs(z.mean()) < 4.0 / math.sqrt(z.size)


def assert_law(sample, law):
    assert stats.kstest(sample, law).pvalue > LEAST
