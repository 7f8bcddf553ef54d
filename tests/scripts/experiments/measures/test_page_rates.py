from __future__ import annotations

from collections.abc import Mapping

import gymnasium
import numpy as np
import pytest
from scipy.optimize import brentq

import policies
from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.measures import page_rates
from scripts.study.rows import gathered
from scripts.study.settings import Measurement

ARGUMENTS = {"instance": "noisy", "num_pages": 6, "bandwidth": 5.0, "horizon": 8.0}


def rows_of(policies: Mapping[str, str], *seeds: int) -> list[Row]:
    """Rows of the measures of 6 pages."""
    setting = Measurement("m=6", page_rates.measures(policies), ARGUMENTS, page_rates.ID)
    return [row for seed in seeds for label in setting.labels for row in setting.play(label, seed)]


def test_rates_are_crawls_per_unit_of_time_of_the_step_loop() -> None:
    result = page_rates.policy_rates(3, policy="GreedyNCIS", **ARGUMENTS)
    env = gymnasium.make("CrawlNCIS-v0", **ARGUMENTS)
    observation, _ = env.reset(seed=3)
    policy, counts, over = policies.make("GreedyNCIS", env), np.zeros(6), False
    while not over:
        page, _ = policy.predict(observation)
        counts[page] += 1
        observation, _, _, over, _ = env.step(page)
    assert counts.sum() == 40
    assert list(result.values()) == list(counts / 8.0)


def test_baseline_rates_equalise_the_marginal_freshness() -> None:
    """Twin of eq. 5: bisect the multiplier, and each page's rate under it."""
    result = page_rates.baseline_rates(3, **ARGUMENTS)
    pages = {"change_rate": np.array([result[f"change_rate[{k}]"] for k in range(6)])}
    env = gymnasium.make("CrawlNCIS-v0", **ARGUMENTS)
    env.reset(seed=3)
    truth = env.unwrapped.instance  # type: ignore[attr-defined]
    np.testing.assert_array_equal(pages["change_rate"], truth.change_rate)
    assert result["false_signal_rate[4]"] == truth.false_signal_rate[4]

    def rate(price: float, mu: float, delta: float) -> float:
        def gain(x: float) -> float:
            return mu / delta * (1.0 - (1.0 + delta / x) * np.exp(-delta / x)) - price

        return brentq(gain, 1e-6, 1e4) if mu / delta > price else 0.0

    def spent(price: float) -> float:
        return sum(map(rate, [price] * 6, truth.importance, truth.change_rate)) - 5.0

    price = brentq(spent, 1e-6, 1.0, xtol=1e-14)
    expected = [
        rate(price, *page) for page in zip(truth.importance, truth.change_rate, strict=True)
    ]
    np.testing.assert_allclose([result[f"crawl_rate[{k}]"] for k in range(6)], expected, rtol=1e-6)


def test_statistics_use_the_rates_of_their_own_seed() -> None:
    rows = rows_of({"G": "Greedy"}, 0, 1)
    seen: list[tuple[FloatArray, FloatArray]] = []

    def statistics(
        rates: FloatArray, optimal: FloatArray, pages: Mapping[str, FloatArray]
    ) -> dict[str, float]:
        seen.append((rates, optimal))
        return {"recall": float(pages["recall"].sum()), "none": float("nan")}

    result = page_rates.compared(rows, statistics)
    recalls = gathered(rows, "recall")
    assert result == [
        Row("CrawlNCIS-v0", "m=6", "G", seed, "recall", recalls["m=6", "BASELINE", seed].sum())
        for seed in (0, 1)
    ]
    rates = gathered(rows, "crawl_rate")
    for seed, (own, optimal) in enumerate(seen):
        np.testing.assert_array_equal(own, rates["m=6", "G", seed])
        np.testing.assert_array_equal(optimal, rates["m=6", "BASELINE", seed])


def test_policies_are_compared_with_another_on_the_same_pages() -> None:
    rows = rows_of({"G": "Greedy", "C": "GreedyCIS", "N": "GreedyNCIS"}, 4)
    rates, recall = gathered(rows, "crawl_rate"), gathered(rows, "recall")

    def statistics(
        own: FloatArray, others: FloatArray, pages: Mapping[str, FloatArray]
    ) -> dict[str, float]:
        np.testing.assert_array_equal(pages["recall"], recall["m=6", "BASELINE", 4])
        return {f"more[{page}]": more for page, more in enumerate(own - others)}

    result = gathered(page_rates.compared(rows, statistics, "N"), "more")
    assert set(result) == {("m=6", "G", 4), ("m=6", "C", 4)}
    for key, more in result.items():
        np.testing.assert_array_equal(more, rates[key] - rates["m=6", "N", 4])
    assert any(np.any(more != 0.0) for more in result.values())


def test_shares_and_changes_by_hand() -> None:
    rates, optimal = np.array([1.0, 0.5, 0.0, 3.0]), np.array([0.5, 1.0, 0.0, 2.9])
    all_of_them = np.ones(4, np.bool_)
    assert page_rates.rate_change(rates, optimal, all_of_them) == pytest.approx(4.5 / 4.4 - 1.0)
    assert page_rates.share_above(rates, optimal, all_of_them) == pytest.approx(1 / 3)
    assert page_rates.share_above(rates, optimal, all_of_them, margin=0.01) == pytest.approx(2 / 3)
    assert page_rates.share_above(rates, optimal, all_of_them, margin=1.0) == 0.0  # just twice
    assert page_rates.share_below(rates, optimal, all_of_them) == pytest.approx(1 / 3)
    assert np.isnan(page_rates.share_above(rates, optimal, ~all_of_them))
    assert page_rates.rms(rates - optimal) == pytest.approx(np.sqrt(0.51 / 4))
