import numpy as np
import pytest

import policies
from crawl_envs import instances
from crawl_envs.evaluation import simulate
from crawl_envs.sim.tape import Tape
from scripts.timing.numpy_rollout import Events, draw_events, greedy_rollout


def tape_of(events: Events, num_pages):
    return Tape.of_events(
        num_pages,
        changes=(events.change_time, events.change_page),
        requests=(events.request_time, events.request_page),
    )


@pytest.mark.parametrize("num_pages", [1, 7, 200])
def test_the_rollout_is_that_of_simulate_on_the_same_events(num_pages):
    instance = instances.make(
        "uniform", num_pages=num_pages, bandwidth=float(num_pages), seed=num_pages
    )
    events = draw_events(instance, 21.0, np.random.default_rng(1))
    expected = simulate(
        instance,
        policies.make("Greedy", features=("elapsed", "importance", "change_rate")),
        20.0,
        tape=tape_of(events, num_pages),
    )
    rollout = greedy_rollout(instance, 20.0, events=events)
    np.testing.assert_array_equal(rollout.crawls, expected.crawls)
    assert (rollout.hits, rollout.requests) == (expected.ledger.hits, expected.ledger.requests)
    assert rollout.freshness == pytest.approx(expected.freshness, rel=1e-9)


def test_events_are_poisson_and_ordered():
    instance = instances.make("uniform", num_pages=50, bandwidth=1.0, seed=0)
    events = draw_events(instance, 400.0, np.random.default_rng(0))
    counts = np.bincount(events.change_page, minlength=50)
    expected = 400.0 * instance.change_rate
    assert ((counts - expected) ** 2 / expected).mean() == pytest.approx(1.0, abs=0.6)
    assert np.all((events.request_time >= 0.0) & (events.request_time < 400.0))
    assert np.all(np.diff(events.request_page * 401.0 + events.request_time) > 0.0)
