"""Test the band of the freshness that audits measure, on crawls whose true freshness is known.

A scheduler makes 100,000 fetches, a crawl of every page in two days on average, of which a
hundredth are audits. At every audit the band is compared with the true running mean. Beliefs have
the true rates of changes (in the record, those of its days), three times or a third of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.instances import traces
from crawl_envs.types import FloatArray
from policies.estimators import measure_freshness
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
ERROR, ALARM, COST = "standardised error", "alarm", "freshness that audits cost"
SITE = "garden-handbook"
LAWS = ("poisson", "bursts", "deploys", SITE)
BATCH, MEAN_RATE, TOGETHER = 100, 0.08, "all crawls"
SETTINGS: dict[str, dict[str, Any]] = {
    "true rates": {"factor": 1.0, "tail": 3.0, "pages": 3000},
    "rates times 3": {"factor": 3.0, "tail": 3.0, "pages": 3000},
    "rates over 3": {"factor": 1.0 / 3.0, "tail": 3.0, "pages": 3000},
    "heavy-tailed importance": {"factor": 1.0, "tail": 1.1, "pages": 20_000},
}
RIGHT = tuple(name for name, arguments in SETTINGS.items() if arguments["factor"] == 1.0)


def changed_pages(
    rng: np.random.Generator, law: str, pages: int, fetches: int
) -> tuple[Changes, FloatArray, float]:
    """Return changes of pages under a law, their rates, and the days that the fetches take."""
    if law != SITE:
        days, rate = 2.0 * fetches / pages, rng.gamma(0.5, 2.0 * MEAN_RATE, pages) + 1e-3
        return getattr(simulated_logs, law)(rng, rate, days), rate, days
    trace = traces.load(traces.find(law))
    days, order = 2.0 * fetches / trace.num_pages, rng.permutation(trace.num_pages)
    time = (trace.change_time + rng.random() * trace.days) % trace.days * (days / trace.days)
    changes = Changes(order[trace.change_page], time)
    counts = np.bincount(changes.page, minlength=order.size).astype(np.float64)
    return changes, (counts + 0.5) / days, days


def crawl(
    seed: int, share: float, *, law: str, factor: float, tail: float, pages: int, fetches: int
) -> tuple[CrawlScheduler, FloatArray, float]:
    """Crawl once; return the scheduler, the true freshness at each audit, and that at all steps."""
    rng = np.random.default_rng([seed, LAWS.index(law)])
    changes, rate, days = changed_pages(rng, law, pages, fetches)
    weight, order = rng.pareto(tail, rate.size) + 1.0, np.argsort(changes.time, kind="stable")
    settings: dict[str, Any] = {"timeout": 1.0, "burst": 2.0, "audit_share": share, "seed": seed}
    scheduler = CrawlScheduler("Greedy", fetches / days, **settings)
    ids, stale = np.arange(rate.size), np.zeros(rate.size, bool)
    scheduler.add(ids, importance=weight, change_rate=factor * rate, last_crawl=0.0)
    fresh, at_audits = [], list[float]()
    times = BATCH / (fetches / days) * np.arange(1, fetches // BATCH + 1)
    parts = np.split(order, np.searchsorted(changes.time[order], times))
    for time, part in zip(times, parts, strict=False):
        stale[changes.page[part]] = True
        fresh.append(1.0 - float(weight @ stale) / weight.sum())
        batch = scheduler.next_batch(time, BATCH)
        if scheduler.audits is not None:
            at_audits += [fresh[-1]] * (scheduler.audits.count - len(at_audits))
        scheduler.report(batch, time, changed=stale[batch])
        stale[batch] = False
    return scheduler, np.array(at_audits), float(np.mean(fresh))


@spec("audits-of-crawl")
def audited(seed: int, **settings: Any) -> Mapping[str, float]:
    """Return whether the band of a crawl has the true freshness at every audit, and its width."""
    scheduler, truth, fresh = crawl(seed, 0.01, **settings)
    assert scheduler.audits is not None
    records, is_inside = scheduler.audits.records(), list[bool]()
    stale = records["answer"] == STALE
    believed, mean = records["page_belief"], records["mean_belief"]
    means = np.cumsum(truth) / np.arange(1, truth.size + 1)
    for count in range(1, truth.size + 1):
        band = measure_freshness(stale[:count], believed[:count], mean[:count])
        is_inside.append(band.low <= means[count - 1] <= band.high)
    answers, last = mean + stale - believed, scheduler.freshness()
    variance = max(last.estimate * (1.0 - last.estimate), 1.0 / last.audits)
    return {
        METRIC: float(all(is_inside)),
        WIDTH: (last.high - last.low) / 2.0,
        NORMAL: 1.96 * float(np.sqrt(variance / last.audits)),
        **{GAIN: last.gain, ALARM: float(last.is_off), "freshness": float(means[-1])},
        ERROR: float((answers - 1.0 + truth).mean() / (np.std(answers) / np.sqrt(last.audits))),
        COST: crawl(seed, 0.0, **settings)[2] - fresh,
    }


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return a row of the coverage over all crawls."""
    inside = [row.value for row in rows if row.metric == METRIC]
    return [Row("", TOGETHER, "all laws", 0, METRIC, float(np.mean(inside)))] if inside else []


EXPERIMENT = Experiment(
    name="real-audits",
    title=TITLE,
    claim=(
        "The band has the true freshness at every audit in at least 95% of the crawls, whatever "
        "the law of changes and the beliefs, and audits are unbiased."
    ),
    metric=METRIC,
    repetitions=63,
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
        *(Range(law, 0.0, 0.025, RIGHT, "half width after 1,000 audits", WIDTH) for law in LAWS),
    ),
    pictures={
        "width": dots(
            [Series(WIDTH, WIDTH), Series(NORMAL, "normal")],
            Frame(f"{TITLE}, {{seeds}} seeds", x=Axis("half width"), y=Axis("")),
            y="{setting}",
        )
    },
)
