"""Ids of pages against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.scheduler import ids as module
from policies.scheduler.ids import PageIds

IDS = st.one_of(st.integers(-3, 60), st.sampled_from([-(2**63), 2**63 - 1, 2**40]))
URLS = st.one_of(
    st.text(min_size=1, max_size=3).filter(lambda t: "\x00" not in t), st.just("x" * 70)
)


@settings(deadline=None)
@given(data=st.data(), of=st.sampled_from([IDS, URLS]))
def test_rows_are_those_of_a_dictionary(data, of):
    table, rows_of = PageIds(), {}
    for _ in range(12):
        batch = data.draw(st.lists(of, max_size=30, unique=True))
        new = [each for each in batch if each not in rows_of]
        if batch and data.draw(st.booleans()):
            known = [each for each in batch if each in rows_of]
            for each, row in zip(known, table.remove(known), strict=True):
                assert rows_of.pop(each) == row
        elif new:
            rows = table.add(new).tolist()
            assert not set(rows) & set(rows_of.values())
            assert len(set(rows)) == len(rows)
            assert max(rows) < table.capacity
            rows_of |= dict(zip(new, rows, strict=True))
        if batch and len(table):
            found = table.rows(batch, missing="skip").tolist()
            assert found == [rows_of.get(each, -1) for each in batch]
        if data.draw(st.booleans()):
            table = PageIds.from_arrays({k: v.copy() for k, v in table.arrays().items()})
        assert len(table) == len(rows_of)
        rows = np.array(list(rows_of.values()), np.int64)
        assert table.ids(rows).tolist() == list(rows_of)


def test_strings_of_the_same_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(module, "hashes_of", lambda text, ends: np.zeros(ends.size - 1, np.int64))
    table = PageIds()
    assert table.add(["a", "b", "ab"]).tolist() == [0, 1, 2]
    assert table.rows(["ab", "c", "b"], missing="skip").tolist() == [2, -1, 1]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2, 1], "ids must differ, got 1 twice"),
        ([7, 8], "ids must be new, got 7 again"),
        (["a"], "ids must be an array of integers, got <U1"),
        ([1.5], "ids must be an array of integers, got float64"),
        ([True], "ids must be an array of integers, got bool"),
        ([2**63], "ids must be below 2"),
        ([[1, 2]], "ids must be an array of integers"),
        ([{}], "ids must be an array of integers"),
    ],
)
def test_ids_that_are_refused(ids, said):
    table = PageIds()
    table.add([7])
    with pytest.raises(ValueError, match=said.replace("*", r"\*")):
        table.add(np.array(ids, np.uint64) if ids == [2**63] else ids)
    assert len(table) == 1


def test_unknown_and_empty_ids_are_refused():
    table = PageIds()
    table.add(["https://a.example/"])
    for call in (table.rows, table.remove):
        with pytest.raises(ValueError, match=r"ids must be known, got .*b.*and 1 others"):
            call(["b", "c"])
    with pytest.raises(ValueError, match="must not be empty"):
        table.add([""])
    with pytest.raises(ValueError, match="one of them twice"):
        table.remove(["https://a.example/"] * 2)
    assert table.rows(["https://a.example/", "b"], missing="skip").tolist() == [0, -1]


def test_removed_letters_are_left_out():
    table = PageIds()
    for turn in range(60):
        table.add([f"https://example.org/{turn}/{k}" for k in range(50)])
        table.remove([f"https://example.org/{turn}/{k}" for k in range(50)])
    assert table.capacity == 64
    assert table.arrays()["text"].size < 5_000
