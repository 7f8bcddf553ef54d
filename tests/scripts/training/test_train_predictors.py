"""The command that trains predictors, on a market as small as they come."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.metrics import roc_auc_score

import scripts.training.train_predictors
from agents import predictors
from agents.predictors import FEATURES, TASKS
from agents.predictors.predictor import Predictor
from crawl_envs.instances.market import market
from crawl_envs.worlds.offers.log import record
from scripts.data.offer_samples import FIRST_DAY, split_days
from scripts.training.train_predictors import over_subsets
from tests.scripts import commands
from tests.scripts.commands import done, files_in, records, refused

EVENTS = {"price": "price_changed", "click": "clicked", "impression": "impressed"}
SHIPPED = predictors.SHIPPED / "offers-trees"


@pytest.fixture
def tiny(monkeypatch):
    sizes = {"offers": 400, "days": 20, "per_day": 200, "markets": 2}
    monkeypatch.setattr(scripts.training.train_predictors, "QUICK", sizes)
    settings = {
        "network": {"epochs": 1, "hidden": (8,), "threads": 1},
        "trees": {"trees": 10, "threads": 1},
    }
    monkeypatch.setattr(scripts.training.train_predictors, "QUICK_SETTINGS", settings)


def run(*arguments, out=None):
    return commands.run(scripts.training.train_predictors.app, *arguments, out=out)


@pytest.mark.parametrize("model", predictors.MODELS)
def test_predictors_are_trained_measured_and_saved(tiny, model, tmp_path):
    out = tmp_path / "out"
    result = done(run("--quick", "--model", model, "--seed", 2, out=out))
    assert "0.949 (0.006)" in result.output
    assert files_in(out) == {"auc.csv", "provenance.json", *(f"{task}.npz" for task in TASKS)}
    rows = records(out / "auc.csv")
    pairs = [(task, features) for task in TASKS for features in FEATURES]
    assert [(row["task"], row["features"]) for row in rows] == pairs
    assert all(float(row["low"]) <= float(row["auc"]) <= float(row["high"]) for row in rows)
    made = json.loads((out / "provenance.json").read_text())
    assert made["offers"] == 400
    assert made["examples"]["test"] == 2 * 7 * 400
    assert made["test_markets"] == 2
    offer_features = record(market(300, seed=5), 3, 5).features(2)
    for task, predictor in predictors.load(out).items():
        assert (predictor.task, predictor.features, predictor.model) == (task, "both", model)
        assert np.isfinite(predictor.predict(offer_features)).all()
    refused(run("--quick", "--model", model, out=out), "out must have no predictors yet")
    assert json.loads((out / "provenance.json").read_text()) == made


def test_stored_predictors_are_measured_on_markets_of_their_own(tiny, tmp_path):
    out = tmp_path / "out"
    done(run("--quick", "--model", "trees", "--stored", "offers-trees", out=out))
    rows = {row["task"]: row for row in records(out / "auc.csv") if row["features"] == "both"}
    stored, days = predictors.load("offers-trees"), split_days(20).test
    for task, predictor in stored.items():
        areas = []
        for seed in (2020, 2021):
            log = record(market(400, seed=seed, first_day=FIRST_DAY), 20, seed)
            chances = np.concatenate([predictor.predict(log.features(day)) for day in days])
            happened = [getattr(log.labels(day), EVENTS[task]) for day in days]
            areas.append(roc_auc_score(np.concatenate(happened), chances))
        known = ttest_1samp(areas, 0.0).confidence_interval(0.95)
        measured = [float(rows[task][name]) for name in ("auc", "low", "high")]
        np.testing.assert_allclose(measured, [np.mean(areas), *known], rtol=1e-9)
        assert (out / f"{task}.npz").read_bytes() == (SHIPPED / f"{task}.npz").read_bytes()


def test_subsets_have_a_mean_and_a_deviation():
    rng = np.random.default_rng(1)
    labels = rng.random(2000) < 0.2
    scores = rng.normal(labels, 1.0)
    parts = np.array_split(np.random.default_rng(0).permutation(2000), 20)
    areas = [roc_auc_score(labels[part], scores[part]) for part in parts]
    assert over_subsets(labels, scores) == pytest.approx((np.mean(areas), np.std(areas, ddof=1)))
    few = over_subsets(labels[:30], scores[:30])
    assert few == pytest.approx((roc_auc_score(labels[:30], scores[:30]), np.nan), nan_ok=True)


def test_sizes_that_are_given_win_over_quick_ones(tiny, tmp_path):
    bad = run("--quick", "--offers", 0, out=tmp_path / "bad")
    refused(bad, "num_offers must be an integer >= 1, got 0")
    out = tmp_path / "out"
    done(run("--quick", "--model", "trees", "--offers", 300, "--days", 22, out=out))
    made = json.loads((out / "provenance.json").read_text())
    assert (made["offers"], made["days"], made["per_day"]) == (300, 22, 200)


def test_quick_runs_have_a_folder_of_their_own(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(
        scripts.training.train_predictors,
        "train_all",
        lambda out, *more: asked.append(str(out)),
    )
    for words in ([], ["--quick"], ["--quick", "--model", "trees"]):
        done(run(*words))
    folders = ["predictors-network", "predictors-network-quick", "predictors-trees-quick"]
    assert asked == [f"runs/{name}" for name in folders]


def test_an_interrupt_keeps_what_is_ready_and_says_so(tiny, tmp_path, monkeypatch):
    """It comes while the fifth predictor is measured: the third is the first that is kept."""
    measured, left = scripts.training.train_predictors.measured, iter(range(4))

    def interrupted(*arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return measured(*arguments)

    monkeypatch.setattr(scripts.training.train_predictors, "measured", interrupted)
    out = tmp_path / "out"
    result = run("--quick", "--model", "trees", out=out)
    assert result.exit_code == 130
    assert result.output.splitlines()[-1] == (
        f"stopped after 4 of 9 predictors; {out} has auc.csv, price.npz, but no provenance.json"
    )
    assert files_in(out) == {"auc.csv", "price.npz"}
    assert len((out / "auc.csv").read_text().splitlines()) == 1 + 4
    assert Predictor.load(out / "price.npz").task == "price"
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"there is no predictor at .*click\.npz"):
        predictors.load(out)


def test_an_interrupt_while_logging_says_that_nothing_was_measured(tiny, tmp_path, monkeypatch):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(scripts.training.train_predictors, "logged", interrupted)
    result = run("--quick", out=tmp_path / "out")
    assert result.exit_code == 130
    assert result.output.splitlines()[-1] == "stopped; nothing was measured"
    assert not list((tmp_path / "out").iterdir())
