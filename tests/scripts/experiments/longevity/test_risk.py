"""The risk bound: losses against sets of fragments, and its share of the bound."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from policies.longevity.curve_fitting import CurveFitting
from scripts.experiments.longevity import risk as longevity_risk
from scripts.experiments.longevity.setup.runs import TICK, ledgers, ticking
from scripts.study.rows import indexed
from tests.naive.fragments import distance, mean_divergence, version_at, versions_of


def test_losses_are_utilities_of_the_sets() -> None:
    env = ticking("random", 8)
    env.reset(seed=3)
    core, held = env.unwrapped, np.zeros(8)
    contents = core.contents()  # type: ignore[attr-defined]  # of fragments
    histories = versions_of(contents)
    for number in range(1, 16):
        now = number * TICK
        expected = []
        for page, history in enumerate(histories):
            copy, elapsed = version_at(history, held[page]), now - held[page]
            area = mean_divergence(history, copy, held[page], now)
            expected.append(elapsed * distance(version_at(history, now), copy) - area)
        assert longevity_risk.losses(core) == pytest.approx(expected, abs=1e-9)
        refreshed = np.arange(8) % 5 == number % 5
        held[refreshed] = now
        env.step(refreshed.astype(np.int8))
    assert max(expected) > 0.1


def test_the_largest_loss_is_that_of_all_decisions() -> None:
    threshold, seen = 0.5, []

    class Watched(longevity_risk.WithLosses):
        def predict(self, *arguments: object, **more: object) -> object:
            seen.append(float(longevity_risk.losses(self.core).max()))
            return super().predict(*arguments, **more)

    def largest(risk: float | None) -> float:
        seen.clear()
        make = partial(CurveFitting, threshold=threshold, learning=60.0, risk=risk)
        _, policy = ledgers(ticking("quality", 60), partial(Watched, make=make), 1)
        assert policy.largest == max(seen) > 0.0
        return float(policy.largest)

    assert largest(1.0) <= 1.0 * threshold + TICK < largest(None)


def test_shares_are_over_the_bound_and_a_tick() -> None:
    first, bounded = longevity_risk.FITTING, longevity_risk.FIRST
    rows = [
        Row("", "quality", label, 0, name, value)
        for label in (first, bounded)
        for metric, column in (
            (longevity_risk.THRESHOLD, (0.1, 0.8)),
            (longevity_risk.LOSS, (2.4, 5.0)),
            ("cost, steady", (0.4, 0.04)),
            ("staleness, steady", (0.04, 0.08)),
        )
        for name, value in indexed(metric, column).items()
    ]
    derived = {(row.policy, row.metric): row.value for row in longevity_risk.derive(rows)}
    assert derived[bounded, longevity_risk.SHARE] == pytest.approx(2.4 / 3.0)
    assert derived[first, longevity_risk.SHARE_OF_FIRST] == pytest.approx(2.4 / 3.0)
    assert (first, longevity_risk.SHARE) not in derived


def test_the_pictures_are_drawn(tmp_path: Path) -> None:
    rows = []
    for setting in longevity_risk.measurements(True):
        for label in longevity_risk.LABELS:
            rows += setting.play(label, 0)
    rows += longevity_risk.derive(rows)
    shares = [row for row in rows if row.metric == longevity_risk.SHARE]
    assert len(shares) == 2 * len(longevity_risk.LABELS) - 2
    assert all(0.0 < row.value <= 1.0 for row in shares)
    for name, draw in longevity_risk.PICTURES.items():
        draw(rows, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
