from __future__ import annotations

import pytest

from crawl_envs.evaluation import Row
from scripts.present.verdicts import Level, Range, Trend, judge, minus, without_rows
from scripts.study.intervals import Interval


def rows(**values: list[float]) -> list[Row]:
    return [
        Row("id", "m=2", policy, seed, "accuracy", value)
        for policy, series in values.items()
        for seed, value in enumerate(series)
    ]


LOW = [0.50, 0.70, 0.60, 0.80]
HIGH = [0.52, 0.73, 0.62, 0.83]
OPEN = [0.52, 0.69, 0.57, 0.82]


FAR = [0.1] * 4
SETTINGS = ("m=2", "m=9")
"""The first has rows."""
JUDGED = [
    *(
        (Trend("A", "above", "B", SETTINGS, "x"), "A > B", first, answer)
        for first, answer in ((HIGH, "yes"), (LOW, "open"), (OPEN, "open"), (FAR, "no"))
    ),
    *(
        (Trend("A", "not below", "B", SETTINGS, "x"), "A not below B", first, answer)
        for first, answer in ((HIGH, "yes"), (LOW, "yes"), (OPEN, "yes"), (FAR, "no"))
    ),
    *(
        (Trend("A", "about", "B", SETTINGS, "x", margin), f"|A - B| <= {margin}", HIGH, answer)
        for margin, answer in ((0.04, "yes"), (0.025, "open"), (0.001, "no"))
    ),
    (Range("A", 0.4, 0.9, SETTINGS, "x"), "A in [0.4, 0.9]", LOW, "yes"),
    (Range("A", 0.6, 0.9, SETTINGS, "x"), "A in [0.6, 0.9]", LOW, "open"),
    (Range("A", 0.9, 1.0, SETTINGS, "x"), "A in [0.9, 1]", LOW, "no"),
    (Range("A", float("-inf"), 0.3, SETTINGS, "x"), "A <= 0.3", LOW, "no"),
    (Range("A", 0.0, 1.0, SETTINGS, "x"), "A in [0, 1]", [0.5], "open"),
]


@pytest.mark.parametrize(("test", "claim", "first", "answer"), JUDGED)
def test_a_verdict_needs_the_whole_interval(
    test: Trend | Range, claim: str, first: list[float], answer: str
) -> None:
    [verdict] = judge(rows(A=first, B=LOW), "accuracy", [test])
    other = 0.0 if isinstance(test, Range) else sum(LOW) / 4
    assert (verdict.holds, verdict.claim) == (answer, claim)
    assert verdict.measured == pytest.approx(sum(first) / len(first) - other)


@pytest.mark.parametrize(("low", "answer"), [(0.01, "yes"), (-0.01, "open")])
def test_an_interval_from_rows_replaces_the_computed_one(low: float, answer: str) -> None:
    interval = Interval(0.03, low, 0.2)
    given = rows(A=HIGH, B=LOW) + interval.rows("id", "m=2", "A", minus("accuracy", "B"))
    [verdict] = judge(given, "accuracy", [Trend("A", "above", "B", ("m=2",), "x")])
    assert (verdict.measured, verdict.half_width, verdict.holds) == (0.03, interval.half, answer)
    given = rows(A=HIGH) + interval.rows("id", "m=2", "A", "lead")
    [verdict] = judge(given, "accuracy", [Range("A", 0.0, 0.2, ("m=2",), "x", "lead")])
    assert (verdict.measured, verdict.holds) == (0.03, answer)
    [verdict] = judge(given, "accuracy", [Range("A", 0.0, 0.9, ("m=2",), "x")])
    assert verdict.measured == pytest.approx(sum(HIGH) / 4)


def test_levels_and_settings_without_rows() -> None:
    expected = [
        Level("m=2", "A", 0.651, 0.002, "x"),
        Level("m=2", "A", 0.66, 0.002, "x"),
        Level("m=9", "A", 0.66, 0.002, "x"),
        Trend("A", "above", "B", ("m=9",), "x"),
    ]
    verdicts = judge(rows(A=LOW, B=HIGH), "accuracy", expected)
    assert [verdict.holds for verdict in verdicts] == ["yes", "no"]


def test_another_metric_is_tested_and_named() -> None:
    other = [row._replace(metric="rate", value=2.0 * row.value) for row in rows(A=LOW, B=LOW)]
    expected = [
        Level("m=2", "A", 1.3, 1e-9, "x", "rate"),
        Trend("A", "about", "B", ("m=2",), "x", 0.1, "rate"),
        Range("A", 0.8, 1.8, ("m=2",), "x", "rate"),
        Level("m=2", "A", 0.65, 1e-9, "x"),
    ]
    verdicts = judge([*rows(A=LOW, B=HIGH), *other], "accuracy", expected)
    assert [verdict.holds for verdict in verdicts] == ["yes"] * 4
    assert [verdict.claim.endswith("(rate)") for verdict in verdicts] == [True, True, True, False]


@pytest.mark.parametrize(
    ("metric", "low", "high", "claim"),
    [
        ("accuracy", 0.5, 0.7, "A in [0.5, 0.7] (accuracy)"),
        ("recall_bias", 0.5, float("inf"), "A >= 0.5 (recall bias)"),
        ("J_h_over_bound", float("-inf"), 0.7, "A <= 0.7 (J_h over bound)"),
        ("late chance of mu_ml", 0.5, 0.7, "A in [0.5, 0.7] (late chance of mu_ml)"),
    ],
)
def test_ranges_and_metrics_are_spelled_in_words(
    metric: str, low: float, high: float, claim: str
) -> None:
    known = [row._replace(metric=metric) for row in rows(A=LOW)]
    [verdict] = judge(known, "cost", [Range("A", low, high, ("m=2",), "x", metric)])
    assert verdict.claim == claim


def test_labels_and_settings_without_rows_are_returned() -> None:
    tests = [
        Trend("A", "above", "LSD", ("m=2", "m=20"), "x"),
        Level("m=2", "A", 0.5, 0.1, "x", "freshnes"),
        Range("B", 0.0, 1.0, ("m=2",), "x", "share"),
    ]
    ends = [Row("id", "m=2", "B", 0, "share, low", 0.5)]
    named = without_rows([*rows(A=LOW, B=LOW), *ends], "accuracy", tests)
    assert named == ["LSD (accuracy)", "m=20", "A (freshnes)"]
    assert without_rows([*rows(A=LOW, B=LOW), *ends], "accuracy", tests, {"LSD"}) == [
        "m=20",
        "A (freshnes)",
    ]


def test_settings_without_rows_of_a_label_are_returned() -> None:
    known = rows(A=LOW, B=LOW)
    known += [row._replace(setting="m=3") for row in known if row.policy == "A"]
    named = without_rows(known, "accuracy", [Trend("A", "above", "B", ("m=2", "m=3"), "x")])
    assert named == ["B (accuracy) in m=3"]
