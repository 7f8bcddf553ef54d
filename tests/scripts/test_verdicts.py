from __future__ import annotations

import pytest

from crawl_envs.evaluation import Row
from scripts.comparing.verdicts import Level, Trend, judge


def rows(**values: list[float]) -> list[Row]:
    return [
        Row("id", "m=2", policy, seed, "accuracy", value)
        for policy, series in values.items()
        for seed, value in enumerate(series)
    ]


LOW = [0.50, 0.70, 0.60, 0.80]
HIGH = [0.52, 0.73, 0.62, 0.83]
OPEN = [0.52, 0.69, 0.57, 0.82]


@pytest.mark.parametrize(
    ("first", "answer"), [(HIGH, "yes"), (LOW, "open"), (OPEN, "open"), ([0.1] * 4, "no")]
)
def test_above_asks_for_an_interval_above_zero(first: list[float], answer: str) -> None:
    [verdict] = judge(rows(A=first, B=LOW), "accuracy", [Trend("A", "above", "B", ("m=2",), "x")])
    assert (verdict.holds, verdict.claim) == (answer, "A > B")


@pytest.mark.parametrize(("margin", "answer"), [(0.04, "yes"), (0.025, "open"), (0.001, "no")])
def test_about_asks_for_an_interval_within_the_margin(margin: float, answer: str) -> None:
    trend = Trend("A", "about", "B", ("m=2",), "x", margin)
    [verdict] = judge(rows(A=HIGH, B=LOW), "accuracy", [trend])
    assert verdict.holds == answer
    assert verdict.measured == pytest.approx(0.025)


def test_levels_and_settings_without_rows() -> None:
    expected = [
        Level("m=2", "A", 0.651, 0.002, "x"),
        Level("m=2", "A", 0.66, 0.002, "x"),
        Level("m=9", "A", 0.66, 0.002, "x"),
        Trend("A", "above", "B", ("m=9",), "x"),
    ]
    verdicts = judge(rows(A=LOW, B=HIGH), "accuracy", expected)
    assert [verdict.holds for verdict in verdicts] == ["yes", "no"]
