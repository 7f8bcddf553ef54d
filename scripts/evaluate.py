"""Evaluate an agent on new seeds and compare it with analytic policies on the same events.

MODEL is an output folder of scripts.train, the name of a shipped agent, or an analytic policy. In
the environment of its training an agent keeps the arguments of its training, unless --env-arg sets
others. Agents with a network per page accept any number of pages: --env-arg num_pages=1000
--env-arg bandwidth=1000.

Writes rows.parquet and rows.csv (all metrics of each episode; seed i there is the seed
1,000,000 + i of the environment), ranking.csv, ranking.png and provenance.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from agents.sb3.comparison import FIRST_SEED
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import command_of
from scripts.cli.options import PREFIX, check_counts, default_folder, named_values, words_of
from scripts.present import tables
from scripts.study.comparisons import DEFAULT_METRICS, METRICS
from scripts.study.entrants import (
    Candidate,
    applicable,
    candidate_of,
    candidates_of,
    entered,
    names_to_compare,
)
from scripts.study.runner import opened, play_missing
from scripts.study.settings import Setting
from scripts.study.workers import PlayOptions
from scripts.training.ranking import publish_setting

Metric = Annotated[
    str | None,
    Option(help=f"Metric of the ranking: {', '.join(METRICS)}.", show_default="by environment"),
]


Seeds = Annotated[int, Option("--seeds", "--episodes", help="Number of seeds, one episode each.")]


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(PlayOptions):
    """Arguments of ``scripts.evaluate``."""

    model: Annotated[str, Argument(help="Folder or name of an agent, or name of a policy.")]
    env_id: Annotated[str, Argument(help="Id, such as CrawlNCIS-v0 or module:MyCrawl-v0.")]
    env_arg: Annotated[
        list[str] | None,
        Option(
            help="Argument of the environment, such as num_pages=1000; can be repeated.",
            show_default="the arguments of the training",
        ),
    ] = None
    seeds: Seeds = 32
    policies: Annotated[
        str | None,
        Option(
            help="Policies to compare with: comma-separated list of Name, Name:key=value, or "
            "folders or names of agents; or all. Oracles must be named.",
            show_default="common policies that can act in the environment",
        ),
    ] = None
    metric: Metric = None
    out: Annotated[
        Path | None, Option(help="Output folder.", show_default="runs/evaluate-MODEL-ENV")
    ] = None


def main(options: EvaluateOptions) -> None:
    """Evaluate the candidate and the policies, and write and print the ranking."""
    folder = options.out or default_folder("evaluate", Path(options.model).name, options.env_id)
    check_counts(1, seeds=options.seeds)
    if options.metric is not None:
        one_of("metric", options.metric, METRICS)
    players = options.players
    candidate = candidate_of(options.model)
    specs = words_of("--policies", options.policies)
    setting = evaluation_of(candidate, options.env_id, named_values(options.env_arg or []), specs)
    scored = options.metric or DEFAULT_METRICS.get(setting.id, "freshness")
    store = opened(folder, "evaluate", [setting], fresh=options.fresh)
    play_missing([setting], options.seeds, store, players, Console(stderr=True))
    publish_setting(setting, store.rows, candidate.label, scored, folder)
    store.sign("scripts.evaluate")
    tables.console().print(f"{store.seconds:.0f} s -> {folder}", soft_wrap=True)


def evaluation_of(
    candidate: Candidate, env_id: str, env_args: Mapping[str, Any], specs: Sequence[str]
) -> Setting:
    """Return the checked setting that compares a candidate with other policies.

    Args:
        candidate: the agent or policy to evaluate. In the environment in which it was trained,
            arguments of its training are the defaults.
        env_id: id of the environment.
        env_args: arguments of the environment.
        specs: names as of :func:`candidate_of`, or ``all`` for all policies except oracles; the
            default policies if empty.

    Raises:
        ValueError: arguments that the environment rejects, an unknown policy, a named policy that
            cannot act there, an agent of another environment, or two agents of the same name.
    """
    name = env_id.removeprefix(PREFIX)
    arguments = {**(candidate.env_args if candidate.env_id == name else {}), **env_args}
    named = [] if list(specs) == ["all"] else specs
    rivals = candidates_of(named or names_to_compare(name, specs))
    if rivals.get(candidate.label, candidate).digest != candidate.digest:
        raise ValueError(f"entrants must have different names, got {candidate.label!r} twice")
    able, refused = applicable({candidate.label: candidate} | rivals, name, arguments)
    for label, reason in refused.items():
        if named or label == candidate.label:
            raise ValueError(f"{label} cannot act here: {reason}")
    return Setting(name, name, arguments, **entered(able), first_seed=FIRST_SEED)


app = command_of(main, EvaluateOptions, __doc__)

if __name__ == "__main__":
    app()
