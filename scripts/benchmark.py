"""Compare policies on the same events in several settings.

Writes rows.parquet, rows.csv, summary.csv, provenance.json and a picture per setting. The settings
with page fragments (quality, random) use CrawlLongevity-v0 and rank policies by the divergence of
the copies (lower is better). To rank policies in a suite of tasks, use python -m scripts.rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from scripts.cli.commands import command_of
from scripts.cli.options import changed, check_counts, default_folder, words_of
from scripts.present import tables
from scripts.present.comparison import report
from scripts.study.comparisons import Sizes, choices, comparisons
from scripts.study.runner import opened, play_missing
from scripts.study.workers import PlayOptions

SETTINGS = "uniform,noisy,garden-handbook"
OUT, QUICK_OUT = Path("results/benchmark"), Path("runs/benchmark")
SEEDS, QUICK_SEEDS = 20, 5
HORIZON, QUICK_HORIZON = 200.0, 20.0
Settings = Annotated[
    str | None,
    Option(
        help=f"Comma-separated list of {', '.join(choices())}, or ids of environments, such as "
        "module:MyCrawl-v0, which keep their own sizes.",
        show_default=f"{SETTINGS}; none with --trace",
    ),
]


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions(PlayOptions):
    """Arguments of ``scripts.benchmark``."""

    settings: Settings = None
    policies: Annotated[
        str | None,
        Option(
            help="Comma-separated list of Name or Name:key=value.",
            show_default="all that behave differently in the setting",
        ),
    ] = None
    agents: Annotated[
        str | None,
        Option(
            help="Comma-separated output folders of scripts.train, or names of shipped agents.",
            show_default="none",
        ),
    ] = None
    seeds: Annotated[
        int | None, Option(help="Number of seeds.", show_default="20; 5 with --quick")
    ] = None
    num_pages: Annotated[int, Option(help="Number of pages of a synthetic setting.")] = 100
    bandwidth: Annotated[
        float | None,
        Option(
            help="Crawls per unit time of a synthetic setting.",
            show_default="100; 0.1 per page for quality and random",
        ),
    ] = None
    horizon: Annotated[
        float | None, Option(help="Time units of a synthetic setting.", show_default="200")
    ] = None
    trace: Annotated[
        str | None, Option(help="Add a recorded trace: a folder with fitted parameters.")
    ] = None
    signals: Annotated[
        str, Option(help="Signals of traces: directory, mentions, both or none.")
    ] = "directory"
    days_per_crawl: Annotated[
        float, Option(help="Budget on traces: mean days between two crawls of a page.")
    ] = 5.0
    quick: Annotated[
        bool, Option("--quick", help="Few seeds and short episodes, as a smoke test.")
    ] = False
    out: Annotated[
        Path | None,
        Option(
            help="Output folder.",
            show_default="results/benchmark; runs/benchmark with --quick, or -OPTIONS",
        ),
    ] = None

    @property
    def sizes(self) -> Sizes:
        """Sizes of the settings that the options ask for.

        Raises:
            ValueError: a size is out of range.
        """
        short = QUICK_HORIZON if self.quick else HORIZON
        horizon = short if self.horizon is None else self.horizon
        sizes = Sizes(self.num_pages, self.bandwidth, horizon, self.days_per_crawl, self.signals)
        sizes.check()
        return sizes


def main(options: BenchmarkOptions) -> None:
    """Run the benchmark."""
    folder = options.out or folder_of(options)
    default_seeds = QUICK_SEEDS if options.quick else SEEDS
    count = default_seeds if options.seeds is None else options.seeds
    check_counts(1, seeds=count)
    sizes, players, console = options.sizes, options.players, tables.console()
    settings_named = options.settings is not None or options.trace
    names = words_of("--settings", options.settings if settings_named else SETTINGS)
    specs = words_of("--policies", options.policies) + words_of("--agents", options.agents)
    compared = comparisons(names, options.trace, specs, sizes)
    settings = [item.setting for item in compared]
    store = opened(folder, "benchmark", settings, fresh=options.fresh)
    play_missing(settings, count, store, players, console)
    report(compared, store.rows, folder)
    store.sign("scripts.benchmark")
    console.print(f"\n{tables.took(store.run_seconds, players.count)} -> {folder}")


def folder_of(options: BenchmarkOptions) -> Path:
    """Return the default output folder, named after the options that the user set."""
    values = changed(options)
    words = [f"{name}={values[name]}" for name in ("trace", *Sizes._fields) if name in values]
    if not words:
        return QUICK_OUT if options.quick else OUT
    return default_folder("benchmark", *(["quick"] if options.quick else []), *words)


app = command_of(main, BenchmarkOptions, __doc__)

if __name__ == "__main__":
    app()
