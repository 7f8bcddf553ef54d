"""Change rates and signal quality of the pages of a crawl log, with those of pages like them.

A page whose crawls all found a change, or none, has no rate of its own: its crawls bound it on one
side, and its estimate rests on the other pages of its group. A log in which that holds of all
intervals together tells no rate at all, and is refused.

Signals may be late or lost: each source is audited first, and the fit has the effective signals of
its audit (:class:`policies.estimators.SignalAudit`) in each interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import within_domain
from policies.estimators import (
    GammaPrior,
    SignalAudit,
    SignalQuality,
    audit_signals,
    change_rate_intervals,
    empirical_bayes,
    fit_change_rates,
)
from policies.estimators.count_priors import fit_rate_prior
from policies.estimators.source_times import silent_days
from policies.live.adapters import messages
from policies.live.logs import OUTCOMES, CrawlLog, PageTable, hosts_of
from policies.live.logs.crawl_log import Intervals
from scripts.present.tables import counted

ONCE, NEVER, ALWAYS, BOTH = "crawled once", "never changed", "always changed", "some changed"
"""What the crawls of a page tell of its rate: nothing, a bound above, a bound below, both."""
ROUNDING = 1e-15
"""Relative: a start and an elapsed time need not sum to the next start exactly."""


class Fitted(NamedTuple):
    """Estimates from a log.

    Attributes:
        quality: change rates and signal quality of the m pages, with standard errors; parameters of
            signals have shape (S, m).
        groups: distributions of the rates in each group of pages.
        group: group of each page, (m,) int64.
        crawls: crawls of each page that tell of changes, (m,) int64.
        evidence: ONCE, NEVER, ALWAYS or BOTH of each page, (m,) str objects.
        own: maximum of the likelihood of the page's own crawls; inf where all found a change, NaN
            without an interval, (m,).
        low: low end of the 95% interval of the page's change rate by its own crawls, (m,).
        high: high end, inf without a bound, (m,).
        audit: of the sources, over all pages.
    """

    quality: SignalQuality
    groups: GammaPrior
    group: IntArray
    crawls: IntArray
    evidence: NDArray[np.object_]
    own: FloatArray
    low: FloatArray
    high: FloatArray
    audit: SignalAudit


def fit_log(log: CrawlLog, group: ArrayLike | None = None, until: float = np.inf) -> Fitted:
    """Estimate change rates and signal quality by empirical Bayes.

    Args:
        log: crawls and signals.
        group: a label for each page, such as its host, (m,); pages of a group are taken to be
            alike. None for one group.
        until: crawls after this day are left out.

    Raises:
        ValueError: no page was crawled twice, none or all of the intervals between crawls had a
            change, or the fit did not converge.
    """
    labels = np.zeros(log.num_pages, np.int64) if group is None else np.asarray(group)
    number = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    by = "" if until == np.inf else f" until day {until:g}"
    known = intervals_until(log, until)
    _check(known, log.num_pages, by)
    audit = audit_signals(
        *(known.page, known.start, known.elapsed, known.changed),
        *(log.signal_page, log.signal_time, log.signal_source),
        num_sources=len(log.sources),
        timed=log.timed,
    )
    signals = audit.effective_signals if log.sources else None
    result = empirical_bayes(known.elapsed, signals, known.changed, page=known.page, groups=number)
    if not result.converged:
        groups = counted(result.groups.mean.shape[0], "group")
        raise ValueError(
            f"the fit of {counted(known.page.size, 'interval')} in {groups} did not converge{by}; "
            "a table --pages with fewer groups may help"
        )
    fit, quality = result.fit, result.fit.quality()
    if log.sources:
        rate, error, false = _signal_rates(known, audit, log.num_pages)
        quality = fit._replace(signal_rate=rate, signal_rate_stderr=error).quality()
        quality = quality._replace(false_signal_rate=quality.false_signal_rate + false)
    crawls = np.bincount(known.page, minlength=log.num_pages)
    given = known.elapsed, known.changed, np.append(0, np.cumsum(crawls))
    own = fit_change_rates(*given).change_rate
    low, high = change_rate_intervals(*given)
    evidence = evidence_of(known, log.num_pages)
    return Fitted(quality, result.groups, number, crawls, evidence, own, low, high, audit)


def evidence_of(known: Intervals, num_pages: int) -> NDArray[np.object_]:
    """Return what the crawls of each page tell: ONCE, NEVER, ALWAYS or BOTH, (m,)."""
    crawls = np.bincount(known.page, minlength=num_pages)
    changed = np.bincount(known.page, known.changed, num_pages)
    kinds = [crawls == 0, changed == 0, changed == crawls]
    return np.select(kinds, [ONCE, NEVER, ALWAYS], BOTH).astype(np.object_)


def _check(known: Intervals, num_pages: int, by: str) -> None:
    """Raise ValueError unless some intervals had a change and some had none."""
    count, changes = known.page.size, int(known.changed.sum())
    if count == 0:
        raise ValueError(
            f"log must have a page that was crawled twice{by}, got none among "
            f"{counted(num_pages, 'page')}"
        )
    if 0 < changes < count:
        return
    low, high = change_rate_intervals(known.elapsed, known.changed, [0, count])
    said = counted(count, "interval between crawls", "intervals between crawls")
    if changes == 0:
        raise ValueError(
            f"log must tell change rates{by}, got no change in {said}: rates are below "
            f"{high[0]:.2g} per day (95%, if pages are alike), and no other number is known"
        )
    raise ValueError(
        f"log must tell change rates{by}, got a change in all {said}: rates are above {low[0]:.2g} "
        "per day (95%, if pages are alike), and no other number is known. A list of changes only "
        "(collapse=digest of a CDX server) looks like this, and so do digests of headers or pages "
        "with session ids"
    )


def intervals_until(log: CrawlLog, day: float) -> Intervals:
    """Return the intervals of a log that have a length and end by a day."""
    page, start, elapsed, signals, changed = log.intervals()
    end = start + elapsed
    kept = (end <= day + ROUNDING * np.abs(end)) & (elapsed > 0.0)
    return Intervals(page[kept], start[kept], elapsed[kept], signals[:, kept], changed[kept])


def parameters_of(log: CrawlLog, quality: SignalQuality) -> dict[str, FloatArray]:
    """Return the estimates of a log as arguments of an Instance; without sources no signals."""
    known = {
        "change_rate": within_domain(quality.change_rate),
        "recall": np.zeros(log.num_pages),
        "false_signal_rate": np.zeros(log.num_pages),
    }
    if log.sources:
        signals = np.nan_to_num(quality.recall), within_domain(quality.false_signal_rate)
        of_one = (values[0] if len(values) == 1 else values for values in signals)
        known["recall"], known["false_signal_rate"] = of_one
    return known


def _signal_rates(
    known: Intervals, audit: SignalAudit, num_pages: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return signals per day of each source and page, their standard errors, and false signals.

    All have shape (S, m). Signals that reached many pages at once and are false are in the last one
    alone. The others are means of Gamma distributions given the page's signals and those of all
    pages. Days on which the source was silent do not count.
    """
    rates, errors, others = [], [], []
    for spans, signals, false in zip(
        audit.silences, known.signals, audit.false_signals, strict=True
    ):
        silent = silent_days(spans, known.start, known.start + known.elapsed)
        days, count, wrong = (
            np.bincount(known.page, x, num_pages).astype(np.float64)
            for x in (known.elapsed - silent, signals - false, false)
        )
        prior = fit_rate_prior(count, days)
        rates.append(prior.estimate(count, days))
        errors.append(np.sqrt(prior.shape + count) / (prior.days + days))
        others.append((wrong + wrong.sum() / days.sum()) / (days + 1.0))
    return np.array(rates), np.array(errors), np.array(others)


def table_of(log: CrawlLog, importance: FloatArray, fitted: Fitted) -> PageTable:
    """Return the estimates of a log as a table of pages."""
    quality, signals = fitted.quality, bool(log.sources)
    last = np.full(log.num_pages, np.nan)
    np.fmax.at(last, log.page, log.time)
    gone = np.isin(np.arange(log.num_pages), log.page[log.gone])
    missed = (log.history.page >= 0) & (log.history.outcome == OUTCOMES.index("gone"))
    missed[missed] = gone[log.history.page[missed]]  # a page that is gone was last asked then
    np.fmax.at(last, log.history.page[missed], log.history.time[missed])
    counts = np.zeros((len(log.sources), log.num_pages), np.int64)
    since = log.signal_time > last[log.signal_page]
    np.add.at(counts, (log.signal_source[since], log.signal_page[since]), 1)
    if log.origin:
        last += messages.day_of(log.origin)
    return PageTable(
        urls=log.urls,
        importance=importance,
        host=hosts_of(log.urls),
        change_rate=within_domain(quality.change_rate),
        change_rate_low=fitted.low,
        change_rate_high=fitted.high,
        evidence=fitted.evidence,
        gone=gone,
        recall=np.nan_to_num(quality.recall) if signals else None,
        false_signal_rate=within_domain(quality.false_signal_rate) if signals else None,
        signals=counts if signals else None,
        last_crawl=last,
        dated=bool(log.origin),
        sources=log.sources,
    )


def errors_of(log: CrawlLog, fitted: Fitted) -> dict[str, FloatArray]:
    """Return the further columns: the rate by a page's crawls alone, errors, number of crawls."""
    quality = fitted.quality
    columns = {"change_rate_own": fitted.own, "change_rate_stderr": quality.change_rate_stderr}
    for number, source in enumerate(log.sources):
        columns[f"recall_stderr:{source}"] = quality.recall_stderr[number]
        columns[f"false_signal_rate_stderr:{source}"] = quality.false_signal_rate_stderr[number]
    return columns | {"crawls": fitted.crawls.astype(np.float64)}
