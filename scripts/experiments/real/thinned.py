"""Test what backtests say from logs that keep only some crawls of a record, by full records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.instances import traces
from policies.live.logs.imputation import Changes
from scripts.experiments.measures import backtests, recorded
from scripts.experiments.measures.backtests import LEAST_COVERAGE, POLICIES
from scripts.live.backtesting import Backtest, backtest
from scripts.live.example_log import SCHEDULES, thinned_log
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Range
from scripts.study.settings import Measurement, spec

TITLE = "Backtests of thinned logs of recorded sites"
REPETITIONS = 2
DAYS = (5, 20, 60)
SHARES = (0.125, 0.25, 0.5, 1.0, 2.0)
MAX_PAGES = 200
TOGETHER = "all logs"


def name_of(site: str, days: int, schedule: str) -> str:
    """Return the name of the setting of a site, a schedule of crawls and days between crawls."""
    return f"{site}, {schedule}, {days} days"


@lru_cache(maxsize=1)
def tested(site: str, days: int, schedule: str, seed: int) -> tuple[Backtest, Changes]:
    """Draw a thinned log of a site; return its backtest, and the true changes of the record."""
    trace = recorded.thinned(traces.load(recorded.sites()[site]), MAX_PAGES)
    group = np.unique(trace.directory, return_inverse=True)[1].astype(np.int64)
    log, true = thinned_log(trace, float(days), schedule, np.random.default_rng([seed, days]))
    return backtest(log, group=group, seed=seed), true


@spec("backtest-of-thinned-log")
def covered(seed: int, *, policy: str, site: str, days: int, schedule: str) -> Mapping[str, float]:
    """Return what a policy saves by log and by record, and whether intervals have the truth."""
    test, true = tested(site, days, schedule, seed)
    return backtests.against_truth(test, true, policy, SHARES)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return measurements of every available site, days between crawls, and schedule of crawls."""
    sites = traces.shipped() if quick else tuple(recorded.sites())
    return [
        Measurement(
            name_of(site, days, schedule),
            {policy: partial(covered, policy=policy) for policy in POLICIES},
            {"site": site, "days": days, "schedule": schedule},
            "CrawlTrace-v0",
            most=1 if quick else REPETITIONS,
        )
        for site in sites
        for days in DAYS[: 1 if quick else None]
        for schedule in SCHEDULES
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of how often intervals have the truth over all logs, with a seed per log."""
    return backtests.logs_together(rows, TOGETHER)


EXPERIMENT = Experiment(
    name="real-thinned",
    title=TITLE,
    claim=(
        "A backtest of a log estimates the share of crawls that a policy would have saved at "
        "equal freshness: its 95% interval contains the share by the full record in at least "
        "90% of the logs."
    ),
    metric=backtests.METRIC,
    repetitions=REPETITIONS,
    quick_repetitions=1,
    settings=measurements,
    derive=derive,
    expected=tuple(
        Range(
            policy, LEAST_COVERAGE, np.inf, (TOGETHER,), "nine sites, three spacings, two schedules"
        )
        for policy in POLICIES
    ),
    pictures={"saved": partial(backtests.draw_saved, title=TITLE)},
)
