"""What a figure should show, as data, and whether rows show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crawl_envs.evaluation import Row, Summary, summarize


class Level(NamedTuple):
    """A mean that is known: ``value`` up to ``tolerance``, read at ``source``.

    ``metric`` is empty for the experiment's own; so it is below.
    """

    setting: str
    policy: str
    value: float
    tolerance: float
    source: str
    metric: str = ""


class Trend(NamedTuple):
    """What is said of the difference between two policies on the same seeds.

    ``relation`` is ``above`` (the first is larger), ``about`` (they differ by ``margin`` at most)
    or ``not below`` (the first is not smaller by more than the interval); ``source`` is where it
    is said.
    """

    first: str
    relation: str
    second: str
    settings: tuple[str, ...]
    source: str
    margin: float = 0.0
    metric: str = ""


class Range(NamedTuple):
    """Where a mean lies: from ``low`` to ``high``, either of which may be infinite."""

    policy: str
    low: float
    high: float
    settings: tuple[str, ...]
    source: str
    metric: str = ""


Expected = Level | Trend | Range


class Claim(NamedTuple):
    """A sentence of a paper, in our words, and what must hold for it to be true.

    Without ``tests`` the sentence was not tested; ``note`` says why, or what one must know.
    """

    says: str
    source: str
    tests: tuple[Expected, ...] = ()
    note: str = ""


class Verdict(NamedTuple):
    """Whether rows show what is expected: ``yes``, ``no``, or ``open`` where too few rows tell.

    ``half_width`` is that of the 95% interval around ``measured``, a mean or a mean difference.
    """

    setting: str
    claim: str
    measured: float
    half_width: float
    holds: str
    source: str


def judge(rows: Sequence[Row], metric: str, expected: Iterable[Expected]) -> list[Verdict]:
    """Compare what is expected with the rows, in the settings that have any."""
    verdicts = []
    for item in expected:
        scored = item.metric or metric
        of = f" ({scored})" if scored != metric else ""
        if isinstance(item, Level):
            found = _summaries(rows, scored, item.policy)
            verdicts += [_level(item, found[item.setting], of)] if item.setting in found else []
            continue
        if isinstance(item, Trend):
            found = _summaries(rows, scored, item.first, item.second)
            verdicts += [
                _trend(item, name, found[name], of) for name in item.settings if name in found
            ]
            continue
        found = _summaries(rows, scored, item.policy)
        verdicts += [_range(item, name, found[name], of) for name in item.settings if name in found]
    return verdicts


def _summaries(
    rows: Sequence[Row], metric: str, policy: str, reference: str | None = None
) -> dict[str, Summary]:
    wanted = [row for row in rows if row.policy in (policy, reference)]
    found = summarize(wanted, metric, reference)
    return {summary.setting: summary for summary in found if summary.policy == policy}


def _level(level: Level, found: Summary, of: str) -> Verdict:
    claim = f"{level.policy} = {level.value:.4f} +/- {level.tolerance:.4f}{of}"
    within = abs(found.mean - level.value) <= level.tolerance
    return Verdict(
        level.setting, claim, found.mean, found.half_width, "yes" if within else "no", level.source
    )


def _trend(trend: Trend, setting: str, found: Summary, of: str) -> Verdict:
    low = found.difference - found.difference_half_width
    high = found.difference + found.difference_half_width
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
        setting, claim, found.difference, found.difference_half_width, answer, trend.source
    )


def _range(expected: Range, setting: str, found: Summary, of: str) -> Verdict:
    claim = f"{expected.policy} in [{expected.low:g}, {expected.high:g}]{of}"
    low, high = found.mean - found.half_width, found.mean + found.half_width
    holds = expected.low <= low and high <= expected.high
    fails = low > expected.high or high < expected.low
    answer = "yes" if holds else "no" if fails else "open"
    return Verdict(setting, claim, found.mean, found.half_width, answer, expected.source)
