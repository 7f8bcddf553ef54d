"""Curves of holistic staleness, and utility by quadrature."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from policies.values.divergence.curves import HolisticCurves

RATES = np.array([0.0, 1e-3, 0.4, 7.0])


def holistic(rate, elapsed):
    """D*, its integral and U in 50 digits."""
    with mpmath.workdps(50):
        x = mpmath.mpf(rate) * mpmath.mpf(elapsed)
        changed = 1 - mpmath.exp(-x)
        utility = (1 - (1 + x) * mpmath.exp(-x)) / mpmath.mpf(rate) if rate else mpmath.mpf(0)
        return [float(v) for v in (changed, elapsed * changed - utility, utility)]


@pytest.mark.parametrize("elapsed", [1e-9, 1e-3, 1.0, 20.0, 1e4])
def test_holistic_curves_against_50_digits(elapsed):
    curves = HolisticCurves(RATES)
    known = np.array([holistic(rate, elapsed) for rate in RATES])
    np.testing.assert_allclose(curves.divergence(elapsed), known[:, 0], rtol=1e-14)
    np.testing.assert_allclose(curves.area(elapsed), known[:, 1], rtol=1e-9)
    np.testing.assert_allclose(curves.utility(elapsed), known[:, 2], rtol=1e-14)


def test_holistic_limits():
    curves = HolisticCurves(RATES)
    assert curves.num_pages == 4
    np.testing.assert_allclose(curves.ceiling, [0.0, 1e3, 2.5, 1 / 7], rtol=1e-15)
    np.testing.assert_array_equal(curves.divergence(np.inf), [0, 1, 1, 1])
    np.testing.assert_array_equal(curves.utility(np.inf), curves.ceiling)
    np.testing.assert_array_equal(curves.area(np.inf), [0, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(curves.period(0.0), np.zeros(4))
    np.testing.assert_array_equal(curves.period(np.inf), np.full(4, np.inf))
    np.testing.assert_array_equal(curves.period(curves.ceiling)[1:], np.full(3, np.inf))


def test_holistic_period_inverts_utility():
    elapsed = np.array([3.0, 40.0, 1.5, 0.01])
    curves = HolisticCurves(RATES)
    result = curves.period(curves.utility(elapsed))
    np.testing.assert_allclose(result[1:], elapsed[1:], rtol=1e-12)
    assert HolisticCurves(0.0).period(1e-300)[0] == math.inf


def test_curves_refuse_bad_input():
    curves = HolisticCurves(RATES)
    with pytest.raises(ValueError, match="change_rate must be finite and >= 0, got -1"):
        HolisticCurves([1.0, -1.0])
    with pytest.raises(ValueError, match=r"elapsed must be a scalar or have shape \(4,\)"):
        curves.utility([1.0, 2.0])
    with pytest.raises(ValueError, match="elapsed must be >= 0, got nan"):
        curves.divergence(np.nan)
    with pytest.raises(ValueError, match="threshold must be >= 0, got -3"):
        curves.period([1.0, -3.0, 1.0, 1.0])
