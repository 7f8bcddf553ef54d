"""Test what backtests say from logs simulated under eight laws of changes, by true changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
from scipy.stats import binomtest

from crawl_envs.evaluation import Row
from policies.live.logs.imputation import Changes
from scripts.experiments.measures import backtests
from scripts.experiments.measures.backtests import LEAST_COVERAGE, METRIC, POLICIES, QUANTITIES
from scripts.experiments.measures.simulated_logs import SETTINGS, simulated_log
from scripts.live.backtesting import Backtest, backtest
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Range
from scripts.study.specs import spec

TITLE = "Backtests of simulated logs of eight laws of changes"
SIGN = "sign test"
"""Metric: two-sided p-value of equally many estimates above and below the true value."""
SHARES = (0.25, 0.5, 1.0, 2.0)
LEAST_P = 0.01
TOGETHER = "all laws"


@lru_cache(maxsize=1)
def tested(law: str, pages: int, crawls: int, draws: int, seed: int) -> tuple[Backtest, Changes]:
    """Simulate a log under a law; return its backtest, and the true changes."""
    rng = np.random.default_rng([seed, list(SETTINGS).index(law)])
    log, true = simulated_log(law, rng, num_pages=pages, crawls=crawls)
    return backtest(log, draws=draws, seed=seed), true


@spec("backtest-of-simulated-log")
def covered(
    seed: int, *, policy: str, law: str, pages: int, crawls: int, draws: int
) -> Mapping[str, float]:
    """Return what a policy saves by a log and in truth, and whether intervals have the truth."""
    test, true = tested(law, pages, crawls, draws, seed)
    return backtests.against_truth(test, true, policy, SHARES)


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of sign tests of each law's errors, and of coverage over all logs."""
    values = {(row.setting, row.policy, row.metric, row.seed): row.value for row in rows}
    derived = []
    for law in SETTINGS:
        seeds = sorted({row.seed for row in rows if row.setting == law})
        for policy in POLICIES if seeds else ():
            for name in QUANTITIES:
                pairs = [
                    [values[law, policy, f"{what}{name}", k] for what in ("log", "record")]
                    for k in seeds
                    if (law, policy, f"log{name}", k) in values
                ]
                signs = np.sign(np.diff(pairs, axis=1))
                above, below = int((signs < 0).sum()), int((signs > 0).sum())
                p = binomtest(above, above + below).pvalue if above + below else 1.0
                derived.append(Row("CrawlTrace-v0", law, policy, 0, f"{SIGN}{name}", p))
    return derived + backtests.logs_together(rows, TOGETHER)


EXPERIMENT = Experiment(
    name="real-laws",
    title=TITLE,
    claim=(
        "Under every law of changes, the 95% intervals of a backtest contain the true saved "
        "crawls and freshness in at least 90% of the logs, and estimates are too high as often "
        "as too low."
    ),
    metric=METRIC,
    repetitions=20,
    quick_repetitions=1,
    settings=measure_settings(
        {law: {"law": law, "pages": 120, "crawls": 20, "draws": 12} for law in SETTINGS},
        {policy: partial(covered, policy=policy) for policy in POLICIES},
        "CrawlTrace-v0",
        quick={"pages": 20, "crawls": 10, "draws": 3},
    ),
    derive=derive,
    expected=tuple(
        Range(policy, low, np.inf, (*SETTINGS, TOGETHER), "simulated logs", f"{metric}{name}")
        for metric, low in ((METRIC, LEAST_COVERAGE), (SIGN, LEAST_P))
        for name in QUANTITIES
        for policy in POLICIES[: 1 if name == QUANTITIES[-1] else None]
    ),
    pictures={"saved": partial(backtests.draw_saved, title=TITLE)},
)
