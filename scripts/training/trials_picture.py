"""The picture of a search for hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from scripts.reporting import charts
from scripts.training.tuning import Ended

LOGARITHMIC = ("learning_rate", "ent_coef", "sigma")
COMPLETE, PRUNED, BEST = "complete", "pruned", "best so far"
LOOKS = {
    COMPLETE: {"linestyle": "none"},
    PRUNED: {"linestyle": "none", "markerfacecolor": "none"},
    BEST: {"marker": "", "drawstyle": "steps-post", "color": charts.LINE_COLOUR},
}


def draw_trials(
    path: Path, trials: Sequence[Ended], importances: Mapping[str, float], *, title: str
) -> None:
    """Draw the mean rewards of trials in order, and against each hyperparameter.

    Args:
        path: file of the picture.
        trials: finished trials.
        importances: share of the variance explained by each hyperparameter; panels are in this
            order, followed by the other hyperparameters.
        title: title of the picture.
    """
    names = dict.fromkeys([*importances, *(name for one in trials for name in one.parameters)])
    titles = {name: name for name in names}
    titles |= {
        name: f"{name} (explains {100.0 * part:.0f} %)" for name, part in importances.items()
    }
    best, rows = math.nan, [(math.nan, math.nan, COMPLETE, "trial")]
    for trial in trials:
        label = COMPLETE if trial.whole else PRUNED
        best = max(trial.value, -math.inf if math.isnan(best) else best) if trial.whole else best
        rows += [(trial.number, trial.value, label, "trial"), (trial.number, best, BEST, "trial")]
        rows += [(x, trial.value, label, titles[name]) for name, x in trial.parameters.items()]
    order = {panel: place for place, panel in enumerate(("trial", *titles.values()))}
    data = pd.DataFrame(rows, columns=["x", "y", "label", "panel"])
    data = data.sort_values("panel", key=lambda panels: panels.map(order), kind="stable")
    drawn = {name for one in trials if math.isfinite(one.value) for name in one.parameters}
    logarithmic = {titles[name]: charts.Axis(scale="log") for name in drawn & {*LOGARITHMIC}}
    axes = {panel: logarithmic.get(panel, charts.Axis()) for panel in order}
    frame = charts.Frame(
        title,
        axes,
        charts.Axis("mean reward on validation seeds"),
        columns=4,
        size=(2.8, 2.6),
        shared="y",
    )
    charts.lines(data, path, frame, labels=tuple(LOOKS), own=LOOKS)
