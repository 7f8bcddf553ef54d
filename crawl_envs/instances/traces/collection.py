"""The recorded sites that come with the package, and their splits."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from crawl_envs.types.arguments import one_of

RECORDED = Path(__file__).parents[1] / "recorded"
SITES_FILE = "sites.csv"
Split: TypeAlias = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
DEALT: tuple[Split, ...] = ("train", "test", "train", "test", "dev")
"""Splits of the families of a kind, in order and repeated."""


def split_of(sites: Mapping[str, tuple[str, str]]) -> dict[str, Split]:
    """Return the split of each site, in alphabetical order; ``sites`` has kinds and families.

    A family has the sites whose pages may change together, as a rule those of one owner. Within
    each kind the families are sorted by the SHA-256 of their names, and dealt by ``DEALT``.
    """
    families = sorted({*sites.values()}, key=lambda entry: sha256(entry[1].encode()).digest())
    dealt: dict[tuple[str, str], Split] = {}
    for kind in {kind for kind, _ in families}:
        dealt |= zip([entry for entry in families if entry[0] == kind], cycle(DEALT), strict=False)
    return {name: dealt[sites[name]] for name in sorted(sites)}


def site_table(folder: Path = RECORDED) -> list[dict[str, str]]:
    """Return the rows of ``sites.csv`` in the folder of a collection; none without the file."""
    file = folder / SITES_FILE
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def sites(split: str | None = None, kind: str | None = None) -> tuple[str, ...]:
    """Return the names of the recorded sites, sorted.

    Args:
        split: only sites of this split: train, dev or test.
        kind: only sites of this kind, such as the names in the column ``kind`` of ``sites.csv``.

    Raises:
        ValueError: an unknown split or kind.
    """
    rows = site_table()
    if split is not None:
        one_of("split", split, SPLITS)
    if kind is not None:
        one_of("kind", kind, sorted({row["kind"] for row in rows}))
    wanted = [row for row in rows if split in (None, row["split"]) and kind in (None, row["kind"])]
    return tuple(sorted(row["site"] for row in wanted))
