"""Learn an index, which scores pages to crawl next, from the crawls of a log.

The last crawls are held out. The index, change rates and signal quality are learned from the
earlier crawls. The held-out crawls choose the best round of each fit. Rounds of staleness are
compared by the log-loss of changed / not changed, and rounds of values by their likelihood as
exponential variables.
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
    fit_index,
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
"""Share of the crawls that are held out: the latest crawls."""
HIDDEN, LEARNING_RATE = 32, 0.003
FEWEST = {"crawls of pages crawled before": 400, "changes": 40, "crawls without a change": 40}
"""Least counts in a log; the learned and the held-out part each need FEWEST_PATHS paths."""
FEWEST_PATHS = 20


def histories_of(
    log: CrawlLog, group: IntArray, until: float, newborn_prior: bool = True
) -> tuple[History, History]:
    """Return two histories: of the crawls to learn from, and of the later held-out crawls.

    Gone pages are left out, since their changes are unknown.

    Raises:
        ValueError: the log is too small.
    """
    gaps = intervals_until(log, until)
    living = ~np.isin(gaps.page, log.page[log.gone & (log.time <= until)])
    end, changes = (gaps.start + gaps.elapsed)[living], int(gaps.changed[living].sum())
    counts = dict(zip(FEWEST, (end.size, changes, end.size - changes), strict=True))
    for name, fewest in FEWEST.items():
        if counts[name] < fewest:
            raise ValueError(f"log must have at least {fewest} {name}, got {counts[name]}")
    split = float(np.quantile(end, 1.0 - HELD_OUT))
    fitted = fit_log(log, group, until=split, newborn_prior=newborn_prior)
    parameters = parameters_of(log, fitted.quality)
    rest: dict[str, Any] = {"num_sources": max(len(log.sources), 1), **parameters}
    rest["importance"] = np.ones(log.num_pages)
    problem = Problem(log.num_pages, math.nan, **rest)
    last = min(until, float(log.time[-1]))

    def part(first: float, final: float) -> History:
        finish = gaps.start + gaps.elapsed
        crawls = np.flatnonzero(living & (finish > first) & (finish <= final))
        crawls = crawls[np.argsort(finish[crawls], kind="stable")]
        mask = (log.signal_time > first) & (log.signal_time <= final)
        record = Record(
            gaps.page[crawls],
            finish[crawls] - first,
            gaps.elapsed[crawls],
            gaps.signals[:, crawls].astype(np.float64),
            gaps.changed[crawls],
            log.signal_page[mask],
            log.signal_time[mask] - first,
            log.signal_source[mask],
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
    """Learn an index from the crawls of a log, and write it to a folder with its learning curve.

    Returns the log-loss of changed / not changed on the held-out crawls, and their number.

    Args:
        log: crawls and signals.
        group: group of each page, (m,); pages of a group are assumed to be similar.
        out: folder; ``curve.csv`` has the losses on held-out crawls after each round.
        until: crawls after this day are left out.
        seed: seed of the initial weights and the choice of examples.
        fresh: whether to replace an index in the folder.

    Raises:
        ValueError: the log is too small, or the folder has an agent.
        OSError: ``out`` cannot be written.
    """
    check_vacant(out, but=INDEX if fresh else "")
    history, held_out = histories_of(log, group, until)
    check_folder(out)
    started, curve, rounds = time.perf_counter(), [], []
    settings = HIDDEN, LEARNING_RATE, np.random.default_rng(seed), [held_out]
    with ProgressBar("") as bar:
        task = bar.add_task("learning", total=ROUNDS)
        for item in fit_index([history], *settings):
            rounds.append(item)
            curve.append(
                (item.fit, len(rounds), item.loss, round(time.perf_counter() - started, 3))
            )
            bar.advance(task)
    write_csv(out / CURVE, ("fit", "round", "held_out_loss", "seconds"), curve)
    by_fit = [
        [item for item in rounds if (item.weights is None) == first] for first in (True, False)
    ]
    staleness, value = (min(part, key=lambda item: item.loss) for part in by_fit)
    assert value.weights is not None
    about = {"log": first_crawl(log), "until": min(until, float(log.time[-1])), "seed": seed}
    StoredIndex(value.weights, about).save(out)
    return staleness.loss, held_out.record.page.size


def first_crawl(log: CrawlLog) -> str:
    """Return the log's origin and the first crawl's URL; they stay the same when the log grows."""
    return f"{log.origin} {log.urls[log.page[0]]}".strip()


def check_hindsight(names: Sequence[str], log: CrawlLog, start: float) -> None:
    """Raise ValueError if a named index was learned from crawls of this log after ``start``."""
    for name in names:
        if name in POLICIES or not (Path(name) / INDEX).exists():
            continue
        training = StoredIndex.read(name).made
        if training.get("log") == first_crawl(log) and training["until"] > start:
            day = math.floor(1000.0 * start) / 1000.0
            raise ValueError(
                f"agents must be learned from days before {day:g}, got {name}, learned from this "
                f"log until day {training['until']:.6g}; learn it with --until {day:g}"
            )
