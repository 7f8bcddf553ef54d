"""Corruption of precision and recall, from its definition."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs import Instance, instances
from scripts.experiments.ncis.fig8 import corrupted


def believed(problem):
    return Instance(
        problem.importance,
        problem.change_rate,
        problem.recall,
        problem.false_signal_rate,
        bandwidth=problem.bandwidth,
    )


def test_noise_moves_precision_and_recall_by_its_share():
    known = instances.make("noisy", num_pages=500, bandwidth=10.0, seed=0)
    half, whole = (believed(corrupted(known.problem(), share, 3)) for share in (0.5, 1.0))
    for name in ("precision", "recall"):
        middle = 0.5 * getattr(known, name) + 0.5 * getattr(whole, name)
        np.testing.assert_allclose(getattr(half, name), middle, rtol=1e-9)
        assert 0.45 < getattr(whole, name).mean() < 0.55
        assert abs(np.corrcoef(getattr(whole, name), getattr(known, name))[0, 1]) < 0.15
    np.testing.assert_array_equal(half.change_rate, known.change_rate)


def test_a_share_of_0_changes_nothing():
    known = instances.make("noisy", num_pages=50, bandwidth=10.0, seed=0)
    same = corrupted(known.problem(), 0.0, 3)
    np.testing.assert_allclose(same.recall, known.recall, rtol=1e-12)
    # where nearly all signals are false, their rate has the rounding error of the precision
    kept = known.precision > 1e-6
    np.testing.assert_allclose(
        same.false_signal_rate[kept], known.false_signal_rate[kept], rtol=1e-9
    )


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_bad_share(share):
    known = instances.make("noisy", num_pages=5, bandwidth=10.0, seed=0)
    with pytest.raises(ValueError, match="share"):
        corrupted(known.problem(), share, 0)


def test_hidden_parameters_cannot_be_misjudged():
    known = instances.make("noisy", num_pages=5, bandwidth=10.0, seed=0)
    with pytest.raises(ValueError, match="reveal"):
        corrupted(known.problem("importance"), 0.1, 0)
