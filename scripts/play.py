"""Play an episode yourself in a window, against policies on the same events.

Click a page to crawl it; time then advances to the next crawl. The window shows the importance and
the mean change rate of each page, the time since its last crawl, and its signals since then, some
of which are false. It does not show which pages are stale. After the last crawl a table compares
your accuracy with that of the policies. Escape ends the episode early, without a table.

    python -m scripts.play
    python -m scripts.play --policies GreedyNCIS,my_module:MyPolicy --env-arg num_pages=20
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import gymnasium
from rich.table import Table
from typer import Option

from crawl_envs.evaluation import PolicyFactory
from crawl_envs.types.arguments import whole
from scripts.cli.commands import command
from scripts.cli.options import EnvArgs, named_values, words_of
from scripts.present import tables
from scripts.present.game import Game, show
from scripts.study.entrants import candidates_of


def scores(game: Game, factories: Mapping[str, PolicyFactory]) -> Table:
    """Return a table of the player's and the policies' results, the most accurate first."""
    ledgers = {label: game.ledger_of(factory) for label, factory in factories.items()}
    ledgers["you"] = game.env.ledger()
    table = Table("", "accuracy", "freshness", "crawls", "of pages that had changed")
    for label in sorted(ledgers, key=lambda label: -ledgers[label].accuracy):
        ledger = ledgers[label]
        share = f"{ledger.changes_found / max(ledger.crawls, 1):.0%}"
        table.add_row(
            label, f"{ledger.accuracy:.3f}", f"{ledger.freshness:.3f}", f"{ledger.crawls}", share
        )
    return table


def main(
    policies: Annotated[
        str, Option(help="Comma-separated Name, Name:key=value, or folders or names of agents.")
    ] = "GreedyNCIS,RoundRobin",
    env_arg: EnvArgs = None,
    seed: Annotated[int, Option(help="Seed of the episode.")] = 0,
) -> None:
    """Play an episode and compare it with the policies."""
    whole("seed", seed, 0)
    candidates = candidates_of(words_of("--policies", policies))
    game = Game(named_values(env_arg or []), seed)
    try:
        show(game)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ValueError(str(error)) from None
    crawls = game.env.ledger().crawls
    console = tables.console()
    if not game.over:
        console.print(f"stopped after {crawls} of {game.env.num_slots()} crawls: no comparison")
        return
    factories = {label: candidate.factory for label, candidate in candidates.items()}
    console.print(scores(game, factories))


app = command(main, __doc__)

if __name__ == "__main__":
    app()
