"""Backtest policies on a crawl log: how fresh would each have kept the pages.

The first half of the log is what policies know. In the second half they crawl instead of the log's
own crawler, at several budgets. Changes between two crawls are not known; they are drawn several
times so that they agree with the log, and the intervals tell how much that leaves open. Signals are
those of the log.

Writes rows.parquet (freshness of every draw), backtest.csv, backtest.png and provenance.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import policies as crawl_policies
from scripts.logs import backtesting, options
from scripts.logs.backtesting import OWN, SHARES, Backtest, Outcome
from scripts.reporting import tables
from scripts.reporting.commands import (
    at_least,
    command,
    default_folder,
    one_line_errors,
    words_of,
)
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.runner import Store, run
from scripts.reporting.workers import DEFAULT_BACKEND, Backend, WorkerCount, Workers, chosen_workers

POLICIES = "RoundRobin,Greedy,BeliefNCIS"
WITH_SIGNALS = "RoundRobin,Greedy,GreedyNCIS,BeliefNCIS"
CAVEAT = (
    "Intervals (95%) hold if changes of a page come one by one. If they come in bursts, freshness "
    "is lower than shown, for every row alike; the saved crawls are hardly affected."
)

Policies = Annotated[
    str | None,
    typer.Option(
        help="Policies: a comma-separated list of names, or module:Class for one of your own.",
        show_default=f"{POLICIES}; with signals {WITH_SIGNALS}",
    ),
]
Start = Annotated[
    float | None, typer.Option(help="First played day of the log.", show_default="its middle")
]
Draws = Annotated[int, typer.Option(help="Draws of the unknown changes.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the draws.")]
Out = Annotated[Path | None, typer.Option(help="Folder.", show_default="runs/backtest-LOG")]


def main(
    log: options.Log,
    column: options.Column = None,
    format: options.Format = None,
    events: options.Events = None,
    pages: options.Pages = None,
    policies: Policies = None,
    start: Start = None,
    draws: Draws = backtesting.DRAWS,
    seed: Seed = 0,
    workers: WorkerCount = None,
    backend: Backend = DEFAULT_BACKEND,
    out: Out = None,
) -> None:
    """Run the backtest."""
    folder = out or default_folder("backtest", log.name)
    at_least(2, draws=draws)
    chosen = chosen_workers(backend, workers)
    recorded = options.read_log(log, column, format, events)
    names = _names(policies or (WITH_SIGNALS if recorded.sources else POLICIES))
    importance, group = options.weights_and_groups(recorded, pages)
    test = backtesting.backtest(
        recorded, start=start, importance=importance, group=group, draws=draws, seed=seed
    )
    test.check(names)
    check_folder(folder)
    store = played_in(folder, test, names, draws, chosen)
    outcomes = backtesting.outcomes(store.rows, names, SHARES, test.widening)
    report(test, outcomes, log.name, folder)
    write_provenance(
        folder / "provenance.json", "scripts.backtest", store.seconds, rows=len(store.rows)
    )
    tables.console().print(f"{store.seconds:.0f} s -> {folder}", soft_wrap=True)


def played_in(
    folder: Path, test: Backtest, names: Sequence[str], draws: int, chosen: Workers
) -> Store:
    """Play the policies and return the rows."""
    saved = folder / "backtest.npz"
    played = backtesting.measurements(saved, names, SHARES)
    store = Store(folder / "rows.parquet", "backtest", played)
    try:
        backtesting.save(saved, test)
        with one_line_errors(f"stopped; {folder} has the rows so far"):
            run(played, draws, store, chosen, Console(stderr=True))
    finally:
        saved.unlink(missing_ok=True)
    return store


def _names(policies: str) -> list[str]:
    """Return the names of policies; ValueError for an unknown one."""
    names = list(dict.fromkeys(words_of("--policies", policies)))
    for name in names:
        crawl_policies.find(name)
    if not names:
        raise ValueError("policies must name at least one policy")
    return names


def report(test: Backtest, outcomes: Sequence[Outcome], title: str, folder: Path) -> None:
    """Print the table, and write it and the picture."""
    from scripts.logs.pictures import draw_backtest

    columns = ("policy", "share of crawls", "crawls per day", *backtesting.MEASURED)
    records = [
        (item.policy, item.share, item.share * test.crawls_per_day, *item.numbers())
        for item in outcomes
    ]
    write_csv(folder / "backtest.csv", columns, records)
    draw_backtest(folder / "backtest.png", outcomes, test.crawls_per_day, title)
    console = tables.console()
    console.print(table_of(test, outcomes, title))
    console.print(CAVEAT)


def table_of(test: Backtest, outcomes: Sequence[Outcome], title: str) -> Table:
    """Return the freshness with as many crawls as the log, and the saved crawls."""
    days = test.end - test.start
    table = Table(
        title=f"{title}: the last {days:.3g} days, {test.crawls_per_day:.4g} crawls per day",
        title_justify="left",
    )
    for name in ("policy", "freshness", f"minus {OWN}", "crawls saved at the same freshness"):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for item in outcomes:
        if item.share != 1.0:
            continue
        fresh = tables.plus_minus(*item.freshness)
        if item.policy == OWN:
            table.add_row(OWN, fresh, "", "")
            continue
        ahead = tables.plus_minus(*item.ahead, signed=True)
        table.add_row(item.policy, fresh, ahead, saved_in_words(item))
    return table


def saved_in_words(item: Outcome) -> str:
    """Return the saved crawls as a percentage with its interval, or the bound that is known."""
    mean, half = 100.0 * item.saved.mean, 100.0 * item.saved.half_width
    if item.saved.mean >= 1.0 - SHARES[0] - 1e-9:
        return f"at least {mean:.0f}%"
    if item.saved.mean <= 1.0 - SHARES[-1] + 1e-9:
        return f"none: needs over {SHARES[-1]:g} times as many"
    return f"{mean:.0f}% ± {half:.0f}%"


app = command(main, __doc__)

if __name__ == "__main__":
    app()
