"""Describe an experiment as data: its simulations, expectations and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawl_envs.evaluation import Row
from crawl_envs.types.arguments import one_of
from scripts.present.verdicts import (
    TOO_FEW,
    WITHOUT_ROWS,
    Claim,
    Expected,
    Relation,
    Sentence,
    Trend,
    answer_of,
    judge,
    named_in,
)
from scripts.study.entrants import candidate_of
from scripts.study.settings import Measure, Measurement, Playable, Setting

NOT_IN_PAPER, EXPECTED = "Not in the paper", "Expected"
"""Headings of our tests, if the paper has claims and if it has none."""

Picture = Callable[[Sequence[Row], Path], None]
Table = Callable[[Sequence[Row]], str]
Settings = Callable[[bool], Sequence[Playable]]
"""Function of whether the run is quick: few settings and small sizes, a few seconds in all."""
Arguments = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure or table of a paper as data: simulations, expectations, and pictures.

    Attributes:
        name: ``<paper>-<figure>``, which identifies saved rows and must not change.
        title: title of the figure.
        claim: what the figure shows, in a sentence or two.
        metric: the metric of tests that name none.
        settings: what to simulate; see :func:`policy_settings` and :func:`measure_settings`.
        pictures: functions of all rows and a path, by the name of the file.
        claims: sentences of the paper with their tests.
        expected: tests that are not in the paper; ``claims`` or ``expected`` must have some.
        derive: function of the rows that returns more rows, such as a correlation over pages.
        tables: functions of all rows that return Markdown, by name; the README.md of the
            results has the lines ``<!-- NAME -->`` and ``<!-- end of NAME -->`` around each.
        references: labels that the summary compares others with; the first must have settings.
        intervals: the kind of intervals; empty: Student's over repetitions.
        repetitions: number of seeds.
        quick_repetitions: number of seeds of a quick run.

    Raises:
        ValueError: there is no test, a trend has an unknown relation, or the name has one part.
    """

    name: str
    title: str
    claim: str
    metric: str
    settings: Settings
    pictures: Mapping[str, Picture]
    claims: Sequence[Claim] = ()
    expected: Sequence[Expected] = ()
    derive: Callable[[Sequence[Row]], Iterable[Row]] | None = None
    tables: Mapping[str, Table] = field(default_factory=dict)
    references: Sequence[str] = ()
    intervals: str = ""
    repetitions: int = 100
    quick_repetitions: int = 2

    def __post_init__(self) -> None:
        if not (self.paper and self.figure):
            raise ValueError(f"name must be <paper>-<figure>, got {self.name!r}")
        if not (self.claims or self.expected):
            raise ValueError(f"{self.name} must have claims or expected, got neither")
        for test in (*self.expected, *(test for claim in self.claims for test in claim.tests)):
            if isinstance(test, Trend):
                relation = f"relation of {test.first} and {test.second} in {self.name}"
                one_of(relation, test.relation, Relation)

    @property
    def paper(self) -> str:
        """The name of the paper, which is the folder of its results."""
        return self.name.partition("-")[0]

    @property
    def figure(self) -> str:
        """The name of the figure, which is the folder of its results within the paper's."""
        return self.name.partition("-")[2]

    def playables(self, quick: bool) -> Sequence[Playable]:
        """Return the settings of a full or quick run that can be simulated.

        Raises:
            ValueError: the first reference is not a label.
        """
        settings = self.settings(quick)
        for reference in self.references[:1]:
            labels = dict.fromkeys(label for setting in settings for label in setting.labels)
            one_of(f"reference of {self.name}", reference, tuple(labels))
        return settings

    def current(self, rows: Sequence[Row], quick: bool) -> list[Row]:
        """Return the rows of labels that their settings still have today."""
        labels = {setting.name: setting.labels for setting in self.settings(quick)}
        return [row for row in rows if row.policy in labels.get(row.setting, (row.policy,))]

    def with_derived(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows, followed by the rows that the experiment derives from them."""
        return [*rows, *(self.derive(rows) if self.derive else ())]

    def sentences(self, rows: Sequence[Row], quick: bool) -> list[Sentence]:
        """Return the paper's sentences with verdicts, then the tests that are not in the paper.

        Args:
            rows: rows of the experiment, with the derived ones.
            quick: whether sizes and times are reduced, so that nothing is judged.
        """
        claims = list(self.claims)
        if self.expected:
            claims.append(Claim(NOT_IN_PAPER if claims else EXPECTED, "", tuple(self.expected)))
        sentences, there = [], {name for row in rows for name in (row.setting, row.policy)}
        for claim in claims:
            verdicts = judge(rows, self.metric, claim.tests)
            if quick:
                verdicts = [verdict._replace(holds="open") for verdict in verdicts]
            judged = () if quick else verdicts
            names = {x for test in claim.tests for part in named_in(test) for x in part}
            answer = answer_of(claim, judged, has_rows=bool(rows))
            if answer == TOO_FEW and not quick and names - there:
                answer = WITHOUT_ROWS
            sentences.append(Sentence(claim, verdicts, answer))
        return sentences


def policy_settings(
    env_id: str,
    settings: Mapping[str, Arguments],
    policies: Mapping[str, str],
    bounds: Mapping[str, Callable[..., Any]] | None = None,
    *,
    quick: Arguments | None = None,
    quick_settings: Sequence[str] = (),
) -> Settings:
    """Return a function of quick or not that returns settings of policies in an environment.

    Args:
        env_id: id of the environment.
        settings: its arguments, by the name of the setting.
        policies: ``Name`` or ``Name:key=value`` by label, as on the command line.
        bounds: functions of an instance by label, such as those of :mod:`scripts.study.bounds`.
        quick: arguments that a quick run replaces.
        quick_settings: settings of a quick run; empty: all.
    """

    def playables(is_quick: bool) -> Sequence[Playable]:
        factories = {label: candidate_of(policy).factory for label, policy in policies.items()}
        return [
            Setting(name, env_id, arguments, factories, bounds or {})
            for name, arguments in _sized(settings, quick, quick_settings, is_quick).items()
        ]

    return playables


def measure_settings(
    settings: Mapping[str, Arguments],
    measures: Mapping[str, Measure],
    env_id: str = "",
    *,
    only: Mapping[str, Sequence[str]] | None = None,
    limits: Mapping[str, int] | None = None,
    quick: Arguments | None = None,
    quick_settings: Sequence[str] = (),
) -> Settings:
    """Return a function of quick or not that returns settings of functions of a seed.

    Args:
        settings: arguments of the functions, by the name of the setting.
        measures: the functions, by label; see :class:`scripts.study.settings.Measurement`.
        env_id: environment of the rows.
        only: labels by setting, for settings that do not have all of them.
        limits: largest useful number of repetitions by setting, where there is one.
        quick: arguments that a quick run replaces.
        quick_settings: settings of a quick run; empty: all.
    """
    for setting in (*(only or ()), *(limits or ())):
        one_of("setting of only and limits", setting, tuple(settings))
    for label in (label for labels in (only or {}).values() for label in labels):
        one_of("label of only", label, tuple(measures))

    def playables(is_quick: bool) -> Sequence[Playable]:
        return [
            Measurement(
                name,
                {label: measures[label] for label in (only or {}).get(name, measures)},
                arguments,
                env_id,
                most=(limits or {}).get(name),
            )
            for name, arguments in _sized(settings, quick, quick_settings, is_quick).items()
        ]

    return playables


def _sized(
    settings: Mapping[str, Arguments],
    quick: Arguments | None,
    quick_settings: Sequence[str],
    is_quick: bool,
) -> dict[str, Arguments]:
    """Return the arguments of the settings to simulate, by name; a quick run replaces some."""
    if not is_quick:
        return dict(settings)
    for name in quick_settings:
        one_of("setting of quick_settings", name, tuple(settings))
    return {name: {**settings[name], **(quick or {})} for name in quick_settings or settings}
