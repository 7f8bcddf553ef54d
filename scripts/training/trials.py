"""Run the trials of a search for hyperparameters; write, draw and print them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from agents.progress import COUNT, ProgressBar
from agents.runs import replace_text
from agents.sb3.hyperparameters import entry_of
from agents.sb3.validation import VALIDATION_SEED
from scripts.present import charts, tables
from scripts.study.rows import write_csv
from scripts.training.tuning import (
    STAGES,
    Ended,
    Tuning,
    best_of,
    importances_of,
    run,
    settings_of,
)

BEST, TRIALS, PICTURE = "best.yml", "trials.csv", "trials.png"
MAX_TABLE_ROWS = 10
"""Largest number of trials in the printed table."""
LOGARITHMIC = ("learning_rate", "ent_coef")
COMPLETE, PRUNED, SO_FAR = "complete", "pruned", "best so far"
LOOKS = {
    COMPLETE: {"linestyle": "none"},
    PRUNED: {"linestyle": "none", "markerfacecolor": "none"},
    SO_FAR: {"marker": "", "drawstyle": "steps-post", "color": charts.LINE_COLOUR},
}


def write_trials(out: Path, tuning: Tuning, trials: Sequence[Ended]) -> None:
    """Write a line per trial to trials.csv, and the best complete trial, if any, to best.yml."""
    import yaml  # type: ignore[import-untyped]  # it ships no types

    names = ["trial", "mean_reward", "stages", *(trials[0].parameters if trials else ())]
    write_csv(out / TRIALS, names, [[*trial[:3], *trial.parameters.values()] for trial in trials])
    best = best_of(trials)
    if best is None:
        return
    request = tuning.request
    steps = request.options["steps"]
    settings = settings_of(best.parameters, steps)
    entry = entry_of(request.kind, request.env_id, steps, settings)
    arguments = ", ".join(f"{name}={value}" for name, value in request.env_args.items())
    text = (
        f"# {request.kind}, best of {len(trials)} trials of {steps} steps"
        f"{f' with {arguments}' if arguments else ''}:\n"
        f"# mean reward {best.value:.6f} over {tuning.episodes} validation seeds.\n"
        + yaml.safe_dump({request.env_id: entry}, sort_keys=False, width=1000)
    )
    replace_text(out / BEST, text)


def table_of(trials: Sequence[Ended]) -> Table:
    """Return a table of the best trials for the terminal; pruned trials come last."""
    ranked = sorted(trials, key=lambda trial: (-trial.stages, -trial.value))[:MAX_TABLE_ROWS]
    table = Table(caption=f"the best {len(ranked)} of {len(trials)} trials", caption_justify="left")
    for name in ("trial", "mean reward", *(trials[0].parameters if trials else ())):
        table.add_column(name, justify="right")
    for place, trial in enumerate(ranked):
        given_up = "" if trial.complete else f" (pruned after {trial.stages} of {STAGES})"
        values = trial.parameters.values()
        cells = [f"{one:.3g}" if isinstance(one, float) else str(one) for one in values]
        style = "bold" if place == 0 and trial.complete else ""
        table.add_row(str(trial.number), f"{trial.value:.4f}{given_up}", *cells, style=style)
    return table


def draw_trials(
    path: Path, trials: Sequence[Ended], importances: Mapping[str, float], *, title: str
) -> None:
    """Draw the mean rewards of trials in order, and against each hyperparameter.

    ``importances`` are shares of the variance that hyperparameters explain; their panels come
    first, in this order.
    """
    names = list(dict.fromkeys([*importances, *(trials[0].parameters if trials else ())]))
    panels = {name: name for name in ("trial", *names)}
    panels |= {name: f"{name} (explains {100 * part:.0f} %)" for name, part in importances.items()}
    best, rows = math.nan, [(math.nan, math.nan, COMPLETE, "trial")]
    for trial in trials:
        label = COMPLETE if trial.complete else PRUNED
        best = np.fmax(best, trial.value) if trial.complete else best
        rows += [(trial.number, best, SO_FAR, "trial"), (trial.number, trial.value, label, "trial")]
        rows += [(trial.parameters[name], trial.value, label, panels[name]) for name in names]
    order = list(panels.values())
    data = pd.DataFrame(rows, columns=["x", "y", "label", "panel"])
    data = data.sort_values("panel", key=lambda titles: titles.map(order.index), kind="stable")
    finite = any(math.isfinite(one.value) for one in trials)
    axes = {
        title: charts.Axis(scale="log" if finite and name in LOGARITHMIC else "linear")
        for name, title in panels.items()
    }
    level = charts.Axis("mean reward on validation seeds")
    frame = charts.Frame(title, axes, level, columns=4, size=(2.8, 2.6), shared="y")
    charts.lines(data, path, frame, labels=tuple(LOOKS), looks=LOOKS)


def search(tuning: Tuning, study: Any, trials: int, out: Path) -> None:
    """Run trials up to the number ``trials``, write results after each, then draw and print."""
    ended: list[Ended] = []
    with ProgressBar(COUNT, "best mean reward {task.fields[best]}") as bar:
        task = bar.add_task("trials", total=trials, best="-")
        for ended in run(study, tuning, trials):
            write_trials(out, tuning, ended)
            best = best_of(ended)
            reached = f"{best.value:.4f}" if best else "-"
            bar.update(task, completed=len(ended), best=reached)
    request = tuning.request
    length = f"{len(ended)} trials of {request.options['steps']} steps"
    title = f"{request.kind} in {request.env_id}: {length}"
    draw_trials(out / PICTURE, ended, importances_of(study, ended), title=title)
    console = tables.console()
    console.print(table_of(ended))
    note = f"mean reward per step over {tuning.episodes} seeds from {VALIDATION_SEED} on -> {out}"
    console.print(note, soft_wrap=True)
    if best_of(ended) is None:
        console.print(f"no trial was completed, so there is no {BEST}")
