"""Record data sets for offline reinforcement learning, in the format of Minari.

Each family except recorded sites has three data sets on the same events: of an expert, of a medium
policy and of random crawling. The same seed gives the same bytes. Existing data sets are kept.

OUT is a folder of Minari: set MINARI_DATASETS_PATH to it, import crawl_envs, and load a data set
with minari.load_dataset("crawl/ncis/expert-v0"). Minari must be installed (pip install minari).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from agents.progress import tracked
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import command
from scripts.cli.options import Fresh, check_counts, words_of
from scripts.data.recording import FAMILIES, LEVELS, dataset_name, is_recorded, metadata_of, record
from scripts.present.tables import console
from scripts.study.rows import check_folder

OUT = Path("runs/datasets")
Families = Annotated[
    str | None,
    typer.Option(help="Comma-separated families.", show_default=f"all: {', '.join(FAMILIES)}"),
]
Episodes = Annotated[int, typer.Option(help="Episodes of each data set.")]
Seed = Annotated[int, typer.Option(help="Seed of the first episode.")]
Out = Annotated[Path, typer.Option(help="Output folder.")]


def main(
    families: Families = None,
    episodes: Episodes = 20,
    seed: Seed = 0,
    out: Out = OUT,
    fresh: Fresh = False,
) -> None:
    """Record the missing data sets, and print their mean returns."""
    names = words_of("--families", families) or list(FAMILIES)
    for family in names:
        one_of("families", family, tuple(FAMILIES))
    check_counts(1, episodes=episodes)
    check_counts(0, seed=seed)
    if find_spec("minari") is None:
        raise ValueError("scripts.datasets needs Minari: pip install minari")
    check_folder(out)
    seeds = range(seed, seed + episodes)
    missing = [family for family in names if fresh or not is_recorded(out, family, seeds)]
    for family in tracked(missing, "data sets"):
        record(out, family, seeds)
    console().print(_table(out, names))
    typer.echo(f"-> {out}")


def _table(out: Path, families: Sequence[str]) -> Table:
    """Return a table of the data sets with their sizes, mean returns and normalised scores."""
    table = Table("data set", "policy", title="Data sets", title_justify="left")
    for name in ("episodes", "steps", "mean return", "score", "MB"):
        table.add_column(name, justify="right")
    for family in families:
        for level in LEVELS:
            about = metadata_of(out, family, level)
            low, high = about["ref_min_score"], about["ref_max_score"]
            score = (about["mean_return"] - low) / (high - low)
            counts = (str(about["total_episodes"]), str(about["total_steps"]))
            means = f"{about['mean_return']:.3f}", f"{score:.3f}", f"{about['dataset_size']:.1f}"
            table.add_row(dataset_name(family, level), about["algorithm_name"], *counts, *means)
    return table


app = command(main, __doc__)

if __name__ == "__main__":
    app()
