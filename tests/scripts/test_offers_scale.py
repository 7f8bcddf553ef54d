"""The month at full size, on a small one: it plays what elsewhere is played from a log."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from agents.predictors import TASKS
from crawl_envs.instances.market import market
from crawl_envs.market_log import record
from crawl_envs.offer_book import OfferBook
from crawl_envs.offer_rollouts import play_rates
from scripts import offers_scale


@pytest.mark.parametrize("label", offers_scale.STRATEGIES)
def test_same_as_on_a_log(label: str) -> None:
    log = record(market(250, seed=0, bandwidth=25.0), 3, 0, keep_events=True)
    strategy = offers_scale.STRATEGIES[label]
    days = play_rates(log, lambda day, world: strategy(log.book(day), 25.0), 0)
    found = {figure.what: figure.value for figure in offers_scale.played(label, 250, 3)}
    right = sum(day.hits for day in days) / sum(day.clicks for day in days)
    assert found["clicks that saw the true price"] == right
    fresh = np.mean([day.fresh for day in days])
    assert found["offers fresh at midnight"] == pytest.approx(fresh, abs=1e-12)
    parts = [value for name, value in found.items() if name in PARTS]
    assert len(parts) == len(PARTS)
    assert 0.0 < sum(parts) <= found["total"]
    assert 0.03 < found["peak memory"] < 100.0


PARTS = (
    "market",
    "history, first day and book",
    "solve",
    "choose",
    "other steps",
    "last steps of days, next day and book",
)


def test_steps_of_the_environment() -> None:
    mean, median = offers_scale.stepped(200, 1)
    assert (mean.what, median.what, mean.unit) == ("mean step", "median step", "ms")
    assert 0.0 < median.value < 1000.0
    assert mean.days == 1


def test_predictions_of_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Predictor:
        def predict(self, book: OfferBook) -> None:
            asked.append((book.day, book.clicks_30.size))

    monkeypatch.setattr(offers_scale, "load", lambda name: dict.fromkeys(TASKS, Predictor()))
    *tasks, total, memory = offers_scale.predicted("some", 120)
    assert asked == 3 * [(0, 120)]
    assert tuple(figure.what for figure in tasks) == TASKS
    assert total.value == pytest.approx(sum(figure.value for figure in tasks))
    assert memory.unit == "GB"


def test_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    figures = [offers_scale.Figure("a run", 10, 2, "total", 1.5, "s")]
    monkeypatch.setattr(offers_scale, "measure", lambda quick: figures if quick else [])
    done = CliRunner().invoke(offers_scale.app, ["--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    [row] = csv.DictReader((tmp_path / "scale.csv").read_text("utf-8").splitlines())
    assert row == {
        "run": "a run",
        "offers": "10",
        "days": "2",
        "what": "total",
        "value": "1.5",
        "unit": "s",
    }
    assert "scripts.offers_scale" in json.loads((tmp_path / "made.json").read_text())["command"]
