"""Change rates from the results of crawls, or from complete signals.

Functions, arrays in, arrays out:

===================================  ==============================================================
:func:`fit_change_rates`             maximum likelihood (Kolobov et al., eq. 10)
:func:`match_moments`                Learning to Crawl; :func:`moment_error_bound` is its bound
:func:`naive_rate`                   number of changes over time
:func:`improved_rate`                Cho and Garcia-Molina, regular crawls
:func:`last_modified_rate`           the same with the time of the last change
:func:`poisson_crawl_rate`           law of large numbers, for crawls at random times
:func:`complete_observation_rates`   counts of changes (Kolobov et al., eq. 11)
===================================  ==============================================================

Online, each a :class:`ChangeRateEstimator` with ``estimate_`` and ``stderr_``, updated by
``update(page, elapsed, changed, *, time=None, now=None)``, except the two marked with a star, which
use other observations:

===================================  ==============================================================
:class:`ChangeRateMLE`               with imaginary intervals and a window, as in Algorithm 4
:class:`CompleteObservations` (*)    from complete signals:
                                     ``update(page, *, time, signal_time=None)``
:class:`MomentMatching`              as :func:`match_moments`
:class:`NaiveEstimator`              as :func:`naive_rate`
:class:`ImprovedEstimator`           as :func:`improved_rate`
:class:`LastModifiedEstimator` (*)   as :func:`last_modified_rate`:
                                     ``update(page, elapsed, changed, *, age)``
:class:`LawOfLargeNumbers`           as :func:`poisson_crawl_rate`
:class:`EmpiricalBayesRate`          shrinkage towards the group
===================================  ==============================================================
"""

from policies.estimators.change_rates.cho_garcia_molina import (
    ImprovedEstimator,
    LastModifiedEstimator,
    LawOfLargeNumbers,
    NaiveEstimator,
    improved_rate,
    last_modified_rate,
    naive_rate,
    poisson_crawl_rate,
)
from policies.estimators.change_rates.complete import (
    LITERAL,
    SMOOTHED,
    CompleteObservations,
    complete_observation_rates,
)
from policies.estimators.change_rates.empirical_bayes import EmpiricalBayesRate
from policies.estimators.change_rates.estimator import ChangeRateEstimator, HistoryEstimator
from policies.estimators.change_rates.fitting import RateFit, fit_change_rates
from policies.estimators.change_rates.maximum_likelihood import ChangeRateMLE
from policies.estimators.change_rates.moments import (
    MomentMatching,
    match_moments,
    moment_error_bound,
)

__all__ = [
    "LITERAL",
    "SMOOTHED",
    "ChangeRateEstimator",
    "ChangeRateMLE",
    "CompleteObservations",
    "EmpiricalBayesRate",
    "HistoryEstimator",
    "ImprovedEstimator",
    "LastModifiedEstimator",
    "LawOfLargeNumbers",
    "MomentMatching",
    "NaiveEstimator",
    "RateFit",
    "complete_observation_rates",
    "fit_change_rates",
    "improved_rate",
    "last_modified_rate",
    "match_moments",
    "moment_error_bound",
    "naive_rate",
    "poisson_crawl_rate",
]
