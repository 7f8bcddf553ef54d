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
from agents.generalist.history import with_history
from agents.generalist.learning import fit_networks
from agents.generalist.recording import Record, recorded, recording
from agents.generalist.stored import StoredGeneralist
from agents.index.arguments import check_numbers
from agents.progress import COUNT, ProgressBar
from agents.runs import CONFIG, CURVE, RunArguments, replace_text, write_rows
from crawl_envs import instances
from crawl_envs.sim.streams import PageSets
from crawl_envs.system.files import claim, claiming
from crawl_envs.types import Reveal
from crawl_envs.types.arguments import one_of
from crawl_envs.worlds.rollouts import play_form
from policies.ncis.belief import BeliefNCIS

REVEALED = (
    *("uniform", "partial", "noisy", "mixed", "delayed", "sources", "bing-like"),
    *("late", "corrupted", "bursty", "periodic", "deploys", "shifting"),
)
"""Laws of episodes in which all parameters are revealed."""
HIDDEN = ("uniform", "noisy", "mixed", "cold")
"""Laws of episodes in which change rates and the quality of signals are hidden."""
LAWS = (*REVEALED, "cold")
ALGORITHM = "crawl outcomes"
NUM_PAGES = 100
CYCLES = {"parameters": 20, "importance": 40}
"""Crawls per page of an episode, by the revealed columns."""
BANDWIDTH_SPREAD = 4.0
"""Crawls per page and unit of time are log-uniform in [1 / spread, spread]."""
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
    instance: Sequence[str] = LAWS
    """Laws of the episodes, among LAWS."""
    pages: PageSets = "any"
    """Stream of the seeds of all instances: ``any``, ``train`` or ``test``."""
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
        object.__setattr__(self, "instance", tuple(self.instance))
        for law in self.instance:
            one_of("instance", law, LAWS)

    def worlds(self) -> list[tuple[str, Reveal]]:
        """Return the laws of the episodes with the revealed columns."""
        revealed: list[tuple[str, Reveal]] = [(law, "parameters") for law in REVEALED]
        worlds: list[tuple[str, Reveal]] = [*revealed, *((law, "importance") for law in HIDDEN)]
        return [(law, reveal) for law, reveal in worlds if law in self.instance]


def explored(law: str, reveal: Reveal, seed: int, pages: PageSets = "any") -> Record:
    """Run an exploring learner in the episode of a seed, and return its record."""
    rng = np.random.default_rng([seed, 3])
    bandwidth = NUM_PAGES * BANDWIDTH_SPREAD ** rng.uniform(-1.0, 1.0)
    instance = instances.make(law, num_pages=NUM_PAGES, bandwidth=bandwidth, seed=seed, pages=pages)
    problem, slots = instance.problem(reveal), CYCLES[reveal] * NUM_PAGES
    memory = with_history(BeliefNCIS().first_memory(problem), problem, np.zeros(0))
    form = recording(memory, slots, rng)
    play_form(form, instance, slots / bandwidth, seed, requests=False)
    return recorded(form.memory)


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
    """Train a generalist, and write it to a folder.

    The folder gets ``config.json``, the arguments; ``curve.csv``, the losses of both fits; and
    ``generalist.json``, the agent. The same arguments give the same agent, up to rounding.

    Args:
        arguments: arguments of the training.
        out: the folder, created if necessary.
        progress: show a progress bar on standard error.

    Raises:
        ValueError: ``out`` holds an agent already.
        OSError: ``out`` cannot be written.
    """
    out, started = Path(out), time.perf_counter()
    check_vacant(out)
    out.mkdir(parents=True, exist_ok=True)
    claim(out)
    replace_text(out / CONFIG, arguments.to_json())
    worlds, rows = arguments.worlds(), []
    count, held_out = len(worlds) * arguments.episodes, len(worlds) * TEST_EPISODES
    with ProgressBar(COUNT, visible=progress) as bar:
        task, records = bar.add_task("exploring", total=count + held_out), []
        for number in range(count + held_out):
            seed = TRAINING_SEEDS + (arguments.seed << 20) + number
            records.append(explored(*worlds[number % len(worlds)], seed, arguments.pages))
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
