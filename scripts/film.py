"""Film two policies side by side on the same events, as a GIF of each environment.

Without arguments there is one film per family: a simple policy and one of the best, in one episode.
Other policies, agents and settings:

    python -m scripts.film CrawlNCIS-v0 --policies RoundRobin,my_module:MyPolicy
    python -m scripts.film CrawlNCIS-v0 --policies GreedyNCIS,runs/index --env-arg instance=noisy
    python -m scripts.film CrawlNCIS-v0 --env-arg num_pages=100 --seed 3

The picture shows the truth: fresh and stale pages, the crawls of the last step, the signals since
the last crawl of each page, and freshness over time. One episode proves nothing: to compare
policies, use scripts.benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crawl_envs.types.arguments import whole
from scripts.cli.commands import command_of
from scripts.cli.options import EnvArgs, default_folder, named_values, words_of
from scripts.present import tables
from scripts.present.films import FILMS, film_of, frames_of, save


@dataclass(frozen=True, kw_only=True)
class FilmOptions:
    """Arguments of ``scripts.film``."""

    env_ids: Annotated[
        list[str] | None, Argument(help="Ids, such as CrawlNCIS-v0.", show_default="every family")
    ] = None
    policies: Annotated[
        str | None,
        Option(
            help="Two policies, Name or Name:key=value, or folders of agents; comma-separated.",
            show_default="a simple and a good one",
        ),
    ] = None
    env_arg: EnvArgs = None
    seed: Annotated[int, Option(help="Seed of the episode.")] = 0
    out: Annotated[Path | None, Option(help="Output folder.", show_default="runs/film")] = None


def main(options: FilmOptions) -> None:
    """Write the films."""
    whole("seed", options.seed, 0)
    specs = words_of("--policies", options.policies)
    arguments = named_values(options.env_arg or [])
    ids = options.env_ids or [film.env_id for film in FILMS]
    films = [film_of(env_id, specs, arguments) for env_id in ids]
    for film in films:
        path = (options.out or default_folder("film")) / f"{film.env_id.replace(':', '-')}.gif"
        frames = list(frames_of(film, options.seed))
        save(frames, path)
        size = path.stat().st_size / 1000
        line = f"{' and '.join(film.policies)}: {len(frames)} frames, {size:.0f} kB -> {path}"
        tables.console().print(line, soft_wrap=True)


app = command_of(main, FilmOptions, __doc__)

if __name__ == "__main__":
    app()
