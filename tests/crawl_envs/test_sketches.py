from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs.types.copies import Sketches, divergence, mixed32, sketch_of
from tests.naive.fragments import lowbias

HASHES = st.sets(st.integers(0, 60) | st.integers(0, 2**32 - 1), max_size=25)


def unmixed32(word: int) -> int:
    """The word whose hash this is: every step undone."""
    bits = word ^ (word >> 16)
    for shift, factor in ((15, 0x846CA68B), (16, 0x7FEB352D)):
        bits = bits * pow(factor, -1, 2**32) % 2**32
        undone = bits
        for _ in range(32 // shift + 1):
            undone = bits ^ (undone >> shift)
        bits = undone
    return (bits - 0x9E3779B9) % 2**32


def naive_similarity(first: set[int], second: set[int], size: int | None) -> float:
    """|MIN_s(A u B) n A n B| / |MIN_s(A u B)| of whole sets; exact where both are smaller."""
    union = sorted(first | second)
    if size is not None and max(len(first), len(second)) >= size:
        union = union[:size]
    return len(set(union) & first & second) / len(union) if union else 1.0


def as_array(hashes: set[int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.array(sorted(hashes), np.uint32)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_mixer_is_its_twin_and_can_be_undone(word: int) -> None:
    assert int(mixed32(np.uint32(word))) == lowbias(word)
    assert unmixed32(lowbias(word)) == word


@settings(max_examples=200, deadline=None)
@given(HASHES, st.integers(1, 30) | st.none())
def test_a_sketch_is_the_smallest_hashes(hashes: set[int], size: int | None) -> None:
    sketch = sketch_of(list(hashes) * 2, size)
    assert sketch.dtype == np.uint32
    assert sketch.tolist() == sorted(map(lowbias, hashes))[:size]


@settings(max_examples=200, deadline=None)
@given(HASHES, HASHES, st.integers(1, 30) | st.none())
def test_divergence_is_that_of_whole_sets(
    first: set[int], second: set[int], size: int | None
) -> None:
    expected = 1.0 - naive_similarity(first, second, size)
    cut = as_array(first)[:size], as_array(second)[:size]
    assert divergence(*cut, size or 0) == expected
    assert divergence(cut[1], cut[0], size or 0) == expected
    assert divergence(as_array(first), as_array(second), size or 0) == expected, "longer sketches"


@pytest.mark.parametrize(
    ("alone", "both", "new", "size"),
    [(10, 30, 10, 8), (5, 5, 40, 8), (0, 60, 30, 16), (20, 20, 0, 1), (3, 3, 30, 8), (50, 0, 9, 4)],
)
def test_the_estimate_has_no_bias(alone: int, both: int, new: int, size: int) -> None:
    dice = np.random.default_rng(7)
    exact = both / (alone + both + new)
    estimates = []
    for _ in range(4000):
        words = np.arange(alone + both + new) * 8 + int(dice.integers(2**31))
        first = sketch_of(words[: alone + both], size)
        second = sketch_of(words[alone:], size)
        estimates.append(1.0 - divergence(first, second, size))
    error = np.std(estimates) / math.sqrt(len(estimates))
    assert abs(np.mean(estimates) - exact) <= 4.0 * error
    assert error > 0.0 or both == 0


def test_rows_of_sketches() -> None:
    rows = [sketch_of(range(row * row), 12) for row in range(8)]
    sketches = Sketches.of_rows(rows)
    assert sketches.start.size == 8 + 1
    assert (sketches.start.dtype, sketches.hashes.dtype) == (np.int64, np.uint32)
    assert all(sketches.row(row).tolist() == rows[row].tolist() for row in range(8))
    none = Sketches.of_rows([])
    assert (none.start.tolist(), none.hashes.dtype) == ([0], np.uint32)


@pytest.mark.parametrize(
    ("hashes", "size", "message"),
    [
        ([-1, 2], None, r"hashes must be whole numbers in \[0, 2\*\*32\).*-1 +2"),
        ([2**32], None, "hashes must be.*4294967296"),
        ([0.5], None, "hashes must be.*dtype float64"),
        ([[1]], None, r"hashes must be.*shape \(1, 1\)"),
        (["a"], None, "hashes must be.*dtype <U1"),
        ([1], 0, "size must be an integer >= 1, got 0"),
        ([1], 1.5, "size must be an integer >= 1, got 1.5"),
    ],
)
def test_bad_fragments_are_named(hashes: Any, size: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sketch_of(hashes, size)
