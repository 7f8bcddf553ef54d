"""Compare GREEDY with the exact optimum of the discrete class, on two and three pages.

Busa-Fekete et al., section 3, call this optimum a hard combinatorial problem, and compare GREEDY
with the continuous optimum only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs import Instance
from crawl_envs.evaluation import Row
from crawl_envs.types.compiled_policies import CompiledIndex
from policies.values.kernels import greedy_ncis_value
from policies.values.tables import greedy_ncis_table
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Series
from scripts.experiments.measures.discrete_optimum import discrete_optimum
from scripts.present import charts
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Range, Trend
from scripts.study.bounds import OPTIMUM, optimum
from scripts.study.specs import spec

TITLE = "GREEDY-NCIS and the exact optimum of the discrete class (2 and 3 pages)"
DISCRETE, GREEDY = "discrete optimum", "GREEDY-NCIS"
PER_PAGE = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Crawls per page and unit of time; change rates are between 0.2 and 1."""
MOST_STATES = {2: 40_000, 3: 200}
LOSS, LARGEST, OPEN = "loss", "largest loss", "open"
KINDS = ("", ", no signals")
"""Suffixes of labels: with signals, without signals."""
SETTINGS = {
    f"m={num_pages} R={rate:g}m": {"num_pages": num_pages, "per_page": rate}
    for num_pages in MOST_STATES
    for rate in PER_PAGE
}
EVERYWHERE = tuple(SETTINGS)


def world(seed: int, num_pages: int, per_page: float, signals: bool) -> Instance:
    """Draw mu from U(0.1, 1), Delta from U(0.2, 1), recall U(0.2, 0.9), nu U(0.1, 0.6)."""
    rng = np.random.default_rng(seed)
    importance, change_rate = rng.uniform(0.1, 1, num_pages), rng.uniform(0.2, 1, num_pages)
    recall, false_rate = rng.uniform(0.2, 0.9, num_pages), rng.uniform(0.1, 0.6, num_pages)
    signal_rates = (recall, false_rate) if signals else (0.0, 0.0)
    return Instance(importance, change_rate, *signal_rates, bandwidth=per_page * num_pages)


@spec("ncis-discrete-optimum")
def best(seed: int, **arguments: Any) -> Mapping[str, float]:
    """Return the freshness of the best policy, and how far its bounds are from each other."""
    instance = world(seed, **arguments)
    result = discrete_optimum(instance, MOST_STATES[instance.num_pages])
    return {"freshness": result.freshness, OPEN: result.high - result.low}


@spec("ncis-discrete-greedy")
def greedy(seed: int, **arguments: Any) -> Mapping[str, float]:
    """Return the freshness of GREEDY-NCIS, and how far its bounds are from each other."""
    instance = world(seed, **arguments)
    table = greedy_ncis_table(
        instance.importance, instance.change_rate, instance.recall, instance.false_signal_rate
    )
    index = CompiledIndex(greedy_ncis_value, table)
    result = discrete_optimum(instance, MOST_STATES[instance.num_pages], index=index)
    return {"freshness": result.freshness, OPEN: result.high - result.low}


@spec("ncis-continuous-optimum")
def continuous(seed: int, **arguments: Any) -> Mapping[str, float]:
    """Return the freshness of the optimal policy with continuous crawl rates (Theorem 1)."""
    return {"freshness": optimum(world(seed, **arguments))}


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of what GREEDY-NCIS loses to the best policy, and that to the continuous one."""
    fresh = {
        (row.setting, row.policy, row.seed): row.value for row in rows if row.metric == "freshness"
    }
    better = {
        worse + kind: label + kind
        for kind in KINDS
        for worse, label in ((GREEDY, DISCRETE), (DISCRETE, OPTIMUM))
    }
    losses = [
        Row("", setting, label, seed, LOSS, fresh[setting, better[label], seed] - value)
        for (setting, label, seed), value in fresh.items()
        if (setting, better.get(label, ""), seed) in fresh
    ]
    largest: dict[tuple[str, str], float] = {}
    for row in losses:
        key = row.setting, row.policy
        largest[key] = max(largest.get(key, row.value), row.value)
    return losses + [Row("", *key, 0, LARGEST, value) for key, value in largest.items()]


TITLES = {
    GREEDY: "discrete optimum minus GREEDY-NCIS",
    DISCRETE: "continuous optimum minus discrete optimum",
}
LOSS_NAMES = {LOSS: "mean, 95% interval", LARGEST: "largest"}


def _of_pages(what: str) -> dict[str, str]:
    """Return the labels of the legend by setting: the number of pages and ``what``."""
    return {name: f"{arguments['num_pages']} pages: {what}" for name, arguments in SETTINGS.items()}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw both losses against crawls per page: the means with intervals, and the largest ones."""
    open_end = max((row.value for row in rows if row.metric == OPEN), default=0.0)
    hollow = {"linestyle": "none", "fillstyle": "none"}
    figures.lines(
        [
            Series(metric, f"{title}{kind or ', signals'}", _of_pages(what), (label + kind,))
            for label, title in TITLES.items()
            for kind in KINDS
            for metric, what in LOSS_NAMES.items()
        ],
        Frame(
            f"{TITLE}\n{{seeds}} random worlds each; values are exact to {0.5 * open_end:.1g}",
            Axis("crawls per page and unit of time (logarithmic scale)", "log", ticks=PER_PAGE),
            Axis("freshness lost (share of page time)", limits=(0.0, None)),
            shared="row",
        ),
        positions={name: arguments["per_page"] for name, arguments in SETTINGS.items()},
        labels=[
            f"{m} pages: {what}" for what in ("mean, 95% interval", "largest") for m in MOST_STATES
        ],
        looks={
            f"{pages} pages: largest": {**charts.style(place), **hollow}
            for place, pages in enumerate(MOST_STATES)
        },
    )(rows, path)


EXPERIMENT = Experiment(
    name="ncis-optimum",
    title=TITLE,
    claim=(
        "With two or three pages the best policy with one crawl per slot can be computed. "
        "GREEDY-NCIS, which is GREEDY without signals, loses little to it, less with more crawls. "
        "The loss of both to the continuous optimum is the cost of slots."
    ),
    metric="freshness",
    references=(DISCRETE,),
    repetitions=60,
    settings=measure_settings(
        SETTINGS,
        {
            label + kind: partial(measure, signals=kind == KINDS[0])
            for kind in KINDS
            for label, measure in ((OPTIMUM, continuous), (DISCRETE, best), (GREEDY, greedy))
        },
        quick_settings=tuple(name for name in EVERYWHERE if SETTINGS[name]["num_pages"] == 2),
    ),
    derive=derive,
    expected=(
        *(
            Range(GREEDY + kind, -1e-6, 0.005, EVERYWHERE, "in no paper; margin ours", LOSS)
            for kind in KINDS
        ),
        *(
            Trend(OPTIMUM + kind, "above", DISCRETE + kind, EVERYWHERE, "it is of a larger class")
            for kind in KINDS
        ),
    ),
    pictures={"freshness": plot},
)
