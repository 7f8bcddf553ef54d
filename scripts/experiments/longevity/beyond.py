"""Beyond the paper: hard budgets, and signals of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import policies
from crawl_envs.evaluation import Row
from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.learning import LearningLongevity
from policies.longevity.offline import (
    CurrentDivergence,
    FragmentDynamic,
    FragmentStatic,
    HolisticStatic,
    UniformRefresh,
)
from scripts.experiments.longevity.setup.policies import (
    BOUNDS,
    CGM,
    FITTING,
    FS_D,
    FS_S,
    HISTORIES,
    HS_S,
    NAIVE_STATIC,
    OURS,
    UNIFORM,
    UNIFORM_ALL,
)
from scripts.experiments.longevity.setup.runs import ID, QUICK_PAGES, budgeted
from scripts.present.verdicts import Trend
from scripts.study.settings import Measurement

TITLE = "Hard budgets, and signals of changes"
CLAIM = (
    "With a hard budget, a policy that learns divergence curves and the quality of signals leaves "
    "copies less stale than all other policies that learn, and with noisy signals less stale than "
    "without."
)
METRIC = "staleness"
REFERENCE = UNIFORM
FURTHER_REFERENCES = (FITTING,)
REPETITIONS, QUICK_REPETITIONS = 5, 2

PAGES = 500
BUDGETS = (0.05, 0.1, 0.2, 0.4)
"""Crawls per page and day."""
SETS, SIGNALS = ("quality", "random"), ("none", "noisy")
DECISIONS, QUICK_DECISIONS = 10.0, 2.0
"""Per day."""
NCIS, LEARNING_NCIS, BELIEF_NCIS = "GREEDY-NCIS, known parameters", "LEARNING-NCIS", "BELIEF-NCIS"
LATE = "second half"


def named(env: Any, name: str) -> Any:
    """Return a policy by its name."""
    return policies.make(name, env)


KNOWING: dict[str, Any] = {
    UNIFORM: UniformRefresh,
    FS_S: FragmentStatic,
    HS_S: HolisticStatic,
    NCIS: partial(named, name="GreedyNCIS"),
    NAIVE_STATIC: CurrentDivergence,
    FS_D: FragmentDynamic,
}
"""Policies with known regions, rates and signals of the pages; FS-D knows the true contents."""
LEARNING: dict[str, Any] = {
    UNIFORM_ALL: UniformRefresh,
    FITTING: CurveFitting,
    BOUNDS: DivergenceBounds,
    CGM: ChoGarciaMolina,
    LEARNING_NCIS: partial(named, name="LearningGreedyNCIS"),
    BELIEF_NCIS: partial(named, name="BeliefNCIS"),
    OURS: LearningLongevity,
}
"""Policies that know importance alone."""
LABELS = (*LEARNING, *(label for label in KNOWING if label not in (UNIFORM, FS_D)), UNIFORM, FS_D)


def played(seed: int, *, policy: str, **arguments: Any) -> Mapping[str, float]:
    """Return the staleness of a policy with a hard budget."""
    make = {**KNOWING, **LEARNING}[policy]
    return budgeted(seed, make=make, **arguments)


def panel_of(name: str, signals: str) -> str:
    """Return the name of a panel: a set of pages and its signals."""
    return f"{name}, {'no' if signals == 'none' else signals} signals"


def name_of(name: str, signals: str, budget: float) -> str:
    """Return the name of a setting."""
    return f"{panel_of(name, signals)}, budget {budget:g}"


def _where(signals: Sequence[str] = SIGNALS) -> tuple[str, ...]:
    return tuple(
        name_of(name, kind, budget) for kind in signals for name in SETS for budget in BUDGETS
    )


CLAIMS = ()
EXPECTED = (
    *(Trend(label, "above", OURS, _where(), "ours") for label in LEARNING if label != OURS),
    Trend(UNIFORM, "above", OURS, _where(), "it knows which pages are static"),
    *(Trend(UNIFORM_ALL, "above", label, _where(), "ours") for label in (FITTING, BOUNDS, CGM)),
    Trend(FITTING, "above", OURS, _where(), "ours", metric=LATE),
    Trend(NAIVE_STATIC, "above", UNIFORM, _where(("none",)), "section 2.3: U = D is worse"),
    Trend(NCIS, "above", OURS, _where(("noisy",)), "it knows rates and signals, not regions"),
    Trend(FS_S, "above", OURS, _where(("noisy",)), "it knows regions, and ignores signals"),
)
SAVED = "staleness saved by signals"
"""Staleness without signals minus staleness with them."""


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all policies on both sets, with and without signals, at every budget."""
    decisions = QUICK_DECISIONS if quick else DECISIONS
    measures = {
        label: partial(
            played,
            policy=label,
            reveal="parameters" if label in KNOWING else "importance",
            base_versions=HISTORIES if label == OURS else 0,
        )
        for label in (*KNOWING, *LEARNING)
    }
    return [
        Measurement(
            name_of(name, signals, budget),
            measures,
            {
                "instance": name,
                "signals": signals,
                "num_pages": QUICK_PAGES if quick else PAGES,
                "budget": budget,
                "decisions": decisions,
            },
            ID,
        )
        for name in SETS
        for signals in SIGNALS
        for budget in (BUDGETS if not quick else BUDGETS[1:2])
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return the staleness that signals save each policy, on the same pages and changes."""
    value = {(row.setting, row.policy, row.seed): row.value for row in rows if row.metric == METRIC}
    derived = []
    for (setting, label, seed), without in value.items():
        for name in SETS:
            none, noisy = (panel_of(name, signals) for signals in SIGNALS)
            if setting.startswith(none):
                with_signals = value.get((setting.replace(none, noisy), label, seed))
                if with_signals is not None:
                    place = setting.replace(none, noisy)
                    derived.append(Row(ID, place, label, seed, SAVED, without - with_signals))
    return derived


def _picture(rows: Sequence[Row], path: Path) -> None:
    """Draw staleness of some policies against the budget."""
    from scripts.experiments.longevity.setup.charts import budgets

    budgets(
        rows,
        path,
        title=f"{TITLE}: 60 days, all copies fresh at the start",
        labels=(OURS, FITTING, CGM, BELIEF_NCIS, UNIFORM, FS_D),
        metric=METRIC,
    )


def _differences(rows: Sequence[Row], path: Path) -> None:
    """Draw staleness minus that of uniform refreshing, on the same seeds."""
    from scripts.experiments.longevity.setup.charts import by_budget

    by_budget(
        rows,
        path,
        title=f"{TITLE}: differences on the same pages and changes",
        labels=LABELS,
        metric=METRIC,
        reference=UNIFORM,
    )


PICTURES = {"staleness": _picture, "differences": _differences}
