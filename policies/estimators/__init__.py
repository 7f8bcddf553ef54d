"""Estimates of change rates and of signal quality from the results of crawls.

=============================  ================================================================
:func:`change_rate_mle`        change rates of pages without signals
:func:`signal_quality_mle`     alpha and b = alpha beta of pages with signals
:func:`signal_quality`         change rate, recall, precision, false signals from alpha and b
:func:`empirical_bayes`        the same for short histories: shrinkage towards the group
:func:`naive_signal_quality`   the biased count of intervals (Busa-Fekete et al., Appendix E)
:func:`fit_pages`              the compiled core of all these
=============================  ================================================================

Estimators of change rates alone, and the fast fit of many pages, are in
:mod:`policies.estimators.change_rates` and exported here as well.
"""

from policies.estimators.change_rates import (
    ChangeRateEstimator,
    ChangeRateMLE,
    CompleteObservations,
    EmpiricalBayesRate,
    ImprovedEstimator,
    LastModifiedEstimator,
    LawOfLargeNumbers,
    MomentMatching,
    NaiveEstimator,
    RateFit,
    complete_observation_rates,
    fit_change_rates,
    improved_rate,
    last_modified_rate,
    match_moments,
    moment_error_bound,
    naive_rate,
    poisson_crawl_rate,
)
from policies.estimators.histories import Crawls, GammaPrior
from policies.estimators.signals.empirical_bayes import EmpiricalBayes, empirical_bayes
from policies.estimators.signals.likelihood import INFINITE, INTERIOR, UNDETERMINED, ZERO
from policies.estimators.signals.newton import Fit, fit_pages
from policies.estimators.signals.quality import (
    ChangeRateFit,
    NaiveQuality,
    SignalFit,
    SignalQuality,
    change_rate_mle,
    naive_signal_quality,
    signal_quality,
    signal_quality_mle,
)

__all__ = [
    "INFINITE",
    "INTERIOR",
    "UNDETERMINED",
    "ZERO",
    "ChangeRateEstimator",
    "ChangeRateFit",
    "ChangeRateMLE",
    "CompleteObservations",
    "Crawls",
    "EmpiricalBayes",
    "EmpiricalBayesRate",
    "Fit",
    "GammaPrior",
    "ImprovedEstimator",
    "LastModifiedEstimator",
    "LawOfLargeNumbers",
    "MomentMatching",
    "NaiveEstimator",
    "NaiveQuality",
    "RateFit",
    "SignalFit",
    "SignalQuality",
    "change_rate_mle",
    "complete_observation_rates",
    "empirical_bayes",
    "fit_change_rates",
    "fit_pages",
    "improved_rate",
    "last_modified_rate",
    "match_moments",
    "moment_error_bound",
    "naive_rate",
    "naive_signal_quality",
    "poisson_crawl_rate",
    "signal_quality",
    "signal_quality_mle",
]
