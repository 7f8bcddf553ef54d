"""Backtest policies on a crawl log: how fresh would each have kept the pages.

The first half of the log is what policies know. In the second half they crawl instead of the log's
own crawler, at several budgets, and so do agents in folders (--agents). Changes between two crawls
are not known; they are drawn several times so that they agree with the log, and the intervals tell
how much that leaves open. Signals are those of the log. RoundRobin is always played, as what a
crawler reaches without knowing anything.

The same command goes on after an interruption; with another log or seed it needs another folder, or
``--fresh``.

First it says what the log contains. Writes summary.csv and log.png with that, rows.parquet
(freshness of every draw), backtest.csv, backtest.png and provenance.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import policies as crawl_policies
from crawl_envs.logs import CrawlLog
from scripts.cli.commands import (
    Fresh,
    at_least,
    command,
    default_folder,
    one_line_errors,
    words_of,
)
from scripts.logs import backtesting, options
from scripts.logs.backtesting import OWN, REFERENCE, SHARES, STANDARD, Backtest, Effort, Outcome
from scripts.logs.learning import check_hindsight
from scripts.logs.summary import print_summary, write_summary
from scripts.present import tables
from scripts.study.rows import check_folder, write_csv, write_provenance
from scripts.study.runner import STOPPED, Store, check_kept, run
from scripts.study.workers import DEFAULT_BACKEND, Backend, WorkerCount, Workers, chosen_workers

POLICIES = "Greedy,BeliefNCIS"
WITH_SIGNALS = "Greedy,GreedyNCIS,BeliefNCIS"
SLOW = "BeliefNCIS"
ARCHIVES = ("cdx", "cdxj")
CAVEAT = (
    "Intervals (95%) allow for changes in bursts, for rates that rise or fall, and for pages that "
    "change together. Of those of logs simulated by eight laws, 95 to 99% contained the truth, and "
    "by each law at least 80%."
)
NO_AIM = (
    "Your crawls are less fresh than as many in turn ({ahead} for RoundRobin), so that they aimed "
    "at something else. RoundRobin alone saves {saved}: compare policies with it. Savings against "
    "your crawls say little about a policy."
)
ARCHIVE = (
    "This is the index of an archive, whose captures were seldom chosen to keep pages fresh: "
    "compare policies with RoundRobin."
)

Policies = Annotated[
    str | None,
    typer.Option(
        help="Policies: a comma-separated list of names, or module:Class for one of your own.",
        show_default=f"{REFERENCE},{POLICIES}; with signals {REFERENCE},{WITH_SIGNALS}",
    ),
]
Agents = Annotated[
    str | None,
    typer.Option(
        help="Folders of agents to play too, such as of python -m scripts.train index --log, or "
        "names of shipped ones."
    ),
]
Start = Annotated[
    float | None, typer.Option(help="First played day of the log.", show_default="its middle")
]
Draws = Annotated[
    int | None,
    typer.Option(
        help="Draws of the unknown changes.",
        show_default=f"{STANDARD.draws}, or fewer of a large log",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the draws.")]
Out = Annotated[Path | None, typer.Option(help="Folder.", show_default="runs/backtest-LOG")]


def main(
    log: options.Log,
    column: options.Column = None,
    format: options.Format = None,
    events: options.Events = None,
    pages: options.Pages = None,
    time_unit: options.TimeUnit = None,
    clock_tolerance: options.ClockTolerance = options.CLOCK_TOLERANCE,
    max_bad: options.MaxBad = options.MAX_BAD,
    merge: options.Merge = None,
    policies: Policies = None,
    agents: Agents = None,
    start: Start = None,
    draws: Draws = None,
    seed: Seed = 0,
    workers: WorkerCount = None,
    backend: Backend = DEFAULT_BACKEND,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Run the backtest."""
    folder, title = out or default_folder("backtest", log[0].name), log[0].name
    if draws is not None:
        at_least(2, draws=draws)
    chosen = chosen_workers(backend, workers)
    reading = options.Reading(column, format, events, time_unit, clock_tolerance, max_bad, merge)
    recorded = options.read_log(log, reading)
    effort = backtesting.effort_for(recorded)
    names = _names(policies, recorded, effort)
    names += [name for name in words_of("--agents", agents) if name not in names]
    effort = effort._replace(draws=effort.draws if draws is None else draws)
    importance, group = options.weights_and_groups(recorded, pages, merge)
    print_summary(recorded, title)
    test = backtesting.backtest(recorded, start=start, importance=importance, group=group, draws=0)
    test.check(names)
    check_hindsight(names, recorded, test.start)
    check_folder(folder)
    if effort.above:
        tables.console().print(
            _less(effort, policies is None and effort.shares != SHARES), soft_wrap=True
        )
    store = played_in(folder, test, names, effort, seed, chosen, fresh)
    rows = [row for row in store.rows if row.seed < effort.draws]
    outcomes = backtesting.outcomes(rows, names, effort.shares, test.widening)
    archive = format in ARCHIVES or bool({f".{name}" for name in ARCHIVES} & set(log[0].suffixes))
    write_summary(recorded, title, folder)
    report(test, outcomes, title, folder, archive)
    write_provenance(
        folder / "provenance.json", "scripts.backtest", store.seconds, rows=len(store.rows)
    )
    tables.console().print(f"{store.seconds:.0f} s -> {folder}", soft_wrap=True)


def played_in(
    folder: Path,
    test: Backtest,
    names: Sequence[str],
    effort: Effort,
    seed: int,
    chosen: Workers,
    fresh: bool,
) -> Store:
    """Play the policies where no rows are there yet, and return the rows.

    The draws are kept in the folder until all are played.
    """
    saved, digest = folder / "backtest.npz", test.digest(seed)
    played = backtesting.measurements(saved, digest, names, effort.shares)
    store = Store(folder / "rows.parquet", "backtest", played)
    store.load(keep=not fresh)
    every = {
        (of.name, name, k) for of in played for name in of.labels for k in of.seeds(effort.draws)
    }
    with one_line_errors(STOPPED.format(folder)):
        if not every <= store.done:
            if not backtesting.has(saved, digest, effort.draws):
                backtesting.save(saved, test.drawn(effort.draws, seed), digest)
            check_kept(played, effort.draws, store)
            run(played, effort.draws, store, chosen, Console(stderr=True))
    saved.unlink(missing_ok=True)
    return store


def _less(effort: Effort, left_out: bool) -> str:
    """Return what is done less for a large log."""
    (_, draws, first, passes, shares), end = STANDARD, f"; {SLOW} is left out." * left_out
    return (
        f"{effort.draws} draws (else {draws}) after {effort.first} passes (else {first}), "
        f"{effort.passes} apart (else {passes}), and {len(effort.shares)} budgets (else "
        f"{len(shares)}), as the log has over {effort.above} crawls{end or '.'}"
    )


def _names(policies: str | None, log: CrawlLog, effort: Effort) -> list[str]:
    """Return the names of policies, the reference first; ValueError for an unknown one."""
    given = words_of("--policies", policies or (WITH_SIGNALS if log.sources else POLICIES))
    if policies is None and effort.shares != SHARES:
        given.remove(SLOW)
    names = list(dict.fromkeys([REFERENCE, *given]))
    for name in names:
        crawl_policies.find(name)
    if not given:
        raise ValueError("policies must name at least one policy")
    return names


def report(
    test: Backtest, outcomes: Sequence[Outcome], title: str, folder: Path, archive: bool
) -> None:
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
    if archive:
        console.print(ARCHIVE)
    [alike] = [item for item in outcomes if item.policy == REFERENCE and item.share == 1.0]
    if alike.ahead.mean > alike.ahead.half_width:
        ahead = tables.plus_minus(*alike.ahead, signed=True)
        console.print(NO_AIM.format(ahead=ahead, saved=saved_in_words(alike)))


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
