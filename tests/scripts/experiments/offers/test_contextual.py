"""The contextual bandit beside strategies: on the same events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import policies
from crawl_envs.evaluation import Row
from scripts.experiments.offers import contextual as experiment
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history, smoothed

SIZE: dict[str, Any] = {"budget": 0.1, "num_offers": 240, "days": [3, 2]}


def test_all_labels_have_the_same_events(monkeypatch: pytest.MonkeyPatch) -> None:
    predict_by_history(monkeypatch)

    def uniform(env: Any, **given: Any) -> Any:
        assert given == {"aim": "gain", "weights": None}
        return policies.UniformCrawl(env)

    monkeypatch.setattr(experiment, "ContextualBandit", uniform)
    stepped = experiment.stepped(3, label=experiment.GAIN, **SIZE)
    assert stepped == experiment.logged(3, label=experiment.UNIFORM, **SIZE)


def test_labels_play_and_are_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    predict_by_history(monkeypatch)
    asked = []
    made = experiment.ContextualBandit

    def noting(env: Any, **given: Any) -> Any:
        asked.append(given)
        return made(env, **given)

    monkeypatch.setattr(experiment, "ContextualBandit", noting)
    rows = [
        Row("", setting, label, 0, metric, value)
        for setting in experiment.BUDGETS
        for label, measure in experiment.measurements(True)[0].measures.items()
        for metric, value in measure(0, **SIZE).items()
    ]
    assert len(rows) == 2 * 2 * 8
    assert all(0.5 < row.value <= 1.0 for row in rows)
    assert [given["weights"] for given in asked[:3]] == [None, None, smoothed]
    assert [given["aim"] for given in asked[:3]] == ["gain", "freshness", "freshness"]
    experiment.plot(rows, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
