"""Rows computed from rows, against the numbers written out."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from scripts.experiments.measures.derived import (
    above,
    below,
    in_standard_errors,
    jackknifed,
    relative_to,
)

ROWS = [
    Row("", "s", label, seed, metric, value * factor)
    for seed, factor in ((0, 1.0), (1, 10.0))
    for label, metric, value in (
        ("A", "cost", 4.0),
        ("B", "cost", 5.0),
        ("C", "cost", 2.0),
        ("B", "time", 5.0),
        ("A", "size", 0.0),
        ("B", "size", 1.0),
    )
]


@pytest.mark.parametrize(
    ("compare", "labels", "expected"),
    [
        (above, (), {"B": 0.25, "C": -0.5}),
        (below, ("C",), {"C": 0.5}),
        (lambda value, base: base - value, ("B", "A"), {"A": 0.0, "B": -1.0}),
    ],
)
def test_labels_are_compared_on_the_same_seed(compare, labels, expected) -> None:
    names = {"cost": "over", "time": "later", "size": "larger"}
    result = relative_to(ROWS, "A", names, compare, labels)
    assert {row.metric for row in result} == {"over"}  # no reference, or one of 0: nothing
    first = {row.policy: row.value for row in result if row.seed == 0}
    assert first == pytest.approx(expected)
    assert len(result) == 2 * len(expected)


def test_means_in_standard_errors() -> None:
    values = [0.01, 0.03, 0.02, 0.04]
    rows = [Row("id", "s", "A", seed, "gap", value) for seed, value in enumerate(values)]
    rows.append(Row("id", "s", "B", 0, "gap", 1.0))
    score = 0.025 / (np.std(values, ddof=1) / 2.0)
    assert in_standard_errors(rows, {"gap": "errors"}) == [
        Row("id", "s", "A", 0, "errors", pytest.approx(score))
    ]


def test_pseudo_values_are_those_of_the_jackknife() -> None:
    values = np.random.default_rng(0).uniform(1.0, 2.0, (4, 3))

    def statistic(kept):
        return float(np.log(kept.mean(axis=0)).sum())

    whole = statistic(values)
    for seed, pseudo in enumerate(jackknifed(values, statistic)):
        rest = [other for other in range(4) if other != seed]
        assert pseudo == pytest.approx(4.0 * whole - 3.0 * statistic(values[rest]))
    assert jackknifed(values[:1], statistic) == [statistic(values[:1])]
