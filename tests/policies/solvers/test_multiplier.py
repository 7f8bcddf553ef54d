"""The search for a multiplier: jumps, secants, samples, and budgets that no point spends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies.solvers import multiplier
from policies.solvers.multiplier import LARGEST, SMALLEST, allocate, root


@pytest.mark.parametrize("start", [1e-9, 2.0, 1e30])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_root_of_a_smooth_budget(start, known, power):
    def spend(at, rates):
        rates[:] = at
        share = (at / 3.0) ** power + 1e-3 * at
        slope = power * (at / 3.0) ** power + 1e-3 * at
        return share, slope if known else math.nan

    rates = np.empty(2)
    result = root(spend, start, rates)
    assert result.converged
    assert (result.point / 3.0) ** power + 1e-3 * result.point == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_array_equal(rates, result.point)
    assert result.iterations < 30


@pytest.mark.parametrize("start", [1e-9, 3.0, 1e9])
def test_rates_are_mixed_at_a_jump(start):
    def spend(at, rates):
        few = at < 3.0
        if rates.size:
            rates[:] = (0.2, 0.3) if few else (0.2, 1.8)
        return (0.5, 0.0) if few else (2.0, 0.0)

    rates = np.empty(2)
    result = root(spend, start, rates)
    assert not result.converged
    assert result.low < 3.0 <= result.high <= result.low * (1.0 + 1e-12)
    np.testing.assert_allclose(rates, [0.2, 0.8], rtol=1e-14)


@pytest.mark.parametrize(("share", "end"), [(0.5, LARGEST), (2.0, SMALLEST), (0.0, LARGEST)])
def test_a_budget_that_is_spent_nowhere_ends_the_search(share, end):
    result = root(lambda at, rates: (share if at else 0.0, 0.0), 1.0)
    assert (result.point, result.converged) == (end, False)
    assert result.iterations < 30


def test_a_sample_gives_the_start(monkeypatch):
    calls = []

    def crawls(pages, at, rates):
        calls.append((len(pages), at))
        rates[:] = at * pages[: rates.size]
        return at * pages.sum(), at * pages.sum()

    def guess(pages, budget):
        return 1.0

    pages, rates = np.ones(1000), np.empty(1000)
    assert allocate(crawls, (pages,), 500.0, guess, rates).point == pytest.approx(0.5)
    assert calls[0] == (1000, 1.0)
    monkeypatch.setattr(multiplier, "SAMPLED_ABOVE", 500)
    monkeypatch.setattr(multiplier, "SAMPLE", 100)
    calls.clear()
    found = allocate(crawls, (pages,), 500.0, guess, rates)
    assert calls[0] == (100, 1.0)
    assert [at for size, at in calls if size == 1000] == pytest.approx([0.5] * found.iterations)
    np.testing.assert_allclose(rates, 0.5, rtol=1e-12)
    pages[::10] = 0.0  # a sample that tells nothing
    calls.clear()
    assert allocate(crawls, (pages,), 450.0, guess, rates).point == pytest.approx(0.5)
    assert next(at for size, at in calls if size == 1000) == 1.0
