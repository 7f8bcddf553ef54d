"""Versions of pages as sets of shingles, and distances between them."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from crawl_envs.worlds.fragments.shingling import ShingleArray, shingles_of

SPACE = re.compile(rb"\s+")


class Version(NamedTuple):
    """One version of a page.

    Attributes:
        shingles: platform-independent hashes of all three successive words, distinct and ascending,
            (n,) uint64; a page of fewer words has one shingle, an empty page none.
        ink: hash of the bytes without white space; comparable within one process only.
    """

    shingles: ShingleArray
    ink: int


def read_version(content: bytes) -> Version:
    """Return the version with the given content."""
    return Version(shingles_of(content), hash(SPACE.sub(b"", content)))


def jaccard_distance(old: Version, new: Version) -> float:
    """Return the share of shingles that are not in both versions; 0 if both are empty."""
    common = np.intersect1d(old.shingles, new.shingles, assume_unique=True).size
    union = old.shingles.size + new.shingles.size - common
    return 1.0 - common / union if union else 0.0
