"""Costs of simulated policies after the start, against plain sums."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import policies as crawl_policies
from crawl_envs import instances
from crawl_envs.types import Ledger
from scripts.experiments.measures import long_run
from scripts.experiments.measures.costs import J_B, J_H


def test_costs_between_two_moments_are_integrals_over_their_distance() -> None:
    early = Ledger(10.0, 30.0, 50.0, 0, 0, 4, 0, 0, 0, 0, 25.0)
    late = Ledger(14.0, 38.0, 70.0, 0, 0, 24, 0, 0, 0, 0, 37.0)
    result = long_run.between(early, late, 5)
    assert result == {J_H: 3.0, J_B: 3.0, long_run.CRAWL_RATE: 1.0}
    with pytest.raises(ValueError, match="must count penalties"):
        long_run.between(early, Ledger(1.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0), 5)


def test_steps_and_compiled_code_cost_the_same() -> None:
    instance = instances.make("mixed", num_pages=8, bandwidth=4.0, seed=3)
    env = gymnasium.make(
        "CrawlHarmonic-v0", num_pages=8, bandwidth=4.0, horizon=41.0, action="page"
    )
    env.reset(seed=5, options={"instance": instance})
    greedy = crawl_policies.GreedyHarmonic()
    played = long_run.compiled_course(instance, greedy, 5, [10.0, 25.0, 40.0])
    ends = np.array([10.25, 25.25, 40.25])  # of the last slots that begin within these times
    stepped = long_run.stepped_costs(env, crawl_policies.make("GreedyHarmonic", env), 5, ends)
    assert len(stepped) == 2
    for now, then in zip(stepped, played[1:], strict=True):
        assert now == pytest.approx(then, rel=1e-9)
    total = long_run.compiled_course(instance, greedy, 5, [40.0])[0]
    parts = np.array([[cost[J_H], cost[J_B]] for cost in played])
    np.testing.assert_allclose(
        np.average(parts, axis=0, weights=[10.25, 15.0, 15.0]), [total[J_H], total[J_B]]
    )


def test_costs_begin_with_the_first_decision_at_or_after_a_moment() -> None:
    env = gymnasium.make(
        "CrawlHarmonic-v0", num_pages=3, bandwidth=2.0, horizon=20.0, action="page"
    )
    env.reset(seed=0)
    core = env.unwrapped
    policy = crawl_policies.make("RoundRobin", env)
    result = long_run.stepped_costs(env, policy, 0, np.array([3.2, 9.0]))
    observation, _ = env.reset(seed=0, options={"instance": core.instance})
    ledgers = [core.ledger()]
    while len(ledgers) < 25:
        observation, *_ = env.step(policy.predict(observation)[0])
        ledgers.append(core.ledger())
    assert [ledgers[6].time, ledgers[17].time] == [3.5, 9.0]
    assert result == [long_run.between(ledgers[6], ledgers[17], 3)]


def test_crawls_are_counted_from_a_time_on() -> None:
    for form, bandwidth in (("page", 2.0), ("refresh", 1.0)):
        env = gymnasium.make(
            "CrawlHarmonic-v0", num_pages=3, bandwidth=bandwidth, horizon=20.0, action=form
        )
        env.reset(seed=0)
        played = crawl_policies.make("RoundRobin", env)
        counted = long_run.Counted(env, played, 4.0)
        [result] = long_run.stepped_costs(env, counted, 0, np.array([4.0, 10.0]))
        assert counted.counts.sum() == 6.0 * bandwidth
        assert counted.counts.sum() / 6.0 / 3.0 == pytest.approx(result[long_run.CRAWL_RATE])


def test_proportionality_is_a_slope_of_logarithms() -> None:
    rates = np.array([0.1, 0.5, 2.0])
    assert long_run.proportionality(7.0 * rates, rates) == pytest.approx(1.0)
    assert long_run.proportionality(np.full(3, 4.0), rates) == pytest.approx(0.0, abs=1e-12)
    assert long_run.proportionality(np.array([0.0, 2.5, 10.0]), rates) == pytest.approx(1.0)
