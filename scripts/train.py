"""Train an agent and compare it with the analytic policies on the same events.

Each ALGORITHM below has its options: python -m scripts.train ppo --help shows those of ppo. The
algorithms of Stable-Baselines3, "clone" and "index" train in an environment:
python -m scripts.train ppo CrawlNCIS-v0. A class in the form of Stable-Baselines3 is named by its
module: my_module:MyPPO. "index --log" and "generalist" take no environment.

Each episode of a training draws new pages, of the stream ``train``; comparisons play others. The
shipped agents were trained with --set pages=any; --env-arg resample=false keeps a lane's pages.

--seeds N trains N runs in parallel, in the folders seed-0, seed-1, ...; the learning curve and the
reward of the agent are means over the runs, with intervals. The seeds of runs are 1000 apart, since
lane i of a run has the seed of the run plus i. Common analytic policies that can act in the
environment, or those of --policies, are evaluated once. The progress bar of a single run shows the
best of them.

OUT receives the agent, run.json (the request), config.json, the learning curve, ranking.csv (mean
rewards of all policies), rows.csv (rewards per seed), two pictures and provenance.json. Algorithms
of Stable-Baselines3 also write validation.csv (rewards on held-out seeds while learning), and logs
with --tensorboard. The same command resumes an interrupted run, and so does --resume OUT without an
algorithm; clone and index start over.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

from typer.core import TyperGroup

from agents.catalog import CURVES, PRIOR, check_vacant
from agents.catalog import GENERALIST as GENERALIST_FILE
from agents.generalist.curve_training import CurveArguments, train_curves
from agents.generalist.prior import PriorArguments, train_prior
from agents.generalist.training import GeneralistArguments, train
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import command_of, group, one_line_errors
from scripts.cli.options import changed, default_folder
from scripts.live.learning import learn_from_log
from scripts.live.options import read_log, weights_and_groups
from scripts.present.tables import console
from scripts.study.rows import check_folder, write_provenance
from scripts.suite.crawl_v2 import TRAINING_LAWS
from scripts.training import requests
from scripts.training.jobs import GENERALIST, INDEX, KINDS, OF_LOG, OWN_CLASS, with_program
from scripts.training.options import GeneralistOptions, LogOptions, OwnOptions, RunOptions
from scripts.training.runs import train_and_compare

WORLDS: dict[str, dict[str, Any]] = {
    "crawl-v2": {
        "instance": TRAINING_LAWS,
        "hidden_laws": TRAINING_LAWS,
        "start": "crawled",
        "formulas": False,
        "episodes": 30,
        "hidden": 32,
    },
    "crawl-v1": {},
}
"""Arguments of the training of a generalist, by the suite of its worlds."""
SITES, FRAGMENTS = "sites", "fragments"
"""The worlds of the training of a prior, and of a network of divergence curves."""
FILES = {SITES: PRIOR, FRAGMENTS: CURVES}
"""Names of the agent's file where it is no generalist."""


def run_in_environment(kind: str, options: RunOptions) -> None:
    """Train an agent in an environment, and write a comparison with policies."""
    kind = options.algorithm if isinstance(options, OwnOptions) else kind
    request = requests.request_of(kind, options)
    requests.import_user_classes(kind, changed(options))
    folder = options.resume or options.out or requests.folder_of_run(request)
    with one_line_errors(f"stopped; resume with --resume {folder}"):
        train_and_compare(request, folder, options.fresh)


def run_on_log(options: LogOptions) -> None:
    """Learn an index from a crawl log, and print its log-loss on held-out crawls."""
    folder, started = options.out or default_folder(INDEX, options.title), time.perf_counter()
    if (folder / requests.RUN).exists():
        raise ValueError(f"--out must hold no run in an environment, got {folder}")
    log = read_log(options)
    _, group = weights_and_groups(log, options)
    until, seed = options.until, options.seed
    last = math.inf if until is None else until
    loss, crawls = learn_from_log(log, group, folder, until=last, seed=seed, fresh=options.fresh)
    seconds = time.perf_counter() - started
    used = {"log": [str(path) for path in options.log], "until": until, "seed": seed}
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used=used)
    line = f"log-loss of changed / not changed of the last {crawls} crawls: {loss:.4f} -> {folder}"
    console().print(line, soft_wrap=True)


def run_generalist(options: GeneralistOptions) -> None:
    """Train one agent for many laws of pages (the generalist)."""
    folder, started = options.out or default_folder(GENERALIST), time.perf_counter()
    one_of("worlds", options.worlds, (*WORLDS, *FILES))
    file = FILES.get(options.worlds, GENERALIST_FILE)
    used: dict[str, Any] = {"seed": options.seed}
    if options.worlds not in FILES:
        used["pages"] = options.pages
    elif options.pages != "train":
        raise ValueError(
            f"--pages must be left out with --worlds {options.worlds}, got {options.pages!r}"
        )
    check_vacant(folder, but=file if options.fresh else "")
    check_folder(folder)
    if options.worlds == SITES:
        learn: Any = partial(train_prior, PriorArguments(seed=options.seed))
    elif options.worlds == FRAGMENTS:
        learn = partial(train_curves, CurveArguments(seed=options.seed))
    else:
        arguments = GeneralistArguments(**used, **WORLDS[options.worlds])
        learn = partial(train, arguments, progress=True)
    (folder / file).unlink(missing_ok=True)
    learn(folder)
    used["worlds"] = options.worlds
    seconds = time.perf_counter() - started
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used=used)
    console().print(f"trained in {seconds:.0f} s -> {folder}", soft_wrap=True)


class Programs(TyperGroup):
    """A command per algorithm; the command line names the algorithm, or a run to resume."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line with the name of its command (see ``with_program``) in front."""
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
