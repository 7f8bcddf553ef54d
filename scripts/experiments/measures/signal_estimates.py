"""Estimate precision and recall from crawls, page by page (NCIS paper, appendix E).

Pages are drawn as in the paper: precision and recall from U(.2, .95), the mean time between
changes from U(2, 20), 1/4 to 4 crawls per change, for 100,000 units of time. The paper leaves open
how crawls are drawn. Here their ratio to changes is log-uniform, and they are either evenly spaced
or a Poisson process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies import estimators
from scripts.present import charts
from scripts.present.experiment import Picture
from scripts.study.means import entries
from scripts.study.rows import gathered, indexed_columns
from scripts.study.settings import Measure, spec

EVEN, POISSON = "evenly spaced crawls", "Poisson crawls"
SETTINGS = {
    crawls: {"crawls": crawls, "pages": 20, "horizon": 100_000.0} for crawls in (EVEN, POISSON)
}
QUICK = {"pages": 10, "horizon": 5_000.0}
TRUTH, NAIVE, MLE = "truth", "naive", "MLE"
ESTIMATED = ("precision", "recall")
PARAMETERS = ("unsignalled_rate", "evidence")
STREAM = 13


class Pages(NamedTuple):
    """True parameters of pages, (m,) each; ``crawls_per_change`` is the ratio of the two rates."""

    precision: FloatArray
    recall: FloatArray
    change_rate: FloatArray
    crawls_per_change: FloatArray


class History(NamedTuple):
    """Crawls of a page: time and signals since the last crawl, and whether the page had changed."""

    elapsed: FloatArray
    signals: IntArray
    changed: BoolArray


def drawn(rng: np.random.Generator, num_pages: int) -> Pages:
    """Draw true parameters of pages as in appendix E."""
    precision, recall = rng.uniform(0.2, 0.95, (2, num_pages))
    change_rate = 1.0 / rng.uniform(2.0, 20.0, num_pages)
    return Pages(precision, recall, change_rate, 4.0 ** rng.uniform(-1.0, 1.0, num_pages))


def crawled(
    rng: np.random.Generator, pages: Pages, horizon: float, crawls: str
) -> Iterator[History]:
    """Simulate the crawls of each page until the horizon; yield one history per page."""
    for precision, recall, change_rate, ratio in zip(*pages, strict=True):
        interval = 1.0 / (ratio * change_rate)
        count = int(horizon / interval)
        elapsed = np.full(count, interval)
        if crawls == POISSON:
            elapsed = rng.exponential(interval, rng.poisson(horizon / interval))
        true = rng.poisson(recall * change_rate * elapsed)
        false = rng.poisson(recall * change_rate / precision * (1.0 - precision) * elapsed)
        silent = rng.poisson((1.0 - recall) * change_rate * elapsed)
        yield History(elapsed, true + false, true + silent > 0)


@spec("signal-quality-truth")
def truth(seed: int, *, pages: int, horizon: float, crawls: str) -> Mapping[str, float]:
    """Return the true values of what is estimated, by page, and the crawls per change.

    ``unsignalled_rate`` is the rate of changes without a signal (alpha); ``evidence`` is the
    evidence of one signal against freshness (alpha beta).
    """
    true_pages = drawn(np.random.default_rng([seed, STREAM]), pages)
    unsignalled = (1.0 - true_pages.recall) * true_pages.change_rate
    values = dict(zip(PARAMETERS, (unsignalled, -np.log1p(-true_pages.precision)), strict=True))
    return indexed_columns(true_pages._asdict() | values)


@spec("signal-quality-naive")
def naive(seed: int, *, pages: int, horizon: float, crawls: str) -> Mapping[str, float]:
    """Return naive estimates by page: shares of intervals with a signal, a change, or both."""
    histories = _histories(seed, pages, horizon, crawls)
    estimates = [estimators.naive_signal_quality(*history[1:]) for history in histories]
    return _by_page(estimates, ESTIMATED)


@spec("signal-quality-mle")
def mle(seed: int, *, pages: int, horizon: float, crawls: str) -> Mapping[str, float]:
    """Return maximum likelihood estimates by page from crawl outcomes, with standard errors."""
    histories = _histories(seed, pages, horizon, crawls)
    fits = [estimators.signal_quality_mle(*history) for history in histories]
    rates, qualities = (
        [*names, *(f"{name}_stderr" for name in names)] for names in (PARAMETERS, ESTIMATED)
    )
    return _by_page(fits, rates) | _by_page([fit.quality() for fit in fits], qualities)


def _histories(seed: int, pages: int, horizon: float, crawls: str) -> Iterator[History]:
    rng = np.random.default_rng([seed, STREAM])
    return crawled(rng, drawn(rng, pages), horizon, crawls)


def _by_page(estimates: Sequence[Any], names: Sequence[str]) -> dict[str, float]:
    """Return named attributes of a list of estimates, one per page, as indexed metrics."""
    return indexed_columns({name: [getattr(one, name)[0] for one in estimates] for name in names})


def measures(estimator: str) -> dict[str, Measure]:
    """Return functions that return the true values and the estimates of an estimator, by label."""
    return {TRUTH: truth, estimator: {NAIVE: naive, MLE: mle}[estimator]}


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of mean error, mean absolute and mean squared error over the pages of a seed.

    ``expected_error`` is the mean absolute error that the standard errors imply for a normal
    distribution; ``error_ratio`` is the mean absolute error over it. Infinite estimates are left
    out: the evidence of signals without a false one.
    """
    derived = []
    for name in (*ESTIMATED, *PARAMETERS):
        values = gathered(rows, name)
        errors = gathered(rows, f"{name}_stderr")
        for (setting, policy, seed), estimate in values.items():
            if policy == TRUTH or (setting, TRUTH, seed) not in values:
                continue
            gap = estimate - values[setting, TRUTH, seed]
            gap = gap[np.isfinite(gap)]
            numbers = {
                "bias": np.mean(gap),
                "absolute_error": np.mean(np.abs(gap)),
                "squared_error": np.mean(gap**2),
            }
            if (setting, policy, seed) in errors:
                stderr = np.nanmean(errors[setting, policy, seed])
                numbers["expected_error"] = np.sqrt(2.0 / np.pi) * stderr
                numbers["error_ratio"] = numbers["absolute_error"] / numbers["expected_error"]
            derived += [
                Row("", setting, policy, seed, f"{name}_{kind}", float(number))
                for kind, number in numbers.items()
            ]
    return derived


def picture(title: str, estimator: str) -> Picture:
    """Return a function that draws estimates against true values, a dot per page."""
    return partial(_draw, title=title, estimator=estimator)


def _draw(rows: Sequence[Row], path: Path, *, title: str, estimator: str) -> None:
    page, across, upwards, parts = ["setting", "seed", "index"], {}, {}, []
    ratio = entries(rows, "crawls_per_change").set_index(page)["value"]
    shade = np.log2(ratio).rename("shade")
    for setting, name in product((EVEN, POISSON), ESTIMATED):
        estimates = entries(rows, name).query("setting == @setting").set_index([*page, "policy"])
        both = estimates["value"].unstack().rename(columns={TRUTH: "x", estimator: "y"})
        gap = both.y - both.x
        half = 1.96 * gap.std() / np.sqrt(len(gap))
        errors = f"mean error {gap.mean():+.2g} ± {half:.1g}, absolute {gap.abs().mean():.2g}"
        panel = f"{setting}, {name}: {errors}"
        parts.append(both.join(shade, on=page).assign(panel=panel))
        across[panel] = charts.Axis(f"true {name}")
        upwards[panel] = charts.Axis(f"estimated {name}")
    data = pd.concat(parts)
    charts.scatter(
        data,
        path,
        charts.Frame(
            f"{title}\n{len(data) // len(parts):,} pages; line: estimate = truth",
            across,
            upwards,
            size=(4.6, 4.4),
            shared="none",
            legend="none",
            diagonal=True,
        ),
        shade=charts.Axis(
            "crawls per change (logarithmic scale)",
            ticks=(-2, -1, 0, 1, 2),
            names=("1/4", "1/2", "1", "2", "4"),
        ),
    )
