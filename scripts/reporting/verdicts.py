"""Expectations of a figure as data, and verdicts on them from rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crawl_envs.evaluation import Row, Summary, summarize


class Level(NamedTuple):
    """A known mean: ``value`` within ``tolerance``, from ``source``.

    An empty ``metric``, here and below, is the metric of the experiment.
    """

    setting: str
    policy: str
    value: float
    tolerance: float
    source: str
    metric: str = ""


class Trend(NamedTuple):
    """An expected difference between two policies on the same seeds, from ``source``.

    ``relation`` is ``above`` (the first is larger), ``about`` (they differ by ``margin`` at most)
    or ``not below`` (the first is not smaller by more than the interval).
    """

    first: str
    relation: str
    second: str
    settings: tuple[str, ...]
    source: str
    margin: float = 0.0
    metric: str = ""


class Range(NamedTuple):
    """An expected range of a mean: from ``low`` to ``high``, possibly infinite."""

    policy: str
    low: float
    high: float
    settings: tuple[str, ...]
    source: str
    metric: str = ""


Expected = Level | Trend | Range


class Claim(NamedTuple):
    """A sentence of a paper, paraphrased, and the expectations that test it.

    Without ``tests`` the sentence was not tested; ``note`` gives the reason or a caveat.
    """

    says: str
    source: str
    tests: tuple[Expected, ...] = ()
    note: str = ""


class Verdict(NamedTuple):
    """Result of a test: ``holds`` is ``yes``, ``no``, or ``open`` with too few rows.

    ``half_width`` is of the 95% interval around ``measured``, a mean or a mean difference.
    """

    setting: str
    claim: str
    measured: float
    half_width: float
    holds: str
    source: str


def judge(rows: Sequence[Row], metric: str, expected: Iterable[Expected]) -> list[Verdict]:
    """Compare expectations with the rows, in the settings that have rows."""
    verdicts = []
    for item in expected:
        scored = item.metric or metric
        of = f" ({_spelled(scored)})" if scored != metric else ""
        if isinstance(item, Level):
            means = _summaries(rows, scored, item.policy)
            verdicts += [_level(item, means[item.setting], of)] if item.setting in means else []
            continue
        if isinstance(item, Trend):
            means = _summaries(rows, scored, item.first, item.second)
            verdicts += [
                _trend(item, name, means[name], of) for name in item.settings if name in means
            ]
            continue
        means = _summaries(rows, scored, item.policy)
        verdicts += [_range(item, name, means[name], of) for name in item.settings if name in means]
    return verdicts


def _spelled(metric: str) -> str:
    """Return a metric of code in words; the costs J_h and J_b, and names with spaces, stay."""
    return metric if " " in metric else re.sub("(?<!J)_", " ", metric)


def _summaries(
    rows: Sequence[Row], metric: str, policy: str, reference: str | None = None
) -> dict[str, Summary]:
    """Return the summaries of a policy by setting, none if a policy has no such rows."""
    compared = {policy} if reference is None else {policy, reference}
    wanted = [row for row in rows if row.metric == metric and row.policy in compared]
    if {row.policy for row in wanted} < compared:
        return {}
    summaries = summarize(wanted, metric, reference)
    return {summary.setting: summary for summary in summaries if summary.policy == policy}


def _level(level: Level, score: Summary, of: str) -> Verdict:
    claim = f"{level.policy} = {level.value:.4f} +/- {level.tolerance:.4f}{of}"
    within = abs(score.mean - level.value) <= level.tolerance
    return Verdict(
        level.setting, claim, score.mean, score.half_width, "yes" if within else "no", level.source
    )


def _trend(trend: Trend, setting: str, score: Summary, of: str) -> Verdict:
    low = score.difference - score.difference_half_width
    high = score.difference + score.difference_half_width
    if trend.relation == "above":
        claim = f"{trend.first} > {trend.second}{of}"
        holds, fails = low > 0.0, high < 0.0
    elif trend.relation == "not below":
        claim = f"{trend.first} not below {trend.second}{of}"
        holds, fails = high >= 0.0, high < 0.0
    else:
        claim = f"|{trend.first} - {trend.second}| <= {trend.margin:g}{of}"
        holds = -trend.margin <= low and high <= trend.margin
        fails = low > trend.margin or high < -trend.margin
    answer = "yes" if holds else "no" if fails else "open"
    return Verdict(
        setting, claim, score.difference, score.difference_half_width, answer, trend.source
    )


def _range(expected: Range, setting: str, score: Summary, of: str) -> Verdict:
    if math.isinf(expected.high):
        claim = f"{expected.policy} >= {expected.low:g}{of}"
    elif math.isinf(expected.low):
        claim = f"{expected.policy} <= {expected.high:g}{of}"
    else:
        claim = f"{expected.policy} in [{expected.low:g}, {expected.high:g}]{of}"
    low, high = score.mean - score.half_width, score.mean + score.half_width
    holds = expected.low <= low and high <= expected.high
    fails = low > expected.high or high < expected.low
    answer = "yes" if holds else "no" if fails else "open"
    return Verdict(setting, claim, score.mean, score.half_width, answer, expected.source)
