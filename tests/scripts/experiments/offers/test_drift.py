"""The experiment on drift: its strategies are those of other experiments where both have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from scripts.experiments.offers import drift as experiment
from scripts.experiments.offers.setup import strategies
from scripts.experiments.offers.setup.playing import play_days
from scripts.experiments.offers.setup.strategies import (
    HISTORY,
    OWN,
    PREDICTED,
    TRUTH,
    Freshness,
    Run,
)
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history

SIZE = {"budget": 0.1, "num_offers": 300, "days": [4, 3]}
RUN = Run(2, 300, 4, 3)


@pytest.fixture(autouse=True)
def predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    predict_by_history(monkeypatch)
    experiment.plans.cache_clear()


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
        (OWN, "lambda", "lambda_own"),
        (PREDICTED, "KAB5", "KAB5"),
        (PREDICTED, "KAB5 gain", "KAB5 gain"),
        (PREDICTED, "even mixture", "even mixture"),
    ],
)
def test_same_as_elsewhere(source: str, label: str, other: str) -> None:
    result = experiment.played(2, label=label, source=source, **SIZE)
    assert result == means(strategies.play(RUN, other, 0.1)[0])


def test_stale_rates_are_those_of_day_0() -> None:
    log = strategies.log_of(RUN)
    for source, fresh in ((experiment.STALE_TRUTH, TRUTH), (experiment.STALE_PREDICTED, PREDICTED)):
        first = strategies.believed(RUN, fresh, 0)
        rates = strategies.crawl_rates("lambda", first, 30.0)
        days = play_days(log, [lambda day, lanes, rates=rates: rates], 30.0, RUN.seed)
        result = experiment.played(2, label="lambda", source=source, **SIZE)
        assert result == means(strategies.counted(RUN, days))
        weights = experiment.weights_of(RUN, source)
        assert weights.shape == (7, 300)
        assert np.array_equal(weights[6], first.click.astype(np.float32))


def test_own_crawls_add_their_changes() -> None:
    """Rates differ from those of the full log, the weights of the rewards do not."""
    result = experiment.played(2, label=experiment.KAB5, source=OWN, **SIZE)
    logged = experiment.played(2, label=experiment.KAB5, source=HISTORY, **SIZE)
    assert result != logged
    own = experiment.weights_of(RUN, OWN)
    assert np.array_equal(own, experiment.weights_of(RUN, HISTORY))


def test_controls_learn_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    class Remembering(strategies.BanditChooser):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            kept.append(self)

    monkeypatch.setattr(experiment, "BanditChooser", Remembering)
    for label in (experiment.MIXTURE, experiment.MOSTLY):
        experiment.played(2, label=label, source=PREDICTED, **SIZE)
    assert np.array(kept[0].chances) == pytest.approx(0.2)
    assert np.array(kept[1].chances) == pytest.approx(0.2)
    assert sum(kept[0].rewards) > 0.0
    assert experiment.CHOICES[experiment.MOSTLY].kinds.count("lambda") == 4


def test_gains_and_picture(tmp_path: Path) -> None:
    levels = {"lambda": 0.8, "KAB5": 0.9, "even mixture": 0.6}
    rows = [
        Row("", setting, label, seed, metric, value + 0.01 * seed)
        for setting in experiment.settings_of(*experiment.SOURCES)
        for label, value in levels.items()
        for seed in (0, 1)
        for metric in experiment.GAINS
    ]
    derived = experiment.derive(rows)
    result = {row[2:5]: row.value for row in derived if row.setting == "truth, 10%"}
    assert result["KAB5", 0, "click_gain"] == pytest.approx(0.125)
    assert result["even mixture", 1, "offer_gain"] == pytest.approx(0.61 / 0.81 - 1.0)
    assert not [row for row in derived if row.policy == "lambda"]
    experiment.plot([*rows, *derived], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
