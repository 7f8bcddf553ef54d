"""Contents of the modules of :mod:`scripts.experiments`, with defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from crawl_envs.evaluation import Row
from scripts.present.verdicts import Claim, Expected, Level, Verdict, judge
from scripts.study.settings import Playable, Setting

REPETITIONS = 100
QUICK_SETTINGS, QUICK_HORIZON, QUICK_REPETITIONS = 3, 20.0, 5

Picture = Callable[[Sequence[Row], Path], None]


def paper_and_figure(experiment: ModuleType) -> tuple[str, str]:
    """Return the two parts of an experiment's name."""
    paper, figure = experiment.__name__.split(".")[-2:]
    return paper, figure


def settings_of(experiment: ModuleType, quick: bool) -> list[Playable]:
    """Return the settings; of an environment, ``quick`` takes the first few, shortened."""
    if hasattr(experiment, "measurements"):
        return list(experiment.measurements(quick))
    named = list(experiment.SETTINGS.items())[: QUICK_SETTINGS if quick else None]
    shorter = {"horizon": QUICK_HORIZON} if quick else {}
    policies, bounds = experiment.policies(), experiment.bounds()
    return [
        Setting(name, experiment.ID, {**arguments, **shorter}, policies, bounds)
        for name, arguments in named
    ]


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
