"""Tests of a figure as data, and their verdicts from rows, which ``verdicts.csv`` keeps."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from crawl_envs.evaluation import Row, Summary, summarize
from scripts.study.intervals import ENDS, Interval
from scripts.study.rows import write_csv


class Level(NamedTuple):
    """A test that a known mean is met: ``value`` within ``tolerance``, from ``source``.

    An empty ``metric``, also in the classes below, is the metric of the experiment.
    """

    setting: str
    policy: str
    value: float
    tolerance: float
    source: str
    metric: str = ""


Relation = Literal["above", "about", "not below"]


class Trend(NamedTuple):
    """A test of the difference between two policies on the same seeds, from ``source``.

    ``relation`` is ``above`` (the first is larger), ``about`` (they differ by at most ``margin``)
    or ``not below`` (the interval of the difference is not entirely below 0).
    """

    first: str
    relation: Relation
    second: str
    settings: tuple[str, ...]
    source: str
    margin: float = 0.0
    metric: str = ""


class Range(NamedTuple):
    """A test that a mean lies in a range: from ``low`` to ``high``, possibly infinite."""

    policy: str
    low: float
    high: float
    settings: tuple[str, ...]
    source: str
    metric: str = ""


Expected = Level | Trend | Range


def trends(
    first: str | Iterable[str],
    relation: Relation,
    second: str | Iterable[str],
    settings: tuple[str, ...],
    source: str,
    margin: float = 0.0,
    metric: str | Iterable[str] = "",
) -> tuple[Trend, ...]:
    """Return a trend for each metric, each first label and each second label, in this order."""
    metrics, firsts, seconds = (
        (names,) if isinstance(names, str) else tuple(names) for names in (metric, first, second)
    )
    return tuple(
        Trend(better, relation, worse, settings, source, margin, name)
        for name, better, worse in product(metrics, firsts, seconds)
    )


class Claim(NamedTuple):
    """A sentence of a paper, paraphrased, and the expectations that test it.

    Without ``tests`` the sentence was not tested; ``note`` has the reason or a caveat. The inputs
    of a ``fitted`` claim were chosen so that it holds, which is no evidence for it.
    """

    text: str
    source: str
    tests: tuple[Expected, ...] = ()
    note: str = ""
    fitted: bool = False


HOLDS, FITTED, PARTLY, FAILS, OPEN, UNTESTED, TOO_FEW, WITHOUT_ROWS = (
    "holds",
    "fitted",
    "holds in part",
    "does not hold",
    "open",
    "not tested",
    "too few repetitions to judge",
    "a tested label or setting has no rows",
)
"""Answers to a sentence."""
ANSWERS = ("yes", "no", "open")
"""Whether a test holds."""


class Verdict(NamedTuple):
    """The result of a test: ``holds`` is ``yes``, ``no``, or ``open`` with too few rows.

    ``measured`` is a mean or a mean difference; ``half_width`` is that of its 95% interval.
    """

    setting: str
    claim: str
    measured: float
    half_width: float
    holds: str
    source: str


class Sentence(NamedTuple):
    """A sentence of a paper, the verdicts of its tests, and the answer that follows from them."""

    claim: Claim
    verdicts: Sequence[Verdict]
    answer: str


def answer_of(claim: Claim, verdicts: Sequence[Verdict], *, has_rows: bool) -> str:
    """Return the answer to a claim by the verdicts of its tests.

    Args:
        claim: the claim.
        verdicts: verdicts of its tests.
        has_rows: whether there are rows; without verdicts they are too few.
    """
    holds = [verdict.holds for verdict in verdicts]
    if not holds:
        return TOO_FEW if has_rows and claim.tests else UNTESTED
    if all(answer == "yes" for answer in holds):
        return FITTED if claim.fitted else HOLDS
    if "no" not in holds:
        return OPEN
    return PARTLY if "yes" in holds else FAILS


FILE, DIGITS = "verdicts.csv", 10
COLUMNS = ("figure", "sentence", "passage", "answer", *Verdict._fields)
"""Columns of the file; those of verdicts are empty for a sentence without verdicts."""


def write_verdicts(path: Path, figures: Mapping[str, Sequence[Sentence]]) -> None:
    """Write a CSV line per verdict of each sentence of each figure, with ``DIGITS`` digits."""
    none: tuple[Any, ...] = ("",) * len(Verdict._fields)
    lines = [
        (figure, claim.text, claim.source, answer, *verdict)
        for figure, sentences in figures.items()
        for claim, verdicts, answer in sentences
        for verdict in (*map(_rounded, verdicts), *(() if verdicts else (none,)))
    ]
    write_csv(path, COLUMNS, lines)


def _rounded(verdict: Verdict) -> Verdict:
    measured, half = (float(f"{x:.{DIGITS}g}") for x in (verdict.measured, verdict.half_width))
    return verdict._replace(measured=measured, half_width=half)


def counted_answers(path: Path) -> dict[str, Counter[str]]:
    """Count the answers to tests by figure, from the CSV file of verdicts.

    A test of several sentences counts once.
    """
    counts: dict[str, Counter[str]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        names = ("figure", *Verdict._fields)
        lines = {tuple(line[name] for name in names): line for line in csv.DictReader(file)}
    for line in lines.values():
        counts.setdefault(line["figure"], Counter()).update(filter(None, [line["holds"]]))
    return counts


RowGroups = Mapping[tuple[str, str], Sequence[Row]]
"""Rows by policy and metric, empty for an unknown key."""


def minus(metric: str, label: str) -> str:
    """Return the name of the metric that is a metric minus the same metric of a label."""
    return f"{metric} minus that of {label}"


def judge(rows: Sequence[Row], metric: str, expected: Iterable[Expected]) -> list[Verdict]:
    """Return the verdicts on expectations by the rows, in the settings that have rows.

    Intervals are Student's over seeds, except where rows ``<metric>, low`` and ``<metric>, high``
    have the ends. For a trend, the metric of such rows is ``minus(<metric>, <second>)``.
    """
    verdicts = []
    groups = defaultdict[tuple[str, str], list[Row]](list)
    for row in rows:
        groups[row.policy, row.metric].append(row)
    for item in expected:
        scored = item.metric or metric
        suffix = f" ({_spelled(scored)})" if scored != metric else ""
        if isinstance(item, Trend):
            measured = _measured(groups, scored, item.first, item.second)
        else:
            measured = _measured(groups, scored, item.policy)
        settings = (item.setting,) if isinstance(item, Level) else item.settings
        for name in settings:
            if name in measured:
                estimate, half = measured[name].estimate, measured[name].half
                claim, holds = _judged(item, measured[name])
                verdicts.append(Verdict(name, claim + suffix, estimate, half, holds, item.source))
    return verdicts


def without_rows(
    rows: Sequence[Row],
    metric: str,
    expected: Iterable[Expected],
    planned: Collection[str] = (),
) -> list[str]:
    """Return as text which labels (with their metric) and settings of expectations lack rows.

    A label with rows in some settings of an expectation is listed with each missing setting.

    Args:
        rows: all rows, with the derived ones.
        metric: metric of expectations that name none.
        expected: the expectations.
        planned: labels and settings of other runs, which are not missing.
    """
    places = {(row.policy, row.metric, row.setting) for row in rows}
    places |= {(x, name.removesuffix(end), y) for x, name, y in places for end in ENDS if end}
    there = {place[:2] for place in places}
    all_settings, missing = {row.setting for row in rows}, dict[str, None]()
    for item in expected:
        scored = item.metric or metric
        labels, settings = named_in(item)
        missing |= {
            f"{x} ({scored})": None for x in labels if (x, scored) not in there and x not in planned
        }
        missing |= dict.fromkeys(x for x in settings if x not in all_settings and x not in planned)
        missing |= {
            f"{label} ({scored}) in {name}": None
            for label in labels
            for name in settings
            if (label, scored) in there
            and name in all_settings
            and (label, scored, name) not in places
            and not planned
        }
    return list(missing)


def named_in(item: Expected) -> tuple[Sequence[str], Sequence[str]]:
    """Return the labels, and the settings, that an expectation names."""
    labels = (item.first, item.second) if isinstance(item, Trend) else (item.policy,)
    return labels, (item.setting,) if isinstance(item, Level) else item.settings


def _spelled(metric: str) -> str:
    """Return a metric's name in words; J_h, J_b and names with spaces stay."""
    return metric if " " in metric else re.sub("(?<!J)_", " ", metric)


def _summaries(
    groups: RowGroups, metric: str, policy: str, reference: str | None = None
) -> dict[str, Summary]:
    """Return a policy's summaries by setting; none if it or the reference has no rows."""
    compared = [groups[label, metric] for label in dict.fromkeys((policy, reference or policy))]
    if not all(compared):
        return {}
    summaries = summarize([row for label in compared for row in label], metric, reference)
    return {summary.setting: summary for summary in summaries if summary.policy == policy}


def _measured(
    groups: RowGroups, metric: str, policy: str, reference: str | None = None
) -> dict[str, Interval]:
    """Return by setting a policy's mean, or its difference to a reference, with its interval."""
    named = metric if reference is None else minus(metric, reference)
    ends = [{row.setting: row.value for row in groups[policy, named + end]} for end in ENDS]
    intervals = {}
    for setting, summary in _summaries(groups, metric, policy, reference).items():
        mean, half = summary.mean, summary.half_width
        if reference is not None:
            mean, half = summary.difference, summary.difference_half_width
        intervals[setting] = Interval(mean, mean - half, mean + half)
    with_ends = set.intersection(*map(set, ends))
    return intervals | {setting: Interval(*(end[setting] for end in ends)) for setting in with_ends}


def _judged(item: Expected, interval: Interval) -> tuple[str, str]:
    """Return an expectation in words, and whether a measured interval fulfils it."""
    if isinstance(item, Level):
        within = abs(interval.estimate - item.value) <= item.tolerance
        claim = f"{item.policy} = {item.value:.4f} +/- {item.tolerance:.4f}"
        return claim, "yes" if within else "no"
    if isinstance(item, Range):
        claim = f"{item.policy} in [{item.low:g}, {item.high:g}]"
        if math.isinf(item.high):
            claim = f"{item.policy} >= {item.low:g}"
        elif math.isinf(item.low):
            claim = f"{item.policy} <= {item.high:g}"
        holds = item.low <= interval.low and interval.high <= item.high
        fails = interval.low > item.high or interval.high < item.low
    elif item.relation == "above":
        claim = f"{item.first} > {item.second}"
        holds, fails = interval.low > 0.0, interval.high < 0.0
    elif item.relation == "not below":
        claim = f"{item.first} not below {item.second}"
        holds, fails = interval.high >= 0.0, interval.high < 0.0
    else:
        claim = f"|{item.first} - {item.second}| <= {item.margin:g}"
        holds = -item.margin <= interval.low and interval.high <= item.margin
        fails = interval.low > item.margin or interval.high < -item.margin
    return claim, "yes" if holds else "no" if fails else "open"
