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


@pytest.mark.parametrize("model", predictors.MODELS)
def test_every_array_must_have_its_shape_and_type_and_be_finite(files, tmp_path, model):
    path = tmp_path / "a.npz"
    for name, array in files[model][1].items():
        bad = [array[None], array.astype(np.float16), array.astype("S8")]
        if array.dtype.kind == "f":
            bad.append(spoilt(array, np.nan))
        if array.ndim and name != "model_node_roots":  # fewer roots are fewer trees
            bad.append(array[:-1])
        for each in bad:
            with pytest.raises(ValueError, match=r"a\.npz is damaged or no predictor: "):
                load_changed(files, path, model, arrays={name: each})


@pytest.mark.parametrize(
    ("model", "header", "message"),
    [
        ("network", {"settings": 3}, "must be a mapping, not int"),
        ("network", {"settings": {"hidden": 3}}, "hidden must be a tuple of integers >= 1, got 3"),
        ("network", {"settings": {"hidden": ["8"]}}, "hidden must be an integer >= 1, got '8'"),
        ("network", {"settings": {"l1": "much"}}, "l1 must be finite and >= 0, got 'much'"),
        ("network", {"settings": {"depth": 3}}, "setting 'depth' is unknown"),
        ("network", {"settings": {"seed": 3}}, "seed"),
        ("network", {"settings": {"hidden": [8, 4], "dimension": 4}}, r"shape \(.*, 4\), got"),
        ("network", {"settings": {"hidden": [8], "dimension": 3}}, "model_weight_3 must be"),
        ("network", {"settings": {"hidden": [4, 8], "dimension": 3}}, "model_weight_1 must be"),
        ("network", {"features": "history"}, r"model_weight_0 must be .* \(0, 3\)"),
        ("network", {"model": "trees"}, "setting must be one of trees"),
        ("trees", {"features": "metadata"}, r"mean must be finite float32 of shape \(0\)"),
        ("trees", {"features": ["both"]}, "features must be one of"),
        ("trees", {"task": None}, "task must be one of"),
        ("trees", {"seed": "one"}, "seed must be an integer"),
        ("trees", {"calibration": [1.0]}, "expected 2, got 1"),
        ("trees", {"calibration": 1.0}, "not iterable"),
        ("trees", {"calibration": [1.0, float("nan")]}, "calibration must be finite"),
        ("trees", {"calibration": [1.0, "0"]}, "calibration must be finite"),
        ("trees", {"validation_auc": float("nan")}, "validation_auc must be finite"),
    ],
)
def test_bad_headers_are_named(files, tmp_path, model, header, message):
    with pytest.raises(ValueError, match=rf"a\.npz is damaged or no predictor: .*{message}"):
        load_changed(files, tmp_path / "a.npz", model, header=header)


def test_what_does_not_fit_together_is_named(files, tmp_path):
    trees, size = files["trees"][1], files["trees"][1]["model_node_left"].size
    inner = int(np.flatnonzero(trees["model_node_left"] >= 0)[0])
    second = trees["model_known_0"][1]
    for name, value, place, message in (
        ("model_node_left", inner, inner, "model_node must be trees"),  # would never reach a leaf
        ("model_node_right", size, inner, "model_node must be trees"),
        ("model_node_left", -2, inner, "model_node must be trees"),
        ("model_node_feature", 18, inner, "model_node must be trees"),
        ("model_node_feature", -1, inner, "model_node must be trees"),
        ("model_node_roots", -1, 0, "model_node must be trees"),
        ("model_node_roots", size, 0, "model_node must be trees"),
        ("model_shares", 1.5, 0, "model_shares must lie in"),
        ("spread", 0.0, 0, "spread must be > 0"),
        ("model_known_0", -1, 0, "model_known_0 must rise"),
        ("model_known_0", second, 0, "model_known_0 must rise"),
    ):
        changed = {name: spoilt(trees[name], value, place)}
        with pytest.raises(ValueError, match=f"no predictor: {message}"):
            load_changed(files, tmp_path / "a.npz", "trees", arrays=changed)
    more = {"model_known_9": files["network"][1]["model_known_0"]}
    with pytest.raises(ValueError, match="no predictor: it has other arrays: model_known_9"):
        load_changed(files, tmp_path / "a.npz", "network", arrays=more)


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
        with pytest.raises(ValueError, match="predictors must be a folder or one of the names"):
            predictors.load(value)
        with pytest.raises(ValueError, match=f"{value} is damaged or no predictor: "):
            Predictor.load(value)
    for value in (None, 3, ["offers-trees"]):
        with pytest.raises(ValueError, match="predictors must be a mapping by task, a folder or a"):
            PredictedRates(value)
    with pytest.raises(ValueError, match=r"predictors must be one each of .*, got \{'price': 3\}"):
        PredictedRates({"price": 3})


def test_folders_that_do_not_fit_are_named(files, tmp_path):
    for task in predictors.TASKS:
        load_changed(files, tmp_path / f"{task}.npz", "trees", header={"task": task})
    (tmp_path / "provenance.json").write_text("[]")
    with pytest.raises(
        ValueError, match=r"provenance\.json is damaged: it must hold values by name"
    ):
        predictors.made(tmp_path)
    assert list(predictors.load(tmp_path)) == list(predictors.TASKS)
    load_changed(files, tmp_path / "click.npz", "trees")
    with pytest.raises(ValueError, match=r"click\.npz is a predictor of another task, 'price'"):
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


def test_merchants_too_large_to_pair_with_weekdays_are_unknown():
    largest = (2**31 - 1 - 6) // 7
    merchants = [0, 5, -1, largest, largest + 1, 2**31 - 1, -(2**31)]
    ids = np.zeros((len(merchants), 7), np.int32)
    ids[:, -2], ids[:, -1] = merchants, 6
    assert with_weekdays(ids)[:, -1].tolist() == [6, 41, -1, 7 * largest + 6, -1, -1, -1]
