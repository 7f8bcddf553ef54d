"""The network of a correction, beside its twin."""

from __future__ import annotations

import numpy as np
import pytest

from agents.evolution.network import forward, hidden_units
from tests.agents.evolution.network_twin import naive_network, number_of_weights, weights_of


@pytest.mark.parametrize("num_pages", [1, 127, 128, 129, 300])
def test_forward_is_what_its_twin_computes(num_pages):
    rng = np.random.default_rng(num_pages)
    free = rng.normal(0.0, 2.0, number_of_weights(3, 5))
    features, out = rng.normal(0.0, 3.0, (3, num_pages)), np.empty(num_pages)
    forward(weights_of(free, 3), features, out)
    expected = [naive_network(free, column) for column in features.T]
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, 3, 7, 9, 10])
def test_a_number_of_weights_that_makes_no_network(count):
    with pytest.raises(ValueError, match=rf"weights must be .* K = 3 .* got {count}"):
        hidden_units(count, 3)
