from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from scripts.study.correlations import correlation


@pytest.mark.parametrize(("ranked", "of_scipy"), [(False, stats.pearsonr), (True, stats.spearmanr)])
def test_correlation_is_of_what_is_known(ranked: bool, of_scipy: Any) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random(9), rng.integers(0, 4, 9).astype(np.float64)  # with ties
    other[[2, 5]] = np.nan
    known = ~np.isnan(other)
    expected = of_scipy(one[known], other[known]).statistic
    assert correlation(one, other, ranked=ranked) == pytest.approx(expected)
    assert np.isnan(correlation(one[:2], other[:2], ranked=ranked))
    assert np.isnan(correlation(np.ones(9), one, ranked=ranked))
