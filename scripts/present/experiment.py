"""Contents of the modules of :mod:`scripts.experiments`, with defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from crawl_envs.evaluation import Row
from scripts.present.verdicts import Claim, Expected, Level, Verdict, judge
from scripts.study.comparisons import policy_factories
from scripts.study.settings import Measurement, Playable, Setting

REPETITIONS, QUICK_REPETITIONS = 100, 5

Picture = Callable[[Sequence[Row], Path], None]


def paper_and_figure(experiment: ModuleType) -> tuple[str, str]:
    """Return the two parts of an experiment's name."""
    paper, figure = experiment.__name__.split(".")[-2:]
    return paper, figure


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
    policies = {
        label: policy_factories([spec])[spec] for label, spec in experiment.POLICIES.items()
    }
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


def claims_of(experiment: ModuleType) -> tuple[Claim, ...]:
    """Return the claims of the paper; the default claim is not tested by levels."""
    if hasattr(experiment, "CLAIMS"):
        return tuple(experiment.CLAIMS)
    tests = tuple(item for item in experiment.EXPECTED if not isinstance(item, Level))
    return (Claim(experiment.CLAIM, experiment.TITLE, tests),)


def expected_of(experiment: ModuleType) -> list[Expected]:
    """Return all expectations, without duplicates."""
    tests = [test for claim in getattr(experiment, "CLAIMS", ()) for test in claim.tests]
    return list(dict.fromkeys([*tests, *getattr(experiment, "EXPECTED", ())]))


def judged(
    experiment: ModuleType, rows: Sequence[Row], expected: Iterable[Expected], quick: bool
) -> list[Verdict]:
    """Return the verdicts; all are open if ``quick``, since sizes and times are reduced."""
    verdicts = judge(rows, experiment.METRIC, expected)
    return [verdict._replace(holds="open") for verdict in verdicts] if quick else verdicts
