"""``deploys``: a host signals all its pages at once, and changes nearly none or nearly all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.instance import HiddenLaw, Misspecified, hosts_of
from crawl_envs.instances.misspecified.occurrences import Occurrences, arrivals, blocks
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.sim.tape import CHANGE, CHANGE_SIGNAL, SIGNAL
from crawl_envs.types import FloatArray, Instance, IntArray

DEPLOY_RANGE = (0.4, 1.6)
"""Range of the hosts' deploy rates. The mean is one signal per page and unit of time, the crawl
rate, so that a crawl on every signal exceeds the budget."""
SHARE_BETA = (0.1, 0.3)
"""Beta parameters of the share of pages that a deploy changes: 1/4 on average, but below 0.1 or
above 0.9 in 76% of the deploys. One or two crawls of a host are informative about its other pages,
which per-page rules cannot use."""
SHARE_MEAN = SHARE_BETA[0] / sum(SHARE_BETA)
OWN_FACTOR = 0.5
"""Factor on a rate from U(0, 1) for changes without a signal. With those of deploys the mean change
rate is 0.5, as in the other instances."""


@dataclass(frozen=True, eq=False)
class Deploys(HiddenLaw):
    """Poisson deploys of hosts, and independent Poisson changes of pages.

    A deploy sends one signal for every page of its host at the same time, and changes each page
    with a probability drawn once per deploy from Beta(SHARE_BETA). There are no other signals.

    Args:
        host: host of each page, non-decreasing from 0, (m,).
        own_rate: rate of changes without a signal, >= 0, (m,).
        deploy_rate: deploy rate of each host, >= 0, (H,).
    """

    host: IntArray
    own_rate: FloatArray
    deploy_rate: FloatArray

    def occurrences(self, pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and sent signals in (0, horizon]."""
        own_time, own_page = arrivals(rng, self.own_rate, horizon)
        deploy_time, host = arrivals(rng, self.deploy_rate, horizon)
        share = rng.beta(*SHARE_BETA, host.size)
        pages_of = np.bincount(self.host, minlength=self.deploy_rate.size)
        first = np.cumsum(pages_of) - pages_of
        deploy, page = blocks(first[host], pages_of[host])
        kind = np.where(rng.random(deploy.size) < share[deploy], CHANGE_SIGNAL, SIGNAL)
        return Occurrences(
            np.concatenate([own_time, deploy_time[deploy]]),
            np.concatenate([own_page, page]),
            np.concatenate([np.full(own_page.size, CHANGE), kind]),
        )


def draw_deploys(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw pages of hosts, and the deploy rates.

    Revealed parameters are the long-run rates that a model of independent signals would fit to
    each page: with q = SHARE_MEAN, d the host's deploy rate and a the page's own change rate,
    Delta = a + q d, recall q d / Delta and false-signal rate (1 - q) d. The precision is q.
    Hosts are public (``problem.group``).
    """
    pages, host = draw_noisy(rng, num_pages, **more), hosts_of(num_pages)
    own_rate = OWN_FACTOR * pages.change_rate
    deploy_rate = rng.uniform(*DEPLOY_RANGE, int(host[-1]) + 1)
    often = deploy_rate[host]
    change_rate = own_rate + SHARE_MEAN * often
    return Misspecified(
        pages,
        Deploys(host, own_rate, deploy_rate),
        change_rate=change_rate,
        recall=SHARE_MEAN * often / change_rate,
        false_signal_rate=(1.0 - SHARE_MEAN) * often,
        group=host,
    )
