"""Plays of a backtest: which policies, and their rows in a folder, with which it goes on."""

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
from scripts.live.backtesting import OWN, REFERENCE, SHARES, Backtest, Effort
from scripts.present.tables import counted
from scripts.study.entrants import candidate_of, failure
from scripts.study.runner import STOPPED, Store, opened, play_missing
from scripts.study.workers import Workers


def names_of(policies: str | None, agents: str | None, log: CrawlLog, effort: Effort) -> list[str]:
    """Return the names of policies and agents, the reference first.

    ``policies`` and ``agents`` are names separated by commas. Where no policies are given, they
    depend on the log and the effort of its backtest.

    Raises:
        ValueError: an unknown name.
    """
    slow = [] if effort.shares != SHARES else [SLOW]
    defaults = ["Greedy", *["GreedyNCIS"] * bool(log.sources), *slow]
    names = defaults if policies is None else words_of("--policies", policies)
    chosen = list(dict.fromkeys([REFERENCE, *names, *words_of("--agents", agents)]))
    for name in chosen:
        candidate_of(name)
    return chosen


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
    """Play the policies in draws of a seed where the folder has no rows yet; return the rows."""
    digest = test.digest(seed)
    plays = backtesting.measurements(test, digest, names, effort.shares)
    store = opened(folder, "backtest", plays, fresh=fresh)
    units = {
        (each.name, name, k) for each in plays for name in each.labels for k in range(effort.draws)
    }
    if missing := units - store.done:
        with one_line_errors(STOPPED.format(folder)):
            test = test.drawn(effort.draws, seed)
            print_time(test, effort.shares, missing, players.count)
            plays = [replace(each, test=test) for each in plays]
            play_missing(plays, effort.draws, store, players, Console(stderr=True))
    return store


def print_time(
    test: Backtest, shares: Sequence[float], missing: Set[tuple[str, str, int]], workers: int
) -> None:
    """Print about how long the missing plays of each policy take, if it is over a minute."""
    for name, count in Counter(policy for _, policy, _ in missing if policy != OWN).items():
        try:
            minutes = test.seconds(name, shares) * count / workers / 60.0
        except Exception as error:
            raise failure(f"{name} in a short play", error, candidate_of(name).factory) from error
        if minutes > 1.0:
            plays = f"{counted(count, 'play')} of {name} take about {minutes:.0f} minutes"
            way_out = "fewer --policies or --draws take less"
            Console(stderr=True).print(f"{plays}; {way_out}", soft_wrap=True)
