"""Crawl values of pages with a longest interval between fetches: a page that is due comes first."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.compiled import FloatArray
from crawl_envs.compiled.compiling import compiled, inlined

DUE = 1e200
"""The value of a page that is due is of this size, above all crawl values."""
NO_PROMISES: FloatArray = np.zeros((0, 3))
"""The table of promises of pages that have none."""


@inlined(forceinline=True)
def value_of(
    value: Any, parameters: FloatArray, promises: FloatArray, page: int, age: float, signals: float
) -> float:
    """Return a page's crawl value, or if it is due by its promise, a value above all others.

    ``promises`` has no rows, or one per page with the age d from which it is due, a and b: its
    value is DUE * (a + b * age) from then on, which increases in age.
    """
    if promises.shape[0] > 0 and age >= promises[page, 0]:
        return float(DUE * (promises[page, 1] + promises[page, 2] * age))
    return float(value(parameters, page, age, signals))


@compiled()
def put_due_first(promises: FloatArray, elapsed: FloatArray, scores: FloatArray) -> None:
    """Raise the scores of pages that are due, (m,), as in :func:`value_of`."""
    for page in range(promises.shape[0]):
        if elapsed[page] >= promises[page, 0]:
            scores[page] = DUE * (promises[page, 1] + promises[page, 2] * elapsed[page])
