"""Contents of the modules of :mod:`scripts.experiments`, with defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from crawl_envs.evaluation import Row
from crawl_envs.types.arguments import one_of
from scripts.present.verdicts import RELATIONS, Claim, Sentence, Trend, answer_of, judge
from scripts.study.entrants import candidate_of
from scripts.study.settings import Measurement, Playable, Setting

REPETITIONS, QUICK_REPETITIONS = 100, 5

BESIDE, EXPECTED = "Not in the paper", "Expected"
"""Heads of our own tests, where the paper has claims and where it has none."""

Picture = Callable[[Sequence[Row], Path], None]


def paper_and_figure(experiment: ModuleType) -> tuple[str, str]:
    """Return the two parts of an experiment's name."""
    paper, figure = experiment.__name__.split(".")[-2:]
    return paper, figure


DECLARED = ("NAME", "TITLE", "CLAIM", "METRIC")


def check_declared(experiment: ModuleType) -> None:
    """Raise ValueError unless an experiment has ``DECLARED``, and names what there is.

    That is a ``REFERENCE`` that it plays, and relations of its trends.
    """
    name = "_".join(paper_and_figure(experiment))
    for each in DECLARED:
        if not hasattr(experiment, each):
            raise ValueError(f"{name} must have {', '.join(DECLARED)}, got no {each}")
    claims, expected = (tuple(getattr(experiment, each, ())) for each in ("CLAIMS", "EXPECTED"))
    if not claims + expected:
        raise ValueError(f"{name} must have CLAIMS or EXPECTED, got neither")
    for test in (*expected, *(x for claim in claims for x in claim.tests)):
        if isinstance(test, Trend):
            one_of(
                f"relation of {test.first} and {test.second} in {name}", test.relation, RELATIONS
            )
    if reference := getattr(experiment, "REFERENCE", ""):
        every = settings_of(experiment, quick=False)
        labels = dict.fromkeys(label for setting in every for label in setting.labels)
        one_of(f"REFERENCE of {name}", reference, tuple(labels))


def settings_of(experiment: ModuleType, quick: bool) -> list[Playable]:
    """Return the settings; with ``quick``, those and as short as the experiment says."""
    if hasattr(experiment, "measurements"):
        return list(experiment.measurements(quick))
    named = dict(experiment.SETTINGS)
    if quick:
        kept, less = getattr(experiment, "QUICK_SETTINGS", named), getattr(experiment, "QUICK", {})
        named = {name: {**named[name], **less} for name in kept}
    if hasattr(experiment, "MEASURES"):
        return [_measurement(experiment, *item) for item in named.items()]
    policies = {label: candidate_of(spec).factory for label, spec in experiment.POLICIES.items()}
    bounds = getattr(experiment, "BOUNDS", {})
    return [Setting(name, experiment.ID, given, policies, bounds) for name, given in named.items()]


def _measurement(experiment: ModuleType, name: str, arguments: Mapping[str, Any]) -> Measurement:
    """Return the measurement of the labels of a setting."""
    measures = dict(experiment.MEASURES)
    labels = getattr(experiment, "ONLY", {}).get(name, measures)
    return Measurement(
        name,
        {label: measures[label] for label in labels},
        arguments,
        getattr(experiment, "ID", ""),
        most=getattr(experiment, "MOST", {}).get(name),
    )


def repetitions_of(experiment: ModuleType, quick: bool) -> int:
    """Return the default number of seeds."""
    if quick:
        return int(getattr(experiment, "QUICK_REPETITIONS", QUICK_REPETITIONS))
    return int(getattr(experiment, "REPETITIONS", REPETITIONS))


def with_derived(experiment: ModuleType, rows: Sequence[Row]) -> list[Row]:
    """Return the rows and the rows that the experiment derives from them."""
    derive = getattr(experiment, "derive", None)
    return [*rows, *(derive(rows) if derive is not None else ())]


def pictures_of(experiment: ModuleType) -> Mapping[str, Picture]:
    """Return the drawing functions by the name of their file."""
    if hasattr(experiment, "PICTURES"):
        return dict(experiment.PICTURES)
    return {experiment.METRIC: experiment.plot}


def tables_of(experiment: ModuleType) -> Mapping[str, Callable[[Sequence[Row]], str]]:
    """Return the functions that make tables of the folder's README.md, by name."""
    return dict(getattr(experiment, "TABLES", {}))


def sentences_of(experiment: ModuleType, rows: Sequence[Row], quick: bool) -> list[Sentence]:
    """Return the claims of the paper with verdicts, and last, if there are any, our own tests.

    Args:
        experiment: the experiment.
        rows: its rows, the derived ones included.
        quick: whether sizes and times are reduced, so that nothing is judged.
    """
    claims = list(getattr(experiment, "CLAIMS", ()))
    own = tuple(getattr(experiment, "EXPECTED", ()))
    if own:
        claims.append(Claim(BESIDE if claims else EXPECTED, "", own))
    sentences = []
    for claim in claims:
        verdicts = judge(rows, experiment.METRIC, claim.tests)
        if quick:
            verdicts = [verdict._replace(holds="open") for verdict in verdicts]
        known = () if quick else verdicts
        sentences.append(Sentence(claim, verdicts, answer_of(claim, known, played=bool(rows))))
    return sentences
