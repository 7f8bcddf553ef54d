"""The picture of a search for hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from scripts.reporting.charts import COLOURS, LINE_COLOUR, bare, save
from scripts.training.tuning import Ended

ACROSS = 4
"""Panels in a row."""
LOGARITHMIC = ("learning_rate", "ent_coef", "sigma")


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
    names = list(
        dict.fromkeys([*importances, *(name for one in trials for name in one.parameters)])
    )
    rows = 1 + math.ceil(len(names) / ACROSS)
    figure = Figure(figsize=(11.0, 2.9 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, ACROSS)
    history = figure.add_subplot(grid[0, :])
    _draw_history(history, trials)
    for place, name in enumerate(names):
        axes = figure.add_subplot(grid[1 + place // ACROSS, place % ACROSS], sharey=history)
        known = f" (explains {100.0 * importances[name]:.0f} %)" if name in importances else ""
        _draw_setting(axes, trials, name)
        axes.set_xlabel(f"{name}{known}")
        if place % ACROSS:
            axes.tick_params(axis="y", labelleft=False)
        else:
            axes.set_ylabel("mean reward")
    handles, labels = history.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(title, fontsize=11)
    save(figure, path)


def _draw_history(axes: Axes, trials: Sequence[Ended]) -> None:
    best, so_far = -math.inf, []
    for trial in trials:
        best = max(best, trial.value) if trial.whole else best
        so_far.append(best if math.isfinite(best) else math.nan)
    _dots(axes, [trial.number for trial in trials], trials)
    axes.step(
        [trial.number for trial in trials],
        so_far,
        where="post",
        color=LINE_COLOUR,
        linewidth=1.0,
        label="best so far",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("trial")
    axes.set_ylabel("mean reward\non validation seeds")
    bare(axes)


def _draw_setting(axes: Axes, trials: Sequence[Ended], name: str) -> None:
    """Draw trials against a hyperparameter; categorical values are evenly spaced."""
    drawn = [trial for trial in trials if name in trial.parameters]
    values = [trial.parameters[name] for trial in drawn]
    if name in LOGARITHMIC:
        axes.set_xscale("log")
    choices = sorted(set(values))
    if not all(isinstance(value, float) for value in values) or len(choices) <= 5:
        places = [choices.index(value) for value in values]
        shifts = 0.24 * (np.random.default_rng(0).random(len(places)) - 0.5)
        if name not in LOGARITHMIC:
            axes.set_xticks(range(len(choices)), [f"{value:g}" for value in choices])
            axes.set_xlim(-0.5, len(choices) - 0.5)
            values = list(np.array(places) + shifts)
    _dots(axes, values, drawn)
    bare(axes)


def _dots(axes: Axes, places: Sequence[float], trials: Sequence[Ended]) -> None:
    for whole, fill, label in (
        (True, COLOURS[0], "complete"),
        (False, "none", "pruned"),
    ):
        chosen = [index for index, trial in enumerate(trials) if trial.whole == whole]
        if chosen:
            axes.scatter(
                [places[index] for index in chosen],
                [trials[index].value for index in chosen],
                s=26,
                marker="o" if whole else "s",
                facecolors=fill,
                edgecolors=COLOURS[0] if whole else COLOURS[1],
                label=label,
            )
