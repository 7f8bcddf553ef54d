import numpy as np
import pytest

from policies import solvers
from policies.estimators.change_rates import fit_change_rates
from scripts.timing import solver_contests as contests


@pytest.mark.parametrize("in_place", [False, True])
def test_rival_of_harmonic_finds_the_same(in_place):
    given = contests.pages(3000)
    found, rival = solvers.harmonic(*given), contests.numpy_harmonic(*given, in_place=in_place)
    np.testing.assert_allclose(rival.rates, found.rates, rtol=1e-9)
    assert rival.multiplier == pytest.approx(found.multiplier, rel=1e-10)
    assert rival.objective == pytest.approx(found.objective, rel=1e-11)


def test_rival_of_binary_periodic_finds_the_same():
    given = contests.pages(3000)
    found, rival = solvers.binary_periodic(*given), contests.scipy_binary_periodic(*given)
    # near the branch point lambertw loses half of the digits
    np.testing.assert_allclose(rival.rates, found.rates, rtol=1e-6, atol=1e-12)
    assert rival.multiplier == pytest.approx(found.multiplier, rel=1e-8)
    assert rival.objective == pytest.approx(found.objective, rel=1e-9)


def test_rival_of_the_fit_finds_the_same():
    intervals, changed = contests.histories(20)
    found = fit_change_rates(intervals, changed, smoothing=contests.SMOOTHING)
    rival = contests.scipy_change_rates(intervals, changed)
    np.testing.assert_allclose(rival, found.change_rate, rtol=1e-9)


def test_contests_name_their_tasks():
    assert [c.amount for c in contests.solver_contests()] == [
        contests.HARMONIC_PAGES,
        contests.MIXED_PAGES,
        contests.PERIODIC_PAGES,
        contests.FITTED_PAGES,
    ]


@pytest.mark.parametrize("contest", contests.solver_contests(quick=True), ids=lambda c: c.name)
def test_quick_contests_run(contest):
    tasks = contest.tasks()
    compared = {name for one in contest.comparisons for name in one[:2]}
    assert compared == set(tasks) or (not compared and len(tasks) == 1)
    for task in tasks.values():
        task(1)
