"""Busa-Fekete et al., figure 8 (section 6.7): corrupted estimates on a semi-synthetic set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial

import gymnasium
import numpy as np

import policies as crawl_policies
from crawl_envs.evaluation import Row
from crawl_envs.instances import generator_of
from crawl_envs.instances.misspecified import corrupted_quality
from crawl_envs.types import Instance, Problem
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Series
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Trend
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum
from scripts.study.specs import spec

TITLE = "Signals misjudged on a Bing-like set (NCIS paper, figure 8)"

ID = "CrawlNCIS-v0"
CORRUPTIONS = (0.0, 0.1, 0.2)

EVERYWHERE = tuple(f"p={corruption:g}" for corruption in CORRUPTIONS)
CORRUPTED = EVERYWHERE[1:]
PAPER = "section 6.7, figure 8"
CLAIMS = (
    Claim(
        "With correct precision and recall, simplified values for two classes are close to optimal",
        PAPER,
        (Trend("GREEDY-CIS+", "about", "GREEDY-NCIS", ("p=0",), "margin ours", margin=0.005),),
        "Close is not defined in the text; here as everywhere, .005 of accuracy. OPTIMUM, which "
        "may crawl at any time of day, is farther away.",
    ),
    Claim(
        "They are less robust to corrupted estimates than GREEDY-NCIS",
        PAPER,
        (Trend("GREEDY-CIS+", "above", "GREEDY-NCIS", CORRUPTED, PAPER, metric="lost"),),
        "lost is the accuracy with correct estimates minus that with corrupted ones",
    ),
    Claim(
        "GREEDY-NCIS is the best of the three at every corruption",
        PAPER,
        (
            Trend("GREEDY-NCIS", "above", "GREEDY", EVERYWHERE, PAPER),
            Trend("GREEDY-NCIS", "above", "GREEDY-CIS+", EVERYWHERE, PAPER),
        ),
    ),
)


def drawn(seed: int, num_pages: int, per_step: int) -> Instance:
    """Return the instance of a seed, with ``per_step`` crawls per day; a step is a day."""
    draw = generator_of("bing-like", num_pages=num_pages, bandwidth=per_step)
    return draw(np.random.default_rng([seed, 8]))


def corrupted(problem: Problem, share: float, seed: int) -> Problem:
    """Return the problem with noise mixed into precision and recall (section 6.7).

    Change rates stay; see :func:`crawl_envs.instances.misspecified.corrupted_quality`.

    Args:
        problem: a problem that reveals its parameters, with a single source of signals.
        share: the p of the paper, in [0, 1].
        seed: seed of the noise, the same for every share.

    Raises:
        ValueError: the share is outside [0, 1], or the problem reveals no parameters.
    """
    delta, recall, nu = problem.change_rate, problem.recall, problem.false_signal_rate
    if delta is None or recall is None or nu is None:
        raise ValueError("problem must reveal its parameters to be corrupted")
    noise = np.random.default_rng([seed, 67]).random((2, problem.num_pages))
    recall, nu = corrupted_quality(delta, recall, nu, share, noise)
    return dataclasses.replace(problem, recall=recall, false_signal_rate=nu)


@spec("ncis-misjudged-crawls")
def crawled(
    seed: int, *, policy: str, corruption: float, steps: int, num_pages: int, per_step: int
) -> Mapping[str, float]:
    """Simulate a policy that crawls the top pages of each step and believes corrupted estimates."""
    instance = drawn(seed, num_pages, per_step)
    env = gymnasium.make(
        ID,
        num_pages=num_pages,
        bandwidth=float(per_step),
        horizon=float(steps),
        action="scores",
        batch=per_step,
    )
    observation, _ = env.reset(seed=seed, options={"instance": instance})
    believed = partial(corrupted, share=corruption, seed=seed)
    acting = crawl_policies.make(policy, env, believed=believed if corruption else None)
    over = False
    while not over:
        action, _ = acting.predict(observation)
        observation, _, _, over, _ = env.step(action)
    ledger = env.unwrapped.ledger()  # type: ignore[attr-defined]  # a CrawlEnv
    return {"accuracy": ledger.accuracy, "freshness": ledger.freshness}


@spec("ncis-misjudged-optimum")
def bounded(
    seed: int, *, signals: bool, corruption: float, steps: int, num_pages: int, per_step: int
) -> Mapping[str, float]:
    """Return the optimum of the continuous class as accuracy and freshness, with signals or not."""
    value = (optimum if signals else baseline)(drawn(seed, num_pages, per_step))
    return {"accuracy": value, "freshness": value}


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of the accuracy that a policy loses by corrupted estimates, by seed."""
    base = {(row.policy, row.seed): row.value for row in rows if _is(row, EVERYWHERE[0])}
    return [
        row._replace(metric="lost", value=base[row.policy, row.seed] - row.value)
        for row in rows
        if row.setting in CORRUPTED and _is(row, row.setting) and (row.policy, row.seed) in base
    ]


def _is(row: Row, setting: str) -> bool:
    return row.metric == "accuracy" and row.setting == setting


SETTINGS = {
    name: {"corruption": corruption, "steps": 200, "num_pages": 100_000, "per_step": 5_000}
    for name, corruption in zip(EVERYWHERE, CORRUPTIONS, strict=True)
}

EXPERIMENT = Experiment(
    name="ncis-fig8",
    title=TITLE,
    claim=(
        "Where precision and recall are known, GREEDY-CIS on pages of high quality and GREEDY on "
        "all others is close to optimal. Where both are corrupted, it loses more than GREEDY-NCIS."
    ),
    metric="accuracy",
    references=("GREEDY",),
    repetitions=10,
    settings=measure_settings(
        SETTINGS,
        {
            BASELINE: partial(bounded, signals=False),
            OPTIMUM: partial(bounded, signals=True),
            "GREEDY": partial(crawled, policy="Greedy"),
            "GREEDY-CIS+": partial(crawled, policy="GreedyCISPlus"),
            "GREEDY-NCIS": partial(crawled, policy="GreedyNCIS"),
        },
        ID,
        quick={"steps": 20, "num_pages": 2_000, "per_step": 100},
    ),
    derive=derive,
    claims=CLAIMS,
    expected=(Trend("GREEDY-CIS+", "above", "GREEDY", EVERYWHERE, "not said in the paper"),),
    pictures={
        "accuracy": figures.lines(
            [Series("accuracy")],
            Frame(
                f"{TITLE}\n95% intervals over {{seeds}} repetitions",
                Axis(
                    "corruption p: share of uniform noise in precision and recall, as believed",
                    ticks=CORRUPTIONS,
                ),
                Axis("accuracy (share of requests served fresh)"),
            ),
            positions={name: arguments["corruption"] for name, arguments in SETTINGS.items()},
            labels=(OPTIMUM, "GREEDY-NCIS", "GREEDY-CIS+", BASELINE, "GREEDY"),
            black=(OPTIMUM, BASELINE),
        )
    },
)
