"""Plays of a backtest: which policies, and their rows in a folder, with which it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from crawl_envs.logs import CrawlLog
from scripts.cli.commands import one_line_errors, words_of
from scripts.logs import backtesting
from scripts.logs.backtest_report import SLOW
from scripts.logs.backtesting import REFERENCE, SHARES, Backtest, Effort
from scripts.study.entrants import candidate_of
from scripts.study.runner import STOPPED, Store, opened, play_missing
from scripts.study.workers import Workers

POLICIES = "Greedy,BeliefNCIS"
WITH_SIGNALS = "Greedy,GreedyNCIS,BeliefNCIS"


def names_of(policies: str | None, agents: str | None, log: CrawlLog, effort: Effort) -> list[str]:
    """Return the names of policies and agents, the reference first.

    Args:
        policies: names separated by commas; None for the usual ones.
        agents: the same of agents; None for none.
        log: the log.
        effort: of its backtest.

    Raises:
        ValueError: an unknown name.
    """
    usual = WITH_SIGNALS if log.sources else POLICIES
    names = words_of("--policies", usual if policies is None else policies)
    if policies is None and effort.shares != SHARES:
        names.remove(SLOW)
    names += words_of("--agents", agents)
    chosen = list(dict.fromkeys([REFERENCE, *names]))
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
    """Play the policies where no rows are there yet, and return the rows.

    The draws, of a seed, are kept in the folder until all are played.
    """
    saved, digest = folder / "backtest.npz", test.digest(seed)
    played = backtesting.measurements(saved, digest, names, effort.shares)
    store = opened(folder, "backtest", played, fresh=fresh)
    every = {
        (of.name, name, k) for of in played for name in of.labels for k in of.seeds(effort.draws)
    }
    if not every <= store.done:
        with one_line_errors(STOPPED.format(folder)):
            if not backtesting.has(saved, digest, effort.draws):
                backtesting.save(saved, test.drawn(effort.draws, seed), digest)
        play_missing(played, effort.draws, store, players, Console(stderr=True))
    saved.unlink(missing_ok=True)
    return store
