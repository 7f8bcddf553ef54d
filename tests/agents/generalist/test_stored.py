"""The file of a generalist."""

from __future__ import annotations

import json

import numpy as np
import pytest

from agents.catalog import GENERALIST
from agents.generalist.networks import number_of_weights
from agents.generalist.stored import StoredGeneralist


def stored(hidden: int = 3, size: float = 0.3) -> StoredGeneralist:
    rng = np.random.default_rng(0)
    return StoredGeneralist(rng.normal(0.0, size, number_of_weights(hidden)), {"seed": 0})


def test_what_is_read_is_what_was_saved(tmp_path):
    stored().save(tmp_path)
    read = StoredGeneralist.read(tmp_path)
    np.testing.assert_array_equal(read.weights, stored().weights)
    assert (read.hidden, read.made) == (3, {"seed": 0})
    assert read.to_json() == stored().to_json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "must have the format 'crawl-envs generalist 1', got 'other'"),
        ({"hidden": 4}, "hidden must be 3, got 4"),
        ({"weights": [1e300] * number_of_weights(2)}, "weights must be finite and in"),
        ({"inputs": ["x"]}, "inputs must be"),
        ({"weights": [1.0]}, "weights must be"),
        ({"made": 3}, "damaged"),
    ],
)
def test_damaged_files_are_refused(tmp_path, change, words):
    values = json.loads(stored().to_json())
    (tmp_path / GENERALIST).write_text(json.dumps({**values, **change}))
    with pytest.raises(ValueError, match=words):
        StoredGeneralist.read(tmp_path)


def test_weights_that_are_no_numbers_are_refused():
    weights = np.full(number_of_weights(2), np.nan)
    with pytest.raises(ValueError, match="finite"):
        StoredGeneralist(weights)


def test_an_empty_folder_has_none(tmp_path):
    with pytest.raises(ValueError, match=GENERALIST):
        StoredGeneralist.read(tmp_path)
