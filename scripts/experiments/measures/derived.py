"""Rows computed from rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray

Comparison = Callable[[float, float], float]
"""A function of a value, and of that of a reference."""


def above(value: float, reference: float) -> float:
    """Return the share by which a value is above its reference."""
    return value / reference - 1.0


def below(value: float, reference: float) -> float:
    """Return the share by which a value is below its reference."""
    return 1.0 - value / reference


def relative_to(
    rows: Iterable[Row],
    reference: str,
    names: Mapping[str, str],
    compare: Comparison = above,
    labels: Sequence[str] = (),
) -> list[Row]:
    """Return how labels compare with a reference in the same setting on the same seed.

    Args:
        rows: of an experiment.
        reference: label of the reference, which has no row itself. Where it is 0, or has no row,
            nothing is compared with it.
        names: name of the result by metric.
        compare: function of a value and its reference.
        labels: labels compared; empty: all.
    """
    named = [row for row in rows if row.metric in names]
    base = {(row.setting, row.seed, row.metric): row for row in named if row.policy == reference}
    return [
        row._replace(metric=names[row.metric], value=compare(row.value, base_row.value))
        for row in named
        if (row.policy in labels if labels else row.policy != reference)
        and (base_row := base.get((row.setting, row.seed, row.metric))) is not None
        and base_row.value != 0.0
    ]


def in_standard_errors(rows: Iterable[Row], names: Mapping[str, str]) -> list[Row]:
    """Return means over seeds in standard errors, by setting, label and metric.

    A single seed has none.

    Args:
        rows: of an experiment.
        names: name of the result by metric.
    """
    groups: dict[Row, list[float]] = {}
    for row in rows:
        if row.metric in names:
            key = row._replace(seed=0, metric=names[row.metric], value=0.0)
            groups.setdefault(key, []).append(row.value)
    return [
        key._replace(value=float(np.mean(values) / np.std(values, ddof=1) * np.sqrt(len(values))))
        for key, values in groups.items()
        if len(values) > 1
    ]


def jackknifed(values: FloatArray, statistic: Callable[[FloatArray], float]) -> list[float]:
    """Return jackknife pseudo-values of a statistic of several seeds, one per seed.

    With T of all n seeds and T_i of all but one, they are n T - (n - 1) T_i. Of a single seed it
    is T.

    Args:
        values: (n, ...), a row per seed.
        statistic: function of such an array.
    """
    count, estimate = len(values), statistic(values)
    if count == 1:
        return [estimate]
    parts = [statistic(np.delete(values, seed, axis=0)) for seed in range(count)]
    return [count * estimate - (count - 1) * part for part in parts]
