"""Compare policies on the same events in several settings, or in a suite of tasks.

Writes rows.parquet, rows.csv, summary.csv, provenance.json and a picture per setting. The settings
with page fragments (quality, random) use CrawlLongevity-v0 and rank policies by the divergence of
the copies (lower is better).

With --suite, all shipped policies and agents play a fixed list of tasks, and those of your own
beside them; the result is a leaderboard: README.md, leaderboard.csv, tracks.csv, scores.csv,
pictures, and report.html, one file to open in a browser, whose path is printed last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from crawl_envs.evaluation import Row
from crawl_envs.instances.longevity import CRAWLS_PER_PAGE, LAWS
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import (
    Fresh,
    at_least,
    command,
    default_folder,
    one_line_errors,
    words_of,
)
from scripts.cli.options import given_only, refuse
from scripts.present import tables
from scripts.study.comparisons import (
    BANDWIDTH,
    LOWER,
    Comparison,
    Sizes,
    choices,
    compare,
    is_id,
    policy_factories,
)
from scripts.study.rows import check_folder, write_csv, write_provenance
from scripts.study.runner import STOPPED, Store, check_kept, run
from scripts.study.workers import DEFAULT_BACKEND, Backend, WorkerCount, Workers, chosen_workers
from scripts.suite.tasks import SUITES

SETTINGS = "uniform,noisy,garden-handbook"
OUT, QUICK_OUT = Path("results/benchmark"), Path("runs/benchmark")
SEEDS, QUICK_SEEDS = 20, 5
SUITE_SEEDS = {"crawl-v1": 10, "mini": 3}
HORIZON, QUICK_HORIZON = 200.0, 20.0
NUM_PAGES, DAYS_PER_CRAWL, SIGNALS = 100, 5.0, "directory"

Settings = Annotated[
    str | None,
    typer.Option(
        help=f"Comma-separated list of {', '.join(choices())}, or ids of environments, such as "
        "module:MyCrawl-v0, which keep their own sizes.",
        show_default=f"{SETTINGS}; none with --trace",
    ),
]
Policies = Annotated[
    str | None,
    typer.Option(
        help="Comma-separated list of Name or Name:key=value.",
        show_default="those that behave differently in the setting",
    ),
]
Seeds = Annotated[
    int | None, typer.Option(help="Number of seeds.", show_default=f"{SEEDS}, fewer in suites")
]
Pages = Annotated[
    int | None,
    typer.Option(help="Number of pages of a synthetic setting.", show_default=str(NUM_PAGES)),
]
Bandwidth = Annotated[
    float | None,
    typer.Option(
        help="Crawls per unit time of a synthetic setting.",
        show_default=f"{BANDWIDTH:g}; {CRAWLS_PER_PAGE:g} per page for {' and '.join(LAWS)}",
    ),
]
Horizon = Annotated[
    float | None,
    typer.Option(help="Length of a synthetic setting, in time units.", show_default=f"{HORIZON:g}"),
]
TraceFolder = Annotated[
    str | None,
    typer.Option("--trace", help="Add a recorded trace: a folder with fitted parameters."),
]
Signals = Annotated[
    str | None,
    typer.Option(
        help="Signals of traces: directory, mentions, both or none.", show_default=SIGNALS
    ),
]
DaysPerCrawl = Annotated[
    float | None,
    typer.Option(
        help="Budget on traces: mean days between two crawls of a page.",
        show_default=f"{DAYS_PER_CRAWL:g}",
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Few seeds and short episodes, as a smoke test.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Output folder.",
        show_default=f"{OUT}, {QUICK_OUT} with --quick, or runs/benchmark-OPTIONS",
    ),
]

Suite = Annotated[
    str | None,
    typer.Option(help=f"Play a suite: {' or '.join(SUITES)}.", show_default="no suite"),
]
Agents = Annotated[
    str | None,
    typer.Option(
        help="With --suite, comma-separated list of output folders of scripts.train.",
        show_default="the shipped ones",
    ),
]
Score = Annotated[
    bool,
    typer.Option(
        "--score",
        help="With --suite, make tables, pictures and report anew of the rows, leaderboard.csv and "
        "provenance.json that an earlier run wrote; nothing is played.",
    ),
]


def check_numbers(**named: float) -> None:
    """Raise ValueError unless integers are >= 1 and other numbers positive and finite."""
    for name, value in named.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, int) and value < 1:
            raise ValueError(f"{option} must be >= 1, got {value}")
        if isinstance(value, float) and not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{option} must be finite and > 0, got {value:g}")


def folder_of(quick: bool, own: Mapping[str, Any]) -> Path:
    """Return the default folder, which names the options that the user set."""
    if not own:
        return QUICK_OUT if quick else OUT
    words = [f"{name}={value}" for name, value in own.items()]
    return default_folder("benchmark", *(["quick"] if quick else []), *words)


def rank(
    suite: str,
    entrants: Sequence[str],
    seeds: int | None,
    out: Path | None,
    workers: int | None,
    backend: str,
    console: Console,
    fresh: bool,
    score: bool,
) -> None:
    """Play a suite and write its leaderboard; with entrants of one's own, under ``runs``."""
    from scripts.suite.leaderboard import REPORT, play_suite

    one_of("--suite", suite, tuple(SUITES))
    if fresh and score:
        raise ValueError("--fresh and --score exclude each other")
    count = SUITE_SEEDS.get(suite, SEEDS) if seeds is None else seeds
    check_numbers(seeds=count)
    at_least(1, seeds=count)
    usual = default_folder(suite) if entrants or seeds is not None else Path("results") / suite
    folder = out or usual
    players = chosen_workers(backend, workers)
    with one_line_errors(STOPPED.format(folder)):
        store = play_suite(
            suite, entrants, count, folder, players, console, fresh=fresh, score=score
        )
    console.print(f"\n{took(store, players)} -> {folder}")
    console.print(f"{folder / REPORT}", soft_wrap=True, markup=False)


def comparisons(
    names: Sequence[str], trace: str | None, specs: Sequence[str], sizes: Sizes
) -> list[Comparison]:
    """Return the comparisons of the named settings and of the user's own trace.

    Raises:
        ValueError: an unknown setting or policy, or one that its environment rejects.
    """
    for name in names:
        if not is_id(name):
            one_of("setting", name, choices(), "the id of an environment")
    policy_factories(specs)
    chosen = [
        compare(name, specs, sizes) for name in dict.fromkeys((*names, *filter(None, [trace])))
    ]
    taken = [item.setting.name for item in chosen]
    if len(set(taken)) < len(taken):
        raise ValueError(f"--trace {trace} has the name of another setting: {taken[-1]!r}")
    for item in chosen:
        item.setting.check()
    return chosen


def main(
    settings: Settings = None,
    suite: Suite = None,
    policies: Policies = None,
    agents: Agents = None,
    seeds: Seeds = None,
    num_pages: Pages = None,
    bandwidth: Bandwidth = None,
    horizon: Horizon = None,
    trace: TraceFolder = None,
    signals: Signals = None,
    days_per_crawl: DaysPerCrawl = None,
    quick: Quick = False,
    workers: WorkerCount = None,
    backend: Backend = DEFAULT_BACKEND,
    out: Out = None,
    fresh: Fresh = False,
    score: Score = False,
) -> None:
    """Run the benchmark."""
    console = tables.console()
    sizes = {"num_pages": num_pages, "bandwidth": bandwidth, "horizon": horizon}
    sizes |= {"days_per_crawl": days_per_crawl, "signals": signals}
    if suite is not None:
        own = {"settings": settings, "trace": trace, **sizes, "quick": quick or None}
        refuse(own, "with --suite")
        entrants = [*words_of("--policies", policies), *words_of("--agents", agents)]
        rank(suite, entrants, seeds, out, workers, backend, console, fresh, score)
        return
    refuse({"agents": agents, "score": score or None}, "without --suite")
    own = given_only({"trace": trace, **sizes})
    folder = out or folder_of(quick, own)
    count = seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS
    chosen = sizes_of(own, quick, count)
    players = chosen_workers(backend, workers)
    names = words_of("--settings", settings if settings is not None or trace else SETTINGS)
    compared = comparisons(names, trace, words_of("--policies", policies), chosen)
    check_folder(folder)
    store = Store(folder / "rows.parquet", "benchmark", [item.setting for item in compared])
    store.load(keep=not fresh)
    play(compared, count, store, players, folder, console)


def sizes_of(own: Mapping[str, Any], quick: bool, count: int) -> Sizes:
    """Return the sizes of the settings, of given options and defaults.

    Raises:
        ValueError: a size, or the number of seeds, is out of range.
    """
    defaults = {
        "num_pages": NUM_PAGES,
        "bandwidth": None,
        "horizon": QUICK_HORIZON if quick else HORIZON,
        "days_per_crawl": DAYS_PER_CRAWL,
        "signals": SIGNALS,
    }
    chosen = {name: own.get(name, default) for name, default in defaults.items()}
    check_numbers(seeds=count, num_pages=chosen["num_pages"])
    at_least(1, seeds=count)
    check_numbers(**{name: value for name, value in chosen.items() if isinstance(value, float)})
    return Sizes(**chosen)


def play(
    compared: Sequence[Comparison],
    count: int,
    store: Store,
    players: Workers,
    folder: Path,
    console: Console,
) -> None:
    """Play what has no rows yet, and write the tables and pictures."""
    settings = [item.setting for item in compared]
    check_kept(settings, count, store)
    with one_line_errors(STOPPED.format(folder)):
        run(settings, count, store, players, console)
    report(compared, store, folder, console)
    write_provenance(
        folder / "provenance.json", "scripts.benchmark", store.seconds, rows=len(store.rows)
    )
    console.print(f"\n{took(store, players)} -> {folder}")


def took(store: Store, players: Workers) -> str:
    """Return the time and the workers of this run as text."""
    return f"{store.run_seconds:.0f} s on {tables.counted(players.count, 'worker')}"


def report(compared: Sequence[Comparison], store: Store, folder: Path, console: Console) -> None:
    """Print a table and write a picture of each setting; write rows and summary as CSV."""
    records = []
    for item in compared:
        name = item.setting.name
        rows = [row for row in store.rows if row.setting == name]
        console.print()
        console.print(tables.comparison_table(rows, item))
        draw(rows, folder / f"{re.sub('[/:]', '-', name)}.png", item)
        records += tables.summary_records(rows, item.references, item.metrics)
    write_csv(folder / "summary.csv", tables.SUMMARY_COLUMNS, records)
    write_csv(folder / "rows.csv", Row._fields, store.rows)


def draw(rows: Sequence[Row], path: Path, compared: Comparison) -> None:
    """Draw the first metric of every policy with 95% intervals, best on top, and its differences.

    Differences to the first reference are paired. Bounds are lines, policies are dots.
    """
    import pandas as pd

    from scripts.present import charts
    from scripts.study.means import means, paired, table

    metric, reference, bounds = compared.metrics[0], compared.references[0], compared.setting.bounds
    values = table(rows, metric)
    summary = means(values).sort_values("mean", ascending=metric in LOWER)
    level, close = (
        f"mean over {values.seed.nunique()} {compared.over}",
        f"minus {reference}, paired",
    )
    apart = means(paired(values, values[values.policy == reference]))
    data = pd.concat([summary.assign(panel=level), apart.assign(panel=close)])
    names = [name for name in summary.policy if name in compared.setting.policies]
    mean = summary.set_index("policy")["mean"]
    rules = [
        charts.Rule(mean[label], compared.lines[label], dash, level)
        for label, dash in zip(bounds, charts.DASHES, strict=False)
    ]
    charts.dots(
        data[data.policy.isin(names)].rename(columns={"policy": "y", "mean": "x"}),
        path,
        charts.Frame(
            compared.title,
            {
                level: charts.Axis(f"{metric}:\n{charts.METRIC_UNITS[metric]}"),
                close: charts.Axis("difference, with its 95% interval"),
            },
            shared="y",
            upright=[*rules, charts.Rule(0.0, None, "-", close)],
        ),
        names=names,
    )


app = command(main, __doc__)

if __name__ == "__main__":
    app()
