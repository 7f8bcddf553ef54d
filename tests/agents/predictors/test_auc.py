"""The area under the ROC curve, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import ttest_1samp
from sklearn.metrics import roc_auc_score

from agents.predictors.auc import auc, over_markets, over_subsets
from agents.predictors.calibration import calibrate


@pytest.mark.parametrize("levels", [2, 5, 1000, None])
@pytest.mark.parametrize("seed", range(5))
def test_the_area_is_that_of_scikit_learn(levels, seed):
    rng = np.random.default_rng(seed)
    labels = rng.random(500) < 0.1
    labels[:2] = True, False
    scores = rng.normal(labels, 1.0)
    if levels is not None:
        scores = np.floor(scores * levels / 4.0)
    assert auc(labels, scores) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


def test_the_area_counts_pairs_and_ties_by_half():
    labels, scores = [0, 1, 0, 1, 1], [0.1, 0.1, 0.3, 0.2, 0.9]
    pairs = [(1, 0), (1, 2), (3, 0), (3, 2), (4, 0), (4, 2)]
    wins = [1.0 if scores[a] > scores[b] else 0.5 * (scores[a] == scores[b]) for a, b in pairs]
    assert auc(labels, scores) == pytest.approx(np.mean(wins))
    assert auc([0, 1], [0.0, 1.0]) == 1.0
    assert auc([0, 1], [1.0, 0.0]) == 0.0
    assert auc([0, 1, 1], [2.0, 2.0, 2.0]) == 0.5


def test_intervals_cover_the_area_of_all_markets():
    """Markets differ in their law; offers are many, so that one market alone would look certain."""
    truth, covered = 0.760250, 0  # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt 2)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        areas = truth + 0.02 * rng.normal(size=5)
        interval = over_markets(areas)
        covered += interval.low <= truth <= interval.high
    assert abs(covered / 400 - 0.95) < 3.0 * np.sqrt(0.95 * 0.05 / 400)
    known = ttest_1samp(areas, 0.5).confidence_interval(0.95)
    np.testing.assert_allclose(interval, (areas.mean(), *known), rtol=1e-12)


def test_subsets_have_a_mean_and_a_deviation():
    rng = np.random.default_rng(1)
    labels = rng.random(2000) < 0.2
    scores = rng.normal(labels, 1.0)
    parts = np.array_split(np.random.default_rng(5).permutation(2000), 20)
    areas = [roc_auc_score(labels[part], scores[part]) for part in parts]
    result = over_subsets(labels, scores, seed=5)
    assert result.mean == pytest.approx(np.mean(areas), abs=1e-12)
    assert result.deviation == pytest.approx(np.std(areas, ddof=1), abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([1, 1], [0.1, 0.2], "labels must hold both classes, got 2 of one"),
        ([0, 1], [0.1], r"labels and scores must have one shape \(n,\), got \(2,\) and \(1,\)"),
        ([0, 1], [0.1, np.nan], "scores must be finite, got nan"),
    ],
)
def test_bad_examples_are_named(labels, scores, message):
    for function in (auc, over_subsets):
        with pytest.raises(ValueError, match=message):
            function(labels, scores)


@pytest.mark.parametrize("areas", [[0.9], [0.9, 1.1], [0.9, np.nan], [[0.9, 0.8]]])
def test_bad_areas_are_named(areas):
    with pytest.raises(ValueError, match=r"areas must be two or more numbers in \[0, 1\], got"):
        over_markets(areas)


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
    with pytest.raises(ValueError, match="labels must hold both classes, got 3 of one"):
        calibrate(np.zeros(3), np.zeros(3, bool))
