"""Calibration: the likeliest slope and shift, by another optimizer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from agents.predictors.calibration import calibrate


def naive_loss(slope, shift, odds, labels):
    chance = 1.0 / (1.0 + np.exp(-(slope * odds + shift)))
    return -np.where(labels, np.log(chance), np.log1p(-chance)).mean()


@pytest.mark.parametrize("moved", [-9.0, -1.0, 0.0, 4.0])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_no_other_slope_and_shift_are_likelier(moved, scale):
    rng = np.random.default_rng(0)
    true_odds = rng.normal(-3.0, 1.5, 4000)
    labels = rng.random(4000) < expit(true_odds)
    odds = scale * (true_odds - moved)
    result = calibrate(odds, labels)
    assert result(odds).mean() == pytest.approx(labels.mean(), rel=1e-6)
    best = minimize(
        lambda x: naive_loss(x[0], x[1], true_odds, labels), (1.0, 0.0), options={"gtol": 1e-8}
    ).x
    assert result.slope * scale == pytest.approx(best[0], abs=1e-4)
    assert result.shift - result.slope * scale * moved == pytest.approx(best[1], abs=3e-4)


def test_calibration_undoes_sampling_by_label():
    """Of the examples without the event one in eight is kept: odds are 8 times too high."""
    rng = np.random.default_rng(2)
    true_odds = rng.normal(-3.0, 1.5, 200_000)
    happened = rng.random(200_000) < expit(true_odds)
    kept = happened | (rng.random(200_000) < 1.0 / 8.0)
    learned = true_odds + np.log(8.0)  # what a perfect model of the kept examples says
    assert expit(learned[kept]).mean() == pytest.approx(happened[kept].mean(), abs=0.01)
    result = calibrate(learned, happened)
    assert result.slope == pytest.approx(1.0, abs=0.02)
    assert result.shift == pytest.approx(-np.log(8.0), abs=0.03)


def test_calibration_leaves_sampling_by_the_past_alone():
    """Where the sample depends on what the model knows, its odds are right as they are."""
    rng = np.random.default_rng(3)
    true_odds = rng.normal(-3.0, 1.5, 200_000)
    happened = rng.random(200_000) < expit(true_odds)
    kept = rng.random(200_000) < expit(true_odds)
    assert happened[kept].mean() > 2.0 * happened.mean()
    result = calibrate(true_odds, happened)
    assert result.slope == pytest.approx(1.0, abs=0.02)
    assert result.shift == pytest.approx(0.0, abs=0.03)


def test_odds_that_say_nothing_or_all_or_the_contrary():
    labels = np.arange(100) < 20
    constant = calibrate(np.full(100, 3.0), labels)
    assert constant(np.full(100, 3.0)) == pytest.approx(np.full(100, 0.2))
    contrary = calibrate(np.where(labels, -1.0, 1.0) + 0.1 * np.arange(100), labels)
    assert contrary.slope == 0.0
    assert contrary(np.zeros(2)) == pytest.approx(np.full(2, 0.2))
    sure = calibrate(np.where(labels, 2.0, -2.0), labels)
    assert np.isfinite(sure).all()
    assert sure(np.array([-2.0, 2.0])) == pytest.approx([0.0, 1.0], abs=1e-4)
