"""Bad input of estimators: each gets words with the argument, the value and the expectation."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from policies import estimators
from policies.estimators import (
    complete_observation_rates,
    fit_change_rates,
    improved_rate,
    last_modified_rate,
    match_moments,
    moment_error_bound,
    naive_rate,
    signal_quality_mle,
)

AUDIT: dict[str, Any] = {
    "page": [0, 0], "start": [0.0, 1.0], "elapsed": [1.0, 1.0], "changed": [True, False],
    "signal_page": [0], "signal_time": [0.5], "signal_source": [0], "num_sources": 1,
}  # fmt: skip
PAGES = {"elapsed": [1.0, 1.0], "signals": [0, 0], "changed": [True, False], "page": [0, 1]}


def audit(**change: Any) -> Any:
    return estimators.audit_signals(**{**AUDIT, **change})


def rates(*arguments: Any, **more: Any) -> Any:
    return partial(fit_change_rates, *arguments, **more)


def quality(*arguments: Any, **more: Any) -> Any:
    return partial(signal_quality_mle, *arguments, **more)


def bound(most: float, chance: float) -> Any:
    return partial(moment_error_bound, [1.0], max_rate=most, failure_probability=chance)


BAD = [
    (rates([-1.0], [False]), "intervals must be 0 or in .*, got -1"),
    (rates([1.0, np.nan], [False] * 2), "intervals must be 0 or in .*, got nan at 1"),
    (rates([1e17], [False]), "intervals must be 0 or in .*, got 1e[+]17"),
    (rates(["x"], [False]), "intervals must be a number or an array"),
    (rates([[[1.0]]], [[[False]]]), r"intervals must have shape \(n,\) or"),
    (rates([[1.0]], [[False]], [0, 1]), r"intervals must have shape \(n,\), got"),
    (rates([1.0, 1.0], [True]), r"changed must have shape \(2,\)"),
    (rates([1.0], [0.5]), "changed must be True or False"),
    (rates([0.0], [True]), "changed must be False where intervals is 0"),
    (rates([1.0], [True], [0, 2]), "offsets must rise from 0 to 1"),
    (rates([1.0, 1.0], [True] * 2, [0, 2, 1, 2]), "offsets must rise from 0 to 2"),
    (rates([1.0], [True], [0.0, 1.0]), "offsets must be m"),
    (rates([1.0], [True], smoothing=-0.5), "smoothing"),
    (rates([1.0], [True], low=-1.0), "low"),
    (rates([1.0], [True], low=2.0, high=1.0), "high"),
    (partial(match_moments, [1.0], [True], smoothing=-1.0), "smoothing"),
    (partial(match_moments, [0.0], [True]), "changed must be False"),
    (bound(-1.0, 0.1), "max_rate"),
    (bound(1.0, 1.0), "must be below"),
    (bound(1.0, 0.0), "failure_prob"),
    (partial(naive_rate, -1, 1.0), "changes must be finite"),
    (partial(naive_rate, 1, np.inf), "time must be finite"),
    (partial(improved_rate, [1, 5], 4, 1.0), "changes must not exceed crawls"),
    (partial(last_modified_rate, 1, np.nan, 1.0), "crawls must be finite"),
    (partial(complete_observation_rates, 1, -2.0), "time must be finite"),
    (partial(complete_observation_rates, 1, 2.0, extra_time=-1.0), "extra_time"),
    (quality([-1.0], [0], [False]), "elapsed"),
    (quality([1.0], [np.nan], [False]), "signals"),
    (quality([1.0, 1.0], [0, 0], [False]), "changed"),
    (quality([0.0], [0], [True]), "changed must be False"),
    (quality([1.0], [0], [0.5]), "changed must be True or False"),
    (quality([1.0], [[0, 0]], [False]), "signals must have shape"),
    (quality([1.0], [0], [False], page=[3], num_pages=2), "page"),
    (quality([1.0], [0], [False], page=[0.5]), "page must be 1 whole"),
    (quality([1.0], [0], [False], num_pages=0), "num_pages"),
    (partial(estimators.naive_signal_quality, 3, [True]), "signals must have shape"),
    (
        partial(estimators.empirical_bayes, **PAGES, groups=[0.5, 1.0]),
        "groups must be a whole number",
    ),
    (partial(estimators.empirical_bayes, **PAGES, groups=[0, 2]), "got none in group 1"),
    (partial(audit, start=[0.0, math.nan]), "start must be"),
    (partial(audit, elapsed=[1.0, -1.0]), "elapsed must be finite and >= 0"),
    (partial(audit, elapsed=[1.0, 1e13]), "elapsed must be 0 or in"),
    (partial(audit, elapsed=[1.0]), "elapsed must have shape"),
    (partial(audit, elapsed=[1.5, 1.0]), "start must not lie in another interval"),
    (partial(audit, elapsed=[0.0, 1.0]), "changed must be False"),
    (partial(audit, changed=[0.5, 1.0]), "changed must be True or False"),
    (partial(audit, page=[0, -1]), "page must lie in"),
    (partial(audit, signal_page=[0.5]), "signal_page must be 1 whole numbers"),
    (partial(audit, signal_page=[-1]), "signal_page must be >= 0"),
    (partial(audit, signal_time=[math.inf]), "signal_time must be"),
    (partial(audit, signal_source=[1]), "signal_source must be >= 0 and below 1, got 1"),
    (partial(audit, num_sources=-1), "num_sources must be an integer"),
    (partial(audit, timed=[True, False]), "timed must have shape"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_what_is_in_order_is_taken() -> None:
    assert len(audit().verdict) == 1
