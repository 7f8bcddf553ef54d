"""Test agents in worlds whose budget, size or law of changes differs from their training's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import agents
import policies
from agents.generalist.training import HIDDEN, REVEALED, GeneralistArguments
from agents.generalist.training import train as train_generalist
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import mean_rewards
from crawl_envs.evaluation import PolicyFactory, Row, evaluate
from scripts.experiments.agents.setup.trainings import TASKS
from scripts.present.experiment import Experiment
from scripts.present.filled_tables import grid, spelled
from scripts.present.verdicts import Range
from scripts.study.means import means, table
from scripts.study.rows import gathered, indexed
from scripts.study.settings import Measurement, spec
from scripts.training.jobs import job_of
from scripts.training.requests import SEED_STEP, Request

TITLE = "Agents in worlds they were not trained in"
WORLDS = (
    *("noisy", "noisy-1000", "noisy-tight", "noisy-ample", "partial", "delayed"),
    *("bursty", "periodic", "deploys", "shifting"),
)
"""Tasks of the suite in which agents are tested, all with revealed parameters."""
HOMES = ("noisy", "noisy-tight", "noisy-ample", "partial", "bursty", "deploys")
"""Tasks in which agents are trained."""
LEFT_OUT = {f"without {law}": law for law in ("bursty", "periodic", "deploys", "shifting")}
"""Laws that are left out of the training of a generalist, by setting."""
PPO, INDEX, GENERALIST = "ppo", "index", "generalist"
RANDOM, FORMULA, BELIEF = "RandomCrawl", "GreedyNCIS", "BeliefNCIS"
FIXED = "given"
"""Name of the setting of formulas and of the shipped generalist."""
STEPS, EPISODES_OF_LAW = 1_000_000, 120
FIRST_SEED, EPISODES = 6_000_000, 8
SOURCE = "our choice of worlds"


def compiled(factory: PolicyFactory, world: str, seed: int) -> float:
    """Return a policy's mean freshness in a world, simulated on the episodes of a repetition."""
    seeds = range(FIRST_SEED + seed * EPISODES, FIRST_SEED + (seed + 1) * EPISODES)
    it = TASKS[world]
    rows = evaluate(it.id, {"": factory}, seeds, **it.arguments)
    fresh = [row.value for row in rows if row.metric == it.metric]
    return sum(fresh) / len(fresh)


def in_lanes(factory: PolicyFactory, world: str, seed: int) -> float:
    """Return an agent's mean reward on a repetition's episodes, run step by step in lanes."""
    it = TASKS[world]
    arguments = TrainArguments(env_id=it.id, env_args=it.arguments)
    first = FIRST_SEED + seed * EPISODES
    return float(mean_rewards(factory, arguments, episodes=EPISODES, seed=first).mean())


@spec("transfer-shipped")
def shipped(seed: int, *, name: str, worlds: Sequence[str]) -> dict[str, float]:
    """Return the freshness of a policy or shipped agent in each of the worlds."""
    make = agents.load if name in agents.names() else policies.make

    def factory(env: Any) -> Any:
        return make(name, env)

    return indexed("fresh", [compiled(factory, world, seed) for world in worlds])


@spec("transfer-trained")
def trained(
    seed: int, *, home: str, kind: str, steps: int | None, worlds: Sequence[str]
) -> dict[str, float]:
    """Train PPO or an index in the world ``home``; return its freshness in each of the worlds."""
    it = TASKS[home]
    short = {} if steps is None else {"steps": steps, "validation": 0}
    options = {"seed": SEED_STEP * seed} | short
    job = job_of(Request(kind=kind, env_id=it.id, env_args=it.arguments, options=options))
    play = in_lanes if kind == PPO else compiled
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / kind
        job.run(out, progress=False)
        return indexed("fresh", [play(job.load(out), world, seed) for world in worlds])


@spec("transfer-without-law")
def without(seed: int, *, law: str, episodes: int, worlds: Sequence[str]) -> dict[str, float]:
    """Train a generalist on all laws except one, and return its freshness in each of the worlds."""
    revealed, hidden = ([name for name in laws if name != law] for laws in (REVEALED, HIDDEN))
    arguments = GeneralistArguments(
        instance=revealed, hidden_laws=hidden, episodes=episodes, seed=seed
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / GENERALIST
        train_generalist(arguments, out)

        def factory(env: Any) -> Any:
            return agents.load(out, env)

        return indexed("fresh", [compiled(factory, world, seed) for world in worlds])


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return a setting of fixed policies, and one for each training world and omitted law."""
    worlds = ("noisy",) if quick else WORLDS
    play = partial(shipped, worlds=worlds)
    names = (RANDOM, FORMULA, BELIEF, GENERALIST)
    settings = [Measurement(FIXED, {name: partial(play, name=name) for name in names})]
    if quick:
        return settings
    for home in HOMES:
        train = partial(trained, home=home, worlds=worlds)
        measures = {
            PPO: partial(train, kind=PPO, steps=STEPS),
            INDEX: partial(train, kind=INDEX, steps=None),
        }
        settings.append(Measurement(home, measures, trained=(PPO, INDEX)))
    for name, law in LEFT_OUT.items():
        train = partial(without, law=law, episodes=EPISODES_OF_LAW, worlds=worlds)
        settings.append(Measurement(name, {GENERALIST: train}, trained=(GENERALIST,)))
    return settings


LOSS = "left-out law, less BeliefNCIS"


def scores(rows: Sequence[Row]) -> dict[tuple[str, str, int], dict[str, float]]:
    """Return each agent's score by world: 0 is random crawling, 1 is GREEDY-NCIS on the same seeds.

    The keys of the result are setting, label and seed.
    """
    fresh = gathered(rows, "fresh")
    result = {}
    for (setting, label, seed), values in fresh.items():
        low, high = fresh.get((FIXED, RANDOM, seed)), fresh.get((FIXED, FORMULA, seed))
        if low is not None and high is not None:
            score = (values - low) / (high - low)
            result[setting, label, seed] = dict(zip(WORLDS, score.tolist(), strict=False))
    return result


def derive(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows of scores by world, of the least score, and of the loss in the omitted law."""
    all_scores = scores(rows)
    for (setting, label, seed), of_worlds in all_scores.items():
        metrics = {f"score, {world}": value for world, value in of_worlds.items()}
        metrics["least score"] = min(of_worlds.values())
        law, belief = LEFT_OUT.get(setting), all_scores.get((FIXED, BELIEF, seed))
        if law and belief:
            metrics[LOSS] = of_worlds[law] - belief[law]
        for metric, value in metrics.items():
            yield Row("", setting, label, seed, metric, value)


def _mean_scores(rows: Sequence[Row], setting: str, label: str) -> Mapping[str, float]:
    picked = [row for row in rows if row[1:3] == (setting, label)]
    return {
        world: sum(values) / len(values)
        for world in WORLDS
        if (values := [row.value for row in picked if row.metric == f"score, {world}"])
    }


def scores_table(rows: Sequence[Row]) -> str:
    """Return the Markdown table of mean scores by world, a line per agent and world of training."""
    lines = []
    for setting, label in dict.fromkeys(row[1:3] for row in rows if row.metric == "least score"):
        if label not in (RANDOM, FORMULA):
            mean = _mean_scores(rows, setting, label)
            cells = [spelled(mean[world], 2) if world in mean else "-" for world in WORLDS]
            lines.append([label, "" if setting == FIXED else setting, *cells])
    return grid(["", "trained in", *WORLDS], lines)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the scores of PPO and the index as grids: world of training by world of test."""
    import pandas as pd

    from scripts.present import charts

    parts = []
    for world in WORLDS:
        values = means(table(rows, f"score, {world}"))
        values = values[values.policy.isin([PPO, INDEX])]
        part = values.rename(columns={"setting": "y", "mean": "value", "policy": "panel"})
        parts.append(part.assign(x=world))
    if not any(map(len, parts)):  # nothing was trained
        return
    charts.heat_map(
        pd.concat(parts),
        path,
        charts.Frame(
            f"{TITLE}\n0: random crawling, 1: GREEDY-NCIS, on the same seeds",
            charts.Axis("played in"),
            charts.Axis("trained in"),
            size=(5.6, 3.2),
        ),
        values="score",
        texts=lambda value, half: f"{value:.2f}",
        limits=(0.0, 1.1),
    )


EXPERIMENT = Experiment(
    name="agents-transfer",
    title=TITLE,
    claim=(
        "An index learned from outcomes of crawls works with other budgets, sizes and laws, "
        "except one that never had a false signal. PPO works with other sizes and laws, and "
        "less well with other budgets."
    ),
    metric="least score",
    repetitions=3,
    quick_repetitions=1,
    settings=measurements,
    derive=derive,
    expected=(
        *(Range(INDEX, 0.97, 2.0, (home,), SOURCE, "least score") for home in HOMES),
        *(Range(GENERALIST, -0.02, 1.0, (name,), SOURCE, LOSS) for name in LEFT_OUT),
    ),
    pictures={"transfer": draw},
    tables={"transfer": scores_table},
)
