"""Predictors as they are used: fitted, right on average, saved, loaded, asked for rates."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from agents import predictors
from agents.predictors.examples import examples
from agents.predictors.predicted_rates import PredictedRates
from agents.predictors.predictor import Predictor
from agents.runs import read_object
from scripts.data.offer_samples import ClickWeightedSample
from tests.agents.predictors.made_market import made_market

SETTINGS = {
    "network": {"hidden": (32, 16), "batch": 256, "epochs": 4, "threads": 1},
    "trees": {"trees": 40, "threads": 1},
}


@pytest.fixture(scope="module")
def log():
    return made_market(num_pages=1500, num_days=130)


@pytest.fixture(scope="module")
def tables(log):
    sample = ClickWeightedSample(400, share=0.8)
    return (
        examples(log, range(30, 90), sample=sample),
        examples(log, range(90, 94)),
        examples(log, range(94, 130)),
    )


def fitted(tables, task, features="both", model="network", **settings):
    predictor = Predictor(task, features, model, **{**SETTINGS[model], **settings})
    return predictor.fit(*tables[:2])


@pytest.fixture(scope="module")
def three(tables):
    return {task: fitted(tables, task) for task in predictors.TASKS}


@pytest.mark.parametrize("model", predictors.MODELS)
@pytest.mark.parametrize("task", predictors.TASKS)
def test_probabilities_are_right_on_average_though_training_is_enriched(tables, task, model):
    train, _, test = tables
    predictor = fitted(tables, task, model=model)
    probabilities = predictor.predict(test)
    labels = test.labels(task)
    if task == "click":
        assert train.labels(task).mean() > 1.8 * labels.mean()
    assert ((probabilities > 0.0) & (probabilities < 1.0)).all()
    assert probabilities.mean() == pytest.approx(labels.mean(), rel=0.1)
    order = np.argsort(probabilities)
    for part in np.array_split(order, 4):  # and within each quarter, from small to large
        allowed = 0.25 * labels[part].mean() + 0.01
        assert abs(probabilities[part].mean() - labels[part].mean()) < allowed


@pytest.mark.parametrize("model", predictors.MODELS)
def test_what_is_learned_is_in_the_features_that_hold_it(tables, model):
    """Price changes go by merchant and weekday; clicks by what is only in the history."""
    test = tables[2]
    scores = {
        (task, features): roc_auc_score(
            test.labels(task), fitted(tables, task, features, model).predict(test)
        )
        for task in ("price", "click")
        for features in predictors.FEATURES
    }
    assert scores["price", "metadata"] > scores["price", "history"] + 0.02
    assert scores["price", "both"] > scores["price", "history"] + 0.02
    assert scores["click", "history"] > scores["click", "metadata"] + 0.1
    assert scores["click", "both"] > scores["click", "metadata"] + 0.1


@pytest.mark.parametrize("model", predictors.MODELS)
def test_columns_are_scaled_by_those_of_training(tables, tmp_path, model):
    settings = {"epochs": 1} if model == "network" else {"trees": 10}
    fitted(tables, "click", model=model, **settings).save(tmp_path / "click.npz")
    train, validation = (table.columns.history.astype(np.float64) for table in tables[:2])
    with np.load(tmp_path / "click.npz") as kept:
        mean, spread = kept["mean"], kept["spread"]
    np.testing.assert_allclose(mean, train.mean(axis=0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(spread, train.std(axis=0), rtol=1e-5)
    assert np.abs(mean - validation.mean(axis=0)).max() > 0.1


def test_a_book_is_predicted_as_its_examples_are(log, tables, three):
    test = tables[2]
    day = int(test.day[0])
    rows = test.day == day
    for predictor in three.values():
        of_features = predictor.predict(log.features(day))
        assert of_features.shape == (1500,)
        assert of_features.dtype == np.float64
        np.testing.assert_allclose(of_features, predictor.predict(test)[rows], rtol=1e-5)


@pytest.mark.parametrize("model", predictors.MODELS)
@pytest.mark.parametrize("features", predictors.FEATURES)
def test_a_loaded_predictor_is_the_one_saved(log, tables, tmp_path, model, features):
    settings = {"epochs": 1} if model == "network" else {"trees": 10}
    predictor = fitted(tables, "click", features, model, seed=3, **settings)
    predictor.save(tmp_path / "click.npz")
    loaded = Predictor.load(tmp_path / "click.npz")
    for name in ("task", "features", "model", "seed", "settings", "calibration", "validation_auc"):
        assert getattr(loaded, name) == getattr(predictor, name)
    offers = log.features(90)
    np.testing.assert_array_equal(loaded.predict(offers), predictor.predict(offers))
    assert [path.name for path in tmp_path.iterdir()] == ["click.npz"]


def test_trees_load_without_scikit_learn_and_nothing_light_imports_torch(tables, tmp_path):
    fitted(tables, "click", model="trees", trees=10).save(tmp_path / "click.npz")
    program = (
        "import sys, agents.predictors, agents.predictors.examples\n"
        "from agents.predictors.predictor import Predictor\n"
        f"Predictor.load({str(tmp_path / 'click.npz')!r})\n"
        "assert not {'torch', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_folders_are_loaded(log, three, tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    for task, predictor in three.items():
        predictor.save(folder / f"{task}.npz")
    loaded = predictors.load(folder)
    assert list(loaded) == list(predictors.TASKS)
    offers = log.features(95)
    for task, predictor in three.items():
        np.testing.assert_array_equal(loaded[task].predict(offers), predictor.predict(offers))
    (folder / predictors.PROVENANCE).write_text("{}")
    monkeypatch.setattr(predictors, "SHIPPED", tmp_path)
    assert predictors.names() == ("mine",)
    assert predictors.load("mine")["price"].calibration == three["price"].calibration
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000


@pytest.mark.parametrize("name", predictors.names())
def test_shipped_predictors_load_and_say_how_they_were_made(name):
    made = read_object(predictors.SHIPPED / name / predictors.PROVENANCE)
    assert {"command", "seed", "offers", "seconds", "table"} <= set(made)
    for task, predictor in predictors.load(name).items():
        assert predictor.task == task
        assert predictor.features == "both"


def test_rates_are_the_predictions_of_the_day(log, three):
    source, offers = PredictedRates(three), log.features(70)
    rates = source(SimpleNamespace(offers=offers))
    np.testing.assert_array_equal(rates.click, three["click"].predict(offers))
    np.testing.assert_array_equal(rates.impression, three["impression"].predict(offers))
    np.testing.assert_array_equal(rates.change, three["price"].predict(offers))
    assert not any(array.flags.writeable for array in rates)


def test_rates_are_computed_once_per_book(log, three, monkeypatch):
    calls = []
    predict = Predictor.predict

    def counted(self, offers):
        calls.append(self.task)
        return predict(self, offers)

    monkeypatch.setattr(Predictor, "predict", counted)
    source = PredictedRates(three)
    lanes = [log.features(70), log.features(70)]
    for _ in range(3):
        rates = [source(SimpleNamespace(offers=offers)) for offers in lanes]
    assert len(calls) == 6
    assert rates[0] is not rates[1]
    assert rates[0] is source(SimpleNamespace(offers=lanes[0]))
    tomorrow = source(SimpleNamespace(offers=log.features(71)))
    assert len(calls) == 9
    assert (tomorrow.click != rates[0].click).any()
    assert len(source._cache) == 1


def test_bad_rates_are_named(three):
    with pytest.raises(ValueError, match=r"tracker\.offers must be the features of a day"):
        PredictedRates(three)(SimpleNamespace(offers=None))
    with pytest.raises(ValueError, match="predictors must be one each of price, click, impression"):
        PredictedRates({"price": three["price"]})
    swapped = {**three, "price": three["click"]}
    with pytest.raises(ValueError, match="predictors must be one each of price, click, impression"):
        PredictedRates(swapped)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "sale"}, "task must be one of price, click, impression, got 'sale'"),
        ({"features": "all"}, "features must be one of metadata, history, both, got 'all'"),
        ({"model": "forest"}, "model must be one of network, trees, got 'forest'"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"epoch": 3}, "setting 'epoch' is unknown; did you mean epochs"),
        ({"model": "trees", "epochs": 3}, "setting must be one of trees, .*, got 'epochs'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Predictor(**{"task": "price", **arguments})


def test_bad_tables_are_named(log):
    with pytest.raises(ValueError, match=r"validation must be later than day 39.*, got day 35"):
        Predictor("price").fit(examples(log, range(30, 40)), examples(log, [35]))
    nothing = made_market(num_pages=1500, num_days=130)
    nothing.clicks[:] = 0
    without = [examples(nothing, [day]) for day in (40, 41)]
    with pytest.raises(ValueError, match="labels must hold both classes, got 1500 of one"):
        Predictor("click").fit(*without)
    with pytest.raises(ValueError, match="'price' must be fitted or loaded first"):
        Predictor("price").predict(log.features(40))
    with pytest.raises(ValueError, match="'price' must be fitted or loaded first"):
        Predictor("price").save("price.npz")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"there is no predictor at .*price\.npz"):
        Predictor.load(tmp_path / "price.npz")
    with pytest.raises(ValueError, match=r"there is no predictor at .*price\.npz"):
        predictors.load(tmp_path)
    with pytest.raises(ValueError, match=r"there is no folder nowhere \(the names"):
        predictors.load("nowhere")
