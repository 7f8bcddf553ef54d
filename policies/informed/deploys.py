"""A particle filter of deploys, which signal all pages of a host, and change some of them."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from crawl_envs.types import FloatArray, IntArray
from policies.informed.chains import SMALLEST, STEP


class DeployFilter:
    """A Rao-Blackwellised particle filter (Doucet et al. 2000); exact for infinite particles.

    A deploy changes each page with a probability, its share, which is drawn once per deploy. Given
    the shares pages are independent: page i is fresh with probability exp(-a_i t) prod (1 - share),
    over the deploys since its crawl. A particle has this product for each page of a host, and a
    weight, the probability of the results of crawls.

    Arrays are of pages: ``own_rate``, that of changes without a deploy, and ``host``. ``share`` has
    the parameters of a Beta distribution. Each host has its own particles.
    """

    def __init__(
        self, own_rate: FloatArray, host: IntArray, share: tuple[float, float], particles: int = 512
    ) -> None:
        self.own_rate, self.host, self.rng = own_rate, host, np.random.default_rng(0)
        self.places = (np.arange(particles) + 0.5) / particles
        self.unchanged = 1.0 - betaincinv(*share, self.places)
        self.product = np.ones((host.size, particles))
        self.weight = np.full((int(host.max()) + 1, particles), 1.0 / particles)
        self.last_deploy, self.factors = np.zeros(len(self.weight)), np.ones_like(self.weight)

    def wait(self, steps: int) -> None:
        """Pass a number of steps without deploys."""
        self.product *= np.exp(-steps * STEP * self.own_rate)[:, None]

    def signal(self, page: int, time: float) -> None:
        """Multiply a page's products by 1 - share; particles draw the share of a new deploy."""
        host = self.host[page]
        if time > self.last_deploy[host]:
            self.last_deploy[host], self.factors[host] = time, self.rng.permutation(self.unchanged)
        self.product[page] *= self.factors[host]

    def crawl(self, page: int, changed: bool) -> None:
        """Weigh the particles by the result of a crawl; resample if half of them have no weight."""
        host, product = self.host[page], self.product[page]
        weight = self.weight[host] * (1.0 - product if changed else product)
        if weight.sum() > SMALLEST:
            self.weight[host] = weight / weight.sum()
            if weight.size * (self.weight[host] ** 2).sum() > 2.0:
                sums = np.minimum(self.weight[host].cumsum(), 1.0)
                parents = np.minimum(np.searchsorted(sums, self.places), weight.size - 1)
                mates = self.host == host
                self.product[mates] = self.product[mates][:, parents]
                self.weight[host] = 1.0 / weight.size
        self.product[page] = 1.0

    def fresh(self) -> FloatArray:
        """Return the probability that each page is fresh, (m,)."""
        return np.asarray((self.product * self.weight[self.host]).sum(axis=1))

    def factor(self, poisson: FloatArray) -> FloatArray:
        """Return 1: the changes and signals of a page, seen alone, are those of Theorem 1."""
        return np.ones_like(poisson)
