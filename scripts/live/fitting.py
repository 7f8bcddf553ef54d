"""Estimate change rates and signal quality of the pages of a crawl log, by groups of pages.

If all crawls of a page found a change, or none did, they only bound its rate on one side, and the
estimate rests on the other pages of its group. If this holds for all crawls of a log, no rate can
be estimated, and it is an error.

Pages first crawled late in the log are new, and new pages differ from old ones. If a group has
enough of both, the late ones form a group of their own: a late page with few crawls, or none, is
estimated from other late pages.

Signals may be late or lost. Each source is audited first, and the fit uses the effective signals of
the audit (:class:`policies.estimators.SignalAudit`) in each interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
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
from policies.live.logs.costs import expected_costs
from policies.live.logs.crawl_log import Intervals
from scripts.present.tables import counted

ONCE, NEVER, ALWAYS, BOTH = "crawled once", "never changed", "always changed", "some changed"
"""What a page's crawls show about its change rate: nothing, an upper or lower bound, or both."""
LATE_INTERVALS, MIN_LATE_PAGES = 3.0, 20
"""A page is late if its first crawl comes after this many median intervals between crawls; least
number of late pages, crawled twice, of a group that is split."""
ROUNDING = 1e-15
"""Allowed relative rounding error of an interval's end, the sum of its start and length."""


class Fitted(NamedTuple):
    """Change rates and signal quality of the pages, estimated from a log.

    Attributes:
        quality: change rates and signal quality of the m pages, with standard errors; parameters of
            signals have shape (S, m).
        groups: distributions of the rates in each group of pages.
        group: group of each page, (m,) int64.
        late: whether the page is in a group of pages first crawled late, (m,) bool.
        late_day: day from which on a first crawl is late.
        crawls: number of crawls of each page that show whether it changed, (m,) int64.
        evidence: ONCE, NEVER, ALWAYS or BOTH of each page, (m,) str objects.
        ml_rate: maximum-likelihood rate from the crawls of the page alone; inf if all found a
            change, NaN without an interval, (m,).
        low: low end of the 95% interval of the change rate from these crawls, (m,).
        high: high end, inf without a bound, (m,).
        audit: audit of the sources, over all pages.
    """

    quality: SignalQuality
    groups: GammaPrior
    group: IntArray
    late: BoolArray
    late_day: float
    crawls: IntArray
    evidence: NDArray[np.object_]
    ml_rate: FloatArray
    low: FloatArray
    high: FloatArray
    audit: SignalAudit


def fit_log(
    log: CrawlLog,
    group: ArrayLike | None = None,
    until: float = np.inf,
    *,
    newborn_prior: bool = True,
) -> Fitted:
    """Estimate the change rates and signal quality of the pages of a log by empirical Bayes.

    Args:
        log: crawls and signals.
        group: a label for each page, such as its host, (m,); pages of a group are assumed to be
            similar. None for one group.
        until: crawls after this day are left out.
        newborn_prior: whether pages first crawled late form groups of their own.

    Raises:
        ValueError: no page was crawled twice, none or all of the intervals between crawls had a
            change, or the fit did not converge.
    """
    labels = np.zeros(log.num_pages, np.int64) if group is None else np.asarray(group)
    number = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    by = "" if until == np.inf else f" until day {until:g}"
    gaps = intervals_until(log, until)
    _check(gaps, log.num_pages, by)
    late, late_day = _late_pages(log, gaps, number)
    late &= newborn_prior
    number = np.unique(number + log.num_pages * late, return_inverse=True)[1].astype(np.int64)
    audit = audit_signals(
        *(gaps.page, gaps.start, gaps.elapsed, gaps.changed),
        *(log.signal_page, log.signal_time, log.signal_source),
        num_sources=len(log.sources),
        timed=log.timed,
    )
    signals = audit.effective_signals if log.sources else None
    result = empirical_bayes(gaps.elapsed, signals, gaps.changed, page=gaps.page, groups=number)
    if not result.converged:
        groups = counted(result.groups.mean.shape[0], "group")
        raise ValueError(
            f"the fit of {counted(gaps.page.size, 'interval')} in {groups} did not converge{by}; "
            "a table --pages with fewer groups may help"
        )
    fit, quality = result.fit, result.fit.quality()
    if log.sources:
        rate, error, false = _signal_rates(gaps, audit, late)
        quality = fit._replace(signal_rate=rate, signal_rate_stderr=error).quality()
        quality = quality._replace(false_signal_rate=quality.false_signal_rate + false)
    crawls = np.bincount(gaps.page, minlength=log.num_pages)
    histories = gaps.elapsed, gaps.changed, np.append(0, np.cumsum(crawls))
    ml_rate = fit_change_rates(*histories).change_rate
    low, high = change_rate_intervals(*histories)
    evidence = evidence_of(gaps, log.num_pages)
    bounds = ml_rate, low, high
    return Fitted(quality, result.groups, number, late, late_day, crawls, evidence, *bounds, audit)


def _late_pages(log: CrawlLog, gaps: Intervals, group: IntArray) -> tuple[BoolArray, float]:
    """Return which pages are late and of a group with enough of them, (m,), and the first day."""
    count = np.bincount(gaps.page, minlength=log.num_pages)
    days = np.bincount(gaps.page, gaps.elapsed, log.num_pages)[count > 0]
    late_day = float(log.time[0] + LATE_INTERVALS * np.median(days / count[count > 0]))
    first = np.full(log.num_pages, np.inf)
    np.minimum.at(first, log.page, log.time)
    late = first > late_day
    enough = np.bincount(group[late & (count > 0)], minlength=group.max() + 1) >= MIN_LATE_PAGES
    enough &= np.bincount(group[~late], minlength=group.max() + 1) > 0
    return late & enough[group], late_day


def evidence_of(intervals: Intervals, num_pages: int) -> NDArray[np.object_]:
    """Return what each page's crawls show about its rate: ONCE, NEVER, ALWAYS or BOTH, (m,)."""
    crawls = np.bincount(intervals.page, minlength=num_pages)
    changed = np.bincount(intervals.page, intervals.changed, num_pages)
    kinds = [crawls == 0, changed == 0, changed == crawls]
    return np.select(kinds, [ONCE, NEVER, ALWAYS], BOTH).astype(np.object_)


def _check(intervals: Intervals, num_pages: int, by: str) -> None:
    """Raise ValueError unless some intervals between crawls had a change and some had none."""
    count, changes = intervals.page.size, int(intervals.changed.sum())
    if count == 0:
        raise ValueError(
            f"log must have a page that was crawled twice{by}, got none among "
            f"{counted(num_pages, 'page')}"
        )
    if 0 < changes < count:
        return
    low, high = change_rate_intervals(intervals.elapsed, intervals.changed, [0, count])
    text = counted(count, "interval between crawls", "intervals between crawls")
    if changes == 0:
        raise ValueError(
            f"log must have changes{by}, got none in {text}: rates are below {high[0]:.2g} per day "
            "(95%, if pages are similar), and cannot be estimated"
        )
    raise ValueError(
        f"log must have crawls without a change{by}, got a change in all {text}: rates are above "
        f"{low[0]:.2g} per day (95%, if pages are similar), and cannot be estimated. Perhaps it "
        "lists only changes (collapse=digest of a CDX server), or its digests include headers or "
        "session ids"
    )


def intervals_until(log: CrawlLog, day: float) -> Intervals:
    """Return the intervals between crawls that end by ``day`` and are longer than 0."""
    page, start, elapsed, signals, changed = log.intervals()
    end = start + elapsed
    mask = (end <= day + ROUNDING * np.abs(end)) & (elapsed > 0.0)
    return Intervals(page[mask], start[mask], elapsed[mask], signals[:, mask], changed[mask])


def parameters_of(log: CrawlLog, quality: SignalQuality) -> dict[str, FloatArray]:
    """Return change rates, recall and false-signal rates of the pages, arguments of an Instance."""
    parameters = {
        "change_rate": within_domain(quality.change_rate),
        "recall": np.zeros(log.num_pages),
        "false_signal_rate": np.zeros(log.num_pages),
    }
    if log.sources:
        signals = np.nan_to_num(quality.recall), within_domain(quality.false_signal_rate)
        of_one = (values[0] if len(values) == 1 else values for values in signals)
        parameters["recall"], parameters["false_signal_rate"] = of_one
    return parameters


def _signal_rates(
    gaps: Intervals, audit: SignalAudit, late: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return signals per day, their standard errors, and false signals per day, (S, m) each.

    S is the number of sources, m of pages. Pages without a day that are ``late``, (m,), get the
    mean signals per day of late pages. The third array alone counts the false signals that
    reached many pages at once. The rates in the first array are posterior means of Gamma
    distributions fitted to all pages. Days on which the source was silent do not count.
    """
    rates, errors, false_rates = [], [], []
    for spans, signals, false in zip(
        audit.silences, gaps.signals, audit.false_signals, strict=True
    ):
        silent = silent_days(spans, gaps.start, gaps.start + gaps.elapsed)
        days, count, wrong = (
            np.bincount(gaps.page, x, late.size).astype(np.float64)
            for x in (gaps.elapsed - silent, signals - false, false)
        )
        prior = fit_rate_prior(count, days)
        rates.append(prior.estimate(count, days))
        if late.any():
            rates[-1][late & (days == 0.0)] = prior.group_mean(count[late], days[late])
        errors.append(np.sqrt(prior.shape + count) / (prior.days + days))
        false_rates.append((wrong + wrong.sum() / days.sum()) / (days + 1.0))
    return np.array(rates), np.array(errors), np.array(false_rates)


def table_of(log: CrawlLog, importance: FloatArray, fitted: Fitted) -> PageTable:
    """Return the table of the log's pages: importance, estimates, last crawls and newer signals."""
    quality, signals = fitted.quality, bool(log.sources)
    last = np.full(log.num_pages, np.nan)
    np.fmax.at(last, log.page, log.time)
    gone = np.isin(np.arange(log.num_pages), log.page[log.gone])
    missed = (log.history.page >= 0) & (log.history.outcome == OUTCOMES.index("gone"))
    missed[missed] = gone[log.history.page[missed]]  # the last request of a gone page
    np.fmax.at(last, log.history.page[missed], log.history.time[missed])
    counts = np.zeros((len(log.sources), log.num_pages), np.int64)
    since = log.signal_time > last[log.signal_page]
    np.add.at(counts, (log.signal_source[since], log.signal_page[since]), 1)
    if log.origin:
        last += messages.day_of(log.origin)
    return PageTable(
        urls=log.urls,
        importance=importance,
        cost=None if log.cost is None else expected_costs(log),
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
    """Return more columns by name: rates from the page's crawls alone, errors, crawl counts."""
    quality = fitted.quality
    columns = {"change_rate_own": fitted.ml_rate, "change_rate_stderr": quality.change_rate_stderr}
    for number, source in enumerate(log.sources):
        columns[f"recall_stderr:{source}"] = quality.recall_stderr[number]
        columns[f"false_signal_rate_stderr:{source}"] = quality.false_signal_rate_stderr[number]
    return columns | {"crawls": fitted.crawls.astype(np.float64)}
