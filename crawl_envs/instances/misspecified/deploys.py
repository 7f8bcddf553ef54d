"""``deploys``: a host touches all its pages at once, and changes nearly none or nearly all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawl_envs.instances.misspecified.hosts import hosts_of
from crawl_envs.instances.misspecified.instance import Misspecified, RevealedDelay
from crawl_envs.instances.misspecified.occurrences import Occurrences, arrivals, blocks
from crawl_envs.sim.tape import CHANGE, CHANGE_SIGNAL, SIGNAL
from crawl_envs.types import FloatArray, Instance, IntArray

DEPLOY_RANGE = (0.4, 1.6)
"""Of the hosts' rates of deploys: a signal per page and unit of time on average, as many as there
are crawls, so that heeding all of them is no option."""
SHARE_BETA = (0.1, 0.3)
"""Of the share of pages that a deploy changes: a quarter on average, but below 0.1 or above 0.9 in
76% of the deploys. A crawl or two of a host tell nearly all about the others, which no rule finds
that looks at one page at a time."""
SHARE_MEAN = SHARE_BETA[0] / sum(SHARE_BETA)
OWN_FACTOR = 0.5
"""Changes besides, without a signal, come at this times a rate from U(0, 1): with those of deploys
they are one in two units of time on average, as elsewhere."""


@dataclass(frozen=True, eq=False)
class Deploys(RevealedDelay):
    """Deploys come to hosts as Poisson processes, and pages change besides.

    A deploy sends a signal of every page of its host, all at one instant, and changes each of them
    with one probability, drawn for that deploy from Beta(SHARE_BETA). There are no other signals.

    Args:
        host: of each page, (m,), non-decreasing from 0.
        own_rate: of changes without a signal, (m,), >= 0.
        deploy_rate: of each host, (H,), >= 0.
    """

    host: IntArray
    own_rate: FloatArray
    deploy_rate: FloatArray

    def occurrences(self, told: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
        """Draw all changes and signals in (0, horizon], as they happen and are sent."""
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


def deploys(pages: Instance, rng: np.random.Generator) -> Misspecified:
    """Put the pages on hosts, and draw how often these deploy.

    What is told are the long-run rates that a model of independent signals would fit, page by
    page: with q = SHARE_MEAN, d the host's rate of deploys and a the page's own rate of changes,
    Delta = a + q d, recall q d / Delta and false signals at the rate (1 - q) d. The precision is q.
    The hosts are told to everybody (``problem.group``).
    """
    host = hosts_of(pages.num_pages)
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
