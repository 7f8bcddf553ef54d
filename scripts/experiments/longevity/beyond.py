"""Compare policies for fragments under hard budgets and with signals, beyond the paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import gymnasium

from crawl_envs.evaluation import Row
from scripts.experiments.figures import Axis, Frame, Rule, Series, dots, lines
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
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Trend
from scripts.study.specs import spec

TITLE = "Hard budgets, and signals of changes"

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
"""Policies that know the regions, rates and signals of pages; FS-D knows the true contents."""
LEARNING = {
    UNIFORM_ALL: Entrant("UniformRefresh"),
    FITTING: Entrant("CurveFitting"),
    BOUNDS: Entrant("DivergenceBounds"),
    CGM: Entrant("ChoGarciaMolina"),
    LEARNING_NCIS: Entrant("LearningGreedyNCIS"),
    BELIEF_NCIS: Entrant("BeliefNCIS"),
    OURS: Entrant("LearningLongevity", shown=COMPARED),
}
"""Policies that know only importance."""
LABELS = (*LEARNING, *(label for label in KNOWING if label not in (UNIFORM, FS_D)), UNIFORM, FS_D)


@spec("longevity-budgeted-staleness")
def measure(
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
        seed: seed of pages, events and signals.
        entrant: the policy.
        instance: the set of pages.
        signals: ``none``, ``partial`` or ``noisy``.
        num_pages: m.
        budget: crawls per page and day.
        decisions: decisions per day, which share the budget equally.
        days: length of the episode.
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
    """Return the title of the panel of a set of pages and its kind of signals."""
    return f"{name}, {'no' if signals == 'none' else signals} signals"


class Cell(NamedTuple):
    """Parameters of a setting: the set of pages, its signals, and the budget."""

    pages: str
    signals: str
    budget: float


CELLS = {
    f"{panel_of(*cell[:2])}, budget {cell[2]:g}": Cell(*cell)
    for cell in product(SETS, SIGNALS, BUDGETS)
}
"""Parameters of the settings, by name."""
NAMES = {cell: name for name, cell in CELLS.items()}


def _where(signals: Sequence[str] = SIGNALS) -> tuple[str, ...]:
    return tuple(NAMES[Cell(*cell)] for kind in signals for cell in product(SETS, (kind,), BUDGETS))


SAVED = "staleness saved by signals"
"""Staleness without signals minus staleness with them."""


def _sizes(cell: Cell) -> dict[str, Any]:
    sizes = {"num_pages": PAGES, "decisions": DECISIONS}
    return {"instance": cell.pages, "signals": cell.signals, "budget": cell.budget, **sizes}


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of how much staleness signals save a policy, on the same pages and changes."""
    value = {row[1:4]: row.value for row in rows if row.metric == "staleness"}
    silent = {name: NAMES[cell._replace(signals=SIGNALS[0])] for name, cell in CELLS.items()}
    return [
        Row(plays.ID, setting, label, seed, SAVED, value[before] - stale)
        for (setting, label, seed), stale in value.items()
        if (before := (silent[setting], label, seed)) in value and silent[setting] != setting
    ]


PANELS = {name: panel_of(cell.pages, cell.signals) for name, cell in CELLS.items()}
DRAWN = (OURS, FITTING, CGM, BELIEF_NCIS, UNIFORM, FS_D)

EXPERIMENT = Experiment(
    name="longevity-beyond",
    title=TITLE,
    claim=(
        "With a hard budget, a policy that learns divergence curves and the quality of signals "
        "leaves copies less stale than all other policies that learn, and with noisy signals less "
        "stale than without."
    ),
    metric="staleness",
    references=(UNIFORM, FITTING),
    repetitions=5,
    settings=measure_settings(
        {name: _sizes(cell) for name, cell in CELLS.items()},
        {label: partial(measure, entrant=policy) for label, policy in (KNOWING | LEARNING).items()},
        plays.ID,
        quick={"num_pages": plays.QUICK_PAGES, "decisions": QUICK_DECISIONS},
        quick_settings=[name for name, cell in CELLS.items() if cell.budget == BUDGETS[1]],
    ),
    derive=derive,
    expected=(
        *(Trend(label, "above", OURS, _where(), "ours") for label in LEARNING if label != OURS),
        Trend(UNIFORM, "above", OURS, _where(), "it knows which pages are static"),
        *(Trend(UNIFORM_ALL, "above", label, _where(), "ours") for label in (FITTING, BOUNDS, CGM)),
        Trend(FITTING, "above", OURS, _where(), "ours", metric=LATE),
        Trend(NAIVE_STATIC, "above", UNIFORM, _where(("none",)), "section 2.3: U = D is worse"),
        Trend(NCIS, "above", OURS, _where(("noisy",)), "it knows rates and signals, not regions"),
        Trend(FS_S, "above", OURS, _where(("noisy",)), "it knows regions, and ignores signals"),
    ),
    pictures={
        "staleness": lines(
            [Series("staleness", PANELS, labels=DRAWN)],
            Frame(
                f"{TITLE}: 60 days, all copies fresh at the start\n"
                "means and 95% intervals over seeds",
                Axis("crawls per page and day", "log", ticks=BUDGETS),
                Axis(pictures.STALENESS),
                shared="row",
            ),
            positions={name: cell.budget for name, cell in CELLS.items()},
            labels=DRAWN,
            black=DRAWN[-2:],
        ),
        "differences": dots(
            [
                Series(
                    "staleness",
                    PANELS,
                    {
                        name: f"{cell.budget:g} crawls per page and day"
                        for name, cell in CELLS.items()
                    },
                    minus=UNIFORM,
                )
            ],
            Frame(
                f"{TITLE}: differences on the same pages and changes\n"
                "means and 95% intervals over seeds; below 0: fresher",
                Axis(f"staleness less that of {UNIFORM}"),
                shared="row",
                upright=[Rule(0.0, dash="-")],
            ),
            names=LABELS,
        ),
    },
)
