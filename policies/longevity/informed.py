"""An oracle of fragments that knows the true regions, and counts signals."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from crawl_envs.types import Instance, Tracker
from policies.longevity.offline import FragmentStatic
from policies.longevity.refreshing import Urgency
from policies.values.divergence.regions import RegionCurves


class InformedLongevity(FragmentStatic):
    """FS-S for the true regions of an instance, with its signals; the registry does not have it.

    In the notation of :mod:`policies.values.divergence.region_series`, N updates of a set of
    regions since the last crawl are Poisson((1 - r) L t) + Binomial(n, r L / gamma) after time t
    and n signals, of the rate gamma. Updates are memoryless, so results of crawls tell nothing
    more. The utility of each set is that of :class:`policies.LearningLongevity`.
    """

    oracle = uses_signals = True

    def __init__(self, instance: Instance) -> None:
        curves = RegionCurves(instance.problem().regions)  # type: ignore[arg-type]  # it has some
        super().__init__(curves=curves)
        terms, self.instance = curves.terms, instance
        self.page = np.repeat(np.arange(instance.num_pages), np.diff(terms.first))
        length = np.diff(terms.start)[:, None]
        self.number, self.rate = np.arange(length.max(initial=1)), terms.rate
        self.weight = np.zeros((self.page.size, self.number.size))
        self.weight[self.number < length] = terms.weight

    def _urgency(self, tracker: Tracker) -> Urgency:
        page, count = self.page, tracker.signals[self.page]
        recall, gamma = self.instance.recall[page], self.instance.signal_rate[page]
        silent = (1.0 - recall) * self.rate * tracker.elapsed[page]
        chance = recall * self.rate / np.where(gamma > 0.0, gamma, 1.0)
        log_chances = xlogy(self.number, silent[:, None]) - gammaln(self.number + 1)
        chances = np.exp(log_chances - silent[:, None])
        for k in range(count.max(initial=0)):
            before = np.pad(chances, ((0, 0), (1, 0)))[:, :-1]
            chances += np.where(count > k, chance, 0.0)[:, None] * (before - chances)
        mean, below = silent + count * chance, chances.cumsum(axis=1)
        gains = (1.0 - below).cumsum(axis=1) - mean[:, None] * below
        utility = np.maximum((self.weight * gains).sum(axis=1), 0.0) / self.rate
        total = np.bincount(page, utility, self.instance.num_pages)
        return Urgency(tracker.problem.importance * total)
