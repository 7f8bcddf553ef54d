"""What an entrant is: its kind, the paper that it is from, and how it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import agents
from agents.catalog import GENERALIST, SHIPPED
from agents.index.stored import INDEX
from agents.runs import CONFIG, read_object
from policies.base import registry

TRAINED, YOURS = "trained agent", "yours"
KINDS: Mapping[str, str] = {
    **{kind: text for kind, text in registry.KINDS.items() if kind != "oracle"},
    TRAINED: "a network, trained beforehand on other pages and events than those of the tasks; "
    "after the colon by what, and on which law of instances",
}
"""The kinds of shipped entrants, and what they are."""
FIXED = ("formula", "baseline")
"""Kinds of entrants that do not learn."""
METHODS = {
    "cloning": "Ross, Gordon and Bagnell 2011",
    "PPO": "Schulman et al. 2017",
}
"""Papers of methods of training."""


class Entrant(NamedTuple):
    """What an entrant is; texts are empty where there is nothing to say.

    Attributes:
        kind: a key of ``KINDS``, or ``YOURS``.
        paper: short name and authors of its paper, or authors of that of its training.
        page: page of the documentation on that paper, with its section.
        file: file of the repository that has or describes it.
        by: by what a trained agent was trained.
        on: the laws of its instances.
        formula: what it does to the formula that it is based on.
        command: the command that made it, in backticks.
    """

    kind: str
    paper: str = ""
    page: str = ""
    file: str = ""
    by: str = ""
    on: str = ""
    formula: str = ""
    command: str = ""

    @property
    def words(self) -> str:
        """Its kind, and for a trained agent by what and on what."""
        return f"trained: {self.by}{self.on and f' on {self.on}'}" if self.by else self.kind


def entrant_of(label: str) -> Entrant:
    """Return what an entrant is, by its label.

    Raises:
        ValueError: as for :func:`trained_entrant`.
    """
    if label in agents.names():
        return trained_entrant(SHIPPED / label)
    if label not in registry.POLICIES:
        return Entrant(YOURS)
    tags = registry.TAGS[label]
    file = registry.POLICIES[label].__module__.replace(".", "/") + ".py"
    if not tags.paper:
        return Entrant(tags.kind, file=file)
    authors, section = registry.PAPERS[tags.paper]
    return Entrant(tags.kind, f"{tags.paper} ({authors})", f"docs/papers.md#{section}", file)


def trained_entrant(folder: Path) -> Entrant:
    """Return what the agent in a folder is, by its configuration.

    That of the last stage counts. Its ``algorithm`` and ``instance`` (a law, or several) say by
    what and on what; a learned index has no algorithm.

    Raises:
        ValueError: a file is missing or damaged, or does not say by what.
    """
    config, score = read_object(folder / CONFIG), folder / "score.json"
    last: dict[str, Any] = (config.get("stages") or [config])[-1]
    by, formula = str(last.get("algorithm", "")), ""
    if "clone" in last:
        by, formula = "cloning", f"imitates {last['clone']['teacher']}"
    elif by in agents.ALGORITHMS:
        by = by.upper()
    elif not by and (folder / INDEX).exists():
        by = "crawl outcomes"
    elif (folder / GENERALIST).exists():
        formula = "corrects BeliefNCIS, or is a formula"
    if not by:
        raise ValueError(f"{folder / CONFIG} must say the algorithm of the training")
    law = last.get("instance") or last.get("env_args", {}).get("instance", "")
    laws = [law] if isinstance(law, str) else list(law)
    on = ", ".join(laws) if len(laws) < 4 else f"{len(laws)} laws"
    made = read_object(score)["made"] if score.exists() else {}
    command = f"`{made['command']}`" if "command" in made else ""
    if "stages" in made:
        command = f"{len(made['stages'])} stages, whose commands score.json has"
    file = f"agents/trained/{folder.name}/{CONFIG}"
    return Entrant(TRAINED, METHODS.get(by, ""), "docs/train.md", file, by, on, formula, command)
