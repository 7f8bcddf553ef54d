"""Compare policies' crawl rates by page with those of BASELINE (eq. 5), or of another policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import policies
from crawl_envs.evaluation import Row, simulate
from crawl_envs.types import BoolArray, FloatArray
from policies import solvers
from scripts.experiments.measures.over_pages import ID, PAGES
from scripts.present import charts
from scripts.present.experiment import Picture
from scripts.study.bounds import BASELINE
from scripts.study.means import entries
from scripts.study.rows import gathered, indexed, indexed_columns
from scripts.study.settings import Measure, spec

RATE = "crawl_rate"
PARAMETERS = ("recall", "change_rate", "false_signal_rate")
HIGH, LOW = 0.9, 0.1
"""Recall above which nearly all changes are signalled, and below which hardly any are."""
MARGIN = 0.1
"""Relative difference of rates above which a page is crawled clearly more or less."""

Compared = Callable[[FloatArray, FloatArray, Mapping[str, FloatArray]], Mapping[str, float]]


@spec("page-rates-without-signals")
def baseline_rates(seed: int, **arguments: Any) -> dict[str, float]:
    """Return each page's optimal crawl rate without signals, and its parameters."""
    instance = _reset_env(seed, arguments).unwrapped.instance
    optimal = solvers.binary_periodic(instance.importance, instance.change_rate, instance.bandwidth)
    pages = {name: getattr(instance, name) for name in PARAMETERS}
    nonzero = {name: values for name, values in pages.items() if values.any()}
    return indexed_columns({RATE: optimal.rates, **nonzero})


@spec("page-rates-of-policy")
def policy_rates(seed: int, *, policy: str, **arguments: Any) -> dict[str, float]:
    """Simulate a policy; return its crawls of each page per unit of time."""
    env, horizon = _reset_env(seed, arguments), float(arguments["horizon"])
    acting: Any = policies.make(policy, env)
    rollout = simulate(env.unwrapped.instance, acting, horizon, seed)
    return indexed(RATE, rollout.crawl_counts / horizon)


def _reset_env(seed: int, arguments: Mapping[str, Any]) -> Any:
    env = gymnasium.make(ID, **arguments)
    env.reset(seed=seed)
    return env


def measures(policies: Mapping[str, str]) -> dict[str, Measure]:
    """Return functions that measure crawl rates of BASELINE and of policies, by label."""
    by_policy = {label: partial(policy_rates, policy=name) for label, name in policies.items()}
    return {BASELINE: baseline_rates, **by_policy}


def compared(rows: Sequence[Row], statistics: Compared, reference: str = BASELINE) -> list[Row]:
    """Return rows of statistics that compare the page's crawl rates of a policy and a reference.

    Args:
        rows: rows of :func:`measures`.
        statistics: function of the rates of the policy and the reference, and the parameters of
            the pages, (m,) each; NaN results are left out.
        reference: BASELINE, or a policy.
    """
    rates, derived = gathered(rows, RATE), []
    pages = {name: gathered(rows, name) for name in PARAMETERS}
    for (setting, label, seed), crawl_rates in rates.items():
        base_key = setting, reference, seed
        if label in (BASELINE, reference) or base_key not in rates:
            continue
        drawn, none = (setting, BASELINE, seed), np.zeros(crawl_rates.size)
        parameters = {name: by_key.get(drawn, none) for name, by_key in pages.items()}
        derived += [
            Row(ID, setting, label, seed, metric, value)
            for metric, value in statistics(crawl_rates, rates[base_key], parameters).items()
            if value == value
        ]
    return derived


def rate_change(rates: FloatArray, optimal: FloatArray, pages: BoolArray) -> float:
    """Return by which share some pages are crawled more often than at their optimal rates."""
    total = optimal[pages].sum()
    return float(rates[pages].sum() / total - 1.0) if total > 0.0 else np.nan


def share_above(
    rates: FloatArray, reference: FloatArray, pages: BoolArray, margin: float = MARGIN
) -> float:
    """Return the share of some pages that are crawled more than by the reference.

    It counts pages that the reference crawls; more means by over ``margin`` times its rate.
    """
    return _share(rates > (1.0 + margin) * reference, pages & (reference > 0.0))


def share_below(rates: FloatArray, optimal: FloatArray, pages: BoolArray) -> float:
    """Return the share of some pages that are crawled clearly less often than by BASELINE."""
    return _share(rates < (1.0 - MARGIN) * optimal, pages & (optimal > 0.0))


def _share(part: BoolArray, pages: BoolArray) -> float:
    return float(part[pages].mean()) if pages.any() else np.nan


def rms(differences: FloatArray) -> float:
    """Return the root of the mean square of differences; NaN without any."""
    return float(np.sqrt(np.mean(differences**2))) if differences.size else np.nan


COLOUR_NAMES = {
    "recall": "recall (share of changes with a signal)",
    "change_rate": "change rate (per unit of time)",
    "false_signal_rate": "rate of false signals (per unit of time)",
}
DRAWN_INSTANCES = 10
OPTIMAL = "optimal rate (BASELINE)"
NO_SIGNALS = "rate of BASELINE (no signals)"
"""Name of BASELINE's rate for policies with signals, for which it is not the optimum."""


def picture(title: str, colour: str | None = None, baseline: str = OPTIMAL) -> Picture:
    """Return a function that draws each page's crawl rate against that of BASELINE, by policy.

    Args:
        title: title of the picture.
        colour: parameter of the pages shown by the colour of the dots.
        baseline: name of the rate in BASELINE.
    """

    def draw(rows: Sequence[Row], path: Path) -> None:
        page = ["setting", "seed", "index"]
        rates = entries(rows, RATE)
        rates = rates[rates.seed < DRAWN_INSTANCES]
        best = rates[rates.policy == BASELINE].set_index(page)["value"].rename("x")
        data = rates[rates.policy != BASELINE].rename(columns={"value": "y"}).join(best, on=page)
        if colour is not None:
            shade = entries(rows, colour).set_index(page)["value"].rename("shade")
            data = data.join(shade, on=page)
        pages = data.setting.map(PAGES).astype(str)
        charts.scatter(
            data.assign(panel=data.policy + ", " + pages + " pages"),
            path,
            charts.Frame(
                f"{title}\na dot per page of {data.seed.nunique()} instances; line: the {baseline}",
                charts.Axis(f"{baseline},\ncrawls per unit of time"),
                charts.Axis("rate, crawls per unit of time"),
                columns=data.policy.nunique(),
                size=(3.9, 3.3),
                shared="row",
                legend="none",
                diagonal=True,
            ),
            shade=charts.Axis(COLOUR_NAMES[colour]) if colour else None,
        )

    return draw
