"""Long-run costs of random crawls: the formulas of Kolobov et al. (2019).

Lanes are independent, so that each gives a sample; means lie within three standard errors. Seeds
are fixed: these tests either always pass or always fail.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from crawl_envs import Instance
from tests.worlds import rated_vector_of

ERRORS = 3.0
LANES, EPOCH, WARM_UP, EPOCHS = 150, 20.0, 3, 8
IMPORTANCE = np.array([1.0, 0.5, 2.0, 0.1, 3.0])
CHANGE_RATE = np.array([0.2, 2.0, 0.7, 5.0, 1.0])


def near(samples, expected):
    """The mean of independent samples is the expected one, within ERRORS standard errors."""
    samples = np.asarray(samples, float)
    error = samples.std(ddof=1) / math.sqrt(samples.size)
    assert error < 0.05 * abs(expected)
    assert abs(samples.mean() - expected) < ERRORS * error


def long_run(instance, action, penalty, seed=0, **more):
    """The cost of every lane after a warm-up, and the environment."""
    total = EPOCHS + WARM_UP
    env = rated_vector_of(
        instance, LANES, epoch=EPOCH, horizon=EPOCH * total, penalty=penalty, requests=False, **more
    )
    env.reset(seed=seed)
    actions = np.broadcast_to(np.asarray(action, float), (LANES, instance.num_pages))
    costs = []
    for epoch in range(total):
        env.step(actions)
        if epoch + 1 in (WARM_UP, total):
            costs.append([env.ledger(lane).penalty_time for lane in range(LANES)])
    return (np.array(costs[1]) - costs[0]) / (EPOCH * EPOCHS), env


def pages(recall, importance=IMPORTANCE):
    return Instance(importance, CHANGE_RATE, recall, bandwidth=100.0)


RATES = {
    "even": np.full(5, 0.6),
    "by change rate": 0.8 * CHANGE_RATE,
    "uneven": np.array([0.3, 4.0, 1.0, 0.5, 2.0]),
}
SHARES = {"all": np.ones(5), "half": np.full(5, 0.5), "uneven": np.array([0.9, 0.3, 0.2, 0.7, 1.0])}


MIXED = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
COSTS = {
    **{
        f"{penalty}, crawled {name}": (penalty, np.zeros(5), rates, IMPORTANCE)
        for penalty in ("harmonic", "binary")
        for name, rates in RATES.items()
    },
    **{
        f"{penalty}, {name} answered": (penalty, np.ones(5), shares, IMPORTANCE)
        for penalty in ("harmonic", "binary")
        for name, shares in SHARES.items()
    },
    "mixed": ("harmonic", MIXED, np.array([0.5, 0.4, 1.5, 0.8, 0.7]), IMPORTANCE),
    **{  # each page by itself between others, which the sum might hide
        f"page {page}": ("harmonic", MIXED, np.array([0.3, 0.4, 1.5, 0.8, 0.7]), weight)
        for page, weight in enumerate(2.0 * np.eye(5))
    },
}


@pytest.mark.parametrize("case", COSTS)
def test_costs_are_those_of_the_paper(case):
    """J is - sum mu ln(f), of binary staleness sum mu (1 - f), with f = rho / (rho + Delta) or p.

    Propositions 1 and 4, eqs. 8, 12 and 13.
    """
    penalty, recall, action, importance = COSTS[case]
    costs, env = long_run(pages(recall, importance), action, penalty, seed=int(importance.argmax()))
    fresh = np.where(recall == 1.0, action, action / (action + CHANGE_RATE))
    expected = importance @ (-np.log(fresh) if penalty == "harmonic" else 1.0 - fresh)
    if expected == 0.0:
        assert np.all(costs == 0.0)
    else:
        near(costs, expected)
    if penalty == "binary":
        stale = [1.0 - env.ledger(lane).freshness for lane in range(LANES)]
        mean = [env.ledger(lane).penalty for lane in range(LANES)]
        np.testing.assert_allclose(stale, mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("recall", [0.0, 1.0])
def test_a_page_that_is_never_crawled_costs_ever_more(recall):
    """E[H(N_t)] = Ein(Delta t), the entire exponential integral, which has no bound."""
    change_rate, lanes = 1.5, 600
    env = rated_vector_of(
        Instance([2.0], change_rate, recall, bandwidth=1.0),
        lanes,
        epoch=4.0,
        horizon=40.0,
        penalty="harmonic",
        requests=False,
    )
    env.reset(seed=0)

    def mean_penalty(time):
        mean = change_rate * time
        return 2.0 * (np.euler_gamma + math.log(mean) + special.exp1(mean)) if mean else 0.0

    before, means = np.zeros(lanes), []
    for step in range(10):
        env.step(np.zeros((lanes, 1)))
        total = np.array([env.ledger(lane).penalty_time for lane in range(lanes)])
        expected, _ = integrate.quad(mean_penalty, 4.0 * step, 4.0 * (step + 1))
        near(total - before, expected)
        means.append((total - before).mean())
        before = total
    assert np.all(np.diff(means) > 0.0)


def counts_of(env, epochs, action):
    """The crawls and the signals of each lane and page, (epochs, N, m) each."""
    num_pages = action.shape[1]
    crawls, signals = [], []
    for _ in range(epochs):
        env.step(action)
        logs = [env.last_log(lane) for lane in range(env.num_envs)]
        crawls.append([np.bincount(log.page, minlength=num_pages) for log in logs])
        signals.append([np.bincount(log.signal_page, minlength=num_pages) for log in logs])
    return np.array(crawls), np.array(signals)


def test_crawls_are_poisson_and_independent():
    """Counts of each page by lane and epoch: mean, dispersion, and no two pages together."""
    rho = np.array([0.05, 0.5, 2.0, 0.0, 1.0])
    env = rated_vector_of(pages(0.0), 40, horizon=50.0, requests=False)
    env.reset(seed=3)
    crawls, _ = counts_of(env, 50, np.broadcast_to(rho, (40, 5)))
    assert np.all(crawls[:, :, 3] == 0)
    counts = crawls.reshape(-1, 5)[:, [0, 1, 2, 4]]
    mean, size = rho[[0, 1, 2, 4]], counts.shape[0]
    assert np.all(np.abs(counts.sum(0) - size * mean) < ERRORS * np.sqrt(size * mean))
    dispersion = ((counts - mean) ** 2 / mean).sum(0)
    # The variance of (n - mean)^2 / mean is 2 + 1 / mean for a Poisson count.
    assert np.all(np.abs(dispersion - size) < ERRORS * np.sqrt(size * (2.0 + 1.0 / mean)))
    correlation = np.corrcoef(counts.T) - np.eye(4)
    assert np.all(np.abs(correlation) < 4.0 / math.sqrt(size))
    # Epochs do not know of one another.
    for page in (1, 2, 4):
        first, second = crawls[:-1, :, page].ravel(), crawls[1:, :, page].ravel()
        assert abs(np.corrcoef(first, second)[0, 1]) < 4.0 / math.sqrt(first.size)


def test_signals_are_answered_with_their_probability():
    """Independently of one another: answers of a page are binomial among its signals."""
    p = SHARES["uneven"]
    env = rated_vector_of(pages(1.0), 40, horizon=50.0, requests=False)
    env.reset(seed=3)
    crawls, signals = counts_of(env, 50, np.broadcast_to(p, (40, 5)))
    answered, signalled = crawls.sum((0, 1)), signals.sum((0, 1))
    assert np.all(signalled > 300)
    assert answered[4] == signalled[4]
    error = np.sqrt(signalled * p * (1.0 - p))[:4]
    assert np.all(np.abs(answered - signalled * p)[:4] < ERRORS * error)
    # The variance over lanes, given the signals.
    spread = (crawls.sum(0) - signals.sum(0) * p)[:, :4]
    scores = spread**2 / (signals.sum(0) * p * (1.0 - p))[:, :4]
    assert np.all(scores.sum(0) < stats.chi2.ppf(0.999, 40))
    assert np.all(scores.sum(0) > stats.chi2.ppf(0.001, 40))


def test_what_is_declared_is_what_is_spent_in_the_mean():
    recall = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    env = rated_vector_of(
        Instance(IMPORTANCE, CHANGE_RATE, recall, bandwidth=3.0),
        200,
        horizon=20.0,
        overspend="scale",
        requests=False,
    )
    env.reset(seed=3)
    spent = np.zeros(200)
    for _ in range(20):
        *_, info = env.step(np.full((200, 5), 0.9))
        np.testing.assert_allclose(info["declared"], 3.0, rtol=1e-12)
        spent += info["crawls"]
    near(spent / 20.0, 3.0)
