"""Coverage of backtests of simulated logs, and what is derived from it."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from crawl_envs.evaluation import Row
from scripts.experiments.real import laws


def test_a_sign_test_counts_estimates_above_the_truth() -> None:
    rows = []
    for seed in range(10):
        for name in ("", " of freshness", " of own freshness"):
            values = {"log": 0.5, "record": 0.4 if seed else 0.6, "contained": 1.0}
            rows += [
                Row("", "Poisson, 2 days", policy, seed, f"{metric}{name}", value)
                for policy in laws.POLICIES
                for metric, value in values.items()
            ]
    derived = laws.derive(rows)
    tests = [row.value for row in derived if row.metric == laws.SIGN]
    assert tests == pytest.approx([2.0 * binom.cdf(1, 10, 0.5)] * 2)
    together = [row for row in derived if row.setting == laws.TOGETHER]
    assert len(together) == 60
    assert {row.seed for row in together} == set(range(10))


def test_a_small_log_is_covered() -> None:
    small = {"law": "bursts, 2 days", "pages": 20, "crawls": 8, "draws": 3}
    measured = laws.covered(0, policy="Greedy", **small)
    for name in ("", " of freshness", " of own freshness"):
        off = abs(measured[f"log{name}"] - measured[f"record{name}"])
        assert measured[f"contained{name}"] == (off <= measured[f"half width{name}"])
    assert measured["widening"] >= 1.0
