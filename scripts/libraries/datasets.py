"""The data sets of a folder: which are there, recording those that are not, and their table."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from scripts.libraries.recording import LEVELS, datasets_in, name_of, record


def _metadata(out: Path, family: str, level: str) -> Path:
    return out / name_of(family, level) / "data" / "metadata.json"


def kept(out: Path, family: str, wanted: Mapping[str, str]) -> bool:
    """Return whether the data sets of a family are there; ValueError if others are."""
    if not (out / name_of(family, LEVELS[0])).parent.exists():
        return False
    for level in LEVELS:
        file = _metadata(out, family, level)
        found = json.loads(file.read_text("utf-8"))["description"] if file.exists() else "nothing"
        if found != wanted[level]:
            raise ValueError(
                f"--out {out} has other data sets of {family} ({found}); name another folder, or "
                "discard them with --fresh"
            )
    return True


def record_anew(
    out: Path, family: str, episodes: int, seed: int, about: Mapping[str, str]
) -> Sequence[tuple[str]]:
    """Record the data sets of a family, which then replace those that are there."""
    with tempfile.TemporaryDirectory(dir=out) as folder, datasets_in(folder):
        record(family, range(seed, seed + episodes), about)
        place = (out / name_of(family, LEVELS[0])).parent
        unfinished = Path(folder) / place.relative_to(out)
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(unfinished.parent / "namespace_metadata.json", place.parent)
        os.replace(unfinished, place)
    return [(family,)]


def table(out: Path, families: Sequence[str]) -> Table:
    """Return the data sets with their sizes and the scores of reference, for the terminal."""
    made = Table(title="Data sets", title_justify="left")
    for name in ("data set", "policy"):
        made.add_column(name)
    for name in ("episodes", "steps", "mean return", "score", "MB"):
        made.add_column(name, justify="right")
    for family in families:
        for level in LEVELS:
            about = json.loads(_metadata(out, family, level).read_text("utf-8"))
            low, high = about["ref_min_score"], about["ref_max_score"]
            score = (about["mean_return"] - low) / (high - low)
            cells = (str(about["total_episodes"]), str(about["total_steps"]))
            shown = f"{about['mean_return']:.3f}", f"{score:.3f}", f"{about['dataset_size']:.1f}"
            made.add_row(name_of(family, level), about["algorithm_name"], *cells, *shown)
    return made
