"""Compare the agent under stress with ThresholdNCIS at an equal number of crawls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import policies as crawl_policies
from crawl_envs.instances import STRESS
from crawl_envs.types import Problem
from crawl_envs.types.compiled_policies import CompiledThresholds
from scripts.experiments.agents import stress
from scripts.experiments.figures import Axis, Frame, Rule, Series, dots
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Level, Trend
from scripts.study.settings import Setting, spec

TITLE = "An agent under stress, at equal spend"

EQUAL = f"{stress.AT_INSTANTS}, equal spend"
FACTORS: Mapping[str, float] = {
    "unknown delay": 1.0294,
    "bursty": 0.9985,
    "periodic": 1.0139,
    "deploys": 1.0194,
    "shifting habits": 1.0158,
    "wrong signal quality": 1.0064,
}
"""Factors of the bandwidth with which 30 seeds have R crawls per unit of time on average."""
SPENT = "crawl_rate"
SOURCE = "the thresholds keep to the budget on average only"


class Scaled(crawl_policies.ThresholdNCIS):  # type: ignore[misc]  # imported by name
    """A form of ThresholdNCIS whose thresholds are computed for another bandwidth.

    Args:
        factor: the bandwidth over that of the problem.
    """

    def __init__(self, *, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledThresholds:
        """Return the compiled form of the policy, with thresholds for the scaled bandwidth."""
        scaled = replace(problem, bandwidth=problem.bandwidth * self.factor)
        compiled: CompiledThresholds = super().compile(scaled, slots, rng)
        return compiled


@spec("stress-threshold-at-factor")
def at_equal_spend(env: Any, *, factor: float) -> Any:
    """Return ThresholdNCIS with thresholds for the environment's bandwidth times a factor."""
    return crawl_policies.bind(Scaled(factor=factor), env)


NAMES = tuple(FACTORS)


def measurements(quick: bool) -> Sequence[Setting]:
    """Return the stress settings with known parameters: the agent, and ThresholdNCIS twice."""
    shorter = {"horizon": stress.QUICK_HORIZON} if quick else {}
    return [
        Setting(
            name,
            stress.ID,
            {**STRESS[name], **shorter},
            {
                stress.AGENT: stress.generalist,
                stress.AT_INSTANTS: partial(stress.analytic, policy=stress.AT_INSTANTS),
                EQUAL: partial(at_equal_spend, factor=factor),
            },
        )
        for name, factor in FACTORS.items()
    ]


EXPERIMENT = Experiment(
    name="agents-spend",
    title=TITLE,
    claim=(
        "With an equal number of crawls, ThresholdNCIS is less fresh than the agent in three of "
        "six settings, and fresher in one."
    ),
    metric="freshness",
    references=(stress.AT_INSTANTS,),
    repetitions=30,
    settings=measurements,
    expected=(
        *(Level(name, EQUAL, 100.0, 0.1, "by the choice of the factors", SPENT) for name in NAMES),
        Trend(stress.AGENT, "above", stress.AT_INSTANTS, NAMES, SOURCE),
        Trend(stress.AGENT, "above", EQUAL, NAMES, SOURCE),
    ),
    pictures={
        "lead": dots(
            [
                Series("freshness", label=f"over {label}", labels=(stress.AGENT,), minus=label)
                for label in (stress.AT_INSTANTS, EQUAL)
            ],
            Frame(
                f"{TITLE}\n95% intervals over {{seeds}} seeds",
                Axis("freshness of the agent less that of ThresholdNCIS"),
                size=(6.4, 3.6),
                upright=[Rule(0.0)],
            ),
            y="{setting}",
            names=NAMES,
        )
    },
)
