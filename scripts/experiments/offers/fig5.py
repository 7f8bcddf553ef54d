"""Figure 5: probabilities of KAB5's strategies, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from crawl_envs.evaluation import Row, mean_and_half_width
from crawl_envs.types import FloatArray
from policies.bandits.rewards import OFFER_GAIN_BOUND
from policies.bandits.strategy_bandit import StrategyBandit
from scripts.experiments.offers.setup.strategies import (
    FIVE,
    KAB5,
    KAB5_GAIN,
    LAMBDA_ML,
    NUM_OFFERS,
    QUICK_EVALUATED,
    QUICK_OFFERS,
    QUICK_WARM_UP,
    Run,
    play,
)
from scripts.reporting.rows import gathered, indexed
from scripts.reporting.settings import Measurement
from scripts.reporting.verdicts import Claim, Range

TITLE = "Which strategy KAB5 draws, step by step"
CLAIM = (
    "Among its five strategies KAB5 learns to prefer the click-weighted one and LambdaCrawl, both "
    "with predicted rates, and the former more than the latter; with the larger budget the "
    "probabilities differ less."
)
SPREAD = "largest_minus_least"
"""Largest minus least of the late probabilities of the arms."""
METRIC = SPREAD
REPETITIONS, QUICK_REPETITIONS = 20, 2

BUDGETS: Mapping[str, float] = {"1%": 0.01, "10%": 0.1}
LABELS = (KAB5, KAB5_GAIN)
CHANCE = "chance"
"""Probability of an arm at STEPS, indexed."""
LAST, EVERY = 1_000, 10
STEPS = (1, *range(EVERY, LAST + 1, EVERY))
LATE = "late"
"""Mean probability of an arm over the second half of the steps."""
CLICKS_OVER_LAMBDA = "mu_ml_minus_lambda_ml"
NARROWED = "spread_falls_to_10%"
"""SPREAD at the smaller budget minus that at the larger."""
CLICKS = "mu_ml"
START = 1.0 / len(FIVE)

SECTION = "section 5.4.3, Figure 5"
CLAIMS = (
    Claim(
        "lambda_ml and mu_ml receive probabilities higher than .2, where all start.",
        SECTION,
        tuple(
            Range(KAB5, START, 1.0, tuple(BUDGETS), SECTION, metric=f"{LATE}_{arm}")
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
)
NO_PAPER = "not in the paper"
EXPECTED = (
    *(
        Range(KAB5_GAIN, START, 1.0, tuple(BUDGETS), NO_PAPER, metric=f"{LATE}_{arm}")
        for arm in (LAMBDA_ML, CLICKS)
    ),
    Range(KAB5, START, 1.0, tuple(BUDGETS), "eq. 2 rewards rates of success", f"{LATE}_Delta_ml"),
)


def chances(
    seed: int, *, label: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the probabilities of all arms at STEPS, up to the end of the run."""
    run = Run(seed, num_offers, *days)
    _, policy = play(run, label, budget)
    assert isinstance(policy, StrategyBandit)
    course = policy.history().probabilities
    steps = [step for step in STEPS if step <= len(course)]
    result: dict[str, float] = {}
    for arm, column in zip(FIVE, course.T, strict=True):
        result |= indexed(f"{CHANCE}_{arm}", column[np.array(steps) - 1])
    return result


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return both rewards at both budgets."""
    given = {
        "num_offers": QUICK_OFFERS if quick else NUM_OFFERS,
        "days": [QUICK_WARM_UP, QUICK_EVALUATED] if quick else [LAST // 12, 1],
    }
    measures = {label: partial(chances, label=label) for label in LABELS}
    return [
        Measurement(name, measures, {"budget": budget, **given}) for name, budget in BUDGETS.items()
    ]


def courses(rows: Sequence[Row]) -> dict[tuple[str, str, int], FloatArray]:
    """Return probabilities by setting, label and seed, (steps, K)."""
    by_arm = [gathered(rows, f"{CHANCE}_{arm}") for arm in FIVE]
    return {key: np.stack([values[key] for values in by_arm], axis=1) for key in by_arm[0]}


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return mean probabilities over the second half, and their differences."""
    return list(_derived(courses(rows)))


def _derived(by_run: Mapping[tuple[str, str, int], FloatArray]) -> Iterator[Row]:
    spreads: dict[tuple[str, str, int], float] = {}
    for key, course in by_run.items():
        late = course[len(course) // 2 :].mean(axis=0)
        by_arm = dict(zip(FIVE, late.tolist(), strict=True))
        spreads[key] = max(by_arm.values()) - min(by_arm.values())
        measures = {f"{LATE}_{arm}": value for arm, value in by_arm.items()}
        measures[CLICKS_OVER_LAMBDA] = by_arm[CLICKS] - by_arm[LAMBDA_ML]
        measures[SPREAD] = spreads[key]
        for metric, value in measures.items():
            yield Row("", *key, metric, value)
    tight, wide = BUDGETS
    for (setting, label, seed), spread in spreads.items():
        if setting == tight and (wide, label, seed) in spreads:
            fallen = spread - spreads[wide, label, seed]
            yield Row("", tight, label, seed, NARROWED, fallen)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw mean probabilities over the steps with 95% bands, a panel per reward and budget."""
    from matplotlib.figure import Figure

    from scripts.experiments.offers.setup.charts import legend_below
    from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save

    by_run = courses(rows)
    figure = Figure(figsize=(9.5, 7.2), layout="constrained")
    grid = figure.subplots(len(LABELS), len(BUDGETS), sharex=True, sharey=True, squeeze=False)
    gain = f"gain in {OFFER_GAIN_BOUND:.0%} of all clicks is 1"
    rewards = {KAB5: "reward of eq. 2", KAB5_GAIN: gain}
    for line, label in zip(grid, LABELS, strict=True):
        for axes, setting in zip(line, BUDGETS, strict=True):
            runs = np.array([by_run[key] for key in by_run if key[:2] == (setting, label)])
            if not len(runs):
                continue
            steps = STEPS[: runs.shape[1]]
            for position, arm in enumerate(FIVE):
                intervals = [mean_and_half_width(column) for column in runs[:, :, position].T]
                mean, half = np.nan_to_num(np.array(intervals).T)
                colour = COLOURS[position]
                axes.plot(
                    steps,
                    mean,
                    color=colour,
                    linewidth=1.4,
                    marker=MARKERS[position],
                    markevery=(3 * position, 20),
                    fillstyle="none",
                    label=arm,
                )
                axes.fill_between(
                    steps, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0
                )
            axes.axhline(START, color=LINE_COLOUR, linestyle=":", linewidth=0.9)
            axes.set_title(f"{rewards[label]}; budget {setting}", fontsize=10)
            axes.margins(x=0.01)
            axes.set_ylim(0.0, 1.0)
            bare(axes)
    for axes in grid[-1]:
        axes.set_xlabel("step of two hours")
    for axes in grid[:, 0]:
        axes.set_ylabel("probability of being drawn")
    count = len({key[2] for key in by_run})
    figure.suptitle(f"{TITLE}\nmean over {count} runs; bands: 95% intervals", fontsize=11)
    legend_below(figure)
    save(figure, path)


PICTURES = {"chances": draw}
