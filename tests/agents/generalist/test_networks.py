"""The compiled correction against its plain twin."""

from __future__ import annotations

import numpy as np
import pytest

from agents.generalist.networks import NUM_INPUTS, NUM_VALUED, correct, number_of_weights
from crawl_envs.compiled.compiling import compiled
from tests.agents.generalist.twins import price


@compiled()
def corrected(weights, hidden, inputs, x, rate):
    return correct(weights, hidden, inputs, x, rate)


def drawn(hidden: int, size: float, count: int = 7):
    rng = np.random.default_rng(hidden)
    weights = rng.normal(0.0, size, number_of_weights(hidden))
    weights[NUM_VALUED : 2 * NUM_VALUED] = rng.uniform(0.5, 2.0, NUM_VALUED)
    inputs = np.zeros((NUM_VALUED, count))
    inputs[:NUM_INPUTS] = rng.normal(0.0, 3.0, (NUM_INPUTS, count))
    return weights, inputs, rng.exponential(1.0, count) + 0.01, rng.uniform(0.1, 3.0, count)


@pytest.mark.parametrize(("hidden", "size"), [(1, 0.3), (5, 0.3), (64, 0.1), (5, 20.0)])
def test_prices_are_those_of_the_twin(hidden, size):
    weights, inputs, x, rate = drawn(hidden, size)
    expected = [
        price(weights, hidden, inputs[:NUM_INPUTS, k], x[k], rate[k]) for k in range(x.size)
    ]
    given = x.copy()
    prices = corrected(weights, hidden, inputs.copy(), given, rate)
    np.testing.assert_allclose(given, [pair[0] for pair in expected], rtol=1e-9)
    np.testing.assert_allclose(prices, [pair[1] for pair in expected], rtol=1e-9)
    assert not np.allclose(given, x)


def test_without_outputs_it_is_the_greedy_price():
    weights, inputs, x, rate = drawn(3, 0.3)
    weights[2 * NUM_VALUED :] = 0.0
    given = x.copy()
    prices = corrected(weights, 3, inputs, given, rate)
    np.testing.assert_array_equal(given, x)
    np.testing.assert_allclose(prices, (1.0 - (1.0 + x) * np.exp(-x)) / rate, rtol=1e-9)


def test_little_evidence_has_a_price_as_precise():
    weights, inputs, _, rate = drawn(3, 0.3)
    weights[2 * NUM_VALUED :] = 0.0
    x = np.full(7, 1e-6)
    np.testing.assert_allclose(corrected(weights, 3, inputs, x, rate), 0.5e-12 / rate, rtol=1e-5)
