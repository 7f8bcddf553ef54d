"""Versions of pages as sets of shingles: their distances, and the lifetimes of fragments."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.worlds.fragments.shingling import (
    FragmentArray,
    ShingleArray,
    as_fragments,
    shingles_of,
)

SPACE = b" \t\n\r\v\f"


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
    """Return the shingles and the ink of a page's content."""
    return Version(shingles_of(content), hash(content.translate(None, SPACE)))


def jaccard_distance(old: Version, new: Version) -> float:
    """Return the share of all shingles of two versions that only one has; 0 if both are empty."""
    common = np.intersect1d(old.shingles, new.shingles, assume_unique=True).size
    union = old.shingles.size + new.shingles.size - common
    return 1.0 - common / union if union else 0.0


class Spells(NamedTuple):
    """Spells (times from birth to death) of a page's fragments, sorted by birth and fragment.

    Attributes:
        fragment: (n,) uint32; a fragment that returns has one spell per appearance.
        birth: start of the spell; -inf if present in the first version, (n,) float64.
        death: end of the spell; inf if present in the last version, (n,) float64.
    """

    fragment: FragmentArray
    birth: FloatArray
    death: FloatArray


class FragmentBook:
    """Spells of the fragments of pages, updated change by change without storing versions.

    Args:
        modulus: only shingles divisible by ``modulus`` are kept; 1 for all.

    Attributes:
        incomplete: pages with a missing version.
    """

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
        self.incomplete: set[Hashable] = set()
        self._now: dict[Hashable, tuple[FragmentArray, FloatArray]] = {}
        self._ended: dict[Hashable, list[Spells]] = {}

    def enter(self, page: Hashable, old: Version | None, new: Version, time: float) -> None:
        """Add a change of a page from version ``old`` (None at birth) to ``new``, in order of time.

        ``old`` is used only at the first change of a page: its fragments were present at first.
        """
        if page not in self._now:
            first = as_fragments(old.shingles, self.modulus) if old else np.empty(0, np.uint32)
            self._now[page] = first, np.full(first.size, -np.inf)
            self._ended[page] = []
        fragment, birth = self._now[page]
        after = as_fragments(new.shingles, self.modulus)
        stays = np.isin(fragment, after, assume_unique=True)
        ended = np.full(np.count_nonzero(~stays), time)
        self._ended[page].append(Spells(fragment[~stays], birth[~stays], ended))
        births = np.full(after.size, time)
        births[np.searchsorted(after, fragment[stays])] = birth[stays]
        self._now[page] = after, births

    def spells(self, page: Hashable, death: float = np.inf) -> Spells:
        """Return all spells of a page; fragments of its last version end at ``death``."""
        fragment, birth = self._now[page]
        last = Spells(fragment, birth, np.full(fragment.size, death))
        parts = zip(*self._ended[page], last, strict=True)
        fragment, birth, deaths = (np.concatenate(part) for part in parts)
        order = np.lexsort((fragment, birth))
        return Spells(fragment[order], birth[order], deaths[order])
