"""Estimates of precision and recall from crawls, page by page (NCIS paper, appendix E).

Pages are drawn as in the paper: precision and recall from U(.2, .95), the mean time between
changes from U(2, 20), crawls between 4 and 1/4 times as often as changes, for 100,000 units of
time. Chosen here, since the paper leaves it open: the ratio of crawls to changes is log-uniform,
and crawls are either evenly spaced or a Poisson process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies import estimators
from scripts.reporting.rows import gathered, indexed
from scripts.reporting.settings import Measurement

HORIZON, PAGES = 100_000.0, 20
QUICK_HORIZON, QUICK_PAGES = 5_000.0, 10
EVEN, POISSON = "evenly spaced crawls", "Poisson crawls"
TRUTH, NAIVE, MLE = "truth", "naive", "MLE"
ESTIMATED = ("precision", "recall")
PARAMETERS = ("unsignalled_rate", "evidence")
STREAM = 13
DOTS = {"s": 11, "cmap": "cividis", "vmin": -2, "vmax": 2, "edgecolors": "#00000040"}


class Pages(NamedTuple):
    """True parameters of pages, (m,) each; ``crawls_per_change`` is the ratio of the two rates."""

    precision: FloatArray
    recall: FloatArray
    change_rate: FloatArray
    crawls_per_change: FloatArray

    @property
    def unsignalled_rate(self) -> FloatArray:
        """The rate of changes without a signal (alpha)."""
        return (1.0 - self.recall) * self.change_rate

    @property
    def evidence(self) -> FloatArray:
        """The evidence of one signal against freshness (alpha beta)."""
        return -np.log1p(-self.precision)


class History(NamedTuple):
    """The crawls of a page: elapsed time, signals since the last crawl, whether it had changed."""

    elapsed: FloatArray
    signals: IntArray
    changed: BoolArray


def drawn(rng: np.random.Generator, num_pages: int) -> Pages:
    """Draw pages as appendix E does."""
    precision, recall = rng.uniform(0.2, 0.95, (2, num_pages))
    change_rate = 1.0 / rng.uniform(2.0, 20.0, num_pages)
    return Pages(precision, recall, change_rate, 4.0 ** rng.uniform(-1.0, 1.0, num_pages))


def crawled(
    rng: np.random.Generator, pages: Pages, horizon: float, crawls: str
) -> Iterator[History]:
    """Crawl page after page until the horizon."""
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


def truth(seed: int, *, pages: int, horizon: float, crawls: str) -> Mapping[str, float]:
    """Return the true values of what is estimated."""
    known = drawn(np.random.default_rng([seed, STREAM]), pages)
    names = (*ESTIMATED, *PARAMETERS, "change_rate", "crawls_per_change")
    return {key: x for name in names for key, x in indexed(name, getattr(known, name)).items()}


def naive(seed: int, *, pages: int, horizon: float, crawls: str) -> Mapping[str, float]:
    """Return naive estimates: shares of intervals with a signal, a change, or both."""
    rng = np.random.default_rng([seed, STREAM])
    estimates = [
        estimators.naive_signal_quality(history.signals, history.changed)
        for history in crawled(rng, drawn(rng, pages), horizon, crawls)
    ]
    return {
        key: x
        for name in ESTIMATED
        for key, x in indexed(name, [getattr(one, name)[0] for one in estimates]).items()
    }


def mle(seed: int, *, pages: int, horizon: float, crawls: str) -> Mapping[str, float]:
    """Return maximum likelihood estimates from crawl outcomes, with their standard errors."""
    rng = np.random.default_rng([seed, STREAM])
    numbers: dict[str, list[float]] = {}
    for history in crawled(rng, drawn(rng, pages), horizon, crawls):
        fit = estimators.signal_quality_mle(*history)
        for name in (*ESTIMATED, *PARAMETERS):
            source = fit if name in PARAMETERS else fit.quality()
            numbers.setdefault(name, []).append(getattr(source, name)[0])
            error = getattr(source, f"{name}_stderr")[0]
            numbers.setdefault(f"{name}_stderr", []).append(error)
    return {key: x for name, row in numbers.items() for key, x in indexed(name, row).items()}


def measurements(quick: bool, estimator: str) -> Sequence[Measurement]:
    """Measure an estimator with either kind of crawls."""
    size = {"pages": PAGES, "horizon": HORIZON}
    if quick:
        size = {"pages": QUICK_PAGES, "horizon": QUICK_HORIZON}
    measure: Callable[..., Mapping[str, float]] = {NAIVE: naive, MLE: mle}[estimator]
    return [
        Measurement(crawls, {TRUTH: truth, estimator: measure}, {"crawls": crawls, **size})
        for crawls in (EVEN, POISSON)
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return mean error, mean absolute and mean squared error over the pages of a seed.

    ``expected_error`` is the mean absolute error that the standard errors imply for a normal
    distribution, ``error_ratio`` the mean absolute error over it. Infinite estimates, the evidence
    of signals none of which was seen to be false, are left out.
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


def pairs(
    rows: Sequence[Row], setting: str, estimator: str, name: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return truth, estimate and crawls per change of all pages of all seeds."""
    values, ratios = gathered(rows, name), gathered(rows, "crawls_per_change")
    keys = [key for key in values if key[:2] == (setting, estimator)]
    known = [(setting, TRUTH, seed) for _, _, seed in keys]
    columns = ([values[key] for key in known], [values[key] for key in keys])
    true, estimate = (np.concatenate(column) for column in columns)
    return true, estimate, np.concatenate([ratios[key] for key in known])


def draw(rows: Sequence[Row], path: Path, *, title: str, estimator: str, setting: str) -> None:
    """Draw estimates against the truth, and how errors are distributed."""
    from matplotlib.figure import Figure

    from scripts.reporting.charts import COLOURS, LINE_COLOUR, save

    figure = Figure(figsize=(10.0, 8.4), layout="constrained")
    grid = figure.subplots(2, 2)
    for column, name in enumerate(ESTIMATED):
        true, estimate, ratio = pairs(rows, setting, estimator, name)
        above, below = grid[0, column], grid[1, column]
        dots = above.scatter(true, estimate, c=np.log2(ratio), **DOTS)
        above.plot([0.2, 0.95], [0.2, 0.95], color=COLOURS[1], label="estimate = truth")
        above.set_xlabel(f"true {name}")
        above.set_ylabel(f"estimated {name}")
        above.set_aspect("equal", adjustable="datalim")
        above.legend(frameon=False, loc="lower right")
        gap = estimate - true
        half = 1.96 * gap.std(ddof=1) / np.sqrt(gap.size)
        below.hist(gap, bins=min(60, 5 + gap.size // 10), color=COLOURS[0])
        below.axvline(0.0, color=LINE_COLOUR, linestyle="--", label="no error")
        label = f"mean {gap.mean():+.2g} ± {half:.1g}\nmean absolute {np.abs(gap).mean():.2g}"
        below.axvline(gap.mean(), color=COLOURS[1], label=label)
        below.axvspan(gap.mean() - half, gap.mean() + half, color=COLOURS[1], alpha=0.3)
        below.set_xlabel(f"estimated minus true {name}")
        below.set_ylabel("pages")
        below.set_ylim(top=1.3 * below.get_ylim()[1])
        below.legend(edgecolor="none", framealpha=1.0, loc="upper right")
        for axes in (above, below):
            axes.spines[["top", "right"]].set_visible(False)
    bar = figure.colorbar(dots, ax=list(grid[0]), label="crawls per change (logarithmic scale)")
    bar.set_ticks([-2, -1, 0, 1, 2], labels=["1/4", "1/2", "1", "2", "4"])
    figure.suptitle(
        f"{title}\n{len(gap):,} pages, {setting}; mean error with its 95% interval", fontsize=11
    )
    save(figure, path)
