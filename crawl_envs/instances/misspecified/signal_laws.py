"""Laws whose signals are not as revealed: ``late``, ``deploys`` and ``corrupted``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from crawl_envs.instances.misspecified.occurrences import (
    Misspecified,
    Occurrences,
    arrivals,
    members,
    merged,
    signalled,
)
from crawl_envs.instances.synthetic import draw_noisy
from crawl_envs.sim.tape import CHANGE, CHANGE_SIGNAL, SIGNAL
from crawl_envs.types import Delay, FloatArray, Instance, IntArray
from crawl_envs.types.arguments import share as check_share

MEAN_RANGE = (0.05, 2.0)
"""Range of mean delays. At one crawl per page and unit of time the shortest has little effect; with
the longest most signals belong to changes that were crawled before. No fixed correction fits all
lanes: the delay has to be learned from signals and crawl results."""

PAGES_PER_HOST = 10
"""Approximate number of pages per host: large enough for a few crawls to be informative about the
rest, small enough for several hosts among 100 pages."""
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

CORRUPTION = 0.5
"""Share of noise in the revealed quality; figure 8 of the NCIS paper stops at 0.2."""


def poisson(pages: Instance, rng: np.random.Generator, horizon: float) -> Occurrences:
    """Draw Poisson changes at the change rates of ``pages``, and signals of the pages' quality."""
    return signalled(rng, arrivals(rng, pages.change_rate, horizon), pages, horizon)


def draw_late(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw an instance whose signals have a hidden exponential delay, of a log-uniform mean.

    The mean is in MEAN_RANGE. Revealed rates are true; the revealed delay is none.
    """
    pages = draw_noisy(rng, num_pages, **more)
    low, high = map(math.log, MEAN_RANGE)
    delay = Delay("exponential", math.exp(rng.uniform(low, high)))
    return Misspecified(pages, partial(poisson, pages), true_delay=delay)


def hosts_of(num_pages: int) -> IntArray:
    """Return the host of each page, (m,): contiguous blocks of about PAGES_PER_HOST pages."""
    count = max(1, round(num_pages / PAGES_PER_HOST))
    host: IntArray = np.arange(num_pages, dtype=np.int64) * count // num_pages
    return host


def deploys(
    rng: np.random.Generator,
    horizon: float,
    *,
    host: IntArray,
    own_rate: FloatArray,
    deploy_rate: FloatArray,
) -> Occurrences:
    """Draw deploys of hosts, which signal and change their pages, and further changes of pages.

    Both are Poisson. A deploy sends one signal for every page of its host at the same time, and
    changes each page with a probability drawn once per deploy from Beta(SHARE_BETA). There are no
    other signals. ``host`` (m,) is the host of each page, ``own_rate`` (m,) its rate of changes
    without a signal, and ``deploy_rate`` (H,) the rate of deploys of each host.
    """
    unsignalled = arrivals(rng, own_rate, horizon)
    time, deployed = arrivals(rng, deploy_rate, horizon)
    share = rng.beta(*SHARE_BETA, deployed.size)
    deploy, page = members(host, deployed)
    kind = np.where(rng.random(deploy.size) < share[deploy], CHANGE_SIGNAL, SIGNAL)
    return merged((*unsignalled, CHANGE), (time[deploy], page, kind))


def draw_deploys(rng: np.random.Generator, num_pages: int, **more: Any) -> Misspecified:
    """Draw an instance whose signals come from deploys, which concern all pages of a host.

    Revealed parameters are the long-run rates that a model of independent signals would fit to each
    page: with q = SHARE_MEAN, d the host's deploy rate and a the page's own change rate,
    Delta = a + q d, recall q d / Delta and false-signal rate (1 - q) d. The precision is q. Hosts
    are public (``problem.group``).
    """
    pages, host = draw_noisy(rng, num_pages, **more), hosts_of(num_pages)
    own_rate = OWN_FACTOR * pages.change_rate
    deploy_rate = rng.uniform(*DEPLOY_RANGE, int(host[-1]) + 1)
    often = deploy_rate[host]
    change_rate = own_rate + SHARE_MEAN * often
    return Misspecified(
        pages,
        partial(deploys, host=host, own_rate=own_rate, deploy_rate=deploy_rate),
        change_rate=change_rate,
        recall=SHARE_MEAN * often / change_rate,
        false_signal_rate=(1.0 - SHARE_MEAN) * often,
        group=host,
    )


def corrupted_quality(
    change_rate: FloatArray,
    recall: FloatArray,
    false_signal_rate: FloatArray,
    share: float,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Mix a share of noise into the precision and recall of pages (NCIS paper, section 6.7).

    Each becomes (1 - share) times its value plus share times its noise. (The paper's formula for
    recall lacks the last factor.) The estimated false-signal rate follows from both,
    nu = recall * Delta * (1 - precision) / precision; where the precision is 0, it is the true one.

    Args:
        change_rate: Delta, unchanged, (m,).
        recall: true recall, (m,).
        false_signal_rate: true nu, (m,).
        share: the p of the paper, in [0, 1].
        noise: draws from U(0, 1) for precision and recall, (2, m).

    Returns:
        The corrupted recall and false-signal rate, (m,) each.

    Raises:
        ValueError: the share is outside [0, 1].
    """
    check_share("share", share)
    true = recall * change_rate
    rate = true + false_signal_rate
    precision = np.divide(true, rate, out=np.ones_like(true), where=rate > 0.0)
    precision, believed = (1.0 - share) * np.stack([precision, recall]) + share * noise
    false = np.divide(
        believed * change_rate * (1.0 - precision),
        precision,
        out=false_signal_rate.copy(),
        where=precision > 0.0,
    )
    return believed, false


def draw_corrupted(
    rng: np.random.Generator, num_pages: int, *, corruption: float = CORRUPTION, **more: Any
) -> Misspecified:
    """Draw an instance that reveals true change rates and corrupted signal quality.

    :func:`corrupted_quality` mixes in a share of noise. Signals follow the true quality.
    """
    pages = draw_noisy(rng, num_pages, **more)
    noise = rng.random((2, num_pages))
    recall, false = corrupted_quality(
        pages.change_rate, pages.recall, pages.false_signal_rate, corruption, noise
    )
    law = partial(poisson, pages)
    return Misspecified(pages, law, recall=recall, false_signal_rate=false)
