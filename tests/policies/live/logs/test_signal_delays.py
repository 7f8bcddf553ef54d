"""Changes drawn with delays of signals, against a sampler by weights and simulated logs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crawl_envs.types import FloatArray
from policies.live.logs import imputation
from policies.live.logs.crawl_log import CrawlLog
from policies.live.logs.signal_delays import Periods
from tests.naive.replayed_logs import make_log

MEAN_DELAY, SHARE, FALSE, RATES, BURST = 1.2, 0.5, 0.25, (0.2, 2.5), (0.5, 0.5, 0.5)
"""Of one source: delay, share of signalled changes, false signals; change rates and probabilities
of a burst by phase."""
CRAWLS, FOUND, SIGNALS = (0.0, 2.0, 4.0, 6.0), (True, False, True), (1.5, 2.4, 5.6, 6.5)
END, PERIODS = 8.0, Periods(np.array([0.0, 5.0, 8.0]), np.array([1.6, 0.3]))


def weighted_histories(rng: np.random.Generator, number: int) -> tuple[FloatArray, FloatArray]:
    """Return features of histories that agree with the crawls, and their weights.

    Delays are drawn from their distribution. A signal is true with a weight of the rate of
    signalled changes, or false. Other changes are simulated in turn on the clock of the factor.
    """
    features, weights = [], []
    for _ in range(number):
        moment = np.array(SIGNALS) - rng.exponential(MEAN_DELAY, len(SIGNALS))
        true = (rng.random(len(SIGNALS)) < 0.5) & (moment > 0.0)
        if np.any(true & (moment > CRAWLS[1]) & (moment <= CRAWLS[2])):
            continue  # found unchanged
        phase, changes, weight = int(rng.random() < BURST[2]), [], sum(~true) * math.log(FALSE)
        weight += sum(moment > 0.0) * math.log(2.0)
        now = 0.0
        for until in [*np.sort(moment[true]), END]:
            clock, goal = PERIODS.clock(np.array([now, until]))
            while True:
                wait = rng.exponential(1.0 / (RATES[phase] * (1.0 - SHARE)))
                weight -= RATES[phase] * SHARE * (min(clock + wait, goal) - clock)
                clock += wait
                if clock >= goal:
                    break
                changes.append(float(PERIODS.days(np.array(clock))))
                phase = int(rng.random() < BURST[phase])
            if until < END:
                changes.append(until)
                factor = float(PERIODS.factor_at(np.array(until)))
                weight += math.log(RATES[phase] * SHARE * factor)
                phase = int(rng.random() < BURST[phase])
            now = until
        inside = np.histogram(changes, [*CRAWLS, END])[0]
        if np.array_equal(inside[:-1] > 0, FOUND):
            features.append([*true, *np.where(true, moment, 0.0), *inside, min(changes)])
            weights.append(math.exp(weight))
    return np.array(features), np.array(weights)


def chain_of_copies(copies: int) -> imputation._Chain:
    """Return a chain of equal pages whose parameters are those above."""
    crawls = [
        (page, time, found)
        for page in range(copies)
        for time, found in zip(CRAWLS, (False, *FOUND), strict=True)
    ]
    signals = [(page, time, 0) for page in range(copies) for time in SIGNALS]
    log = make_log(crawls, signals, num_pages=copies, num_sources=1)
    chain = imputation._Chain(log, END, np.zeros(copies, np.int64), np.random.default_rng(1))
    chain.periods, chain.chances = PERIODS, np.array(BURST)[:, None]
    chain.rates = np.repeat([[RATES[0]], [FALSE]], copies, axis=1)
    chain.burst_rate, chain.shares = np.array([RATES[1]]), np.array([[1.0 - SHARE], [SHARE]])
    return chain


def test_histories_have_the_distribution_of_the_model() -> None:
    """Which signals are true, the times of their changes, and the changes between crawls."""
    histories, weights = weighted_histories(np.random.default_rng(0), 120_000)
    expected = np.average(histories, axis=0, weights=weights)
    spread = np.sqrt(np.average((histories - expected) ** 2, axis=0, weights=weights))
    error = spread * np.sqrt((weights**2).sum()) / weights.sum()
    copies, drawn = 1000, []
    chain = chain_of_copies(copies)
    chain.delays.bound[:] = np.inf  # equal pages are no batches
    chain.delays.mean[:] = chain.delays.least = chain.delays.longest = MEAN_DELAY
    for _ in range(120):
        path, delays = chain.path(), chain.delays
        time = np.where(path.true, delays.sent - delays.delay, 0.0).reshape(copies, -1)
        first = path.time[np.searchsorted(path.page, np.arange(copies))]
        true, inside = path.true.reshape(copies, -1), path.in_gap.reshape(copies, -1)
        drawn.append(np.column_stack([true, time, inside, first]))
        delays.draw(path, chain.change_rates, chain.periods)
    found = np.mean(drawn[40:], axis=(0, 1))
    np.testing.assert_array_less(abs(found - expected), 3.5 * error + 1e-9)
    assert error[:4].max() < 0.015


def delayed_log(seed: int, delay: float, batch: float = 0.0, pages: int = 60) -> CrawlLog:
    """Return a log of Poisson changes whose signals are late; crawls every two days.

    With ``batch`` signals are published at its multiples.
    """
    rng, crawls, signals = np.random.default_rng([2, seed]), [], []
    for page in range(pages):
        changes = np.sort(rng.random(rng.poisson(rng.gamma(1.5, 0.15) * 90)) * 90.0) - 10.0
        times = np.append(0.0, np.arange(0, 80, 2) + rng.uniform(0.01, 2.0, 40))
        found = np.append(0, np.diff(np.searchsorted(changes, times))) > 0
        crawls += [(page, float(t), bool(c)) for t, c in zip(times, found, strict=True)]
        sent = np.append(changes[rng.random(changes.size) < 0.65], rng.random(5) * 90.0 - 10.0)
        sent = sent + delay * rng.standard_exponential(sent.size)
        if batch > 0.0:
            sent = np.unique(np.ceil(sent / batch) * batch)
        signals += [(page, float(t), 0) for t in sent if 0.0 < t < 80.0]
    return make_log(crawls, signals, num_pages=pages, num_sources=1)


@pytest.mark.parametrize("delay", [0.0, 0.2, 0.7])
def test_mean_delays_are_found(delay: float) -> None:
    means = []
    for seed in range(4):
        log = delayed_log(seed, delay)
        group, rng = np.zeros(log.num_pages, np.int64), np.random.default_rng(seed)
        chain, draws = imputation._Chain(log, float(log.time[-1]), group, rng), []
        for _ in range(250):
            chain.advance()
            draws.append(chain.delays.mean[0])
        means.append(np.mean(draws[150:]))
    assert np.mean(means) == pytest.approx(delay, rel=0.2, abs=0.03)
    assert np.std(means) < 0.03 + 0.25 * delay


def test_batches_are_found() -> None:
    """Signals are published twice a day: delays are uniform, a quarter of a day on average."""
    means = []
    for seed in range(3):
        log = delayed_log(seed, 0.0, batch=0.5)
        group, rng = np.zeros(log.num_pages, np.int64), np.random.default_rng(seed)
        chain, draws = imputation._Chain(log, float(log.time[-1]), group, rng), []
        for _ in range(200):
            drawn = chain.advance()
            assert np.quantile(chain.delays.delay, 0.98) <= 0.5  # few batches have no signal
            draws.append(chain.delays.delay[drawn.true].mean())
        means.append(np.mean(draws[120:]))
    assert np.mean(means) == pytest.approx(0.25, abs=0.04)


def test_pages_that_change_at_one_time_have_prompt_signals() -> None:
    """Every five days half of the pages change, and most of these are signalled at once."""
    rng, crawls, signals = np.random.default_rng(5), [], []
    for page in range(60):
        changes = np.arange(1.3, 80.0, 5.0)
        changes = changes[rng.random(changes.size) < 0.5]
        times = np.append(0.0, np.arange(0, 80, 2) + rng.uniform(0.01, 2.0, 40))
        found = np.append(0, np.diff(np.searchsorted(changes, times))) > 0
        crawls += [(page, float(t), bool(c)) for t, c in zip(times, found, strict=True)]
        signals += [(page, float(t), 0) for t in changes if rng.random() < 0.8]
    log = make_log(crawls, signals, num_pages=60, num_sources=1)
    chain = imputation._Chain(log, float(log.time[-1]), np.zeros(60, np.int64), rng)
    assert np.median(chain.delays.bound) == 5.0
    means = []
    for _ in range(150):
        drawn = chain.advance()
        means.append(chain.delays.delay[drawn.true].mean())
    assert np.mean(means[75:]) < 0.06
