"""Change rates from what crawls find, and from signals that miss nothing.

At once, arrays in, arrays out:

===================================  ==============================================================
:func:`fit_change_rates`             maximum likelihood (Kolobov et al., eq. 10)
:func:`match_moments`                Learning to Crawl; :func:`moment_error_bound` is its bound
:func:`naive_rate`                   changes found over time
:func:`improved_rate`                Cho and Garcia-Molina, regular crawls
:func:`last_modified_rate`           the same where pages tell when they last changed
:func:`poisson_crawl_rate`           the law of large numbers, for crawls at random times
:func:`complete_observation_rates`   changes were counted (Kolobov et al., eq. 11)
===================================  ==============================================================

As crawls go on, each a :class:`ChangeRateEstimator` with ``estimate_`` and ``stderr_``. All are
told of crawls by ``update(page, elapsed, changed, *, time=None, now=None)``, but for the two marked
with a star, which observe something else:

===================================  ==============================================================
:class:`ChangeRateMLE`               with imaginary intervals and a window, as in Algorithm 4
:class:`CompleteObservations` (*)    from signals that miss nothing:
                                     ``update(page, *, time, signal_time=None)``
:class:`MomentMatching`              as :func:`match_moments`
:class:`NaiveEstimator`              as :func:`naive_rate`
:class:`ImprovedEstimator`           as :func:`improved_rate`
:class:`LastModifiedEstimator` (*)   as :func:`last_modified_rate`:
                                     ``update(page, elapsed, changed, *, age)``
:class:`LawOfLargeNumbers`           as :func:`poisson_crawl_rate`
:class:`StochasticApproximation`     a step per crawl, with or without momentum
:class:`EmpiricalBayesRate`          pages borrow from their group
===================================  ==============================================================
"""

from policies.estimators.change_rates.complete import (
    LITERAL,
    SMOOTHED,
    CompleteObservations,
    complete_observation_rates,
)
from policies.estimators.change_rates.counting import (
    ImprovedEstimator,
    LastModifiedEstimator,
    LawOfLargeNumbers,
    NaiveEstimator,
    improved_rate,
    last_modified_rate,
    naive_rate,
    poisson_crawl_rate,
)
from policies.estimators.change_rates.estimator import ChangeRateEstimator, HistoryEstimator
from policies.estimators.change_rates.fitting import RateFit, fit_change_rates
from policies.estimators.change_rates.maximum_likelihood import ChangeRateMLE
from policies.estimators.change_rates.moments import (
    MomentMatching,
    match_moments,
    moment_error_bound,
)
from policies.estimators.change_rates.pooled import EmpiricalBayesRate
from policies.estimators.change_rates.recursive import StochasticApproximation

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
    "StochasticApproximation",
    "complete_observation_rates",
    "fit_change_rates",
    "improved_rate",
    "last_modified_rate",
    "match_moments",
    "moment_error_bound",
    "naive_rate",
    "poisson_crawl_rate",
]
