"""Record data sets for offline reinforcement learning, in the format of Minari.

Each family but recorded sites has three: an expert, a medium policy and random crawling, on the
same events. The same seed gives the same bytes. Data sets that are there are kept.

OUT is a folder of Minari: set MINARI_DATASETS_PATH to it, import crawl_envs, and load them with
minari.load_dataset("crawl/ncis/expert-v0"). Minari must be installed (pip install minari).
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from crawl_envs.types.arguments import one_of
from scripts.cli.commands import command
from scripts.cli.options import Fresh, at_least, words_of
from scripts.libraries.datasets import kept, record_anew, table
from scripts.libraries.recording import FAMILIES, LEVELS, described
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
    missing = [name for name in chosen if fresh or not kept(out, name, wanted[name])]
    run_cases(
        {
            family: partial(record_anew, out, family, episodes, seed, wanted[family])
            for family in missing
        }
    )
    console().print(table(out, chosen))
    typer.echo(f"-> {out}")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
