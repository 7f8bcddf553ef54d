"""Compare algorithms of Stable-Baselines3 with formulas and other agents, on tasks of the suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.agents.setup import trainings
from scripts.present.experiment import Experiment
from scripts.present.filled_tables import grid, spelled
from scripts.present.verdicts import Trend
from scripts.study import intervals
from scripts.study.intervals import ENDS
from scripts.study.means import table as table_of
from scripts.study.rows import gathered
from scripts.study.settings import Measurement

TITLE = "Plain reinforcement learning"
METRIC = "score"
RANDOM, ROUND_ROBIN, BEST, INDEX, GENERALIST, BOUND = (
    "RandomCrawl",
    "RoundRobin",
    "best formula",
    "noisy-index",
    "generalist",
    "bound",
)

STEPS: Mapping[str, int] = {
    "ppo": 1_000_000,
    "a2c": 1_000_000,
    "maskableppo": 1_000_000,
    "dqn": 150_000,
    "recurrentppo": 300_000,
    "sac": 30_000,
}
"""Steps of the larger budget, about a minute without a belief; the smaller budget is a tenth."""
QUICK_STEPS, QUICK_TASK, QUICK_LEARNERS = 256, "quality", ("ppo", "dqn")
BEST_FORMULAS: Mapping[str, str] = {
    "noisy": "GreedyNCISApprox",
    "bursty": "GreedyNCISApprox",
    "deploys": "BeliefNCIS",
    "harmonic": "GreedyHarmonic",
    "quality": "FragmentStatic",
    "garden-directory-4": "LagrangianIndex",
    "noisy-unknown": "LearningGreedyNCIS",
    "harmonic-unknown": "LambdaLearnAndCrawl",
    "quality-unknown": "LearningLongevity",
    "offers-scores": "BeliefNCIS",
}
"""Tasks, one or two of each track, with the first formula of the leaderboard that crawls in
slots."""
OF_SCORES = "offers-scores"
PAGES_ALONE = ("dqn", "maskableppo")
"""Algorithms that choose one page, so they cannot act in the task OF_SCORES."""
UNSEEN = ("noisy-unknown", "harmonic-unknown", "quality-unknown", OF_SCORES)
"""Tasks with hidden parameters: agents see a belief, and the index cannot act."""
MEMORY_TASKS = ("noisy-unknown", "harmonic-unknown")
LAST = "{}, last observation"
MEMORY: Mapping[str, str] = {
    LAST.format("ppo"): "last observation",
    LAST.format("recurrentppo"): "a memory per page",
    "ppo": "belief",
    "recurrentppo": "belief and a memory per page",
}
"""Knowledge of agents about hidden rates, by label."""
TOGETHER = "all tasks but offers"
SHARES = (0.90, 0.95)
"""Shares of the best formula's score; the first time at which each is reached is a metric."""
SOURCE = "our choice of tasks and budgets"
FEW = "{}, a tenth"


def _labels(task: str) -> list[str]:
    return [name for name in STEPS if task != OF_SCORES or name not in PAGES_ALONE]


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return a measurement per task: formulas, agents, and algorithms with two step budgets."""
    settings = []
    for task, formula in BEST_FORMULAS.items():
        if quick and task != QUICK_TASK:
            continue
        of_task = partial(trainings.task_rewards, task=task)
        names = {RANDOM: RANDOM, ROUND_ROBIN: ROUND_ROBIN, BEST: formula, GENERALIST: GENERALIST}
        names |= {} if task in UNSEEN else {INDEX: INDEX}
        measures = {label: partial(of_task, policy=name) for label, name in names.items()}
        measures[BOUND] = partial(trainings.bound, task=task)
        learners = {}
        for name in QUICK_LEARNERS if quick else _labels(task):
            train = partial(trainings.trained, task=task, algorithm=name, belief=task in UNSEEN)
            budget = QUICK_STEPS if quick else STEPS[name]
            learners[name] = partial(train, steps=budget, curve=True)
            learners[FEW.format(name)] = partial(train, steps=budget // 10, curve=False)
        for name in ("ppo", "recurrentppo") if task in MEMORY_TASKS else ():
            train = partial(trainings.trained, task=task, algorithm=name, belief=False)
            learners[LAST.format(name)] = partial(train, steps=STEPS[name], curve=True)
        settings.append(Measurement(task, {**measures, **learners}, trained=tuple(learners)))
    return settings


ALL = tuple(BEST_FORMULAS)


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of scores, where random crawling has 0 and the bound 1, and of times to SHARES.

    The score of a repetition is (x - r) / mean(b - r), with the rewards x of the label, r of random
    crawling and b of the bound on the same seeds. A share is reached at the first validation whose
    reward is this share of the way from random crawling to the best formula, on the same held-out
    seeds. Seconds are proportional to steps.
    """
    rewards = table_of(rows, "reward")
    derived: list[Row] = []
    for task, part in rewards.groupby("setting", sort=False):
        wide = part.pivot(index="seed", columns="policy", values="value")
        if {RANDOM, BOUND} <= {*wide}:
            span = (wide[BOUND] - wide[RANDOM]).mean()
            scores = wide.sub(wide[RANDOM], axis=0) / span
            derived += [
                Row("", str(task), str(label), int(seed), METRIC, float(value))
                for (seed, label), value in scores.stack().items()
            ]
    return [*derived, *_together(derived), *_times(rows)]


def _together(scores: Sequence[Row]) -> list[Row]:
    """Return rows of each agent's interquartile mean score, over the tasks in which all can act."""
    tasks = [task for task in ALL if task != OF_SCORES]
    data = table_of([row for row in scores if row.setting in tasks], METRIC)
    derived: list[Row] = []
    for label, part in data.groupby("policy"):
        wide = part.pivot(index="seed", columns="setting", values="value").dropna()
        if len(wide) and len(wide.columns) == len(tasks) and label not in (RANDOM, BOUND):
            middle = intervals.interquartile_mean(wide.to_numpy())
            derived += middle.rows("", TOGETHER, str(label), METRIC)
    return [row for row in derived if row.value == row.value]


def curves(rows: Sequence[Row]) -> pd.DataFrame:
    """Return learning curves as a table: setting, policy, seed, steps, seconds and share.

    The share is 0 at random crawling's reward, 1 at the best formula's, on the same held-out seeds.
    """
    steps, validated = gathered(rows, "steps"), gathered(rows, "validated")
    rewards = {(row.setting, row.policy, row.metric): row.value for row in rows if row.seed == 0}
    seconds = {row[1:4]: row.value for row in rows if row.metric == "seconds"}
    parts = []
    for key, reached in validated.items():
        low = rewards.get((key[0], RANDOM, "validated"))
        high = rewards.get((key[0], BEST, "validated"))
        if low is None or high is None:
            continue
        part = pd.DataFrame({"steps": steps[key], "share": (reached - low) / (high - low)})
        part["seconds"] = part.steps / part.steps.max() * seconds[key]
        parts.append(part.assign(setting=key[0], policy=key[1], seed=key[2]))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _times(rows: Sequence[Row]) -> list[Row]:
    """Return rows of the first steps and seconds at which runs reach SHARES of the best formula."""
    data = curves(rows)
    derived = []
    for key, part in data.groupby(["setting", "policy", "seed"]) if len(data) else ():
        for share in SHARES:
            there = part[part.share >= share]
            if len(there):
                first = there.iloc[0]
                where = Row("", str(key[0]), str(key[1]), int(key[2]), "", 0.0)
                for what in ("steps", "seconds"):
                    metric = f"{what} to {share:.2f} of the best formula"
                    derived.append(where._replace(metric=metric, value=float(first[what])))
    return derived


def _cell(rows: pd.DataFrame, task: str, label: str) -> str:
    """Return a table cell's text: a label's mean score on a task, and half its interval's width."""
    values = rows[(rows.setting == task) & (rows.policy == label)].value.to_numpy()
    if not len(values):
        return "-"
    half = intervals.mean(values[:, None]).half
    return spelled(values.mean(), 2) + ("" if np.isnan(half) else f" ± {spelled(half, 2)}")


def scores_table(rows: Sequence[Row], few: bool) -> str:
    """Return the table of mean scores by task, for the smaller (``few``) or larger step budget."""
    scores = table_of(rows, METRIC)
    fixed = [] if few else [ROUND_ROBIN, BEST, INDEX, GENERALIST]
    labels = [*fixed, *(FEW.format(name) if few else name for name in STEPS)]
    lines = [[task, *(_cell(scores, task, label) for label in labels)] for task in ALL]
    middle: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.setting == TOGETHER:
            middle.setdefault(row.policy, {})[row.metric] = row.value
    lines.append([TOGETHER, *(_interval(middle.get(label, {})) for label in labels)])
    return grid(["", *fixed, *STEPS], lines)


def _interval(ends: Mapping[str, float]) -> str:
    if METRIC not in ends:
        return "-"
    middle, *both = (spelled(ends[METRIC + end], 2) for end in ENDS if METRIC + end in ends)
    return f"{middle} [{', '.join(both)}]" if both else middle


def times_table(rows: Sequence[Row]) -> str:
    """Return the table of how many runs reach .95 of the best formula, and after how long."""
    share = f"to {SHARES[1]:.2f} of the best formula"
    steps, seconds = table_of(rows, f"steps {share}"), table_of(rows, f"seconds {share}")
    runs = table_of(rows, "seconds")
    lines = []
    for task in ALL:
        cells = []
        for label in STEPS:
            columns = [
                part[(part.setting == task) & (part.policy == label)].value
                for part in (steps, seconds, runs)
            ]
            reached, after, ended = columns
            text = f"{reached.median() / 1000:.0f}k, {after.median():.0f} s" if len(reached) else ""
            complete = len(reached) == len(ended)
            cells.append(text if complete else f"{text} ({len(reached)} of {len(ended)})".strip())
        lines.append([task, *cells])
    return grid(["", *STEPS], lines)


def memory_table(rows: Sequence[Row]) -> str:
    """Return the Markdown table of mean scores, by what the agent knows about hidden rates."""
    scores = table_of(rows, METRIC)
    lines = [[task, *(_cell(scores, task, label) for label in MEMORY)] for task in MEMORY_TASKS]
    return grid(["", *MEMORY.values()], lines)


def _half(values: FloatArray) -> float:
    """Return the half-width of the values' 95% interval; of two values, half their distance."""
    return float(np.ptp(values)) / 2.0 if len(values) == 2 else intervals.mean(values[:, None]).half


def draw_curves(rows: Sequence[Row], path: Path, *, over: str) -> None:
    """Draw the share of the best formula over ``steps`` or ``seconds``, in a panel per task."""
    from scripts.present import charts

    data = curves(rows)
    data = data[data.policy.isin([*STEPS])]
    lines = []
    for (task, label), part in data.groupby(["setting", "policy"], sort=False):
        runs = part.assign(number=part.groupby("seed").cumcount()).groupby("number")
        shares = runs.share.agg(list)
        half = [_half(np.array(values)) for values in shares]
        line = {"x": runs[over].mean(), "y": runs.share.mean(), "half": half}
        lines.append(pd.DataFrame(line).assign(label=label, panel=task))
    rules = [charts.Rule(1.0, "best formula", "-"), charts.Rule(0.0, "random crawling", ":")]
    bound = table_of(rows, "reward").groupby(["setting", "policy"]).value.mean()
    held_out = table_of(rows, "validated").groupby(["setting", "policy"]).value.mean()
    for task in data.setting.unique():
        for label, dash, means in ((ROUND_ROBIN, "--", held_out), (BOUND, "-.", bound)):
            low, high = means[task, RANDOM], means[task, BEST]
            rules.append(charts.Rule((means[task, label] - low) / (high - low), None, dash, task))
    frame = charts.Frame(
        f"{TITLE}: best actions on {trainings.VALIDATED} held-out seeds while learning, mean over "
        "runs (the recorded site: on the days of training)\nbands: 95% intervals, of two runs "
        "their range; dashed: round robin; dash-dotted: the bound, on the seeds of evaluation",
        charts.Axis("steps" if over == "steps" else "seconds of a processor"),
        charts.Axis("random 0, best formula 1", limits=(-0.5, 2.0)),
        columns=5,
        size=(2.6, 2.4),
        shared="y",
        across=rules,
    )
    charts.lines(pd.concat(lines), path, frame, labels=tuple(STEPS), bands=True)


EXPERIMENT = Experiment(
    name="agents-rl",
    title=TITLE,
    claim=(
        "With a network that scores all pages alike, PPO by its defaults is above round robin "
        "in every task, and below the best formula in most."
    ),
    metric=METRIC,
    references=(ROUND_ROBIN,),
    repetitions=5,
    quick_repetitions=1,
    settings=measurements,
    derive=derive,
    expected=(
        Trend("ppo", "above", ROUND_ROBIN, ALL, SOURCE),
        Trend(BEST, "above", "ppo", ALL, SOURCE),
        Trend("ppo", "above", FEW.format("ppo"), ALL, SOURCE),
    ),
    pictures={
        "curves": partial(draw_curves, over="steps"),
        "curves_seconds": partial(draw_curves, over="seconds"),
    },
    tables={
        "memory": memory_table,
        "larger budget": partial(scores_table, few=False),
        "smaller budget": partial(scores_table, few=True),
        "times": times_table,
    },
)
