"""Han et al., figure 5: how likely KAB5 chooses each of its strategies, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from policies.bandits.rewards import OFFER_GAIN_BOUND
from policies.bandits.strategy_bandit import StrategyBandit
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.experiments.measures.offer_strategies import (
    FIVE,
    KAB5,
    KAB5_GAIN,
    LAMBDA_ML,
    NUM_OFFERS,
    QUICK_SIZE,
    Run,
    play,
)
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range
from scripts.study.rows import gathered, indexed
from scripts.study.specs import spec

TITLE = "Which strategy KAB5 draws, step by step"
SPREAD = "largest_minus_least"
"""Largest minus smallest late probability of the arms."""

BUDGETS: Mapping[str, float] = {"1%": 0.01, "10%": 0.1}
LABELS = (KAB5, KAB5_GAIN)
CHANCE = "chance"
"""Probability of an arm at STEPS, indexed."""
LAST, EVERY = 1_000, 10
STEPS = (1, *range(EVERY, LAST + 1, EVERY))
LATE = "late chance of"
"""Mean probability of an arm over the second half of the steps."""
CLICKS_OVER_LAMBDA = "chance of mu_ml less that of lambda_ml"
NARROWED = "fall of the spread from 1% to 10%"
"""SPREAD at the smaller budget minus SPREAD at the larger one."""
CLICKS = "mu_ml"
PICKS = {CLICKS: "nu_ml", "mu_h": "nu_h"}
"""Strategies by clicks, each with the one by impressions from the same source of rates."""
ALIKE, MORE_ALIKE = "shared crawls", "shared crawls less those with uniform crawling"
START = 1.0 / len(FIVE)

SECTION = "section 5.4.3, Figure 5"
CLAIMS = (
    Claim(
        "lambda_ml and mu_ml receive probabilities higher than .2, where all start.",
        SECTION,
        tuple(
            Range(KAB5, START, 1.0, tuple(BUDGETS), SECTION, metric=f"{LATE} {arm}")
            for arm in (LAMBDA_ML, CLICKS)
        ),
        note="Here over the second half of 1,000 steps, with the reward of eq. 2.",
    ),
    Claim(
        "mu_ml is more preferable than lambda_ml.",
        SECTION,
        (Range(KAB5, 0.0, np.inf, tuple(BUDGETS), SECTION, metric=CLICKS_OVER_LAMBDA),),
    ),
    Claim(
        "With more resources the probabilities become less imbalanced.",
        SECTION,
        (Range(KAB5, 0.0, np.inf, ("1%",), SECTION, metric=NARROWED),),
        note="Largest minus least probability at 1%, minus that at 10%.",
    ),
    Claim(
        "Offers selected by impressions overlap significantly with those selected by clicks.",
        "section 3.2.1",
        tuple(
            Range(label, low, 1.0, tuple(BUDGETS), "half: ours", metric=metric)
            for label in PICKS
            for metric, low in ((ALIKE, 0.5), (MORE_ALIKE, 0.0))
        ),
        note="Share of a day's crawls that both expect to make of the same offers: .42 with "
        "predicted rates, .31 to .33 with those of the past; uniform crawling shares .24 and .12.",
    ),
)
NO_PAPER = "not in the paper"
EXPECTED = (
    *(
        Range(KAB5_GAIN, START, 1.0, tuple(BUDGETS), NO_PAPER, metric=f"{LATE} {arm}")
        for arm in (LAMBDA_ML, CLICKS)
    ),
    Range(KAB5, START, 1.0, tuple(BUDGETS), "eq. 2 rewards rates of success", f"{LATE} Delta_ml"),
)


@spec("offers-arm-probabilities")
def chances(
    seed: int, *, label: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the probabilities with which a bandit chooses its arms, at the STEPS of a run."""
    run = Run(seed, num_offers, *days)
    _, policy = play(run, label, budget)
    assert isinstance(policy, StrategyBandit)
    course = policy.history().probabilities
    steps = [step for step in STEPS if step <= len(course)]
    result: dict[str, float] = {}
    for arm, column in zip(FIVE, course.T, strict=True):
        result |= indexed(f"{CHANCE}_{arm}", column[np.array(steps) - 1])
    return result


@spec("offers-shared-crawls")
def overlap(
    seed: int, *, label: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the share of a strategy's last-day crawls that another strategy also makes."""
    run = Run(seed, num_offers, *days)
    policies: list[Any] = [play(run, name, budget)[1] for name in (label, PICKS[label])]
    clicks, views = (policy.action for policy in policies)
    shared, even = (
        float(np.minimum(clicks, crawls).sum() / clicks.sum())
        for crawls in (views, np.full(num_offers, budget))
    )
    return {ALIKE: shared, MORE_ALIKE: shared - even}


def courses(rows: Sequence[Row]) -> dict[tuple[str, str, int], FloatArray]:
    """Return the arms' probabilities, (steps, K), by setting, label and seed."""
    by_arm = [gathered(rows, f"{CHANCE}_{arm}") for arm in FIVE]
    return {key: np.stack([values[key] for values in by_arm], axis=1) for key in by_arm[0]}


def derive(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows of mean probabilities over the second half of steps, and of their differences."""
    spreads: dict[tuple[str, str, int], float] = {}
    for key, course in courses(rows).items():
        late = course[len(course) // 2 :].mean(axis=0)
        by_arm = dict(zip(FIVE, late.tolist(), strict=True))
        spreads[key] = max(by_arm.values()) - min(by_arm.values())
        measures = {f"{LATE} {arm}": value for arm, value in by_arm.items()}
        measures[CLICKS_OVER_LAMBDA] = by_arm[CLICKS] - by_arm[LAMBDA_ML]
        measures[SPREAD] = spreads[key]
        for metric, value in measures.items():
            yield Row("", *key, metric, value)
    tight, wide = BUDGETS
    for (setting, label, seed), spread in spreads.items():
        if setting == tight and (wide, label, seed) in spreads:
            fallen = spread - spreads[wide, label, seed]
            yield Row("", tight, label, seed, NARROWED, fallen)


REWARDS = {KAB5: "reward of eq. 2", KAB5_GAIN: f"gain in {OFFER_GAIN_BOUND:.0%} of all clicks is 1"}

EXPERIMENT = Experiment(
    name="offers-fig5",
    title=TITLE,
    claim=(
        "Of its five strategies KAB5 learns to prefer the click-weighted one, then LambdaCrawl, "
        "both with predicted rates. With the larger budget the probabilities differ less."
    ),
    metric=SPREAD,
    repetitions=20,
    settings=measure_settings(
        {
            name: {"budget": budget, "num_offers": NUM_OFFERS, "days": [LAST // 12, 1]}
            for name, budget in BUDGETS.items()
        },
        {
            **{label: partial(chances, label=label) for label in LABELS},
            **{label: partial(overlap, label=label) for label in PICKS},
        },
        quick=QUICK_SIZE,
    ),
    derive=derive,
    claims=CLAIMS,
    expected=EXPECTED,
    pictures={
        "chances": figures.lines(
            [
                Series(f"{CHANCE}_{arm}", f"{reward}; budget {{setting}}", arm, (label,))
                for label, reward in REWARDS.items()
                for arm in FIVE
            ],
            Frame(
                f"{TITLE}\nmean over {{seeds}} runs; bands: 95% intervals",
                Axis("step of two hours"),
                Axis("probability of being drawn", limits=(0.0, 1.0)),
                across=[Rule(START, dash=":")],
            ),
            along=STEPS,
            labels=FIVE,
            bands=True,
        )
    },
)
