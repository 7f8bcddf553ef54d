"""Train an agent and compare it with the analytic policies on the same events.

Each ALGORITHM below has options of its own: python -m scripts.train ppo --help shows those of ppo.
The algorithms of Stable-Baselines3, "clone" and "index" train in an environment, as in
python -m scripts.train ppo CrawlNCIS-v0, and so does one of your own, in the form of
Stable-Baselines3, by the name of its class: my_module:MyPPO. "index --log" and "generalist" take
none.

With --seeds, runs that differ in their seed are trained side by side, each in a folder of its own
(seed-0, seed-1, ...); the curve and the reward of the agent are means over them, with intervals.
Their seeds are 1000 apart, since the episodes of lane i have the seed of the run plus i.
Common analytic policies that can act in the environment, or those of --policies, are evaluated once
and saved in OUT: before the training of a single run, whose progress bar shows the best of them.

OUT receives the agent, run.json (what was asked for), config.json and the learning curve,
ranking.csv (mean rewards of all policies), rows.csv (rewards per seed), two pictures, and
provenance.json; also, of algorithms of Stable-Baselines3, validation.csv (rewards on held-out
seeds while learning) and their logs with --tensorboard. The same command goes on with an
interrupted run (clone and index start anew), and so does --resume OUT, without an algorithm.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

from typer.core import TyperGroup

from agents.catalog import GENERALIST as GENERALIST_FILE
from agents.catalog import check_vacant
from agents.generalist.training import GeneralistArguments, train
from scripts.cli.commands import command_of, group, one_line_errors
from scripts.cli.options import changed, default_folder
from scripts.live.learning import learn_from_log
from scripts.live.options import read_log, weights_and_groups
from scripts.present.tables import console
from scripts.study.rows import check_folder, write_provenance
from scripts.training import requests
from scripts.training.jobs import GENERALIST, INDEX, KINDS, OF_LOG, OWN_CLASS, with_program
from scripts.training.options import GeneralistOptions, LogOptions, OwnOptions, RunOptions
from scripts.training.runs import train_and_compare


def run_in_environment(kind: str, options: RunOptions) -> None:
    """Train in an environment, compare and draw."""
    kind = options.algorithm if isinstance(options, OwnOptions) else kind
    request = requests.request_of(kind, options)
    requests.import_own(kind, changed(options))
    folder = options.resume or options.out or requests.folder_of_run(request)
    with one_line_errors(f"stopped; go on with --resume {folder}"):
        train_and_compare(request, folder, options.fresh)


def run_on_log(options: LogOptions) -> None:
    """Learn an index from a log, and print the log-loss of its held-out crawls."""
    folder, started = options.out or default_folder(INDEX, options.title), time.perf_counter()
    if (folder / requests.RUN).exists():
        raise ValueError(f"{folder} holds a run in an environment; name another --out")
    log = read_log(options)
    _, group = weights_and_groups(log, options)
    until, seed = options.until, options.seed
    last = math.inf if until is None else until
    loss, crawls = learn_from_log(log, group, folder, until=last, seed=seed, fresh=options.fresh)
    seconds = time.perf_counter() - started
    used = {"log": [str(path) for path in options.log], "until": until, "seed": seed}
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used=used)
    said = f"log-loss of changed / not changed of the last {crawls} crawls: {loss:.4f} -> {folder}"
    console().print(said, soft_wrap=True)


def run_generalist(options: GeneralistOptions) -> None:
    """Train the agent for every family."""
    folder, started = options.out or default_folder(GENERALIST), time.perf_counter()
    arguments = GeneralistArguments(seed=options.seed)
    check_vacant(folder, but=GENERALIST_FILE if options.fresh else "")
    check_folder(folder)
    (folder / GENERALIST_FILE).unlink(missing_ok=True)
    train(arguments, folder, progress=True)
    seconds = time.perf_counter() - started
    used = {"seed": options.seed}
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used=used)
    console().print(f"trained in {seconds:.0f} s -> {folder}", soft_wrap=True)


class Programs(TyperGroup):
    """The group; the command line names one by its algorithm, or by a run to resume."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the program in front of the words of the command line."""
        with one_line_errors():
            words = args if args[:1] == ["--help"] else with_program(args)
        return super().parse_args(ctx, words)


app = group(__doc__, Programs)
for kind, options_class in {**KINDS, OWN_CLASS: OwnOptions}.items():
    command_of(partial(run_in_environment, kind), options_class, options_class.__doc__, kind, app)
command_of(run_on_log, LogOptions, LogOptions.__doc__, OF_LOG, app)
command_of(run_generalist, GeneralistOptions, GeneralistOptions.__doc__, GENERALIST, app)

if __name__ == "__main__":
    app()
