"""The two fits recover what is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from agents.generalist.learning import cycles_of, fit_networks, shortfall
from agents.generalist.networks import NUM_INPUTS
from agents.generalist.recording import EVIDENCE, FORCED, Record
from tests.agents.generalist.twins import price


def poisson_record(rng, factor: float, pages: int = 10, cycles: int = 60) -> Record:
    """Pages whose changes are ``factor`` times as frequent as believed, crawled at random."""
    crawls, seen = [], []
    for page in range(pages):
        rate, time = float(np.exp(rng.normal(0.0, 0.5))), 0.0
        for _ in range(cycles):
            age = float(rng.exponential(1.0)) + 0.2
            for step in np.arange(0.02, age, 0.02):
                seen.append([page, time + step, rate * step, rate, 0.0, 0.0])
            changed = rng.random() < 1.0 - np.exp(-factor * rate * age)
            time += age
            crawls.append([page, time, rate * age, rate, 0.0, changed])
    crawls.sort(key=lambda row: row[1])
    crawls, seen = np.array(crawls, np.float32), np.array(seen, np.float32)
    noise = rng.normal(size=(pages, NUM_INPUTS)).astype(np.float16)
    return Record(crawls, noise[crawls[:, 0].astype(int)], seen, noise[seen[:, 0].astype(int)], 1.0)


def test_the_integral_up_to_a_level():
    age = np.linspace(0.0, 2.0, 2001)
    level = 1.0 - np.exp(-age)
    d = level[1000]  # the integral of d - 1 + exp(-t) up to t = 1 is d - 1 + d
    assert shortfall(age, level, d) == pytest.approx(2.0 * d - 1.0, rel=1e-5)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ([0.0, 0.5, 0.2, 0.1, 0.5], 0.5),  # d is reached at age 2, and what follows is not counted
        ([0.0, 0.2, 0.9, 0.0, 0.0], 1.1),  # above d nothing is taken off
    ],
)
def test_the_integral_ends_where_the_level_is_first_reached(level, expected):
    """Trapezoids of d - D by hand, d = .5, at ages 0, 2, 4, 6, 8."""
    found = shortfall(np.arange(0.0, 10.0, 2.0), np.array(level), 0.5)
    assert found == pytest.approx(expected)


def test_cycles_ended_at_random_are_left_out():
    record = poisson_record(np.random.default_rng(0), 1.0, pages=1, cycles=4)
    at_crawls, when_seen = (
        1.0 - np.exp(-rows[:, EVIDENCE].astype(float)) for rows in (record.crawls, record.samples)
    )
    rng = np.random.default_rng(1)
    starts, levels, totals = cycles_of(record, at_crawls, when_seen, rng)
    assert {*starts} == {0, 1, 2}
    assert {*at_crawls[1:]} <= {*levels}
    assert (totals >= 0.0).all()
    record.crawls[2, FORCED] = 1.0
    assert {*cycles_of(record, at_crawls, when_seen, rng)[0]} == {0, 2}


def test_fits_recover_a_known_factor():
    rng = np.random.default_rng(0)
    records = [poisson_record(rng, 2.0) for _ in range(12)]
    rounds = list(fit_networks(records[:10], records[10:], 8, 0.003, rng))
    assert [each.fit for each in rounds[:1] + rounds[-1:]] == ["staleness", "value"]
    weights = rounds[-1].weights
    inputs, factors, prices = rng.normal(size=(40, NUM_INPUTS)), [], []
    for each in inputs:
        x, found = price(weights, 8, each, 0.5, 1.0)
        factors.append(x / 0.5)
        prices.append(found / ((1.0 - (1.0 + x) * np.exp(-x)) / 2.0))
    assert np.median(factors) == pytest.approx(2.0, rel=0.15)
    assert np.median(prices) == pytest.approx(1.0, rel=0.15)
