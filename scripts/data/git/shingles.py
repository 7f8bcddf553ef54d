"""What a version of a page says, as a set of shingles, and how far two versions differ."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from crawl_envs.worlds.fragments.shingling import ShingleArray, shingles_of

SPACE = re.compile(rb"\s+")


class Version(NamedTuple):
    """One version of a page.

    Attributes:
        shingles: of every three successive words, distinct, ascending and the same everywhere,
            (n,) uint64; a page of fewer words is one shingle, an empty page none.
        ink: hash of the bytes that are no white space; hashes agree within one process only.
    """

    shingles: ShingleArray
    ink: int


def read_version(content: bytes) -> Version:
    """Return the version that ``content`` is."""
    return Version(shingles_of(content), hash(SPACE.sub(b"", content)))


def jaccard_distance(old: Version, new: Version) -> float:
    """Share of shingles that are not in both versions; 0 when neither has any."""
    common = np.intersect1d(old.shingles, new.shingles, assume_unique=True).size
    union = old.shingles.size + new.shingles.size - common
    return 1.0 - common / union if union else 0.0
