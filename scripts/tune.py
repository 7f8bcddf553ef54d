"""Tune the hyperparameters of an algorithm with Optuna, and write the best for scripts.train.

ALGORITHM is one of those of Stable-Baselines3 that scripts.train knows.

A trial trains for --steps steps in four stages. After each stage, the mean reward
on validation seeds (distinct from the seeds of training and of comparisons) is measured, and the
trial is pruned if it is below the median of earlier trials. Trials are saved in a SQLite file as
they end, so that a resumed search gives the same trials as an uninterrupted one. Optuna must be
installed (pip install 'crawl-envs[tune]').

OUT receives best.yml (in the format of RL-Zoo, for scripts.train --hyperparameters OUT/best.yml),
trials.csv, trials.png, and study.db unless --storage names another file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from agents.progress import COUNT, ProgressBar
from agents.sb3.validation import VALIDATION_SEED
from crawl_envs.types.files import replacing
from scripts.reporting import tables
from scripts.reporting.commands import at_least, command_of, default_folder, one_line_errors
from scripts.reporting.options import named_values, read_instance
from scripts.reporting.rows import check_folder, write_csv
from scripts.training.options import TuneOptions
from scripts.training.ranges import entry_of
from scripts.training.trials_picture import draw_trials
from scripts.training.tuning import STAGES, Ended, Study, Tuning, best_of

BEST, TRIALS, PICTURE, DATABASE = "best.yml", "trials.csv", "trials.png", "study.db"
SHOWN = 10
"""Number of trials in the table."""


def write_best(path: Path, tuning: Tuning, trials: list[Ended]) -> None:
    """Write the hyperparameters of the best complete trial, if any."""
    import yaml  # type: ignore[import-untyped]  # it ships no types

    best = best_of(trials)
    if best is None:
        return
    entry = entry_of(tuning.algorithm, tuning.env_id, best.parameters, tuning.steps, STAGES)
    given = ", ".join(f"{name}={value}" for name, value in tuning.env_args.items())
    text = (
        f"# {tuning.algorithm}, best of {len(trials)} trials of {tuning.steps} steps"
        f"{f' with {given}' if given else ''}:\n"
        f"# mean reward {best.value:.6f} over {tuning.episodes} validation seeds.\n"
        + yaml.safe_dump({tuning.env_id: entry}, sort_keys=False, width=1000)
    )
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_trials(path: Path, trials: Sequence[Ended]) -> None:
    """Write one line per trial."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.parameters))
    write_csv(
        path,
        ["trial", "mean_reward", "stages", *names],
        [
            [trial.number, trial.value, trial.stages, *map(trial.parameters.get, names)]
            for trial in trials
        ],
    )


def table_of(trials: Sequence[Ended]) -> Table:
    """Return the table of the best trials, pruned ones last."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.parameters))
    ranked = sorted(trials, key=lambda trial: (-trial.stages, -trial.value))[:SHOWN]
    table = Table(caption=f"the best {len(ranked)} of {len(trials)} trials", caption_justify="left")
    for name in ("trial", "mean reward", *names):
        table.add_column(name, justify="right")
    for place, trial in enumerate(ranked):
        given_up = "" if trial.whole else f" (pruned after {trial.stages} of {STAGES})"
        values = [_short(trial.parameters.get(name)) for name in names]
        style = "bold" if place == 0 and trial.whole else ""
        table.add_row(str(trial.number), f"{trial.value:.4f}{given_up}", *values, style=style)
    return table


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def tune(tuning: Tuning, study: Study, trials: int, out: Path) -> None:
    """Run trials, writing the results after each; then draw and print."""
    ended = study.ended()
    with ProgressBar(COUNT, "best mean reward {task.fields[best]}") as bar:
        task = bar.add_task("trials", total=trials, completed=len(ended), best="-")
        for trial in study.run(trials):
            ended.append(trial)
            write_trials(out / TRIALS, ended)
            write_best(out / BEST, tuning, ended)
            best = best_of(ended)
            bar.update(task, advance=1, best=f"{best.value:.4f}" if best else "-")
    write_trials(out / TRIALS, ended)
    write_best(out / BEST, tuning, ended)
    title = f"{tuning.algorithm} in {tuning.env_id}: {len(ended)} trials of {tuning.steps} steps"
    draw_trials(out / PICTURE, ended, study.importances(), title=title)
    console = tables.console()
    console.print(table_of(ended))
    note = f"mean reward per step over {tuning.episodes} seeds from {VALIDATION_SEED} on -> {out}"
    console.print(note, soft_wrap=True)
    if best_of(ended) is None:
        console.print(f"no trial was completed, so there is no {BEST}")


def main(options: TuneOptions) -> None:
    """Search, write and draw."""
    if options.algorithm is None or options.env_id is None:
        raise ValueError("ALGORITHM and ENV_ID must be given")
    folder = options.out or default_folder("tune", options.algorithm, options.env_id)
    file = options.storage or folder / DATABASE
    at_least(1, trials=options.trials)
    tuning = Tuning(
        algorithm=options.algorithm,
        env_id=options.env_id,
        env_args=named_values(options.env_arg or []),
        instance=read_instance(options.instance),
        steps=options.steps,
        episodes=options.episodes,
        seed=options.seed,
        train_pages=options.train_pages,
    )
    check_folder(folder)
    check_folder(file.parent, shared=True)
    study = Study(tuning, file, fresh=options.fresh)
    try:
        with one_line_errors(f"stopped; {file} has the finished trials; the same command goes on"):
            tune(tuning, study, options.trials, folder)
    finally:
        study.close()


app = command_of(main, TuneOptions, __doc__)

if __name__ == "__main__":
    app()
