"""The risk bound: losses against sets of fragments, and its share of the bound."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from scripts.experiments.longevity import risk
from scripts.experiments.longevity.measures import plays
from scripts.study.rows import indexed
from tests.naive.fragments import distance, mean_divergence, version_at, versions_of


def test_losses_are_utilities_of_the_sets() -> None:
    env = plays.ticking("random", 8)
    env.reset(seed=3)
    core, held = env.unwrapped, np.zeros(8)
    contents = core.contents()  # type: ignore[attr-defined]  # of fragments
    histories = versions_of(contents)
    for number in range(1, 16):
        now = number * plays.TICK
        expected = []
        for page, history in enumerate(histories):
            copy, elapsed = version_at(history, held[page]), now - held[page]
            area = mean_divergence(history, copy, held[page], now)
            expected.append(elapsed * distance(version_at(history, now), copy) - area)
        assert risk.losses(core) == pytest.approx(expected, abs=1e-9)
        refreshed = np.arange(8) % 5 == number % 5
        held[refreshed] = now
        env.step(refreshed.astype(np.int8))
    assert max(expected) > 0.1


def test_the_largest_loss_is_within_its_bound_and_a_tick() -> None:
    def largest(**given: float) -> float:
        entrant = plays.Entrant("CurveFitting", (0.5,), {"learning": 60.0, **given})
        result = risk.swept(1, entrant=entrant, pages="quality", num_pages=60)
        return result[f"{risk.LOSS}[0]"]

    assert 0.0 < largest(risk=1.0) <= 1.0 * 0.5 + plays.TICK < largest()


def test_shares_are_over_the_bound_and_a_tick() -> None:
    first, bounded = risk.FITTING, risk.FIRST
    rows = [
        Row("", "quality", label, 0, name, value)
        for label in (first, bounded)
        for metric, column in (
            (risk.THRESHOLD, (0.1, 0.8)),
            (risk.LOSS, (2.4, 5.0)),
            ("cost, steady", (0.4, 0.04)),
            ("staleness, steady", (0.04, 0.08)),
        )
        for name, value in indexed(metric, column).items()
    ]
    derived = {(row.policy, row.metric): row.value for row in risk.derive(rows)}
    assert derived[bounded, risk.SHARE] == pytest.approx(2.4 / 3.0)
    assert derived[first, risk.SHARE_OF_FIRST] == pytest.approx(2.4 / 3.0)
    assert (first, risk.SHARE) not in derived
