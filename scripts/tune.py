"""Tune the hyperparameters of an algorithm with Optuna, and write the best for scripts.train.

A trial trains for --steps steps (es: generations) in four stages. After each stage, the mean reward
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
from typing import Annotated, Any

import typer
from rich.table import Table

from agents.progress import COUNT, ProgressBar
from crawl_envs.types.files import replacing
from scripts.reporting import tables
from scripts.reporting.commands import Fresh, at_least, command, default_folder, one_line_errors
from scripts.reporting.options import named_values, read_instance
from scripts.reporting.rows import check_folder, write_csv
from scripts.training.ranges import TUNED, entry_of
from scripts.training.trials_picture import draw_trials
from scripts.training.tuning import STAGES, VALIDATION_SEED, Ended, Study, Tuning, best_of

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


Algorithm = Annotated[str, typer.Argument(help=f"One of {', '.join(TUNED)}.")]
EnvId = Annotated[str, typer.Argument(help="Id of the environment, such as CrawlNCIS-v0.")]
EnvArg = Annotated[
    list[str] | None,
    typer.Option(help="Argument of the environment, such as num_pages=20; can be repeated."),
]
InstanceFile = Annotated[
    Path | None, typer.Option(help="JSON file with the arguments of a fixed Instance to train on.")
]
Trials = Annotated[int, typer.Option(help="Total number of trials, with those of earlier runs.")]
Steps = Annotated[int, typer.Option(help="Steps of a trial over all lanes; es: generations.")]
Episodes = Annotated[int, typer.Option(help="Number of validation seeds.")]
Seed = Annotated[int, typer.Option(help="Seed of the search and of the training of each trial.")]
Storage = Annotated[
    Path | None, typer.Option(help="SQLite file of the trials.", show_default=f"OUT/{DATABASE}")
]
Out = Annotated[
    Path | None, typer.Option(help="Output folder.", show_default="runs/tune-ALGORITHM-ENV")
]


def main(
    algorithm: Algorithm,
    env_id: EnvId,
    env_arg: EnvArg = None,
    instance: InstanceFile = None,
    trials: Trials = 40,
    steps: Steps = 200_000,
    episodes: Episodes = 32,
    seed: Seed = 0,
    storage: Storage = None,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Search, write and draw."""
    folder = out or default_folder("tune", algorithm, env_id)
    file = storage or folder / DATABASE
    at_least(1, trials=trials)
    tuning = Tuning(
        algorithm=algorithm,
        env_id=env_id,
        env_args=named_values(env_arg or []),
        instance=read_instance(instance),
        steps=steps,
        episodes=episodes,
        seed=seed,
    )
    check_folder(folder)
    check_folder(file.parent, shared=True)
    study = Study(tuning, file, fresh=fresh)
    try:
        with one_line_errors(f"stopped; {file} has the finished trials; the same command goes on"):
            tune(tuning, study, trials, folder)
    finally:
        study.close()


app = command(main, __doc__)

if __name__ == "__main__":
    app()
