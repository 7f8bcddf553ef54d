"""Change rates and signal quality of the pages of a crawl log, with those of pages like them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.instances.logs.crawl_log import CrawlLog, Intervals
from crawl_envs.types import FloatArray, IntArray
from policies.estimators import GammaPrior, SignalQuality, empirical_bayes
from scripts.data.fit_trace import fit_gamma
from scripts.reporting.tables import counted


class Fitted(NamedTuple):
    """Estimates from a log.

    Attributes:
        quality: change rates and signal quality of the m pages, with standard errors; parameters of
            signals have shape (S, m).
        groups: distributions of the rates in each group of pages.
        group: group of each page, (m,) int64.
        crawls: crawls of each page that tell of changes, (m,) int64.
    """

    quality: SignalQuality
    groups: GammaPrior
    group: IntArray
    crawls: IntArray


def fit_log(log: CrawlLog, group: ArrayLike | None = None, until: float = np.inf) -> Fitted:
    """Estimate change rates and signal quality by empirical Bayes.

    Args:
        log: crawls and signals.
        group: a label for each page, such as its host, (m,); pages of a group are taken to be
            alike. None for one group.
        until: crawls after this day are left out.

    Raises:
        ValueError: no page was crawled twice.
    """
    labels = np.zeros(log.num_pages, np.int64) if group is None else np.asarray(group)
    number = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    known = _until(log.intervals(), until)
    if known.page.size == 0:
        by = "" if until == np.inf else f" until day {until:g}"
        raise ValueError(
            f"log must have a page that was crawled twice{by}, got none among "
            f"{counted(log.num_pages, 'page')}"
        )
    given = known.signals if log.sources else None
    result = empirical_bayes(known.elapsed, given, known.changed, page=known.page, groups=number)
    fit = result.fit
    if log.sources:
        rate, error = _signal_rates(known, log.num_pages)
        fit = fit._replace(signal_rate=rate, signal_rate_stderr=error)
    crawls = np.bincount(known.page, minlength=log.num_pages)
    return Fitted(fit.quality(), result.groups, number, crawls)


def _until(known: Intervals, day: float) -> Intervals:
    """Return the intervals that have a length and end by a day."""
    kept = (known.start + known.elapsed <= day) & (known.elapsed > 0.0)
    page, start, elapsed, signals, changed = known
    return Intervals(page[kept], start[kept], elapsed[kept], signals[:, kept], changed[kept])


def _signal_rates(known: Intervals, num_pages: int) -> tuple[FloatArray, FloatArray]:
    """Return signals per day of each source and page, (S, m), and their standard errors.

    They are the means of Gamma distributions given the page's signals and those of all pages.
    """
    days = np.bincount(known.page, known.elapsed, num_pages).astype(np.float64)
    rates, errors = [], []
    for signals in known.signals:
        count = np.bincount(known.page, signals, num_pages).astype(np.int64)
        prior = fit_gamma(count, days)
        rates.append((prior.shape + count) / (prior.days + days))
        errors.append(np.sqrt(prior.shape + count) / (prior.days + days))
    return np.array(rates), np.array(errors)
