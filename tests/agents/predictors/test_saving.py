"""Files of predictors that are damaged, foreign, or do not fit together end in one clear error."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from agents import predictors
from agents.predictors.examples import examples
from agents.predictors.predicted_rates import PredictedRates
from agents.predictors.predictor import Predictor
from agents.predictors.trees import with_weekdays
from tests.agents.predictors.made_market import made_market

SETTINGS = {
    "network": {"hidden": (8, 4), "dimension": 3, "epochs": 1, "threads": 1},
    "trees": {"trees": 5, "threads": 1},
}


@pytest.fixture(scope="module")
def log():
    return made_market(num_pages=300, num_days=60)


@pytest.fixture(scope="module")
def files(log, tmp_path_factory):
    """Header and arrays of a good file of each model."""
    tables, folder = [examples(log, days) for days in (range(31, 45), [46])], tmp_path_factory
    files = {}
    for model, settings in SETTINGS.items():
        path = folder.mktemp(model) / "price.npz"
        Predictor("price", "both", model, **settings).fit(*tables).save(path)
        with np.load(path) as read:
            arrays = dict(read)
        files[model] = json.loads(str(arrays.pop("header"))), arrays
    return files


def load_changed(files, path, model, header=None, arrays=None, drop=()):
    """Load a file with some values replaced and others left out."""
    old, kept = files[model]
    header = {name: value for name, value in {**old, **(header or {})}.items() if name not in drop}
    kept = {name: array for name, array in {**kept, **(arrays or {})}.items() if name not in drop}
    np.savez(path, header=np.array(json.dumps(header)), **kept)
    return Predictor.load(path)


def spoilt(array, value, place=0):
    """A copy with one entry replaced."""
    copy = array.copy()
    copy.flat[place] = value
    return copy


@pytest.mark.parametrize("model", predictors.MODELS)
def test_a_rewritten_file_loads(files, log, tmp_path, model):
    predictor = load_changed(files, tmp_path / "a.npz", model)
    assert np.isfinite(predictor.predict(log.features(50))).all()


@pytest.mark.parametrize("model", predictors.MODELS)
def test_everything_is_missed(files, tmp_path, model):
    header, arrays = files[model]
    path = tmp_path / "a.npz"
    assert len(arrays) > 10
    for name in arrays:
        with pytest.raises(ValueError, match=r"a\.npz is damaged or no predictor: .*") as caught:
            load_changed(files, path, model, drop=[name])
        assert name in str(caught.value) or name[:-1] in str(caught.value)
    for name in header:
        with pytest.raises(ValueError, match=rf"a\.npz is damaged or no predictor: .*{name}"):
            load_changed(files, path, model, drop=[name])


@pytest.mark.parametrize(
    ("model", "header", "message"),
    [
        ("network", {"settings": 3}, "must be a mapping, not int"),
        ("network", {"settings": {"hidden": 3}}, "hidden must be a tuple of integers >= 1, got 3"),
        ("network", {"settings": {"hidden": ["8"]}}, "hidden must be an integer >= 1, got '8'"),
        ("network", {"settings": {"l1": "much"}}, "l1 must be finite and >= 0, got 'much'"),
        ("network", {"settings": {"depth": 3}}, "setting 'depth' is unknown"),
        ("network", {"settings": {"seed": 3}}, "seed"),
        ("network", {"model": "trees"}, "setting must be one of trees"),
        ("trees", {"features": ["both"]}, "features must be one of"),
        ("trees", {"task": None}, "task must be one of"),
        ("trees", {"seed": "one"}, "seed must be an integer"),
    ],
)
def test_bad_headers_are_named(files, tmp_path, model, header, message):
    with pytest.raises(ValueError, match=rf"a\.npz is damaged or no predictor: .*{message}"):
        load_changed(files, tmp_path / "a.npz", model, header=header)


@pytest.mark.parametrize(
    ("name", "value"),
    [("left", -2), ("left", 0), ("right", 10**6), ("feature", 18), ("feature", -1), ("roots", -1)],
)
def test_trees_that_would_never_reach_a_leaf_are_named(files, tmp_path, name, value):
    arrays = files["trees"][1]
    inner = int(np.flatnonzero(arrays["model_node_left"] >= 0)[0])
    changed = spoilt(arrays[f"model_node_{name}"], value, 0 if name == "roots" else inner)
    with pytest.raises(ValueError, match="no predictor: model_node must be trees"):
        load_changed(files, tmp_path / "a.npz", "trees", arrays={f"model_node_{name}": changed})
    short = {"model_node_value": arrays["model_node_value"][:-1]}
    with pytest.raises(ValueError, match="no predictor: model_node must be trees"):
        load_changed(files, tmp_path / "a.npz", "trees", arrays=short)


def test_foreign_files_are_named(files, tmp_path):
    path, array, other = tmp_path / "a.npz", io.BytesIO(), io.BytesIO()
    np.save(array, np.zeros(3))
    np.savez(other, other=np.zeros(3))
    for content, message in (
        (b"", "File is not a zip file"),
        (b"some text\n", "File is not a zip file"),
        (array.getvalue(), "File is not a zip file"),
        (other.getvalue(), "'header' is missing"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"a\.npz is damaged or no predictor: {message}"):
            Predictor.load(path)
    for header, message in (
        ("[1]", "list indices must be"),
        ("3", "not subscriptable"),
        ("{", "Expecting property name"),
        ('{"format": 99}', "its format must be 1, got 99"),
        ([{}], "Object arrays cannot be loaded"),
    ):
        np.savez(path, header=np.array(header))
        with pytest.raises(ValueError, match=rf"a\.npz is damaged or no predictor: .*{message}"):
            Predictor.load(path)
    with pytest.raises(ValueError, match=r"is damaged or no predictor: .*Is a directory"):
        Predictor.load(tmp_path)


def test_a_file_cut_anywhere_or_with_a_wrong_byte_is_damaged(files, tmp_path):
    path = tmp_path / "a.npz"
    load_changed(files, path, "trees")
    whole = path.read_bytes()
    for length in range(4, len(whole), len(whole) // 20):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"a\.npz is damaged or no predictor: "):
            Predictor.load(path)
    place = whole.index(b"model_shares") + 200
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(ValueError, match=r"a\.npz is damaged or no predictor: "):
        Predictor.load(path)


def test_what_is_no_path_is_named():
    for value in (None, 3):
        with pytest.raises(ValueError, match=f"{value} is damaged or no predictor: "):
            Predictor.load(value)
    for value in (None, 3, ["offers-trees"]):
        with pytest.raises(ValueError, match="predictors must be a folder, a name or a mapping by"):
            PredictedRates(value)
    with pytest.raises(ValueError, match=r"predictors must be one each of .*, got \{'price': 3\}"):
        PredictedRates({"price": 3})


def test_folders_that_do_not_fit_are_named(files, tmp_path):
    for task in predictors.TASKS:
        load_changed(files, tmp_path / f"{task}.npz", "trees", header={"task": task})
    assert list(predictors.load(tmp_path)) == list(predictors.TASKS)
    load_changed(files, tmp_path / "click.npz", "trees")
    with pytest.raises(ValueError, match=r"one each of price, click, .* got .*'click': 'price'"):
        predictors.load(tmp_path)


@pytest.mark.parametrize("model", predictors.MODELS)
@pytest.mark.parametrize("name", ["brand", "category", "condition", "country", "merchant"])
def test_unknown_and_negative_ids_are_all_alike(files, log, tmp_path, model, name):
    predictor, offers = load_changed(files, tmp_path / "a.npz", model), log.features(50)

    def predicted(number):
        ids = np.full(offers.change_frequency.size, number, np.int32)
        metadata = offers.metadata._replace(**{name: ids})
        return predictor.predict(offers._replace(metadata=metadata))

    unknown = predicted(-1)
    assert np.isfinite(unknown).all()
    for number in (-7, np.iinfo(np.int32).min, 10_000, 10**9, np.iinfo(np.int32).max):
        np.testing.assert_array_equal(predicted(number), unknown)


def test_pairs_with_weekdays_are_not_cut_to_32_bits():
    merchants = [0, 5, -1, 2**31 - 1, -(2**31)]
    ids = np.zeros((len(merchants), 7), np.int32)
    ids[:, -2], ids[:, -1] = merchants, 6
    assert with_weekdays(ids)[:, -1].tolist() == [7 * merchant + 6 for merchant in merchants]
