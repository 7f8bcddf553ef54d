"""The laws of the synthetic instances, against SciPy's distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crawl_envs import instances

UNIFORM, QUALITY = stats.uniform(0.0, 1.0), stats.beta(0.25, 0.25)
LAWS = {
    "uniform": {"importance": UNIFORM, "change_rate": UNIFORM},
    "partial": {"importance": UNIFORM, "change_rate": UNIFORM, "recall": QUALITY},
    "noisy": {
        "importance": UNIFORM,
        "change_rate": UNIFORM,
        "recall": QUALITY,
        "false_signal_rate": stats.uniform(0.1, 0.5),
    },
}
"""NCIS paper, sections 6.3, 6.5 and 6.6."""


@pytest.mark.parametrize(
    ("law", "column"), [(law, column) for law, columns in LAWS.items() for column in columns]
)
def test_a_column_has_its_law(law: str, column: str) -> None:
    drawn = getattr(instances.make(law, num_pages=50_000, seed=11), column)
    assert stats.kstest(drawn, LAWS[law][column].cdf).pvalue > 1e-3


@pytest.mark.parametrize("law", LAWS)
def test_columns_are_independent_and_the_others_are_zero(law: str) -> None:
    instance = instances.make(law, num_pages=50_000, seed=12)
    columns = [getattr(instance, column) for column in LAWS[law]]
    beside = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(beside).max() < 4.0 / np.sqrt(50_000)
    for column in {"recall", "false_signal_rate"} - set(LAWS[law]):
        assert not np.any(getattr(instance, column))
