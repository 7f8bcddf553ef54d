"""Evaluate an agent: on fresh seeds, beside analytic policies that meet the same events.

MODEL is the output folder of scripts.train, the name of an agent that comes with the package, or
an analytic policy. In the environment that an agent was trained in, arguments that are not given
are those of its training; agents whose network scores page by page take any number of pages:
--env-arg num_pages=1000 --env-arg bandwidth=1000.

The folder gets rows.parquet and rows.csv (all metrics, episode by episode; seed i there is the
seed 1,000,000 + i of the environment), standings.csv, standings.png and provenance.json.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crawl_envs.evaluation import Row, summarize
from scripts.reporting import tables
from scripts.reporting.cli import plain_interrupt
from scripts.reporting.comparisons import LOWER, OF_FRAGMENTS, is_oracle
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.reporting.runner import Store, check_kept, run
from scripts.training.contest import Contest, contest_of, entrant_of
from scripts.training.options import at_least, default_folder, named_values, one_line_errors
from scripts.training.pictures import draw_standings
from scripts.training.rivals import SIMPLE
from scripts.training.standings import COLUMNS, ONE_HISTORY, TRACE, note_of, standings, table_of

METRICS = {
    "freshness": "importance-weighted share of page time that is fresh",
    "accuracy": "share of requests served fresh",
    "penalty": "mean penalty of changes not found, less is better",
    "offer_freshness": "share of offers that is fresh at midnight",
    "divergence": "mean distance of held copies from live pages, less is better",
}
USUAL_METRICS = {
    "CrawlHarmonic-v0": "penalty",
    "CrawlOffers-v0": "offer_freshness",
    OF_FRAGMENTS: "divergence",
}


def best_other(rows: Sequence[Row], metric: str, agent: str) -> str | None:
    """Return the best in a metric that is no oracle, no simple policy and not the agent, if any."""
    sign = -1.0 if metric in LOWER else 1.0
    found = [
        item
        for item in summarize(rows, metric)
        if item.policy not in (agent, *SIMPLE) and not is_oracle(item.policy)
    ]
    return max(found, key=lambda item: sign * item.mean).policy if found else None


def report(setting: Contest, store: Store, agent: str, metric: str, folder: Path) -> None:
    """Write, draw and print how the agent stands.

    Raises:
        ValueError: nothing was measured in the metric.
    """
    rows = [row for row in store.rows if row.policy in setting.labels]
    write_csv(folder / "rows.csv", Row._fields, rows)
    if agent not in {row.policy for row in rows if row.metric == metric}:
        known = ", ".join(sorted({row.metric for row in rows}))
        raise ValueError(f"metric must be one that {setting.id} has ({known}), got {metric!r}")
    best = best_other(rows, metric, agent)
    found = standings(rows, metric, agent, best, lower=metric in LOWER)
    write_csv(folder / "standings.csv", COLUMNS, found)
    given = ", ".join(f"{name}={value}" for name, value in setting.arguments.items())
    title = f"{agent} in {setting.id}" + (f": {given}" if given else "")
    measured = f"{metric} ({METRICS[metric]})"
    draw_standings(folder / "standings.png", found, agent=agent, title=title, measured=measured)
    console = tables.console()
    console.print(title, soft_wrap=True)
    console.print(table_of(found, agent, metric, note_of(found, best)))
    if setting.id == TRACE:
        console.print(ONE_HISTORY)


app = typer.Typer(add_completion=False, rich_markup_mode=None)

Model = Annotated[str, typer.Argument(help="Folder or name of an agent, or a policy.")]
EnvId = Annotated[str, typer.Argument(help="Id of the environment, CrawlNCIS-v0 say.")]
EnvArg = Annotated[
    list[str] | None,
    typer.Option(
        help="Argument of the environment, num_pages=1000 say; any number of times.",
        show_default="those of the training",
    ),
]
Episodes = Annotated[int, typer.Option(help="Seeds, an episode each.")]
Policies = Annotated[
    str | None,
    typer.Option(
        help="Policies to compare with, Name or Name:key=value, with commas, or all; oracles, "
        "which read the truth, only by name.",
        show_default="the usual ones that can act in the environment",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(help=f"What is told: {', '.join(METRICS)}.", show_default="by the environment"),
]
Workers = Annotated[int | None, typer.Option(help="Processes.", show_default="one per processor")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder of results.", show_default="runs/evaluate-MODEL-ENV"),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Keep rows that are there, and add to them.")
]


@app.command(help=__doc__)
def main(
    model: Model,
    env_id: EnvId,
    env_arg: EnvArg = None,
    episodes: Episodes = 32,
    policies: Policies = None,
    metric: Metric = None,
    workers: Workers = None,
    out: Out = None,
    resume: Resume = False,
) -> None:
    """Play, compare, draw; say what is wrong in one line."""
    folder = out or default_folder("evaluate", Path(model).name, env_id)
    stopped = f"stopped; {folder} keeps what was done, to go on with by --resume"
    processes = workers if workers is not None else os.cpu_count() or 1
    with one_line_errors(folder, stopped):
        at_least(1, episodes=episodes, workers=processes)
        entrant = entrant_of(model)
        specs = [word.strip() for word in (policies or "").split(",") if word.strip()]
        setting = contest_of(entrant, env_id, named_values(env_arg or []), specs)
        told = metric or USUAL_METRICS.get(setting.id, "freshness")
        if told not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {told!r}")
        check_folder(folder)
        store = Store(folder / "rows.parquet", "evaluate", [setting])
        store.load(keep=resume)
        check_kept([setting], episodes, store)
        with plain_interrupt(stopped):
            run([setting], episodes, store, processes, Console(stderr=True))
        report(setting, store, entrant.label, told, folder)
        write_provenance(
            folder / "provenance.json", "scripts.evaluate", store.seconds, rows=len(store.rows)
        )
        tables.console().print(f"{store.seconds:.0f} s -> {folder}", soft_wrap=True)


if __name__ == "__main__":
    app()
