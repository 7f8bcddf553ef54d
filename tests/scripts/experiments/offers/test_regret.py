"""Regret experiment: what it derives from runs, against computations of another kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from policies.bandits import Exp3Bandit, bernoulli_regret
from scripts.experiments.offers import regret as experiment


def rows_of(setting: str, label: str, courses: np.ndarray) -> list[Row]:
    """Rows of courses, (seeds, horizons)."""
    return [
        Row("", setting, label, seed, f"{experiment.REGRET}[{place}]", float(value))
        for seed, course in enumerate(courses)
        for place, value in enumerate(course)
    ]


def test_slopes_of_power_laws_and_of_any_courses() -> None:
    horizons = np.array(experiment.HORIZONS, float)
    scales = np.array([1.0, 2.0, 5.0])[:, None]
    exact = experiment.jackknifed((scales * horizons**0.4)[:, None], 0)
    assert exact == pytest.approx([0.4, 0.4, 0.4], abs=1e-12)
    drawn = np.random.default_rng(3).uniform(1.0, 9.0, (4, horizons.size)) * horizons**0.5
    result = experiment.jackknifed(drawn[:, None], 2)

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
def test_random_choice_loses_what_is_said(setting: str) -> None:
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


def test_measured_regret_is_that_of_one_run() -> None:
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


def test_derived_and_drawn(tmp_path: Path) -> None:
    horizons = experiment.HORIZONS[:3]
    rows = []
    for setting in experiment.measurements(True):
        short = {"horizons": list(horizons)}
        for label, measure in setting.measures.items():
            for seed in range(2):
                for metric, value in measure(seed, **short).items():
                    rows.append(Row("", setting.name, label, seed, metric, value))
    derived = experiment.derive(rows)
    slopes = {row[1:3] for row in derived if row.metric == experiment.METRIC}
    assert len(slopes) == 3 * len(experiment.BANDITS)
    assert not [row for row in derived if row.metric == experiment.LATE]
    shares = {row[1:4]: row.value for row in derived if row.metric == experiment.SHARE}
    values = {row[1:4]: row.value for row in rows if row.metric == "regret[2]"}
    key = (experiment.FIXED, experiment.IX, 1)
    assert shares[key] == pytest.approx(values[key] / (10_000 * 0.07))
    experiment.plot([*rows, *derived], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
