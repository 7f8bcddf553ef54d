"""The posterior of divergence curves after crawls."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.types.contents import Regions
from policies.estimators.divergence import posterior_kernels as kernels
from policies.estimators.divergence.posterior import DivergencePosterior
from policies.values.divergence.regions import RegionCurves

COPIES = 2


def crawled(regions, interval, crawls, seed, memory=24, recall=0.0, false_rate=0.0):
    """A belief after all pages were crawled so often at random times, signals included."""
    rng = np.random.default_rng(seed)
    m, n = regions.num_pages, regions.fragments
    belief = DivergencePosterior(m, interval, copies=COPIES, memory=memory)
    updates, now = [np.zeros(regions.rate.shape)], [np.zeros(m)]
    for _ in range(crawls):
        elapsed = rng.gamma(2.0, interval / 2.0, m)
        new = rng.poisson(regions.rate * elapsed[:, None])
        signals = rng.binomial(new.sum(axis=1), recall) + rng.poisson(false_rate * elapsed)
        updates.append(updates[-1] + new)
        now.append(now[-1] + elapsed)
        divergence, age = np.full((m, COPIES), np.nan), np.full((m, COPIES), np.nan)
        for copy in range(min(COPIES, len(now) - 1)):
            missed = np.minimum(updates[-1] - updates[-2 - copy], regions.items)
            lost = (regions.size * missed).sum(axis=1)
            divergence[:, copy] = 2.0 * lost / (n + lost)
            age[:, copy] = now[-1] - now[-2 - copy]
        belief.set_signals(signals)
        for page in range(m):
            changed = bool(new[page].any())
            belief.learn(
                page, elapsed[page], int(signals[page]), changed, divergence[page], age[page]
            )
    return belief


KINDS = {
    "static": ((1, 1), (100, 0), (0.0, 0.0)),
    "slow churn": ((1, 1), (60, 40), (0.0, 0.1)),
    "fast churn": ((1, 1), (60, 40), (0.0, 4.0)),
    "scroll": ((1, 10), (60, 4), (0.0, 0.4)),
    "churn and scroll": ((1, 5), (30, 14), (3.0, 0.2)),
}


def repeated(name, times):
    items, size, rate = KINDS[name]
    static = 50
    return Regions([[1, *items]] * times, [[static, *size]] * times, [[0.0, *rate]] * times)


@pytest.mark.parametrize("name", list(KINDS))
def test_utilities_come_near_the_true_ones(name):
    """Over 20 pages with 24 crawls each, at ages that were seen: the error is a quarter at most."""
    regions = repeated(name, 20)
    belief = crawled(regions, 4.0, 24, seed=1)
    curves = RegionCurves(regions)
    for age in (4.0, 8.0):
        elapsed = np.full(20, age)
        result, exact = belief.utility(elapsed).mean(), curves.utility(elapsed).mean()
        assert result == pytest.approx(exact, rel=0.25, abs=0.01 * age)


def test_pages_teach_what_other_pages_are_like():
    """A page without crawls has a smaller utility among static pages than among changing ones."""
    utilities = {}
    for name in ("static", "scroll"):
        belief = crawled(repeated(name, 30), 4.0, 6, seed=2)
        belief.histories.count[0] = 0
        belief._stale[0] = True
        utilities[name] = belief.utility(np.full(30, 8.0))[0]
    first = DivergencePosterior(1, 4.0, copies=COPIES, memory=8).utility(np.array([8.0]))[0]
    assert utilities["static"] < 0.5 * first < first < utilities["scroll"]


def test_old_crawls_are_forgotten():
    """Once as many quiet crawls have followed as are kept, only the pages' prior remembers."""
    regions = repeated("scroll", 4)
    belief = crawled(regions, 4.0, 12, seed=3, memory=6)
    before = belief.utility(np.full(4, 8.0))[0]
    for _ in range(6):
        belief.learn(0, 4.0, 0, False, np.zeros(COPIES), np.array([4.0, 8.0]))
    assert belief.utility(np.full(4, 8.0))[0] < 0.5 * before
    assert belief.histories.num_rows[0] == 6


def test_the_quality_of_signals_is_learned():
    good = crawled(repeated("slow churn", 20), 8.0, 20, seed=4, recall=0.9)
    noise = crawled(repeated("slow churn", 20), 8.0, 20, seed=4, false_rate=0.1)
    assert good.recall.mean() > 0.6
    assert noise.recall.mean() < 0.3
    elapsed = np.full(20, 8.0)
    for belief, least, most in ((good, 3.0, np.inf), (noise, 0.0, 2.0)):
        silent = belief.utility(elapsed).mean()
        belief.set_signals(np.ones(20, np.int64))
        assert least <= belief.utility(elapsed).mean() / silent <= most


def test_given_quality_is_not_learned():
    belief = DivergencePosterior(2, 1.0, copies=0, memory=4)
    belief.set_quality([0.5, 0.0], [0.1, 0.2])
    belief.set_signals(np.array([1, 0]))
    belief.learn(0, 1.0, 1, True, np.zeros(0), np.zeros(0))
    assert belief.recall.tolist() == [0.5, 0.0]


def test_comparisons_with_older_copies_count_three_tenths():
    belief = DivergencePosterior(1, 4.0, copies=COPIES, memory=4)
    belief.set_quality([0.0], [0.0])
    for divergences in ((0.3, np.nan), (0.2, 0.4), (0.25, 0.35)):
        belief.learn(0, 4.0, 0, True, np.array(divergences), np.array([4.0, 8.0]))
    weights = {}
    past = kernels.PageCrawls(*belief.histories.of_page(0, *kernels.PageCrawls._fields))
    for older in (0.3, 1.0):
        weights[older] = np.zeros(belief.first.size)
        kernels.weigh(
            *(weights[older], belief.log_prior, belief.tables.log_lost, belief.rates, past),
            *(0.0, 0.0, older),
        )
    assert belief.posterior(0).tolist() == weights[0.3].tolist()
    assert np.abs(weights[0.3] - weights[1.0]).sum() > 0.1


def test_no_signal_ever_is_no_evidence():
    """Where none came, pages are believed in as if signals did not exist."""
    belief = crawled(repeated("scroll", 3), 4.0, 8, seed=5)
    assert not belief.recall.any()


def test_utilities_rise_with_age():
    belief = crawled(repeated("churn and scroll", 5), 4.0, 8, seed=6)
    ages = np.linspace(0.0, 400.0, 300)
    utilities = np.array([belief.utility(np.full(5, age)) for age in ages])
    assert np.all(np.diff(utilities, axis=0) >= -1e-6)
    assert np.all(utilities[0] == 0.0)
