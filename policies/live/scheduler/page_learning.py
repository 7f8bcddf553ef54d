"""Decide when a scheduler learns, forgets and explores; :mod:`.learning` has the beliefs."""

from __future__ import annotations

import numpy as np

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.scheduler.ids import first_of_each
from policies.live.scheduler.learning import BEST_CHANGES, MAX_AGE
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.signal_log import signals_until
from policies.live.scheduler.states import ABSENT, GONE, SENT

REWRITTEN = 500
"""Number of pages whose estimates are updated to new shared distributions per report."""


def mean_interval(pages: PageTables) -> float:
    """Return the mean time between two fetches of a page."""
    return len(pages.ids) / pages.pace.fetch_rate


def first_columns(pages: PageTables, count: int) -> dict[str, FloatArray]:
    """Return the columns to assume for ``count`` new pages by name; none without learning."""
    if pages.learner is None:
        return {}
    pages.learner.rescale((len(pages) + count) / pages.pace.fetch_rate)
    first = pages.learner.first()
    return {name: np.repeat(x[..., None], count, axis=-1) for name, x in first.items()}


def learn(pages: PageTables, rows: IntArray, times: FloatArray, changed: BoolArray) -> None:
    """Learn from each page's first fetch in a report, if it has a copy, and store its estimates."""
    learner = pages.learner
    if learner is None:
        return
    copies = pages.lazy.pages["last_crawl"][rows]
    elapsed = times - copies
    useful = (elapsed > 0.0) & np.isfinite(elapsed) & (copies >= pages.last_gap)
    used = np.flatnonzero(first_of_each(rows) & useful)
    signals = np.zeros((used.size, pages.num_sources))
    ready(signals_until)(pages.arguments[0], rows[used], times[used], signals)
    if learner.learn(rows[used], elapsed[used], signals, changed[used]):
        learner.share(pages.living())
    following = learner.next_rows(REWRITTEN)
    following = following[~np.isin(pages.choices.status[following], (ABSENT, GONE))]
    pages.write_learned(np.union1d(rows[used], following))
    pages.admit(following, only_ready=True)
    looked = np.union1d(following, learner.rows_in_turn(used.size, len(pages.ids)))
    explore(pages, np.setdiff1d(looked, rows))


def explore(pages: PageTables, rows: IntArray) -> None:
    """Forget what was learned of pages with very old copies, and give them a high crawl value."""
    assert pages.learner is not None
    ages = pages.pace.time - pages.lazy.pages["last_crawl"][rows]
    old = ages > MAX_AGE * mean_interval(pages)
    old &= ~np.isin(pages.choices.status[rows], (ABSENT, GONE, SENT))
    if not old.any():
        return
    rows, columns = rows[old], pages.columns_at(rows[old])
    pages.learner.begin(rows, columns, ())
    columns |= {"change_rate": BEST_CHANGES / ages[old], "recall": 0.0 * columns["recall"]}
    pages.write(rows, columns, pages.parameters(columns))
    pages.weigh(rows)
    pages.admit(rows, only_ready=True)


def forget(pages: PageTables, since: float) -> None:
    """Forget what was learned of the pages whose copy is later than a time."""
    if pages.learner is None or not pages.columns:
        return
    copies = pages.lazy.pages["last_crawl"]
    rows = np.flatnonzero((copies > since) & np.isfinite(copies))
    pages.learner.begin(rows, {}, ())
    pages.learner.share(pages.living())
    pages.write_learned(np.intersect1d(rows, pages.living()))
