"""The contextual bandit beside strategies: on the same events."""

from __future__ import annotations

from typing import Any

import pytest

import policies
from scripts.experiments.offers import contextual as experiment
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history

SIZE: dict[str, Any] = {"budget": 0.1, "num_offers": 240, "days": [3, 2]}


def test_all_labels_have_the_same_events(monkeypatch: pytest.MonkeyPatch) -> None:
    predict_by_history(monkeypatch)

    def uniform(**given: Any) -> Any:
        assert given == {"aim": "gain", "weights": None}
        return policies.UniformCrawl()

    monkeypatch.setattr(experiment, "ContextualBandit", uniform)
    stepped = experiment.stepped(3, label=experiment.GAIN, **SIZE)
    assert stepped == experiment.logged(3, label=experiment.UNIFORM, **SIZE)
