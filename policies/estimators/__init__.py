"""Estimates of change rates and of signal quality from the results of crawls.

Functions, arrays in, arrays out:

=====================================  ============================================================
:func:`fit_change_rates`               maximum likelihood (Kolobov et al., eq. 10)
:func:`change_rate_intervals`          their 95% intervals, from the likelihood; they cover less
                                       where signals prompt crawls
:func:`match_moments`                  Learning to Crawl; :func:`moment_error_bound` is its bound
:func:`naive_rate`                     number of changes over time
:func:`improved_rate`                  Cho and Garcia-Molina, regular crawls
:func:`last_modified_rate`             Cho and Garcia-Molina, with the time of the last change
:func:`complete_observation_rates`     counts of changes (Kolobov et al., eq. 11)
:func:`signal_quality_mle`             alpha and b = alpha beta of pages with signals; from these,
                                       change rate, recall, precision and false signals
:func:`empirical_bayes`                alpha and b for short histories: shrinkage to the group
:mod:`.count_priors`                   shrinkage of counts of changes and of signals
:func:`naive_signal_quality`           the biased count of intervals (Busa-Fekete et al.,
                                       Appendix E)
:func:`audit_signals`                  precision, recall and delay of every source, over all
                                       pages, with intervals of 95% and a verdict
:func:`measure_freshness`              freshness from audits of pages that are drawn at random
=====================================  ============================================================

:class:`CrawlHistories` stores the last crawls of every page.

Public modules: change_rates, count_priors, gamma_beliefs, histories, measured_freshness, moments,
source_times.
"""

from policies.estimators.change_rates import RateFit, fit_change_rates
from policies.estimators.counts import (
    complete_observation_rates,
    improved_rate,
    last_modified_rate,
    naive_rate,
)
from policies.estimators.gamma_prior import EmpiricalBayes, GammaPrior, empirical_bayes
from policies.estimators.histories import CrawlHistories
from policies.estimators.measured_freshness import MeasuredFreshness, measure_freshness
from policies.estimators.moments import match_moments, moment_error_bound
from policies.estimators.rate_intervals import change_rate_intervals
from policies.estimators.signal_audit import SignalAudit, audit_signals
from policies.estimators.signal_quality import (
    NaiveQuality,
    SignalFit,
    SignalQuality,
    naive_signal_quality,
    signal_quality_mle,
)

__all__ = [
    "CrawlHistories",
    "EmpiricalBayes",
    "GammaPrior",
    "MeasuredFreshness",
    "NaiveQuality",
    "RateFit",
    "SignalAudit",
    "SignalFit",
    "SignalQuality",
    "audit_signals",
    "change_rate_intervals",
    "complete_observation_rates",
    "empirical_bayes",
    "fit_change_rates",
    "improved_rate",
    "last_modified_rate",
    "match_moments",
    "measure_freshness",
    "moment_error_bound",
    "naive_rate",
    "naive_signal_quality",
    "signal_quality_mle",
]
