"""What a version of a page says, as a set of shingles, and how far two versions differ."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from crawl_envs.types import IntArray

WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
SPACE = re.compile(rb"\s+")


class Version(NamedTuple):
    """One version of a page.

    Attributes:
        shingles: distinct hashes of every three successive words, in order, (n,) int64; a page of
            fewer words is one shingle, an empty page none. Hashes agree within one process only.
        ink: hash of the bytes that are no white space.
    """

    shingles: IntArray
    ink: int


def read_version(content: bytes) -> Version:
    """Return the version that ``content`` is; words are runs of letters, digits, underscores."""
    words = WORD.findall(content)
    triples = zip(words, words[1:], words[2:], strict=False) if len(words) > 2 else [tuple(words)]
    hashes = np.fromiter((hash(triple) for triple in triples if triple), dtype=np.int64)
    return Version(np.unique(hashes), hash(SPACE.sub(b"", content)))


def jaccard_distance(old: Version, new: Version) -> float:
    """Share of shingles that are not in both versions; 0 when neither has any."""
    common = np.intersect1d(old.shingles, new.shingles, assume_unique=True).size
    union = old.shingles.size + new.shingles.size - common
    return 1.0 - common / union if union else 0.0
