"""The network of a learned index: its twin, and that it rises where it must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.evolution.network import forward, hidden_units, network_of, number_of_weights, positive
from tests.agents.evolution.index_twins import naive_network


@pytest.mark.parametrize("num_pages", [1, 127, 128, 129, 300])
@pytest.mark.parametrize("rising", [(False, True, True), (False, False, False), (True, True, True)])
def test_forward_is_what_its_twin_computes(num_pages, rising):
    rng = np.random.default_rng(num_pages)
    free = rng.normal(0.0, 2.0, number_of_weights(3, 5))
    features, out = rng.normal(0.0, 3.0, (3, num_pages)), np.empty(num_pages)
    forward(network_of(free, rising), features, out)
    expected = [naive_network(free, rising, column) for column in features.T]
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_positive_weights_are_positive_and_nearly_themselves_where_large():
    free = np.array([-1e3, -1.0, 0.0, 1.0, 1e3])
    assert np.all(positive(free) > 0.0)
    assert np.all(np.diff(positive(free)) > 0.0)
    assert positive(np.array(0.0)) == pytest.approx(0.05)
    assert positive(np.array(1e3)) == pytest.approx(1e3, rel=1e-8)


@pytest.mark.parametrize("count", [0, 3, 7, 9, 10])
def test_a_number_of_weights_that_makes_no_network(count):
    with pytest.raises(ValueError, match=rf"weights must be .* K = 3 .* got {count}"):
        hidden_units(count, 3)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(0.01, 30.0))
def test_scores_do_not_fall_in_rising_inputs(seed, size):
    rng = np.random.default_rng(seed)
    rising = np.array([False, True, False, True])
    weights = network_of(rng.normal(0.0, size, number_of_weights(4, 6)), rising)
    features = np.repeat(rng.normal(0.0, size, (4, 1)), 50, axis=1)
    features[rising] += np.cumsum(rng.exponential(1.0, (2, 50)), axis=1)
    out = np.empty(50)
    forward(weights, features, out)
    assert np.all(np.diff(out) >= -1e-12 * np.abs(out).max())
