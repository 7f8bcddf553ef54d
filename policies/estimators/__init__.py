"""Estimates of change rates, and of the quality of signals, from what crawls find.

=============================  ================================================================
:func:`change_rate_mle`        change rates of pages without signals
:func:`signal_quality_mle`     alpha and b = alpha beta of pages with signals
:func:`signal_quality`         from those to change rate, recall, precision, false signals
:func:`empirical_bayes`        the same where histories are short: pages borrow from their group
:class:`SignalQualityEstimator`  the same as the crawl goes on
:func:`naive_signal_quality`   the biased count of intervals that a paper warns of
:func:`fit_pages`              the compiled core of them all
=============================  ================================================================

Estimators of change rates alone, and the fast fit of many pages, are in
:mod:`policies.estimators.change_rates`, and can be had from here as well.
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
    StochasticApproximation,
    complete_observation_rates,
    fit_change_rates,
    improved_rate,
    last_modified_rate,
    match_moments,
    moment_error_bound,
    naive_rate,
    poisson_crawl_rate,
)
from policies.estimators.histories import GammaPrior
from policies.estimators.signals.likelihood import INFINITE, INTERIOR, UNDETERMINED, ZERO, Crawls
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
from policies.estimators.signals.shrinkage import EmpiricalBayes, empirical_bayes
from policies.estimators.signals.streaming import SignalQualityEstimator

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
    "SignalQualityEstimator",
    "StochasticApproximation",
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
