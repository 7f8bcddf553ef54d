"""The belief that a page is active, or has stopped."""

import math

import mpmath
import numpy as np
import pytest

from policies.ncis.belief import layout
from policies.ncis.belief.activity import RETURN, value_if_stopped
from policies.ncis.belief.warm_start import CHANGE, replay_history
from tests.policies.ncis.belief.logs import PAGES, Learner, instance
from tests.policies.ncis.belief.test_index import certain
from tests.policies.ncis.belief.test_warm_start import history_of

RATE, HAZARD = 0.7, 0.2
ALIVE = np.ones(PAGES, bool)


def of_known_hazard():
    """Pages of one change rate that stop at one hazard, both known."""
    truth = instance(grouped=False, change_rate=RATE, recall=0.0, false_signal_rate=0.0)
    learner = certain(truth)
    learner.memory.shared[layout.PRIOR_ACTIVE] = 1e9
    learner.memory.shared[layout.ACTIVE_TIME] = 1e9
    learner.memory.shared[layout.STOPS] = HAZARD * 2e9 - 1.0
    learner.memory.groups[:, learner.at.stops] = 1e9 * HAZARD - 1.0
    learner.memory.groups[:, learner.at.active_time] = 1e9 - 1.0 / HAZARD
    return learner


@pytest.mark.parametrize("outcomes", [(False,), (True,), (False, False), (True, False, False)])
def test_bayes_rule_by_simulation(outcomes):
    """Simulated pages stop at exponential times; those with the same outcomes are counted."""
    rng = np.random.default_rng(1)
    stop = rng.exponential(1.0 / HAZARD, 2_000_000)
    lengths = np.array([2.0, 1.5, 3.0])[: len(outcomes)]
    kept, start = np.ones(stop.size, bool), 0.0
    for length, changed in zip(lengths, outcomes, strict=True):
        exposed = np.clip(stop - start, 0.0, length)
        kept &= (rng.random(stop.size) < -np.expm1(-RATE * exposed)) == changed
        start += length
    simulated = stop[kept] > start
    learner = of_known_hazard()
    for length, changed in zip(lengths, outcomes, strict=True):
        learner.learn(0, length, changed)
    error = 4.0 * simulated.std() / math.sqrt(simulated.size) + 2.0 * RETURN * RATE * start
    assert learner.memory.pages[0, learner.at.active] == pytest.approx(simulated.mean(), abs=error)


@pytest.mark.parametrize("expected", [1e-9, 1e-4, 9.99e-3, 1.01e-2, 0.5, 20.0])
def test_the_value_of_a_page_that_stopped_does_not_cancel(expected):
    rate, y = 0.25, mpmath.mpf(expected)
    with mpmath.workdps(50):
        value = float((1 - (1 + y) * mpmath.exp(-y)) / rate)
    assert value_if_stopped(rate, expected / rate) == pytest.approx(value, rel=1e-9)


def changing_until(stops, rate=2.0, duration=400.0, seed=0):
    """Pages that change without signals, each until its own time."""
    rng = np.random.default_rng(seed)
    events = [
        (time, page, CHANGE)
        for page, stop in enumerate(stops)
        for time in rng.uniform(0.0, stop, rng.poisson(rate * stop))
    ]
    return history_of(events, duration)


def test_hazard_and_active_pages_are_learned_from_a_history():
    stops = np.random.default_rng(2).exponential(40.0, PAGES)
    stops[:3] = 400.0
    learner = Learner(instance(grouped=False).problem("importance"), memory=1e6)
    replay_history(learner.memory, changing_until(stops))
    at, (pages, groups, _, shared, _) = learner.at, learner.memory
    assert np.all(pages[:3, at.active] > 0.9)
    assert np.all(pages[3:, at.active] < 0.1)
    assert shared[layout.STOPS] == pytest.approx(PAGES - 3, abs=0.5)
    assert shared[layout.ACTIVE_TIME] == pytest.approx(stops.sum(), rel=0.15)
    assert groups[:, at.stops].sum() == pytest.approx(shared[layout.STOPS])
    rates = pages[:, at.believed]
    np.testing.assert_allclose(rates, 2.0, rtol=0.35)  # of the time when they changed


def test_a_signal_to_a_page_that_stopped_counts_as_to_others():
    learner = certain(instance(grouped=False, recall=0.9, false_signal_rate=1e-6))
    learner.memory.pages[0, learner.at.active] = 1e-6
    elapsed = np.full(PAGES, 0.5)
    silent = learner.scores(1.0, elapsed, ALIVE)[0]
    learner.on_signal([(0, 0.2, 0)])
    signalled = learner.scores(1.0, elapsed, ALIVE)[0]
    learner.memory.pages[0, learner.at.active] = 1.0
    expected = learner.scores(1.0, elapsed, ALIVE)[0]
    assert signalled == pytest.approx(expected, rel=1e-4)
    assert silent < 0.01 * expected


def test_the_last_version_of_a_fast_page_is_fetched():
    """Its value grows with time where pages stop, and stays at mu / Delta where they do not."""
    learner, steady = of_known_hazard(), of_known_hazard()
    steady.memory.groups[:, steady.at.stops] = 0.0
    elapsed = np.full(PAGES, 60.0)
    for each in (learner, steady):
        each.memory.pages[:, each.at.believed] *= 50.0
        each.memory.pages[:, each.at.rate] *= 50.0
    importance = learner.memory.pages[:, learner.at.importance]
    np.testing.assert_allclose(steady.scores(0.0, elapsed, ALIVE), importance / 35.0, rtol=1e-3)
    np.testing.assert_allclose(learner.scores(0.0, elapsed, ALIVE), 60.0 * importance, rtol=1e-2)


def test_no_page_with_importance_is_left_for_ever():
    """A page that stopped gains value as one that changes at RETURN times its rate."""
    learner = of_known_hazard()
    learner.memory.pages[:, learner.at.active] = 0.0
    importance = learner.memory.pages[:, learner.at.importance]
    back = RETURN * RATE
    for elapsed in (10.0, 1e3, 1e5):
        expected = (1.0 - (1.0 + back * elapsed) * math.exp(-back * elapsed)) / back
        result = learner.scores(0.0, np.full(PAGES, elapsed), ALIVE)
        np.testing.assert_allclose(result, importance * expected, rtol=1e-5)
    assert np.all(result > 100.0 * importance / RATE)
