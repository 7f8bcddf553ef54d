"""Record data sets for offline reinforcement learning, in the format of Minari.

Each family but recorded sites has three: an expert, a medium policy and random crawling, on the
same events. The same seed gives the same bytes. Data sets that are there are kept.

OUT is a folder of Minari: set MINARI_DATASETS_PATH to it, import crawl_envs, and load them with
minari.load_dataset("crawl/ncis/expert-v0"). Minari must be installed (pip install minari).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from crawl_envs.types.arguments import one_of
from scripts.cli.commands import Fresh, at_least, command, words_of
from scripts.libraries.recording import FAMILIES, LEVELS, datasets_in, described, name_of, record
from scripts.present.tables import console
from scripts.study.rows import check_folder
from scripts.timing.commands import run_cases

OUT = Path("runs/datasets")
Chosen = Annotated[
    str | None,
    typer.Option(help="Comma-separated families.", show_default=f"all: {', '.join(FAMILIES)}"),
]
Episodes = Annotated[int, typer.Option(help="Episodes of each data set.")]
Seed = Annotated[int, typer.Option(help="Seed of the first episode.")]
Out = Annotated[Path, typer.Option(help="Output folder.")]


def main(
    families: Chosen = None,
    episodes: Episodes = 20,
    seed: Seed = 0,
    out: Out = OUT,
    fresh: Fresh = False,
) -> None:
    """Record what is not there, and print the mean returns."""
    chosen = list(dict.fromkeys(words_of("--families", families))) or list(FAMILIES)
    for family in chosen:
        one_of("families", family, tuple(FAMILIES))
    at_least(1, episodes=episodes)
    at_least(0, seed=seed)
    if find_spec("minari") is None:
        raise ValueError("scripts.datasets needs Minari: pip install minari")
    check_folder(out)
    wanted = {
        family: {level: described(family, level, episodes, seed) for level in LEVELS}
        for family in chosen
    }
    missing = [name for name in chosen if fresh or not _kept(out, name, wanted[name])]
    run_cases(
        {
            family: partial(_record, out, family, episodes, seed, wanted[family])
            for family in missing
        }
    )
    console().print(_table(out, chosen))
    typer.echo(f"-> {out}")


def _metadata(out: Path, family: str, level: str) -> Path:
    return out / name_of(family, level) / "data" / "metadata.json"


def _kept(out: Path, family: str, wanted: Mapping[str, str]) -> bool:
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


def _record(
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


def _table(out: Path, families: Sequence[str]) -> Table:
    """Return the data sets with their sizes and the scores of reference, for the terminal."""
    table = Table(title="Data sets", title_justify="left")
    for name in ("data set", "policy"):
        table.add_column(name)
    for name in ("episodes", "steps", "mean return", "score", "MB"):
        table.add_column(name, justify="right")
    for family in families:
        for level in LEVELS:
            about = json.loads(_metadata(out, family, level).read_text("utf-8"))
            low, high = about["ref_min_score"], about["ref_max_score"]
            score = (about["mean_return"] - low) / (high - low)
            cells = (str(about["total_episodes"]), str(about["total_steps"]))
            shown = f"{about['mean_return']:.3f}", f"{score:.3f}", f"{about['dataset_size']:.1f}"
            table.add_row(name_of(family, level), about["algorithm_name"], *cells, *shown)
    return table


app = command(main, __doc__)

if __name__ == "__main__":
    app()
