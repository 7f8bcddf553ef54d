"""Fit parameters and learn an index from the log of a crawler on a recorded site.

The crawler visits every page at even intervals, and receives both kinds of signals. All pages are
of one host, so they form one group. Unlike in the commands that read a log, pages first crawled
late are in it too.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import numpy as np

from agents.index.learning import fit_index
from agents.index.stored import StoredIndex
from crawl_envs.instances.traces import Signals, Trace
from crawl_envs.instances.traces.windows import sources_of
from crawl_envs.sim.tape import CODE_STRIDE, SIGNAL
from crawl_envs.types import FloatArray
from policies.live.logs.crawl_log import CrawlLog
from scripts.experiments.measures import recorded
from scripts.live.example_log import thinned_log
from scripts.live.fitting import fit_log, parameters_of
from scripts.live.learning import HIDDEN, LEARNING_RATE, histories_of

SIGNALS: Signals = "both"


@lru_cache(maxsize=2)
def logged(site: str, days: int, seed: int) -> CrawlLog:
    """Return the log of a crawler that visits each page of a site every ``days`` days."""
    trace = recorded.record(site)
    log, _ = thinned_log(trace, float(days), "regular", np.random.default_rng([seed, days]))
    return with_both_signals(log, trace)


def with_both_signals(log: CrawlLog, trace: Trace) -> CrawlLog:
    """Return the log with both kinds of recorded signals, as two sources."""
    sources = sources_of(SIGNALS)
    events = trace.window(0.0, trace.days, SIGNALS)
    page, kind = np.divmod(events.code, CODE_STRIDE)
    source = (kind - SIGNAL) // 2
    sent = (source >= 0) & (source < len(sources))
    return dataclasses.replace(
        log,
        signal_page=page[sent].astype(np.int64),
        signal_time=events.time[sent],
        signal_source=source[sent].astype(np.int64),
        sources=sources,
        timed=np.ones(len(sources), np.bool_),
    )


@lru_cache(maxsize=2)
def fitted_to_log(site: str, days: int, seed: int, until: float) -> dict[str, FloatArray]:
    """Return change rates and signal quality of pages, fitted to a site's log until a day."""
    log = logged(site, days, seed)
    return parameters_of(log, fit_log(log, until=until, newborn_prior=False).quality)


def index_of_log(site: str, days: int, seed: int, until: float) -> StoredIndex:
    """Return the index that ``python -m scripts.train index --log`` learns from the log.

    Raises:
        ValueError: the log is too small.
    """
    log = logged(site, days, seed)
    group = np.zeros(log.num_pages, np.int64)
    history, held_out = histories_of(log, group, until, newborn_prior=False)
    options = HIDDEN, LEARNING_RATE, np.random.default_rng(seed), [held_out]
    rounds = [model for model in fit_index([history], *options) if model.weights is not None]
    weights = min(rounds, key=lambda model: model.loss).weights
    assert weights is not None
    return StoredIndex(weights)
