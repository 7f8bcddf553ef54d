"""GREEDY-NCIS where pages have several sources of signals."""

from __future__ import annotations

from typing import Any

import numpy as np

import policies
from crawl_envs.evaluation import simulate
from crawl_envs.types import FloatArray, Instance, Problem
from policies.values.sources.kernels import EVIDENCES, source_evidence


class PooledNCIS(policies.GreedyNCIS):
    """GREEDY-NCIS with all sources pooled into one."""

    def _signal_weight(self, problem: Problem) -> Any:
        return None

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        return super()._index(problem.pooled())


def unlike(num_pages: int, seed: int) -> Instance:
    """Pages with a precise source and one whose signals are mostly false."""
    rng = np.random.default_rng(seed)
    return Instance(
        rng.random(num_pages),
        rng.random(num_pages),
        np.stack([np.full(num_pages, 0.5), rng.uniform(0.1, 0.4, num_pages)]),
        np.stack([rng.uniform(0.01, 0.05, num_pages), rng.uniform(0.5, 1.5, num_pages)]),
        bandwidth=0.2 * num_pages,
    )


def test_separate_sources_are_better_than_pooled_ones() -> None:
    gains = []
    for seed in range(5):
        instance = unlike(40, seed)
        apart = simulate(instance, policies.GreedyNCIS(), 40.0, seed)
        pooled = simulate(instance, PooledNCIS(), 40.0, seed)
        gains.append(apart.freshness - pooled.freshness)
    assert np.mean(gains) > 5.0 * np.std(gains, ddof=1) / np.sqrt(len(gains)) > 0.0


def test_a_signal_counts_its_evidence_at_any_age() -> None:
    instance = unlike(6, 2)
    index = policies.GreedyNCIS().compile(instance.problem(), 0, np.random.default_rng(0))
    gamma = instance.recall * instance.change_rate + instance.false_signal_rate
    expected = np.log(gamma / instance.false_signal_rate)
    np.testing.assert_allclose(index.parameters[:, EVIDENCES : EVIDENCES + 2].T, expected)
    for age in (0.0, 3.0, np.inf):
        assert source_evidence(index.parameters, 3, age, 1) == index.parameters[3, EVIDENCES + 1]


def test_policies_of_one_source_take_all_for_one() -> None:
    instance = unlike(8, 3)
    for name in ("GreedyCIS", "GreedyCISPlus", "GreedyNCISApprox", "Greedy"):
        policy = policies.make(name)
        several = policy.compile(instance.problem(), 0, np.random.default_rng(0))
        one = policy.compile(instance.pooled().problem(), 0, np.random.default_rng(0))
        np.testing.assert_array_equal(several.parameters, one.parameters)
        assert several.signal_weight is one.signal_weight
