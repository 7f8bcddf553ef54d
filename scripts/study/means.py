"""Convert rows to tables, and compute means and medians with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from scipy.special import stdtrit

from crawl_envs.evaluation import Row
from scripts.study.intervals import median_of

SETTING_AND_POLICY = ("setting", "policy")


def table(rows: Iterable[Row], *metrics: str) -> pd.DataFrame:
    """Return the rows of the named metrics, by default of all, as a table like :class:`Row`."""
    selected = [row for row in rows if row.metric in metrics] if metrics else list(rows)
    return pd.DataFrame(selected, columns=list(Row._fields))


def paired(values: pd.DataFrame, base: pd.DataFrame, *, ratio: bool = False) -> pd.DataFrame:
    """Return the rows of ``values`` that match a row of ``base``, minus the value of ``base``.

    Args:
        values: a table with ``value``.
        base: a table with one value per setting and seed, or per setting, seed and index.
        ratio: divide instead of subtracting.
    """
    keys = [name for name in ("setting", "seed", "index") if name in base]
    both = values.join(base.set_index(keys)["value"].rename("base"), on=keys, how="inner")
    value = both["value"] / both["base"] if ratio else both["value"] - both["base"]
    return both.assign(value=value).drop(columns="base")


def means(values: pd.DataFrame, by: Sequence[str] = SETTING_AND_POLICY) -> pd.DataFrame:
    """Return means of the column ``value`` by groups, in the order of first appearance.

    The table has the columns ``by``; ``mean``; ``half``, the half-width of the 95% Student
    interval, NaN for a single value; ``error``, the standard error; ``count``.
    """
    groups = values.groupby(list(by), sort=False)["value"]
    result = groups.agg(mean="mean", error="sem", count="count").reset_index()
    return result.assign(half=stdtrit(result["count"] - 1, 0.975) * result["error"])


def medians(values: pd.DataFrame, by: Sequence[str] = SETTING_AND_POLICY) -> pd.DataFrame:
    """Return medians of the column ``value`` by groups, with 95% intervals.

    Returns:
        The columns ``by``, ``median``, and ``low`` and ``high``, the ends of its 95% interval.
    """
    groups = values.groupby(list(by), sort=False)["value"]
    intervals = groups.apply(lambda part: pd.Series(median_of(part), ["median", "low", "high"]))
    return intervals.unstack(-1)[["median", "low", "high"]].reset_index()


def entries(rows: Iterable[Row], name: str) -> pd.DataFrame:
    """Return a table of the entries of an indexed metric: :class:`Row` plus ``index``."""
    values = table([row for row in rows if row.metric.startswith(f"{name}[")])
    return values.assign(index=values.metric.str[len(name) + 1 : -1].astype(int))
