"""Train a generalist: record episodes of every law, fit two networks, and save them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agents.catalog import check_vacant
from agents.generalist.learning import fit_networks
from agents.generalist.stored import StoredGeneralist
from agents.generalist.worlds import World, explored
from agents.index.arguments import check_numbers
from agents.progress import COUNT, ProgressBar
from agents.runs import CONFIG, CURVE, RunArguments, replace_text, write_rows
from crawl_envs.instances import LAWS, traces
from crawl_envs.sim.streams import PageSets
from crawl_envs.system.files import claim, claiming
from crawl_envs.types import Reveal
from crawl_envs.types.arguments import one_of
from crawl_envs.worlds.episodes import Start

REVEALED = (
    *("uniform", "partial", "noisy", "mixed", "delayed", "sources", "bing-like"),
    *("late", "corrupted", "bursty", "periodic", "deploys", "shifting"),
)
"""Laws of episodes in which all parameters are revealed, of the shipped ``generalist``."""
HIDDEN = ("uniform", "noisy", "mixed", "cold")
"""Laws of its episodes in which change rates and the quality of signals are hidden."""
REVEALS: tuple[Reveal, ...] = ("parameters", "importance")
ALGORITHM = "crawl outcomes"
TEST_EPISODES = 2
"""Episodes of each law on which the losses are measured."""
TRAINING_SEEDS = 2**42
"""First seed of the training episodes."""


@dataclass(frozen=True, kw_only=True)
class GeneralistArguments(RunArguments):
    """Arguments of a training, plain values.

    Raises:
        ValueError: a value outside its range, or an unknown law.
    """

    episodes: int = 120
    """Episodes of each law with parameters, and of each without, >= 1."""
    algorithm: str = ALGORITHM
    instance: Sequence[str] = REVEALED
    """Laws of the episodes in which all parameters are revealed."""
    hidden_laws: Sequence[str] = HIDDEN
    """Laws of the episodes in which change rates and the quality of signals are hidden."""
    sites: Sequence[str] = ()
    """Recorded sites of the episodes, half of which begin with the history of the site."""
    pages: PageSets = "any"
    """Stream of the seeds of all instances: ``any``, ``train`` or ``test``."""
    start: Start = "fresh"
    """``fresh`` copies at the start, or ``crawled``: the crawler takes over."""
    formulas: bool = True
    """Where nothing was learned, the agent acts by a formula; otherwise it refuses."""
    hidden: int = 64
    """Units of each hidden layer, >= 1."""
    learning_rate: float = 0.003
    """Step size of Adam at the start, > 0; it falls linearly to 0."""
    seed: int = 0
    """Seed of all random numbers, in [0, 2**16)."""

    def __post_init__(self) -> None:
        check_numbers(self)
        one_of("algorithm", self.algorithm, (ALGORITHM,))
        one_of("pages", self.pages, PageSets)
        one_of("start", self.start, Start)
        sites = (*traces.sites("train"), *traces.sites("dev"))
        for name, names in (("instance", LAWS), ("hidden_laws", LAWS), ("sites", sites)):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            for value in getattr(self, name):
                one_of(name, value, tuple(names))
        if not self.worlds():
            raise ValueError("instance, hidden_laws and sites must name at least one world")

    def worlds(self) -> list[World]:
        """Return the worlds of the episodes."""
        return [
            *(World("parameters", law) for law in self.instance),
            *(World("importance", law) for law in self.hidden_laws),
            *(World(reveal, site=site) for site in self.sites for reveal in REVEALS),
        ]


class CurveRow(NamedTuple):
    """A round of a fit: its name, its number, and the mean loss of held-out episodes."""

    fit: str
    round: int
    loss: float
    seconds: float


@claiming()
def train(
    arguments: GeneralistArguments, out: str | Path, *, progress: bool = False
) -> StoredGeneralist:
    """Train a generalist, and write it to a folder; ValueError if the folder holds an agent.

    The folder gets ``config.json``, the arguments; ``curve.csv``, the losses of both fits; and
    ``generalist.json``, the agent. The same arguments give the same agent, up to rounding.
    """
    out, started = Path(out), time.perf_counter()
    check_vacant(out)
    out.mkdir(parents=True, exist_ok=True)
    claim(out)
    replace_text(out / CONFIG, arguments.to_json())
    worlds, rows, records = arguments.worlds(), [], []
    count, total = (
        len(worlds) * k for k in (arguments.episodes, arguments.episodes + TEST_EPISODES)
    )
    first, kind = TRAINING_SEEDS + (arguments.seed << 20), (arguments.pages, arguments.start)
    with ProgressBar(COUNT, visible=progress) as bar:
        task = bar.add_task("exploring", total=total)
        for number in range(total):
            records.append(explored(worlds[number % len(worlds)], first + number, *kind))
            bar.advance(task)
        rng = np.random.default_rng([arguments.seed, 2])
        networks = arguments.hidden, arguments.learning_rate, rng
        for result in fit_networks(records[:count], records[count:], *networks):
            bar.update(task, description=f"fitting the {result.fit}")
            seconds = round(time.perf_counter() - started, 3)
            rows.append(CurveRow(result.fit, result.number, result.loss, seconds))
    write_rows(out / CURVE, CurveRow, rows)
    assert result.weights is not None
    stored = StoredGeneralist(result.weights, json.loads(arguments.to_json()))
    stored.save(out)
    return stored
