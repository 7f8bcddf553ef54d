"""Compute rows from rows: comparisons, standard errors, jackknife pseudo-values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray

Comparison = Callable[[float, float], float]
"""Function of a value and a reference's value."""


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
    """Return rows that compare labels with a reference in the same setting on the same seed.

    Args:
        rows: rows of an experiment.
        reference: label of the reference. It gets no row; if its value is 0 or missing, the
            comparison is left out.
        names: name of the result by metric.
        compare: function of a value and its reference.
        labels: labels to compare; empty: all.
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
    """Return rows of means over seeds divided by their standard errors, by setting and label.

    Nothing is returned for a single seed.

    Args:
        rows: rows of an experiment.
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
    """Return the jackknife pseudo-values of a statistic, one per seed.

    With T from all n seeds and T_i without seed i, they are n T - (n - 1) T_i; T if n = 1.

    Args:
        values: (n, ...), a row per seed.
        statistic: function of such an array.
    """
    count, estimate = len(values), statistic(values)
    if count == 1:
        return [estimate]
    parts = [statistic(np.delete(values, seed, axis=0)) for seed in range(count)]
    return [count * estimate - (count - 1) * part for part in parts]
