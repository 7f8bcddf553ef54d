"""Tune the hyperparameters of an algorithm with Optuna, and write the best for scripts.train.

ALGORITHM is one of those of Stable-Baselines3 that scripts.train knows, or module:Class.

A trial trains for --steps steps in four stages. After each stage, the mean reward
on validation seeds (distinct from the seeds of training and of comparisons) is measured, and the
trial is pruned if it is below the median of earlier trials. Trials are saved in a SQLite file as
they end, so that a resumed search gives the same trials as an uninterrupted one. Optuna must be
installed (pip install 'crawl-envs[tune]').

OUT receives best.yml (in the format of RL-Zoo, for scripts.train --hyperparameters OUT/best.yml),
trials.csv, trials.png, and study.db unless --storage names another file.
"""

from __future__ import annotations

from scripts.cli.commands import command_of, one_line_errors
from scripts.cli.options import at_least, default_folder
from scripts.study.rows import check_folder
from scripts.training.options import TuneOptions
from scripts.training.trials import search
from scripts.training.tuning import open_study, tuning_of

DATABASE = "study.db"


def main(options: TuneOptions) -> None:
    """Search, write and draw."""
    tuning = tuning_of(options)
    folder = options.out or default_folder("tune", tuning.request.kind, tuning.request.env_id)
    file = options.storage or folder / DATABASE
    at_least(1, trials=options.trials)
    check_folder(folder)
    check_folder(file.parent, shared=True)
    stopped = f"stopped; {file} has the finished trials; the same command goes on"
    with open_study(tuning, file, fresh=options.fresh) as study, one_line_errors(stopped):
        search(tuning, study, options.trials, folder)


app = command_of(main, TuneOptions, __doc__)

if __name__ == "__main__":
    app()
