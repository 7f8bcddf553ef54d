"""Arrays of a specification that are made and given more room."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from crawl_envs.compiled.array_tables import fields_of, lengths_of, resized, zeros

PLACE = np.dtype([("time", np.float64), ("place", np.int64)])


class Arrays(NamedTuple):
    due: Annotated[NDArray[Any], np.float64, "m"]
    shares: Annotated[NDArray[Any], np.float64, "2 m"]
    places: Annotated[NDArray[Any], PLACE, "m"]
    hosts: Annotated[NDArray[Any], np.int32, "h"]


FIELDS = fields_of(Arrays)
INITIAL = {"due": np.inf, "places": (0.0, -1)}


def test_arrays_with_more_room_begin_as_before() -> None:
    before = Arrays(*zeros(FIELDS, {"m": 3, "h": 2}, INITIAL))
    assert before.due.tolist() == [np.inf] * 3
    assert before.places["place"].tolist() == [-1] * 3
    before.due[:], before.shares[:], before.hosts[:] = [1, 2, 3], [[1, 2, 3], [4, 5, 6]], 7
    after = Arrays(*resized(before, FIELDS, {"m": 5}, INITIAL))
    assert lengths_of(after, FIELDS) == {"m": 5, "h": 2}
    assert after.due.tolist() == [1, 2, 3, np.inf, np.inf]
    assert after.shares.tolist() == [[1, 2, 3, 0, 0], [4, 5, 6, 0, 0]]
    assert after.places.tolist() == [(0.0, -1)] * 5
    assert after.hosts is before.hosts


def test_arrays_that_disagree_are_refused() -> None:
    before = Arrays(*zeros(FIELDS, {"m": 3, "h": 2}))
    with pytest.raises(ValueError, match="places must have axes"):
        lengths_of(before._replace(places=before.places[:2]), FIELDS)
