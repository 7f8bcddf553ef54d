"""The experiment on drift: its strategies are those of other experiments where both have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crawl_envs.types import Tracker
from policies.bandits.strategy_bandit import StrategyBandit
from policies.offers.rates import OfferRates
from scripts.experiments.measures import offer_strategies as strategies
from scripts.experiments.measures.offer_strategies import (
    HISTORY,
    PREDICTED,
    SELF_CRAWLED,
    TRUTH,
    Freshness,
    Run,
)
from scripts.experiments.offers import drift as experiment
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history

SIZE = {"budget": 0.1, "num_offers": 300, "days": [4, 3]}
RUN = Run(2, 300, 4, 3)


@pytest.fixture(autouse=True)
def predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    predict_by_history(monkeypatch)


def means(result: Freshness) -> dict[str, float]:
    return {
        "click_freshness": float(np.nanmean(result.click)),
        "offer_freshness": float(result.offer.mean()),
    }


@pytest.mark.parametrize(
    ("source", "label", "other"),
    [
        (TRUTH, "lambda", "lambda_true"),
        (PREDICTED, "lambda", "lambda_ml"),
        (HISTORY, "lambda", "lambda_h"),
        (SELF_CRAWLED, "lambda", "lambda_own"),
        (PREDICTED, "KAB5", "KAB5"),
        (PREDICTED, "KAB5 gain", "KAB5 gain"),
        (PREDICTED, "even mixture", "even mixture"),
    ],
)
def test_strategies_agree_with_other_experiments(source: str, label: str, other: str) -> None:
    result = experiment.simulated(2, label=label, source=source, **SIZE)
    assert result == means(strategies.play(RUN, other, 0.1)[0])


@pytest.mark.parametrize("source", [experiment.STALE_TRUTH, experiment.STALE_PREDICTED])
def test_stale_rates_are_those_of_day_0(source: str) -> None:
    """Of the rates and of the weights of rewards, which have the clicks of the same source."""
    first = []

    def make(env: Any) -> Any:
        def rates(tracker: Tracker) -> OfferRates:
            assert tracker.offers is not None
            if tracker.offers.day == 0:
                first[:] = [strategies.rates_of(RUN, experiment.SOURCES[source], env)(tracker)]
            return first[0]

        return strategies.KINDS["lambda"](rates=rates)

    wanted, _ = strategies.play_policy(RUN, 0.1, make)
    result = experiment.simulated(2, label="lambda", source=source, **SIZE)
    assert result == means(wanted)
    fresh = experiment.simulated(2, label="lambda", source=experiment.SOURCES[source], **SIZE)
    assert result != fresh


def test_own_crawls_add_their_changes() -> None:
    result = experiment.simulated(2, label=experiment.KAB5, source=SELF_CRAWLED, **SIZE)
    assert result != experiment.simulated(2, label=experiment.KAB5, source=HISTORY, **SIZE)


def test_controls_learn_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    def remembering(*given: Any, **more: Any) -> Any:
        result = strategies.play_policy(*given, **more)
        kept.append(result[1])
        return result

    monkeypatch.setattr(experiment, "play_policy", remembering)
    for label in (experiment.MIXTURE, experiment.MOSTLY):
        experiment.simulated(2, label=label, source=PREDICTED, **SIZE)
        assert isinstance(kept[-1], StrategyBandit)
        history = kept[-1].history()
        assert history.probabilities == pytest.approx(0.2)
        assert history.reward.sum() > 0.0
    assert experiment.CHOICES[experiment.MOSTLY].arms.count("lambda") == 4
