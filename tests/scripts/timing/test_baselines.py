import numpy as np
import pytest

from policies import solvers
from policies.estimators.change_rates import fit_change_rates
from scripts.timing import baselines as timing


def test_baseline_of_harmonic_agrees():
    given = timing.pages(3000)
    result, plain = solvers.harmonic(*given), timing.numpy_harmonic(*given)
    np.testing.assert_allclose(plain.rates, result.rates, rtol=1e-9)
    assert plain.multiplier == pytest.approx(result.multiplier, rel=1e-10)
    assert plain.objective == pytest.approx(result.objective, rel=1e-11)


def test_baseline_of_binary_periodic_agrees():
    given = timing.pages(3000)
    result, plain = solvers.binary_periodic(*given), timing.scipy_binary_periodic(*given)
    # near the branch point lambertw loses half of the digits
    np.testing.assert_allclose(plain.rates, result.rates, rtol=1e-6, atol=1e-12)
    assert plain.multiplier == pytest.approx(result.multiplier, rel=1e-8)
    assert plain.objective == pytest.approx(result.objective, rel=1e-9)


def test_baseline_of_the_fit_agrees():
    intervals, changed = timing.histories(20)
    result = fit_change_rates(intervals, changed, smoothing=timing.SMOOTHING)
    plain = timing.scipy_change_rates(intervals, changed)
    np.testing.assert_allclose(plain, result.change_rate, rtol=1e-9)
