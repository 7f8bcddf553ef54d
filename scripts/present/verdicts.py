"""Expectations of a figure as data, verdicts on them from rows, and the file of these.

The pages, the index and the table of the terminal show the :class:`Sentence` objects of an
experiment, and the file ``verdicts.csv`` of a paper holds those of all its figures.
"""

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
    """A known mean: ``value`` within ``tolerance``, from ``source``.

    An empty ``metric``, here and below, is the metric of the experiment.
    """

    setting: str
    policy: str
    value: float
    tolerance: float
    source: str
    metric: str = ""


Relation = Literal["above", "about", "not below"]


class Trend(NamedTuple):
    """An expected difference between two policies on the same seeds, from ``source``.

    ``relation`` is ``above`` (the first is larger), ``about`` (they differ by ``margin`` at most)
    or ``not below`` (the first is not smaller by more than the interval).
    """

    first: str
    relation: Relation
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


def trends(
    first: str | Iterable[str],
    relation: Relation,
    second: str | Iterable[str],
    settings: tuple[str, ...],
    source: str,
    margin: float = 0.0,
    metric: str | Iterable[str] = "",
) -> tuple[Trend, ...]:
    """Return a trend for each metric, first label and second label, nested in this order."""
    metrics, firsts, seconds = (
        (names,) if isinstance(names, str) else tuple(names) for names in (metric, first, second)
    )
    return tuple(
        Trend(better, relation, worse, settings, source, margin, each)
        for each, better, worse in product(metrics, firsts, seconds)
    )


class Claim(NamedTuple):
    """A sentence of a paper, paraphrased, and the expectations that test it.

    Without ``tests`` the sentence was not tested; ``note`` gives the reason or a caveat. What is
    tested of a claim that is ``fitted`` was chosen to be so: that it holds is no evidence.
    """

    says: str
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
    "names what has no rows",
)
"""Answers to a sentence."""
ANSWERS = ("yes", "no", "open")
"""Whether a test holds."""


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


class Sentence(NamedTuple):
    """A sentence of a paper with the verdicts of its tests; ``answer`` sums them up."""

    claim: Claim
    verdicts: Sequence[Verdict]
    answer: str


def answer_of(claim: Claim, verdicts: Sequence[Verdict], *, played: bool) -> str:
    """Return the answer to a claim by the verdicts of its tests.

    Args:
        claim: the claim.
        verdicts: of its tests.
        played: whether there are rows; without verdicts, they are too few.
    """
    holds = [verdict.holds for verdict in verdicts]
    if not holds:
        return TOO_FEW if played and claim.tests else UNTESTED
    if all(each == "yes" for each in holds):
        return FITTED if claim.fitted else HOLDS
    if "no" not in holds:
        return OPEN
    return PARTLY if "yes" in holds else FAILS


FILE, DIGITS = "verdicts.csv", 10
COLUMNS = ("figure", "sentence", "passage", "answer", *Verdict._fields)
"""Columns of the file; those of verdicts are empty for a sentence without any."""


def write_verdicts(path: Path, figures: Mapping[str, Sequence[Sentence]]) -> None:
    """Write a line per verdict of each sentence of each figure, with ``DIGITS`` digits."""
    none: tuple[Any, ...] = ("",) * len(Verdict._fields)
    lines = [
        (figure, claim.says, claim.source, answer, *verdict)
        for figure, sentences in figures.items()
        for claim, verdicts, answer in sentences
        for verdict in (*map(_rounded, verdicts), *(() if verdicts else (none,)))
    ]
    write_csv(path, COLUMNS, lines)


def _rounded(verdict: Verdict) -> Verdict:
    measured, half = (float(f"{x:.{DIGITS}g}") for x in (verdict.measured, verdict.half_width))
    return verdict._replace(measured=measured, half_width=half)


def counted_answers(path: Path) -> dict[str, Counter[str]]:
    """Return how many tests of each figure have each of ``ANSWERS``; each test counts once."""
    counts: dict[str, Counter[str]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        names = ("figure", *Verdict._fields)
        lines = {tuple(line[name] for name in names): line for line in csv.DictReader(file)}
    for line in lines.values():
        counts.setdefault(line["figure"], Counter()).update(filter(None, [line["holds"]]))
    return counts


Kept = Mapping[tuple[str, str], Sequence[Row]]
"""Rows by policy and metric; none where there are none."""


def minus(metric: str, label: str) -> str:
    """Return the name of the difference of a metric to that of a label."""
    return f"{metric} minus that of {label}"


def judge(rows: Sequence[Row], metric: str, expected: Iterable[Expected]) -> list[Verdict]:
    """Compare expectations with the rows, in the settings that have rows.

    Intervals are Student's over seeds, unless there are rows ``<metric>, low`` and ``<metric>,
    high``, or those of ``minus(<metric>, <second>)`` for a trend, as of :class:`Interval`.
    """
    verdicts = []
    kept = defaultdict[tuple[str, str], list[Row]](list)
    for row in rows:
        kept[row.policy, row.metric].append(row)
    for item in expected:
        scored = item.metric or metric
        of = f" ({_spelled(scored)})" if scored != metric else ""
        if isinstance(item, Trend):
            measured = _measured(kept, scored, item.first, item.second)
        else:
            measured = _measured(kept, scored, item.policy)
        settings = (item.setting,) if isinstance(item, Level) else item.settings
        for name in settings:
            if name in measured:
                claim, holds = _judged(item, measured[name])
                found = measured[name]
                verdicts.append(
                    Verdict(name, claim + of, found.estimate, found.half, holds, item.source)
                )
    return verdicts


def without_rows(
    rows: Sequence[Row],
    metric: str,
    expected: Iterable[Expected],
    planned: Collection[str] = (),
) -> list[str]:
    """Return what expectations name and no row has: labels with their metric, and settings.

    A label that has rows in some settings of an expectation is named with those where it has none.

    Args:
        rows: all rows, the derived ones included.
        metric: of expectations that name none.
        expected: the expectations.
        planned: labels and settings that other runs play.
    """
    places = {(row.policy, row.metric, row.setting) for row in rows}
    places |= {(x, name.removesuffix(end), at) for x, name, at in places for end in ENDS if end}
    there = {place[:2] for place in places}
    known, missing = {row.setting for row in rows}, dict[str, None]()
    for item in expected:
        scored = item.metric or metric
        labels, settings = named_in(item)
        missing |= {
            f"{x} ({scored})": None for x in labels if (x, scored) not in there and x not in planned
        }
        missing |= dict.fromkeys(x for x in settings if x not in known and x not in planned)
        missing |= {
            f"{label} ({scored}) in {name}": None
            for label in labels
            for name in settings
            if (label, scored) in there
            and name in known
            and (label, scored, name) not in places
            and not planned
        }
    return list(missing)


def named_in(item: Expected) -> tuple[Sequence[str], Sequence[str]]:
    """Return the labels and the settings that an expectation names."""
    labels = (item.first, item.second) if isinstance(item, Trend) else (item.policy,)
    return labels, (item.setting,) if isinstance(item, Level) else item.settings


def _spelled(metric: str) -> str:
    """Return a metric of code in words; the costs J_h and J_b, and names with spaces, stay."""
    return metric if " " in metric else re.sub("(?<!J)_", " ", metric)


def _summaries(
    kept: Kept, metric: str, policy: str, reference: str | None = None
) -> dict[str, Summary]:
    """Return the summaries of a policy by setting, none if a policy has no such rows."""
    compared = [kept[each, metric] for each in dict.fromkeys((policy, reference or policy))]
    if not all(compared):
        return {}
    summaries = summarize([row for each in compared for row in each], metric, reference)
    return {summary.setting: summary for summary in summaries if summary.policy == policy}


def _measured(
    kept: Kept, metric: str, policy: str, reference: str | None = None
) -> dict[str, Interval]:
    """Return a policy's mean by setting, or its difference to a reference, with the interval."""
    named = metric if reference is None else minus(metric, reference)
    ends = [{row.setting: row.value for row in kept[policy, named + end]} for end in ENDS]
    found = {}
    for setting, summary in _summaries(kept, metric, policy, reference).items():
        mean, half = summary.mean, summary.half_width
        if reference is not None:
            mean, half = summary.difference, summary.difference_half_width
        found[setting] = Interval(mean, mean - half, mean + half)
    given = set.intersection(*map(set, ends))
    return found | {setting: Interval(*(end[setting] for end in ends)) for setting in given}


def _judged(item: Expected, found: Interval) -> tuple[str, str]:
    """Return the claim in words, and whether it holds."""
    if isinstance(item, Level):
        within = abs(found.estimate - item.value) <= item.tolerance
        claim = f"{item.policy} = {item.value:.4f} +/- {item.tolerance:.4f}"
        return claim, "yes" if within else "no"
    if isinstance(item, Range):
        claim = f"{item.policy} in [{item.low:g}, {item.high:g}]"
        if math.isinf(item.high):
            claim = f"{item.policy} >= {item.low:g}"
        elif math.isinf(item.low):
            claim = f"{item.policy} <= {item.high:g}"
        holds = item.low <= found.low and found.high <= item.high
        fails = found.low > item.high or found.high < item.low
    elif item.relation == "above":
        claim = f"{item.first} > {item.second}"
        holds, fails = found.low > 0.0, found.high < 0.0
    elif item.relation == "not below":
        claim = f"{item.first} not below {item.second}"
        holds, fails = found.high >= 0.0, found.high < 0.0
    else:
        claim = f"|{item.first} - {item.second}| <= {item.margin:g}"
        holds = -item.margin <= found.low and found.high <= item.margin
        fails = found.low > item.margin or found.high < -item.margin
    return claim, "yes" if holds else "no" if fails else "open"
