"""Simulate the policies of a backtest, and store their rows in a folder; a later run resumes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from policies.live.logs import CrawlLog
from scripts.cli.commands import one_line_errors
from scripts.cli.options import words_of
from scripts.live import backtesting
from scripts.live.backtest_report import SLOW
from scripts.live.backtesting import LOG, REFERENCE, SHARES, Backtest, Effort
from scripts.live.log_costs import BLIND
from scripts.present.tables import counted
from scripts.study.entrants import candidate_of, failure
from scripts.study.runner import STOPPED, Store, opened, play_missing
from scripts.study.workers import Workers


def names_of(policies: str | None, agents: str | None, log: CrawlLog, effort: Effort) -> list[str]:
    """Return the names of the policies and agents to simulate, REFERENCE first.

    ``policies`` and ``agents`` are names separated by commas. If ``policies`` is None, the log and
    the effort of its backtest determine the names. If the log has costs, the last of ``Greedy`` and
    ``GreedyNCIS`` is also simulated without knowing them.

    Raises:
        ValueError: an unknown name.
    """
    slow = [] if effort.shares != SHARES else [SLOW]
    defaults = ["Greedy", *["GreedyNCIS"] * bool(log.sources), *slow]
    names = defaults if policies is None else words_of("--policies", policies)
    selected = list(dict.fromkeys([REFERENCE, *names, *words_of("--agents", agents)]))
    for name in selected:
        candidate_of(name)
    if log.cost is not None and (seeing := {"Greedy", "GreedyNCIS"} & {*selected}):
        selected.append(max(seeing) + BLIND)
    return selected


def played_in(
    folder: Path,
    test: Backtest,
    names: Sequence[str],
    effort: Effort,
    players: Workers,
    *,
    seed: int,
    fresh: bool,
) -> Store:
    """Simulate each policy in each draw that has no stored row; return the store of all rows."""
    digest = test.digest(seed)
    runs = backtesting.measurements(test, digest, names, effort.shares)
    store = opened(folder, "backtest", runs, fresh=fresh)
    units = {
        (run.name, name, k) for run in runs for name in run.labels for k in range(effort.draws)
    }
    if missing := units - store.done:
        with one_line_errors(STOPPED.format(folder)):
            test = test.drawn(effort.draws, seed)
            print_time(test, effort.shares, missing, players.count)
            runs = [replace(run, test=test) for run in runs]
            play_missing(runs, effort.draws, store, players, Console(stderr=True))
    return store


def print_time(
    test: Backtest, shares: Sequence[float], missing: Set[tuple[str, str, int]], workers: int
) -> None:
    """Print an estimate of the minutes that each policy's missing plays take, if above one."""
    for name, count in Counter(policy for _, policy, _ in missing if policy != LOG).items():
        try:
            minutes = test.seconds(name, shares) * count / workers / 60.0
        except Exception as error:
            factory = candidate_of(name.removesuffix(BLIND)).factory
            raise failure(f"{name} in a short play", error, factory) from error
        if minutes > 1.0:
            message = f"{counted(count, 'play')} of {name} take about {minutes:.0f} minutes"
            way_out = "use fewer --policies or --draws to save time"
            Console(stderr=True).print(f"{message}; {way_out}", soft_wrap=True)
