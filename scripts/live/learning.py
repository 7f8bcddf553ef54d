"""An index learned from the crawls of a log: whether each found a change.

The last crawls are held out. Change rates and signal quality of pages are those that the crawls
before tell; so is what the index is learned from, and the held-out crawls choose between rounds: of
the fit of staleness by the log-loss of changed / not changed, of the fit of values by their
likelihood, as if exponential.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.catalog import check_vacant
from agents.index import StoredIndex
from agents.index.learning import (
    ROUNDS,
    WINDOW,
    History,
    learned,
    paths_of,
)
from agents.index.recording import Record
from agents.index.stored import INDEX
from agents.progress import ProgressBar
from agents.runs import CURVE
from crawl_envs.types import IntArray, Problem
from policies.base.registry import POLICIES
from policies.live.logs.crawl_log import CrawlLog
from scripts.live.fitting import fit_log, intervals_until, parameters_of
from scripts.study.rows import check_folder, write_csv

HELD_OUT = 0.25
"""Share of the crawls, the last ones."""
HIDDEN, LEARNING_RATE = 32, 0.003
FEWEST = {"crawls of pages crawled before": 400, "changes": 40, "crawls without a change": 40}
"""What a log must have at least, and of paths FEWEST_PATHS before the held-out crawls and after."""
FEWEST_PATHS = 20


def histories_of(log: CrawlLog, group: IntArray, until: float) -> tuple[History, History]:
    """Return what a log tells before its held-out crawls, and these.

    Pages that were gone by then are left out, since nothing tells how they would have changed.

    Raises:
        ValueError: the log is too small.
    """
    known = intervals_until(log, until)
    living = ~np.isin(known.page, log.page[log.gone & (log.time <= until)])
    end, changes = (known.start + known.elapsed)[living], int(known.changed[living].sum())
    found = dict(zip(FEWEST, (end.size, changes, end.size - changes), strict=True))
    for name, fewest in FEWEST.items():
        if found[name] < fewest:
            raise ValueError(f"log must have at least {fewest} {name}, got {found[name]}")
    split = float(np.quantile(end, 1.0 - HELD_OUT))
    parameters = parameters_of(log, fit_log(log, group, until=split).quality)
    rest: dict[str, Any] = {"num_sources": max(len(log.sources), 1), **parameters}
    rest["importance"] = np.ones(log.num_pages)
    problem = Problem(log.num_pages, math.nan, **rest)
    last = min(until, float(log.time[-1]))

    def part(first: float, final: float) -> History:
        finish = known.start + known.elapsed
        crawls = np.flatnonzero(living & (finish > first) & (finish <= final))
        crawls = crawls[np.argsort(finish[crawls], kind="stable")]
        heard = (log.signal_time > first) & (log.signal_time <= final)
        record = Record(
            known.page[crawls],
            finish[crawls] - first,
            known.elapsed[crawls],
            known.signals[:, crawls].astype(np.float64),
            known.changed[crawls],
            log.signal_page[heard],
            log.signal_time[heard] - first,
            log.signal_source[heard],
        )
        history = History(record, problem, final - first)
        paths = paths_of(history)[2].size
        if paths < FEWEST_PATHS:
            raise ValueError(
                f"log must have at least {FEWEST_PATHS} crawls of pages crawled twice before, from "
                f"day {first:.4g} to {first + (1.0 - WINDOW) * history.end:.4g}, got {paths}"
            )
        return history

    return part(0.0, split), part(split, last)


def learn_from_log(
    log: CrawlLog, group: IntArray, out: Path, *, until: float, seed: int, fresh: bool
) -> tuple[float, int]:
    """Learn an index from the crawls of a log, and write it to a folder with its curve.

    Returns the log-loss of changed / not changed of held-out crawls, and their number.

    Args:
        log: crawls and signals.
        group: group of each page, (m,); pages of a group are taken to be alike.
        out: folder; ``curve.csv`` has the losses on held-out crawls after each round.
        until: crawls after this day are left out.
        seed: of the start and the choice of examples.
        fresh: replace an index that is there.

    Raises:
        ValueError: the log is too small, or there is an agent already.
        OSError: ``out`` cannot be written.
    """
    check_vacant(out, but=INDEX if fresh else "")
    history, held_out = histories_of(log, group, until)
    check_folder(out)
    started, curve, rounds = time.perf_counter(), [], []
    given = HIDDEN, LEARNING_RATE, np.random.default_rng(seed), [held_out]
    with ProgressBar("") as bar:
        task = bar.add_task("learning", total=ROUNDS)
        for each in learned([history], *given):
            rounds.append(each)
            curve.append(
                (each.fit, len(rounds), each.loss, round(time.perf_counter() - started, 3))
            )
            bar.advance(task)
    write_csv(out / CURVE, ("fit", "round", "held_out_loss", "seconds"), curve)
    by_fit = [
        [each for each in rounds if (each.weights is None) == first] for first in (True, False)
    ]
    staleness, value = (min(part, key=lambda each: each.loss) for part in by_fit)
    assert value.weights is not None
    made = {"log": first_crawl(log), "until": min(until, float(log.time[-1])), "seed": seed}
    StoredIndex(value.weights, made).save(out)
    return staleness.loss, held_out.record.page.size


def first_crawl(log: CrawlLog) -> str:
    """Return the time and page of the first crawl, by which a log is known when it grows."""
    return f"{log.origin} {log.urls[log.page[0]]}".strip()


def check_hindsight(names: Sequence[str], log: CrawlLog, start: float) -> None:
    """Raise ValueError for an index that was learned from days of a log that it is to play."""
    for name in names:
        if name in POLICIES or not (Path(name) / INDEX).exists():
            continue
        made = StoredIndex.read(name).made
        if made.get("log") == first_crawl(log) and made["until"] > start:
            day = math.floor(1000.0 * start) / 1000.0
            raise ValueError(
                f"agents must not know the played days: {name} was learned from this log until day "
                f"{made['until']:.6g}, play starts after day {day:g}; learn it with --until {day:g}"
            )
