"""What a module of :mod:`scripts.experiments` says, with what it leaves out filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from crawl_envs.evaluation import Row
from scripts.reporting.settings import Playable, Setting
from scripts.reporting.verdicts import Claim, Expected, Level, Verdict, judge

REPETITIONS = 100
QUICK_SETTINGS, QUICK_HORIZON, QUICK_REPETITIONS = 3, 20.0, 5

Picture = Callable[[Sequence[Row], Path], None]


def settings_of(experiment: ModuleType, quick: bool) -> list[Playable]:
    """What is played; of settings of an environment, ``quick`` takes the first few, cut short."""
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
    """How many seeds are played if nothing else is said."""
    if quick:
        return int(getattr(experiment, "QUICK_REPETITIONS", QUICK_REPETITIONS))
    return int(getattr(experiment, "REPETITIONS", REPETITIONS))


def with_derived(experiment: ModuleType, rows: Sequence[Row]) -> list[Row]:
    """Return the rows and what the experiment derives from them."""
    derive = getattr(experiment, "derive", None)
    return [*rows, *(derive(rows) if derive is not None else ())]


def pictures_of(experiment: ModuleType) -> Mapping[str, Picture]:
    """Functions that draw, by the name of their file."""
    if hasattr(experiment, "PICTURES"):
        return dict(experiment.PICTURES)
    return {experiment.METRIC: experiment.plot}


def claims_of(experiment: ModuleType) -> tuple[Claim, ...]:
    """The sentences of the paper and what tests them; levels by other code test none."""
    if hasattr(experiment, "CLAIMS"):
        return tuple(experiment.CLAIMS)
    tests = tuple(item for item in experiment.EXPECTED if not isinstance(item, Level))
    return (Claim(experiment.CLAIM, experiment.TITLE, tests),)


def expected_of(experiment: ModuleType) -> list[Expected]:
    """All that is expected, each once."""
    tests = [test for claim in getattr(experiment, "CLAIMS", ()) for test in claim.tests]
    return list(dict.fromkeys([*tests, *getattr(experiment, "EXPECTED", ())]))


def judged(
    experiment: ModuleType, rows: Sequence[Row], expected: Iterable[Expected], quick: bool
) -> list[Verdict]:
    """Judge what is expected; if ``quick``, which cuts sizes and times short, all is open."""
    found = judge(rows, experiment.METRIC, expected)
    return [verdict._replace(holds="open") for verdict in found] if quick else found
