"""Tune the hyperparameters of an algorithm with Optuna, and write the best for scripts.train.

ALGORITHM is an algorithm of Stable-Baselines3 that scripts.train has, or module:Class.

A trial trains for --steps steps in four stages. After each stage its mean reward on validation
seeds is measured; these differ from the seeds of training and of comparisons. The trial is pruned
if the reward is below the median of earlier trials. Trials are saved in a SQLite file as they end:
a resumed search has the same trials as an uninterrupted one. Optuna must be installed
(pip install 'crawl-envs[tune]').

OUT receives best.yml (in the format of RL-Zoo, for scripts.train --hyperparameters OUT/best.yml),
trials.csv, trials.png, and study.db unless --storage names another file.
"""

from __future__ import annotations

from scripts.cli.commands import command_of, one_line_errors
from scripts.cli.options import check_counts, default_folder
from scripts.study.rows import check_folder
from scripts.training.options import TuneOptions
from scripts.training.trials import search
from scripts.training.tuning import open_study, tuning_of

DATABASE = "study.db"


def main(options: TuneOptions) -> None:
    """Search for hyperparameters, and write and draw the trials."""
    tuning = tuning_of(options)
    folder = options.out or default_folder("tune", tuning.request.kind, tuning.request.env_id)
    file = options.storage or folder / DATABASE
    check_counts(1, trials=options.trials)
    check_folder(folder)
    check_folder(file.parent, shared=True)
    stopped = f"stopped; {file} has the finished trials; the same command resumes"
    with open_study(tuning, file, fresh=options.fresh) as study, one_line_errors(stopped):
        search(tuning, study, options.trials, folder)


app = command_of(main, TuneOptions, __doc__)

if __name__ == "__main__":
    app()
