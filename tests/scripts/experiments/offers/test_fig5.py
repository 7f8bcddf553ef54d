"""Probabilities of the arms over the steps: as the bandit had them, and what is derived."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from policies.bandits.strategy_bandit import StrategyBandit
from scripts.experiments.measures import offer_strategies as strategies
from scripts.experiments.offers import fig5 as experiment
from scripts.study.rows import indexed
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history


def test_probabilities_are_those_of_the_rewards(monkeypatch: pytest.MonkeyPatch) -> None:
    predict_by_history(monkeypatch)
    given = {"label": experiment.KAB5, "budget": 0.1, "num_offers": 300, "days": [3, 1]}
    result = experiment.chances(1, **given)
    courses = np.array(
        [[result[f"chance_{arm}[{place}]"] for arm in experiment.FIVE] for place in range(5)]
    )
    assert len(result) == 25  # steps 1, 10, 20, 30, 40 of 48
    assert courses.sum(axis=1) == pytest.approx(1.0)
    _, policy = strategies.play(strategies.Run(1, 300, 3, 1), experiment.KAB5, 0.1)
    assert isinstance(policy, StrategyBandit)
    history = policy.history()
    gain, at_steps = np.zeros(5), []
    for step, (arm, reward) in enumerate(zip(history.arm, history.reward, strict=True), start=1):
        weights = np.exp(0.02 * gain)
        chances = 0.9 * weights / weights.sum() + 0.02
        if step in (1, 10, 20, 30, 40):
            at_steps.append(chances)
        gain[arm] += reward / chances[arm]
    assert gain.max() > 0.0
    assert courses == pytest.approx(np.array(at_steps), abs=1e-12)


def test_shared_crawls_are_the_smaller_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    actions = {"mu_ml": np.array([1.0, 1.0, 0.0]), "nu_ml": np.array([0.5, 1.5, 0.0])}
    monkeypatch.setattr(
        experiment, "play", lambda run, label, _: (None, SimpleNamespace(action=actions[label]))
    )
    found = experiment.overlap(0, label="mu_ml", budget=0.5, num_offers=3, days=[3, 1])
    assert found[experiment.ALIKE] == pytest.approx(0.75)
    assert found[experiment.MORE_ALIKE] == pytest.approx(0.75 - 0.5)


def made(setting: str, seed: int, late: list[float]) -> list[Row]:
    """Rows of four steps, even at first and then as given."""
    rows = []
    for arm, value in zip(experiment.FIVE, late, strict=True):
        course = indexed(f"{experiment.CHANCE}_{arm}", [0.2, 0.2, value - 0.01, value + 0.01])
        rows += [Row("", setting, experiment.KAB5, seed, *item) for item in course.items()]
    return rows


def test_derived() -> None:
    late = [0.1, 0.1, 0.45, 0.1, 0.25]
    rows = [*made("1%", 0, late), *made("10%", 0, [0.2, 0.15, 0.25, 0.2, 0.2])]
    result = {
        (row.setting, row.metric): row.value for row in experiment.derive(rows) if row.seed == 0
    }
    assert result["1%", "late chance of mu_ml"] == pytest.approx(0.45)
    assert result["1%", experiment.CLICKS_OVER_LAMBDA] == pytest.approx(0.2)
    assert result["1%", experiment.SPREAD] == pytest.approx(0.35)
    assert result["1%", experiment.NARROWED] == pytest.approx(0.25)
