"""Recall and false-signal rate of pages, learned from their crawls and pooled over pages."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.estimators.divergence.posterior_kernels import log_change

RECALLS = (0.0, 0.1, 0.3, 0.6, 0.9, 0.99)
"""Grid of recalls."""
FALSE_RATES = (0.003, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Grid of false-signal rates, per interval."""
EVERY = 2
"""Stride in the grid of update rates."""
FIRST_PAGES = 5.0
"""Weight of the initial prior, in pages."""
BASE = 0.02
"""Share of the prior that stays fixed."""


@compiled()
def weigh_quality(
    weights: FloatArray,
    log_prior: FloatArray,
    rates: FloatArray,
    log_rates: FloatArray,
    recalls: FloatArray,
    false_rates: FloatArray,
    elapsed: NDArray[np.float32],
    signals: NDArray[np.int16],
    changed: NDArray[np.bool_],
) -> None:
    """Write the posterior of the signal qualities into ``weights``, (q,), which sum to 1.

    Args:
        weights: output.
        log_prior: log prior weights, (q,).
        rates: update rates, (l,).
        log_rates: the logarithms of their weights, (l,).
        recalls: recall of each quality, (q,).
        false_rates: false-signal rate of each quality, (q,).
        elapsed: times between the page's crawls, (n,).
        signals: number of signals in these times, (n,).
        changed: whether the crawls found a change, (n,).
    """
    by_rate = np.zeros(rates.size)
    for q in range(weights.size):
        for row in range(rates.size):
            by_rate[row] = log_rates[row]
            for n in range(elapsed.size):
                by_rate[row] += log_change(
                    rates[row], elapsed[n], signals[n], changed[n], recalls[q], false_rates[q], True
                )
        top, total = by_rate.max(), 0.0
        for row in range(rates.size):
            total += math.exp(by_rate[row] - top)
        weights[q] = log_prior[q] + top + math.log(total)
    weights -= weights.max()
    weights[:] = np.exp(weights)
    weights /= weights.sum()


class SignalQuality:
    """The posterior of recall and false-signal rate of the pages of a set.

    The likelihood of a page's crawls is computed for every pair of a recall and a false-signal
    rate, averaged over update rates; the prior over pairs is the average of the posteriors of pages
    (empirical Bayes).

    Args:
        interval: the scale of time, > 0.
        rates: grid of update rates, > 0, rising, (l,).
    """

    def __init__(self, interval: float, rates: FloatArray) -> None:
        recalls, false = np.meshgrid(RECALLS, np.array(FALSE_RATES) / interval, indexing="ij")
        self.recalls: FloatArray = recalls.reshape(-1)
        self.false_rates: FloatArray = false.reshape(-1)
        self.rates: FloatArray = np.append(0.0, rates[::EVERY])
        self.log_rates: FloatArray = np.full(self.rates.size, -math.log(self.rates.size))
        size = self.recalls.size
        self.first: FloatArray = np.full(size, 1.0 / size)
        self.pooled: FloatArray = self.first.copy()
        self._weights: FloatArray = np.zeros(size)
        self._seen = 0

    def weigh_rates(self, weights: FloatArray, static: float) -> None:
        """Set the weights of the update rates, (l,), and of static pages."""
        sums = np.add.reduceat(weights, np.arange(0, weights.size, EVERY))
        self.log_rates = np.log(np.append(static, sums))

    def estimate(
        self,
        elapsed: NDArray[np.float32],
        signals: NDArray[np.int16],
        changed: NDArray[np.bool_],
        num_pages: int,
    ) -> tuple[float, float]:
        """Return the recall and the false-signal rate of a page with this history, (n,) each."""
        log_prior = np.log((1.0 - BASE) * self.pooled + BASE * self.first)
        weigh_quality(
            self._weights,
            log_prior,
            self.rates,
            self.log_rates,
            self.recalls,
            self.false_rates,
            elapsed,
            signals,
            changed,
        )
        self._seen += 1
        step = 1.0 / (min(self._seen, num_pages) + FIRST_PAGES)
        self.pooled += step * (self._weights - self.pooled)
        return self._means(self._weights)

    def typical(self) -> tuple[float, float]:
        """Return the recall and the false-signal rate of a page without history."""
        return self._means(self.pooled)

    def _means(self, weights: FloatArray) -> tuple[float, float]:
        """Return the mean recall and the geometric mean of the false-signal rates."""
        recall = float(weights @ self.recalls)
        return recall, math.exp(float(weights @ np.log(self.false_rates)))
