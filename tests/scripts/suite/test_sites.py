from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from scripts.suite.sites import means_of, site_means
from scripts.suite.tasks import PERFECT, TRACE, Task

TASK = Task("few", "recorded", TRACE, {}, bound=PERFECT, variants=({"trace": "a"},) * 5)


def rows_of(policy: str, values: list[float]) -> list[Row]:
    return [
        Row(TRACE, "few", policy, site, metric, value)
        for site, value in enumerate(values)
        for metric in ("freshness", "crawl_rate")
    ]


def test_means_and_intervals_are_over_sites() -> None:
    values = {"A": [0.5, 0.7, 0.9, 0.6, 0.8], "B": [0.9, 0.9, 0.9, 0.9, 0.9], "bound": [1.0] * 5}
    rows = [row for policy, found in values.items() for row in rows_of(policy, found)]
    table = site_means([TASK], rows)
    assert table.policy.tolist() == ["B", "A"]  # the best first, without the bound
    assert table.sites.tolist() == [5, 5]
    assert table["mean"].tolist() == pytest.approx([0.9, 0.7])
    half = (table.high[1] - table.low[1]) / 2.0
    assert half == pytest.approx(2.776 * np.std(values["A"], ddof=1) / 5**0.5, rel=0.15)
    assert means_of(table)[0] == ["B", "0.900 [0.900, 0.900]"]
