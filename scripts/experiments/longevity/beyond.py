"""Beyond the paper: hard budgets, and signals of changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import gymnasium
import pandas as pd

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.measures import pictures, plays
from scripts.experiments.longevity.measures.entrants import (
    BOUNDS,
    CGM,
    COMPARED,
    FITTING,
    FS_D,
    FS_S,
    HS_S,
    NAIVE_STATIC,
    OURS,
    UNIFORM,
    UNIFORM_ALL,
)
from scripts.experiments.longevity.measures.plays import PARAMETERS, Entrant
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Trend
from scripts.study.means import means, paired, table
from scripts.study.settings import Measurement, spec

TITLE = "Hard budgets, and signals of changes"
METRIC = "staleness"

PAGES = 500
BUDGETS = (0.05, 0.1, 0.2, 0.4)
"""Crawls per page and day."""
SETS, SIGNALS = ("quality", "random"), ("none", "noisy")
DECISIONS, QUICK_DECISIONS = 10.0, 2.0
"""Per day."""
NCIS, LEARNING_NCIS, BELIEF_NCIS = "GREEDY-NCIS, known parameters", "LEARNING-NCIS", "BELIEF-NCIS"
LATE = "second half"


KNOWING = {
    UNIFORM: Entrant("UniformRefresh", shown=PARAMETERS),
    FS_S: Entrant("FragmentStatic", shown=PARAMETERS),
    HS_S: Entrant("HolisticStatic", shown=PARAMETERS),
    NCIS: Entrant("GreedyNCIS", shown=PARAMETERS),
    NAIVE_STATIC: Entrant("CurrentDivergence", shown=PARAMETERS),
    FS_D: Entrant("FragmentDynamic", shown=PARAMETERS),
}
"""Policies with known regions, rates and signals of the pages; FS-D knows the true contents."""
LEARNING = {
    UNIFORM_ALL: Entrant("UniformRefresh"),
    FITTING: Entrant("CurveFitting"),
    BOUNDS: Entrant("DivergenceBounds"),
    CGM: Entrant("ChoGarciaMolina"),
    LEARNING_NCIS: Entrant("LearningGreedyNCIS"),
    BELIEF_NCIS: Entrant("BeliefNCIS"),
    OURS: Entrant("LearningLongevity", shown=COMPARED),
}
"""Policies that know importance alone."""
LABELS = (*LEARNING, *(label for label in KNOWING if label not in (UNIFORM, FS_D)), UNIFORM, FS_D)


@spec("longevity-budgeted-staleness")
def played(
    seed: int,
    *,
    entrant: Entrant,
    instance: str,
    signals: str,
    num_pages: int,
    budget: float,
    decisions: float,
    days: float = 60.0,
) -> dict[str, float]:
    """Return the staleness of a policy with a hard budget, over an episode and its second half.

    Args:
        seed: of pages, events and signals.
        entrant: the policy.
        instance: the set of pages.
        signals: ``none``, ``partial`` or ``noisy``.
        num_pages: m.
        budget: crawls per page and day.
        decisions: per day; each crawls its share of the budget.
        days: of the episode.
    """
    env = gymnasium.make(
        plays.ID,
        instance=instance,
        signals=signals,
        num_pages=num_pages,
        bandwidth=budget * num_pages,
        horizon=days,
        action="scores",
        batch=max(1, round(budget * num_pages / decisions)),
        **entrant.shown,
    )
    return plays.of_budget(plays.ledgers(env, entrant.make, seed)[0], num_pages)


def panel_of(name: str, signals: str) -> str:
    """Return the name of a panel: a set of pages and its signals."""
    return f"{name}, {'no' if signals == 'none' else signals} signals"


class Cell(NamedTuple):
    """A set of pages, its signals, and the budget."""

    pages: str
    signals: str
    budget: float


CELLS = {
    f"{panel_of(*cell[:2])}, budget {cell[2]:g}": Cell(*cell)
    for cell in product(SETS, SIGNALS, BUDGETS)
}
"""By the name of the setting."""
NAMES = {cell: name for name, cell in CELLS.items()}


def _where(signals: Sequence[str] = SIGNALS) -> tuple[str, ...]:
    return tuple(NAMES[Cell(*cell)] for kind in signals for cell in product(SETS, (kind,), BUDGETS))


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


def measurements(quick: bool) -> list[Measurement]:
    """Return all policies on both sets, with and without signals, at every budget."""
    entrants = KNOWING | LEARNING
    measures = {label: partial(played, entrant=entrant) for label, entrant in entrants.items()}
    size = {
        "num_pages": plays.QUICK_PAGES if quick else PAGES,
        "decisions": QUICK_DECISIONS if quick else DECISIONS,
    }
    return [
        Measurement(
            name,
            measures,
            {"instance": cell.pages, "signals": cell.signals, "budget": cell.budget, **size},
            plays.ID,
        )
        for name, cell in CELLS.items()
        if not quick or cell.budget == BUDGETS[1]
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return the staleness that signals save each policy, on the same pages and changes."""
    value = {row[1:4]: row.value for row in rows if row.metric == METRIC}
    silent = {name: NAMES[cell._replace(signals=SIGNALS[0])] for name, cell in CELLS.items()}
    return [
        Row(plays.ID, setting, label, seed, SAVED, value[before] - stale)
        for (setting, label, seed), stale in value.items()
        if (before := (silent[setting], label, seed)) in value and silent[setting] != setting
    ]


def _with_cells(data: pd.DataFrame) -> pd.DataFrame:
    """Add the panel and the budget of each setting."""
    cells = [CELLS[name] for name in data.setting]
    panels = [panel_of(cell.pages, cell.signals) for cell in cells]
    return data.assign(panel=panels, budget=[cell.budget for cell in cells])


def _budgets(rows: Sequence[Row], path: Path) -> None:
    """Draw staleness of some policies against the budget, a panel per set and kind of signals."""
    labels = (OURS, FITTING, CGM, BELIEF_NCIS, UNIFORM, FS_D)
    data = _with_cells(means(table([row for row in rows if row.policy in labels], "staleness")))
    data = data.rename(columns={"policy": "label", "mean": "y", "budget": "x"})
    charts.lines(
        data,
        path,
        charts.Frame(
            f"{TITLE}: 60 days, all copies fresh at the start\nmeans and 95% intervals over seeds",
            charts.Axis("crawls per page and day", "log", ticks=sorted(set(data.x))),
            charts.Axis(pictures.STALENESS),
            shared="row",
        ),
        labels=labels,
        black=labels[-2:],
    )


def _differences(rows: Sequence[Row], path: Path) -> None:
    """Draw staleness minus that of uniform refreshing, on the same seeds."""
    values = table(rows, "staleness")
    data = _with_cells(means(paired(values, values[values.policy == UNIFORM])))
    data = data.rename(columns={"policy": "y", "mean": "x"})
    data = data[data.y != UNIFORM]
    charts.dots(
        data.assign(label=data.budget.map("{:g} crawls per page and day".format)),
        path,
        charts.Frame(
            f"{TITLE}: differences on the same pages and changes\n"
            "means and 95% intervals over seeds; below 0: fresher",
            charts.Axis(f"staleness less that of {UNIFORM}"),
            shared="row",
            upright=[charts.Rule(0.0, dash="-")],
        ),
        names=LABELS,
    )


EXPERIMENT = Experiment(
    name="longevity-beyond",
    title=TITLE,
    claim=(
        "With a hard budget, a policy that learns divergence curves and the quality of "
        "signals leaves copies less stale than all other policies that learn, and with noisy "
        "signals less stale than without."
    ),
    metric=METRIC,
    reference=UNIFORM,
    further_references=(FITTING,),
    repetitions=5,
    settings=measurements,
    derive=derive,
    expected=EXPECTED,
    pictures={"staleness": _budgets, "differences": _differences},
)
