"""Measure the freshness of strategies for offers at several budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from policies.bandits.strategy_bandit import StrategyBandit
from scripts.experiments.measures.offer_strategies import (
    ID,
    LAMBDA_ML,
    QUICK_RUN,
    Freshness,
    Run,
    gains,
    play,
    reference,
)
from scripts.study.rows import indexed
from scripts.study.settings import Measurement, spec

CLICK, OFFER = "click_freshness", "offer_freshness"
"""Freshness by eq. 4 and eq. 3 of the paper, as medians over the days of a run."""
CLICK_GAIN, OFFER_GAIN = "click_gain", "offer_gain"
"""Medians over the days of a run of the relative increase over lambda_ml on the same day.

A run has no gain if more than half of its days lack a value of lambda_ml.
"""
CLICK_DAY, OFFER_DAY = "click_day", "offer_day"
"""Freshness of each day, indexed metrics."""
SHARE, TOP = "share", "full_reward"
"""Share of the steps with each arm, and with a reward of 1, clipped or not."""

BUDGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Crawls per day and offer: b/n."""
TIGHT = tuple(round(step * scale, 6) for scale in (0.001, 0.01) for step in range(1, 10))
"""Budgets of section 5.4.2 outside Tables 5 and 6: .1% to .9%, and 1% to 9%."""
QUICK_BUDGETS, QUICK_TIGHT = (0.1, 0.5, 0.9), (0.01,)


def name_of(budget: float) -> str:
    """Return the name of a budget's setting: ``10%`` for .1 crawls per day and offer."""
    return f"{100.0 * budget:.6g}%"


NAMES = tuple(name_of(budget) for budget in BUDGETS)
"""Names of the nine budgets of the tables."""


@spec("offers-freshness")
def measured(
    seed: int, *, label: str, budget: float, daily: bool = False, **size: int
) -> Mapping[str, float]:
    """Return the freshness of a strategy or choice on a run, and its increase over lambda_ml.

    Args:
        seed: seed of the run.
        label: a label of STRATEGIES or CHOICES.
        budget: crawls per day and offer.
        daily: whether to also return the freshness of each day.
        **size: the other fields of :class:`Run`.
    """
    run = Run(seed, **size)
    freshness, policy = play(run, label, budget) if label != LAMBDA_ML else (None, None)
    base = reference(run, budget)
    days = base if freshness is None else freshness
    values = {CLICK: middle(days.click), OFFER: middle(days.offer)}
    if freshness is not None:
        more = gains(freshness, base)
        values |= {CLICK_GAIN: middle(more.click), OFFER_GAIN: middle(more.offer)}
    if daily:
        values |= {**indexed(CLICK_DAY, days.click), **indexed(OFFER_DAY, days.offer)}
    if isinstance(policy, StrategyBandit):
        history = policy.history()
        counts = np.bincount(history.arm, minlength=len(policy.labels))
        values |= indexed(SHARE, counts / counts.sum())
        values[TOP] = float(np.mean(history.reward >= 1.0))
    return values


def mean_freshness(freshness: Freshness) -> dict[str, float]:
    """Return the mean freshness over evaluated days, by clicks and by offers."""
    return {CLICK: float(np.nanmean(freshness.click)), OFFER: float(freshness.offer.mean())}


def middle(days: np.ndarray) -> float:
    """Return the median of the numbers in ``days``; NaN if less than half of the days have one."""
    numbers = days[~np.isnan(days)]
    return float(np.median(numbers)) if 2 * numbers.size >= days.size else np.nan


def budgets_measured(
    quick: bool, budgets: Sequence[float], labels: Sequence[str], daily: Sequence[str] = ()
) -> list[Measurement]:
    """Return a measurement per budget with all labels; those in ``daily`` also keep each day."""
    run = QUICK_RUN if quick else Run(0)
    size = {name: getattr(run, name) for name in ("num_offers", "warm_up", "evaluated")}
    measures = {label: partial(measured, label=label, daily=label in daily) for label in labels}
    return [
        Measurement(name_of(budget), measures, {"budget": budget, **size}, ID) for budget in budgets
    ]
