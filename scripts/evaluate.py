"""Evaluate an agent on new seeds and compare it with analytic policies on the same events.

MODEL is the output folder of scripts.train, the name of an agent shipped with the package, or an
analytic policy. In the environment of its training, an agent is evaluated with the arguments of its
training, unless --env-arg sets others. Agents with a network per page accept any number of pages:
--env-arg num_pages=1000 --env-arg bandwidth=1000.

Writes rows.parquet and rows.csv (all metrics of each episode; seed i there is the seed
1,000,000 + i of the environment), ranking.csv, ranking.png and provenance.json.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from agents.sb3.comparison import FIRST_SEED
from crawl_envs.evaluation import Row
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import (
    Fresh,
    at_least,
    command,
    default_folder,
    one_line_errors,
    words_of,
)
from scripts.cli.options import PREFIX, named_values
from scripts.present import tables
from scripts.study.comparisons import OF_FRAGMENTS
from scripts.study.rows import check_folder, write_provenance
from scripts.study.runner import STOPPED, Store, check_kept, run
from scripts.study.settings import Setting
from scripts.study.workers import DEFAULT_BACKEND, Backend, WorkerCount, chosen_workers
from scripts.training.candidates import (
    Candidate,
    applicable,
    candidate_of,
    candidates_of,
    chosen_names,
    one_thread,
)
from scripts.training.ranking import best_first, publish, rank_policies

METRICS = {
    "freshness": "importance-weighted share of page time that is fresh",
    "accuracy": "share of requests served fresh",
    "penalty": "mean penalty of missed changes, lower is better",
    "offer_freshness": "share of offers that are fresh at midnight",
    "divergence": "mean distance between copies and live pages, lower is better",
}
USUAL_METRICS = {
    "CrawlHarmonic-v0": "penalty",
    "CrawlOffers-v1": "offer_freshness",
    OF_FRAGMENTS: "divergence",
}


@dataclass(frozen=True)
class Evaluation(Setting):
    """A setting with seeds from ``FIRST_SEED`` on.

    Attributes:
        learned: labels of agents, which run with one torch thread.
    """

    first_seed: int = FIRST_SEED
    learned: tuple[str, ...] = ()

    def play(self, label: str, seed: int) -> list[Row]:
        """Return the rows of one policy in one repetition."""
        with one_thread() if label in self.learned else contextlib.nullcontext():
            return super().play(label, seed)


def evaluation_of(
    candidate: Candidate, env_id: str, env_args: Mapping[str, Any], specs: Sequence[str]
) -> Evaluation:
    """Return the checked setting that compares a candidate with other policies.

    Args:
        candidate: the agent or policy to evaluate. In the environment of its training, arguments
            default to those of its training.
        env_id: id of the environment.
        env_args: arguments of the environment.
        specs: policies and agents as of :func:`candidate_of`, or ``all`` policies but oracles; the
            default policies if empty.

    Raises:
        ValueError: arguments that the environment rejects, an unknown policy, a named policy that
            cannot act there, an agent of another environment, or two agents of one name.
    """
    name = env_id.removeprefix(PREFIX)
    arguments = {**(candidate.env_args if candidate.env_id == name else {}), **env_args}
    named = [] if list(specs) == ["all"] else specs
    others = candidates_of(named or chosen_names(name, specs))
    if others.get(candidate.label, candidate).digest != candidate.digest:
        raise ValueError(f"entrants must have different names, got {candidate.label!r} twice")
    entrants = {candidate.label: candidate} | others
    factories = {label: entrant.factory for label, entrant in entrants.items()}
    able, refused = applicable(factories, name, arguments)
    for label, reason in refused.items():
        if named or label == candidate.label:
            raise ValueError(f"{label} cannot act here: {reason}")
    learned = tuple(label for label in able if entrants[label].learned)
    return Evaluation(name, name, arguments, able, learned=learned)


def report(setting: Evaluation, store: Store, agent: str, metric: str, folder: Path) -> None:
    """Write, draw and print the ranking.

    Raises:
        ValueError: the environment does not have the metric.
    """
    rows = [row for row in store.rows if row.policy in setting.labels]
    if agent not in {row.policy for row in rows if row.metric == metric}:
        known = ", ".join(sorted({row.metric for row in rows}))
        raise ValueError(f"metric must be one that {setting.id} has ({known}), got {metric!r}")
    best = next(iter(best_first(rows, metric, agent)), None)
    given = ", ".join(f"{name}={value}" for name, value in setting.arguments.items())
    title = f"{agent} in {setting.id}" + (f": {given}" if given else "")
    tables.console().print(title, soft_wrap=True)
    measured = f"{metric} ({METRICS[metric]})"
    look = {"agent": agent, "title": title, "metric": metric, "measured": measured}
    publish(folder, rows, rank_policies(rows, metric, agent, best), best, **look)


Model = Annotated[str, typer.Argument(help="Folder or name of an agent, or name of a policy.")]
EnvId = Annotated[str, typer.Argument(help="Id, such as CrawlNCIS-v0 or module:MyCrawl-v0.")]
EnvArg = Annotated[
    list[str] | None,
    typer.Option(
        help="Argument of the environment, such as num_pages=1000; can be repeated.",
        show_default="the arguments of the training",
    ),
]
Episodes = Annotated[int, typer.Option(help="Number of seeds, one episode each.")]
Policies = Annotated[
    str | None,
    typer.Option(
        help="Policies to compare with: comma-separated list of Name, Name:key=value, or folders "
        "or names of agents; or all policies. Oracles, which read the hidden state, must be named.",
        show_default="common policies that can act in the environment",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        help=f"Metric of the ranking: {', '.join(METRICS)}.", show_default="by environment"
    ),
]
Out = Annotated[
    Path | None, typer.Option(help="Output folder.", show_default="runs/evaluate-MODEL-ENV")
]


def main(
    model: Model,
    env_id: EnvId,
    env_arg: EnvArg = None,
    episodes: Episodes = 32,
    policies: Policies = None,
    metric: Metric = None,
    workers: WorkerCount = None,
    backend: Backend = DEFAULT_BACKEND,
    out: Out = None,
    fresh: Fresh = False,
) -> None:
    """Run the evaluation."""
    folder = out or default_folder("evaluate", Path(model).name, env_id)
    at_least(1, episodes=episodes)
    if metric is not None:
        one_of("metric", metric, METRICS)
    chosen = chosen_workers(backend, workers)
    candidate = candidate_of(model)
    specs = words_of("--policies", policies)
    setting = evaluation_of(candidate, env_id, named_values(env_arg or []), specs)
    scored = metric or USUAL_METRICS.get(setting.id, "freshness")
    check_folder(folder)
    store = Store(folder / "rows.parquet", "evaluate", [setting])
    store.load(keep=not fresh)
    check_kept([setting], episodes, store)
    with one_line_errors(STOPPED.format(folder)):
        run([setting], episodes, store, chosen, Console(stderr=True))
    report(setting, store, candidate.label, scored, folder)
    write_provenance(
        folder / "provenance.json", "scripts.evaluate", store.seconds, rows=len(store.rows)
    )
    tables.console().print(f"{store.seconds:.0f} s -> {folder}", soft_wrap=True)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
