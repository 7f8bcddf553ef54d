"""Regret experiment: what it derives from runs, against computations of another kind."""

from __future__ import annotations

import numpy as np
import pytest

from policies.bandits import Exp3Bandit, bernoulli_regret
from scripts.experiments.offers import regret as experiment


def test_slopes_of_power_laws_and_of_any_courses() -> None:
    horizons = np.array(experiment.HORIZONS, float)
    scales = np.array([1.0, 2.0, 5.0])[:, None]
    exact = experiment.growths((scales * horizons**0.4)[:, None], 0)
    assert exact == pytest.approx([0.4, 0.4, 0.4], abs=1e-12)
    drawn = np.random.default_rng(3).uniform(1.0, 9.0, (4, horizons.size)) * horizons**0.5
    result = experiment.growths(drawn[:, None], 2)

    def slope(runs: np.ndarray) -> float:
        x, y = np.log(horizons[2:]), np.log(np.mean(runs, axis=0)[2:])
        return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())

    for out in range(4):
        left = np.array([run for place, run in enumerate(drawn) if place != out])
        assert result[out] == pytest.approx(4 * slope(drawn) - 3 * slope(left), abs=1e-10)


def test_the_worst_gap_is_taken_at_each_horizon() -> None:
    courses = np.array([[[1.0, 9.0], [4.0, 2.0]], [[3.0, 9.0], [4.0, 4.0]]])
    assert experiment.mean_regret(courses).tolist() == [4.0, 9.0]


@pytest.mark.parametrize("setting", [experiment.FIXED, experiment.SHRINKING])
def test_random_choice_has_the_regret_of_the_formula(setting: str) -> None:
    horizon = 400
    means = experiment.FIXED_MEANS
    if setting == experiment.SHRINKING:
        means = experiment.even(experiment.shrinking_gap(horizon))
    played = bernoulli_regret(
        lambda: Exp3Bandit(5, gamma=1.0), np.array(means), [horizon], runs=300, seed=1
    )
    expected = experiment.random_regret(setting, [horizon])[0]
    assert played.mean() == pytest.approx(expected, abs=5.0 * played.std() / 300**0.5)
    assert played.std() < 0.1 * expected


def test_measured_regret_is_of_one_run() -> None:
    label, horizons = experiment.PLUS_PLUS, [50, 200]
    result = experiment.fixed(4, label=label, horizons=horizons)
    means = np.array(experiment.FIXED_MEANS)
    twin = bernoulli_regret(experiment.BANDITS[label], means, horizons, runs=1, seed=4)[0]
    assert list(result.values()) == twin.tolist()
    by_gap = experiment.gaps(0, label=label, horizons=horizons)
    assert len(by_gap) == len(experiment.GAPS) * len(horizons)
    most = [gap * horizon for gap in experiment.GAPS for horizon in horizons]
    assert all(0.0 < value <= limit for value, limit in zip(by_gap.values(), most, strict=True))
    apart = experiment.shrinking(0, label=label, horizons=[100, 200])
    assert 0.0 < apart[f"{experiment.REGRET}[0]"] <= 100 * 2.0 * (5 / 100) ** 0.5
