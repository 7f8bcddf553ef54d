"""Arrays of a specification that are made and given more room."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numba.extending import intrinsic
from numpy.typing import NDArray

from crawl_envs.compiled.array_tables import (
    fields_of,
    lengths_of,
    read_table,
    resized,
    table_of,
    type_of,
    zeros,
)
from crawl_envs.compiled.compiling import compiled, inlined

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


KINDS = {np.uint8: ("h",)}


def _read(typing_context: Any, table: Any) -> Any:
    return read_table(type_of("Arrays", FIELDS, table, KINDS), table)


arrays_at: Any = intrinsic(_read)


@inlined("hosts")
def count_hosts(arrays: Any, count: NDArray[np.int64], first: int) -> None:
    count[0] = first + arrays.hosts.shape[0]


@compiled()
def counted(table: Any, count: NDArray[np.int64]) -> float:
    arrays = arrays_at(table)
    count_hosts(arrays, count, 10)
    count_hosts(arrays, count, 20)
    return float(arrays.due.sum())


@pytest.mark.parametrize(("hosts", "lacking"), [(0, True), (2, False)])
def test_functions_are_left_out_where_a_table_lacks_what_they_need(hosts, lacking):
    """But not where a table is read as one of any kind; each is compiled once."""
    arrays = Arrays(*zeros(FIELDS, {"m": 3, "h": hosts}))
    arrays.due[:] = [1.0, 2.0, 3.0]
    table, count = table_of(arrays, lengths_of(arrays, FIELDS), KINDS), np.zeros(1, np.int64)
    assert (table.dtype == np.uint8) == lacking
    assert counted(table, count) == 6.0
    assert count[0] == (0 if lacking else 20 + hosts)
    assert counted(table.view(np.int64), count) == 6.0
    assert count[0] == 20 + hosts
