"""Busa-Fekete et al., appendix F: compare tiers of crawl values with an exact lazy search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pandas as pd
from numba import types

import crawl_envs  # noqa: F401  # registers the environments
import policies
from crawl_envs.compiled.compiling import VALUE, compiled, ready
from crawl_envs.compiled.lazy_argmax import (
    add,
    best_page,
    count_crawl,
    count_signal,
    lazy_at,
    lazy_table,
    new_lazy_argmax,
)
from crawl_envs.evaluation import Row
from crawl_envs.types import BoolArray, FloatArray, IntArray, Tracker
from policies import values
from scripts.present import charts
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.means import means, paired, table
from scripts.study.specs import spec

TITLE = "Values computed by tiers (NCIS paper, appendix F)"
COMPUTED = "values per slot"
ID = "CrawlNCIS-v0"
SIZES, BANDWIDTH = (300, 1000), 100.0
SETTINGS = {f"m={size}": {"num_pages": size, "horizon": 60.0} for size in SIZES}
ALL = tuple(SETTINGS)
EXACT, LAZY = "all values", "lazy argmax"
UPPER = 0.5
"""A page is in the upper tier if its value is at least this share of recent choices' mean value."""
MEMORY = 0.05
"""Weight of the newest choice in the mean value of recent choices."""
PARAMETERS = ("importance", "change_rate", "recall", "false_signal_rate")


class Tiers(NamedTuple):
    """Number of slots between computed values in the lower tier, and whether signals add more."""

    every: int
    at_signals: bool


TIERED = {
    f"tiers, every {every}{' and at signals' if at_signals else ''}": Tiers(every, at_signals)
    for every in (10, 100, 1000)
    for at_signals in (False, True)
}
LABELS = (EXACT, LAZY, *TIERED)
SOURCE = "appendix F"
LOSS_MARGIN = 0.001
"""Margin of freshness for "nothing is lost"; ours."""
USABLE = 0.01
"""Margin of freshness within which saved computations count; ours."""


class TierSearch:
    """Choose the page of the largest computed value, with values computed by tiers.

    A page is in the upper tier if its last value is at least UPPER times the mean value of recent
    choices. Upper values are computed in every slot, others every ``every`` slots in turn. With
    ``at_signals``, a signal also triggers a computation.
    """

    def __init__(self, instance: Any, tiers: Tiers) -> None:
        self.parameters = {name: getattr(instance, name) for name in PARAMETERS}
        self.tiers, self.slot, self.computed, self.mean = tiers, 0, 0, 0.0
        self.last, self.counted = np.zeros(instance.num_pages), np.zeros(instance.num_pages)

    def due(self, signals: FloatArray) -> BoolArray:
        """Return for which pages a value is computed in this slot, (m,)."""
        turn = np.arange(self.last.size) % self.tiers.every == self.slot % self.tiers.every
        due: BoolArray = turn | (self.last >= UPPER * self.mean)
        return due | (signals > self.counted) if self.tiers.at_signals else due

    def choose(self, tracker: Tracker) -> int:
        """Compute the values that are due; return the page of the largest value, then 0."""
        signals = np.atleast_2d(tracker.signals).sum(axis=0).astype(np.float64)
        due = self.due(signals)
        self.last[due] = values.greedy_ncis_observed(
            tracker.elapsed[due],
            signals[due],
            **{name: column[due] for name, column in self.parameters.items()},
        )
        page = int(np.argmax(self.last))
        self.mean += MEMORY * (self.last[page] - self.mean) if self.slot else self.last[page]
        self.computed += int(due.sum())
        self.slot, self.counted = self.slot + 1, signals
        self.last[page], self.counted[page] = 0.0, 0.0
        return page


@compiled(types.void(types.int64[::1], VALUE, types.int64[::1], types.float64[::1], types.float64))
def take_in(search: IntArray, value: Any, pages: IntArray, signals: FloatArray, now: float) -> None:
    """Count new signals of pages, (n,) each; a page with 0 signals is added to the search."""
    lazy = lazy_at(search)
    for place in range(pages.size):
        if signals[place] == 0.0:
            add(lazy, value, pages[place], now)
        else:
            count_signal(lazy, value, pages[place], signals[place], now)


@compiled(types.int64(types.int64[::1], VALUE, types.float64))
def crawl_best(search: IntArray, value: Any, now: float) -> int:
    """Return the page with the largest value, and count the crawl of this page."""
    lazy = lazy_at(search)
    page = best_page(lazy, value, now)
    count_crawl(lazy, value, page, now)
    return page


class LazySearch:
    """A search that finds GREEDY-NCIS's page by :mod:`crawl_envs.compiled.lazy_argmax`."""

    def __init__(self, env: Any) -> None:
        problem = env.unwrapped.tracker(0).problem
        policy: Any = policies.make("GreedyNCIS", env)
        form = policy.compile(problem, 0, np.random.default_rng(0))
        self.value, size = ready(form.value), problem.num_pages
        self.lazy = new_lazy_argmax(form.parameters, size)
        self.table, pages = lazy_table(self.lazy), np.arange(size, dtype=np.int64)
        ready(take_in)(self.table, self.value, pages, np.zeros(size), 0.0)

    @property
    def computed(self) -> int:
        """Number of values that the search has computed so far."""
        return int(self.lazy.search["evaluated"][0])

    def choose(self, tracker: Tracker) -> int:
        """Take in new signals; return the page with the largest value and count its crawl."""
        new = np.atleast_2d(tracker.signals).sum(axis=0) - self.lazy.pages["counted"]
        pages = np.flatnonzero(new > 0.0).astype(np.int64)
        ready(take_in)(self.table, self.value, pages, new[pages], tracker.time)
        return int(ready(crawl_best)(self.table, self.value, tracker.time))


def search_of(label: str, env: Any) -> Any:
    """Return the search with this label for an environment."""
    if label == LAZY:
        return LazySearch(env)
    tiers = Tiers(1, False) if label == EXACT else TIERED[label]
    return TierSearch(env.unwrapped.instance, tiers)


@spec("ncis-tiers-search")
def episode_metrics(
    seed: int,
    *,
    label: str,
    num_pages: int,
    horizon: float,
    on_crawl: Callable[[int], None] | None = None,
) -> Mapping[str, float]:
    """Simulate a search and return its freshness and its computed values per slot.

    ``on_crawl`` is called with every crawled page.
    """
    env: Any = gymnasium.make(
        ID, instance="noisy", num_pages=num_pages, bandwidth=BANDWIDTH, horizon=horizon
    )
    env.reset(seed=seed)
    search, slots, over = search_of(label, env), 0, False
    while not over:
        page = search.choose(env.unwrapped.tracker(0))
        _, _, _, over, _ = env.step(page)
        slots += 1
        if on_crawl is not None:
            on_crawl(page)
    ledger = env.unwrapped.ledger()
    return {"freshness": ledger.freshness, COMPUTED: search.computed / slots}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the freshness that searches lose by values per slot, a panel per number of pages."""
    fresh = table(rows, "freshness")
    lost = means(paired(fresh, fresh[fresh.policy == EXACT]))
    lost = lost.assign(y=-lost["mean"])
    counts = means(table(rows, COMPUTED)).rename(columns={"mean": "x"})
    keys = ["setting", "policy"]
    data = pd.merge(lost[[*keys, "y", "half"]], counts[[*keys, "x"]], on=keys)
    charts.lines(
        data.rename(columns={"setting": "panel", "policy": "label"}),
        path,
        charts.Frame(
            f"{TITLE}\nmeans over seeds; bars: 95% intervals of the difference",
            charts.Axis("values computed per slot", "log"),
            charts.Axis(
                "freshness lost against all values",
                "symlog",
                (-0.003, 1.0),
                (-0.001, 0.0, 0.001, 0.01, 0.1, 1.0),
                ("-0.001", "0", "0.001", "0.01", "0.1", "1"),
            ),
            across=[charts.Rule(0.0, dash="-")],
        ),
        labels=LABELS,
        black=(EXACT, LAZY),
    )


EXPERIMENT = Experiment(
    name="ncis-tiers",
    title=TITLE,
    claim=(
        "Tiers save computing values of the lower tier in every slot. The lazy search knows how "
        "long a page stays below the largest value: it computes fewer values than tiers of nearly "
        "equal freshness, and loses nothing."
    ),
    metric="freshness",
    references=(EXACT,),
    repetitions=5,
    settings=measure_settings(
        SETTINGS,
        {label: partial(episode_metrics, label=label) for label in LABELS},
        ID,
        quick={"horizon": 3.0},
    ),
    claims=(
        Claim(
            "Tiers save computing the crawl value of each URL at every time step.",
            SOURCE,
            tuple(
                Range(label, 0.0, 0.5 * size, (f"m={size}",), "margin ours", COMPUTED)
                for label in TIERED
                for size in SIZES
            )
            + tuple(Trend(label, "about", EXACT, ALL, "margin ours", USABLE) for label in TIERED),
            "The paper has a sentence on its tiers, without numbers: pages are classified by their "
            "values, and those of higher tiers are recomputed more often. Here there are two, with "
            "limits of our choice; the margins are half of all values, and .01 of freshness. A "
            "lower tier every 1,000 slots, without signals, is no search: with all known values at "
            "0 it crawls the first page again and again.",
        ),
    ),
    expected=(
        Trend(LAZY, "about", EXACT, ALL, "the search is exact", 1e-12),
        *(Range(LAZY, 0.0, 0.1 * size, (f"m={size}",), "margin ours", COMPUTED) for size in SIZES),
        *(Trend(label, "about", EXACT, ALL, "ours", LOSS_MARGIN) for label in TIERED),
        Trend(EXACT, "above", LAZY, ALL, "ours", metric=COMPUTED),
        *(
            Trend(label, "above", LAZY, ALL, "ours", metric=COMPUTED)
            for label, tiers in TIERED.items()
            if tiers.every == 10
        ),
    ),
    pictures={"lost": plot},
)
