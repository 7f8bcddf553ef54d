"""Test the band of the freshness that audits measure, on crawls whose true freshness is known.

A scheduler makes 100,000 fetches, a crawl of every page in some days on average, of which a
hundredth are audits. At every audit the band is compared with the true running mean. Beliefs have
the true rates of changes (in copies of the record, its mean rates), three times or a third of them.
Changes come at random, in bursts or partly together, while beliefs take them as random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.instances import traces
from crawl_envs.types import BoolArray, FloatArray
from policies.estimators.measured_freshness import BAR, GRID, log_costs
from policies.live.logs.imputation import Changes
from policies.live.scheduler import CrawlScheduler
from policies.live.scheduler.states import STALE
from scripts.experiments.figures import Axis, Frame, Series, dots
from scripts.experiments.measures import simulated_logs
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Range
from scripts.study.specs import spec

TITLE = "The band of measured freshness: 100,000 fetches, of which 1,000 are audits"
METRIC, WIDTH, NORMAL, GAIN = "coverage", "half width", "half width of a normal interval", "gain"
ERROR, ALARM = "standardised error", "alarm"
SITE = "garden-handbook"
LAWS = ("poisson", "bursts", "deploys", SITE)
BATCH, MEAN_RATE, TOGETHER = 200, 0.08, "all crawls"
FALSE_SIGNALS = 3.0 / 7.0
"""False signals by true ones: a precision of 0.7."""
BASELINE = {"factor": 1.0, "tail": 3.0, "pages": 3000, "spacing": 2.0, "recall": 0.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "true rates": BASELINE,
    "rates times 3": BASELINE | {"factor": 3.0},
    "rates over 3": BASELINE | {"factor": 1.0 / 3.0},
    "heavy-tailed importance": BASELINE | {"tail": 1.1, "pages": 5000},
    "signals": BASELINE | {"recall": 0.6, "spacing": 6.0},
    "few fetches": BASELINE | {"spacing": 40.0},
}
OFTEN, SELDOM = ("true rates", "heavy-tailed importance", "signals"), ("signals", "few fetches")
"""Settings of mean freshness .9 or about, and of pages that are not equally likely to be stale."""


def changed_pages(
    rng: np.random.Generator, law: str, pages: int, days: float
) -> tuple[Changes, FloatArray]:
    """Return changes of pages under a law, or of copies of the record, and their rates per day."""
    if law != SITE:
        rate = rng.gamma(0.5, 2.0 * MEAN_RATE, pages) + 1e-3
        return getattr(simulated_logs, law)(rng, rate, days), rate
    trace = traces.load(traces.find(law))
    site = np.arange(pages // trace.num_pages)[:, None, None]
    start = trace.days * np.arange(np.ceil(days / trace.days))[:, None]
    time = start + (trace.change_time + trace.days * rng.random(site.shape)) % trace.days
    page = np.zeros_like(start, int) + trace.num_pages * site + trace.change_page
    counts = np.bincount(trace.change_page, minlength=trace.num_pages)
    return Changes(page.ravel(), time.ravel()), np.tile((counts + 0.5) / trace.days, site.size)


def crawl(
    seed: int, law: str, fetches: int, *, pages: int, spacing: float, factor: float, **more: float
) -> tuple[CrawlScheduler, FloatArray]:
    """Crawl with audits; return the scheduler, and the true freshness at each audit."""
    rng, days = np.random.default_rng([seed, LAWS.index(law)]), spacing * fetches / pages
    changes, rate = changed_pages(rng, law, pages, days)
    weight, recall = rng.pareto(more["tail"], rate.size) + 1.0, more["recall"]
    is_sent, false_rate = rng.random(changes.page.size) < recall, recall * rate * FALSE_SIGNALS
    false = simulated_logs.poisson(rng, false_rate, days)
    signals = Changes(*(np.append(a[is_sent], b) for a, b in zip(changes, false, strict=True)))
    columns: dict[str, Any] = {"recall": recall, "false_signal_rate": false_rate}
    settings: dict[str, Any] = {"timeout": 1.0, "burst": 2.0, "audit_share": 0.01, "seed": seed}
    scheduler = CrawlScheduler("GreedyNCIS", fetches / days, **settings)
    ids, stale, fresh = np.arange(rate.size), np.zeros(rate.size, bool), list[float]()
    scheduler.add(ids, importance=weight, change_rate=factor * rate, last_crawl=0.0, **columns)
    assert scheduler.audits is not None
    times = days / fetches * BATCH * np.arange(1, fetches // BATCH + 1)
    orders = [np.argsort(time, kind="stable") for _, time in (changes, signals)]
    ends = [np.searchsorted(np.sort(time), times) for _, time in (changes, signals)]
    for time, part, sent in zip(times, *map(np.split, orders, ends), strict=False):
        stale[changes.page[part]] = True
        scheduler.signal(signals.page[sent], signals.time[sent])
        batch = scheduler.next_batch(time, BATCH)
        fresh += [1.0 - weight @ stale / weight.sum()] * (scheduler.audits.count - len(fresh))
        scheduler.report(batch, time, changed=stale[batch])
        stale[batch] = False
    return scheduler, np.array(fresh)


def has_truth(d: FloatArray, error: FloatArray) -> BoolArray:
    """Return after each audit whether the band has the true mean, by d and errors of X, (n,)."""
    sides = [(sign * np.cumsum(error), log_costs(d, sign, 1.0)) for sign in (1.0, -1.0)]
    logs = [np.logaddexp.reduce(GRID[:, None] * total - cost) for total, cost in sides]
    return np.asarray(np.maximum(*logs) <= BAR)


@spec("audits-of-crawl", 2)
def audited(seed: int, **settings: Any) -> Mapping[str, float]:
    """Return whether the band of a crawl has the true freshness at every audit, and its width."""
    scheduler, truth = crawl(seed, **settings)
    assert scheduler.audits is not None
    records, last = scheduler.audits.records(), scheduler.freshness()
    d = (records["answer"] == STALE) - records["page_belief"]
    measured, count = records["mean_belief"] + d, last.audits
    error = measured - 1.0 + truth
    variance = max(last.estimate * (1.0 - last.estimate), 1.0 / count)
    return {
        METRIC: float(has_truth(d, error).all()),
        WIDTH: (last.high - last.low) / 2.0,
        NORMAL: 1.96 * float(np.sqrt(variance / count)),
        **{GAIN: last.gain, ALARM: float(last.is_off), "freshness": float(truth.mean())},
        ERROR: float(error.mean() / (np.std(measured) / np.sqrt(count))),
    }


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return the coverage over all crawls of each seed."""
    inside = [row for row in rows if row.metric == METRIC]
    by_seed = {x.seed: [row.value for row in inside if row.seed == x.seed] for x in inside}
    return [Row("", TOGETHER, "all laws", k, METRIC, float(np.mean(v))) for k, v in by_seed.items()]


EXPERIMENT = Experiment(
    name="real-audits",
    title=TITLE,
    claim=(
        "The band has the true freshness at every audit in at least 95% of the crawls, whatever "
        "the law of changes and the beliefs, and audits are unbiased."
    ),
    metric=METRIC,
    repetitions=42,
    quick_repetitions=1,
    settings=measure_settings(
        {name: {**arguments, "fetches": 100_000} for name, arguments in SETTINGS.items()},
        {law: partial(audited, law=law) for law in LAWS},
        quick={"pages": 100, "fetches": 10_000},
    ),
    derive=derive,
    expected=(
        Range("all laws", 0.95, 1.0, (TOGETHER,), "confidence sequence"),
        *(Range(law, 0.95, 1.0, tuple(SETTINGS), "confidence sequence") for law in LAWS),
        *(Range(law, -0.5, 0.5, tuple(SETTINGS), "unbiased", ERROR) for law in LAWS),
        *(Range(law, 0.0, 0.025, OFTEN, "half width after 1,000 audits", WIDTH) for law in LAWS),
        *(Range(law, 1.0, 9.0, SELDOM, "beliefs narrow the band", GAIN) for law in LAWS),
    ),
    pictures={
        "width": dots(
            [Series(WIDTH, WIDTH), Series(NORMAL, "normal")],
            Frame(f"{TITLE}, {{seeds}} seeds", x=Axis("half width"), y=Axis("")),
            y="{setting}",
        )
    },
)
