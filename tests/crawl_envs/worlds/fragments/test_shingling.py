from __future__ import annotations

import subprocess
import sys
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs.worlds.fragments.shingling import as_fragments, shingles_of
from tests.naive.pages import splitmix

TEXTS = st.text(alphabet="ab ,\n_é7", max_size=60)
LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

KNOWN = [997320532, 1672686092, 1819798471, 2361331294, 2690157793, 3715932836]


def naive_words(text: str) -> list[bytes]:
    """Words byte by byte."""
    words, word = [], b""
    for byte in text.encode() + b" ":
        if byte in LETTERS or byte >= 128:
            word += bytes([byte])
        elif word:
            words.append(word)
            word = b""
    return words


def naive_shingle(words: tuple[bytes, ...]) -> int:
    shingle = splitmix(len(words))
    for word in words:
        digest = blake2b(word, digest_size=8).digest()
        shingle = splitmix(shingle ^ int.from_bytes(digest, "little"))
    return shingle


def grams(words: list[bytes], length: int) -> set[tuple[bytes, ...]]:
    """Every ``length`` successive words, or all where there are fewer."""
    if len(words) < length:
        return {tuple(words)} if words else set()
    return {tuple(words[row : row + length]) for row in range(len(words) - length + 1)}


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(1, 6))
def test_shingles_are_those_of_a_slow_twin(text: str, length: int) -> None:
    expected = sorted(map(naive_shingle, grams(naive_words(text), length)))
    for given_text in (text, text.encode()):
        shingles = shingles_of(given_text, length)
        assert shingles.dtype == np.uint64
        assert shingles.tolist() == expected
        fragments = as_fragments(shingles)
        assert fragments.dtype == np.uint32
        assert fragments.tolist() == sorted({shingle >> 32 for shingle in expected})


def test_hashes_are_the_same_for_ever() -> None:
    text = "Sow peas early; thin radishes late. Überall_7 \u2603"
    assert as_fragments(shingles_of(text)).tolist() == KNOWN
    module = "crawl_envs.worlds.fragments.shingling"
    code = f"from {module} import *; print(as_fragments(shingles_of({text!r})).tolist())"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-X", "utf8", "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        )
        assert done.stdout.strip() == str(KNOWN)


def test_text_that_is_no_unicode_is_read() -> None:
    assert shingles_of(b"caf\xe9 au lait").size == 1
    assert shingles_of("\ud800 alone").size == 1


def test_many_shingles_do_not_collide_and_are_spread_evenly() -> None:
    text = " ".join(str(number) for number in range(60_002))
    shingles = shingles_of(text)
    assert shingles.size == 60_000
    shared = 60_000 - as_fragments(shingles).size
    assert shared <= 4, "0.42 expected of 32 random bits"
    for shift in (0, 24, 56):
        cells = np.bincount(((shingles >> np.uint64(shift)) & np.uint64(255)).astype(int))
        statistic = float(((cells - 60_000 / 256) ** 2 / (60_000 / 256)).sum())
        assert abs(statistic - 255.0) < 5.0 * (2.0 * 255.0) ** 0.5


@pytest.mark.parametrize("modulus", [1, 2, 7, 8, 64])
def test_a_sample_goes_by_shingles(modulus: int) -> None:
    first, second = (" ".join(f"w{row}" for row in rows) for rows in (range(900), range(300, 1500)))
    sampled = [as_fragments(shingles_of(text), modulus) for text in (first, second)]
    whole = [shingles_of(text) for text in (first, second)]
    for text, sample in zip(whole, sampled, strict=True):
        assert sample.tolist() == sorted(
            {shingle >> 32 for shingle in text.tolist() if shingle % modulus == 0}
        )
    common = set(sampled[0].tolist()) & set(sampled[1].tolist())
    both = set(whole[0].tolist()) & set(whole[1].tolist())
    assert common == {shingle >> 32 for shingle in both if shingle % modulus == 0}
    assert abs(len(common) - len(both) / modulus) <= 4.0 * (len(both) / modulus) ** 0.5


@pytest.mark.parametrize(
    ("text", "length", "message"),
    [
        (3, 3, "text must be str or bytes, got int"),
        (None, 3, "text must be str or bytes, got NoneType"),
        ("a", 0, "words must be an integer >= 1, got 0"),
        ("a", 2.5, "words must be an integer >= 1, got 2.5"),
    ],
)
def test_bad_input_is_named(text: Any, length: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shingles_of(text, length)
