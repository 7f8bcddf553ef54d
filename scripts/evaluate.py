"""Evaluate an agent on new seeds and compare it with analytic policies on the same events.

MODEL is the output folder of scripts.train, the name of an agent shipped with the package, or an
analytic policy. In the environment of its training, an agent is evaluated with the arguments of its
training, unless --env-arg sets others. Agents with a network per page accept any number of pages:
--env-arg num_pages=1000 --env-arg bandwidth=1000.

Writes rows.parquet and rows.csv (all metrics of each episode; seed i there is the seed
1,000,000 + i of the environment), ranking.csv, ranking.png and provenance.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crawl_envs.evaluation import Row, summarize
from crawl_envs.types.arguments import one_of
from scripts.reporting import tables
from scripts.reporting.commands import (
    Fresh,
    at_least,
    command,
    default_folder,
    one_line_errors,
    words_of,
)
from scripts.reporting.comparisons import LOWER, OF_FRAGMENTS, is_oracle
from scripts.reporting.options import named_values
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.runner import STOPPED, Store, check_kept, run
from scripts.reporting.workers import DEFAULT_BACKEND, Backend, WorkerCount, chosen_workers
from scripts.training.baselines import SIMPLE
from scripts.training.evaluation import Evaluation, candidate_of, evaluation_of
from scripts.training.pictures import draw_ranking
from scripts.training.ranking import COLUMNS, ONE_HISTORY, TRACE, note_of, rank_policies, table_of

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


def best_other(rows: Sequence[Row], metric: str, agent: str) -> str | None:
    """Return the best policy in a metric, apart from the agent, oracles and simple policies."""
    sign = -1.0 if metric in LOWER else 1.0
    others = [
        item
        for item in summarize(rows, metric)
        if item.policy not in (agent, *SIMPLE) and not is_oracle(item.policy)
    ]
    return max(others, key=lambda item: sign * item.mean).policy if others else None


def report(setting: Evaluation, store: Store, agent: str, metric: str, folder: Path) -> None:
    """Write, draw and print the ranking.

    Raises:
        ValueError: the environment does not have the metric.
    """
    rows = [row for row in store.rows if row.policy in setting.labels]
    write_csv(folder / "rows.csv", Row._fields, rows)
    if agent not in {row.policy for row in rows if row.metric == metric}:
        known = ", ".join(sorted({row.metric for row in rows}))
        raise ValueError(f"metric must be one that {setting.id} has ({known}), got {metric!r}")
    best = best_other(rows, metric, agent)
    ranking = rank_policies(rows, metric, agent, best, lower=metric in LOWER)
    write_csv(folder / "ranking.csv", COLUMNS, ranking)
    given = ", ".join(f"{name}={value}" for name, value in setting.arguments.items())
    title = f"{agent} in {setting.id}" + (f": {given}" if given else "")
    measured = f"{metric} ({METRICS[metric]})"
    draw_ranking(folder / "ranking.png", ranking, agent=agent, title=title, measured=measured)
    console = tables.console()
    console.print(title, soft_wrap=True)
    console.print(table_of(ranking, agent, metric, note_of(ranking, best)))
    if setting.id == TRACE:
        console.print(ONE_HISTORY)


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
        help="Policies to compare with: comma-separated list of Name or Name:key=value, or all. "
        "Oracles, which read the hidden state, must be named.",
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
