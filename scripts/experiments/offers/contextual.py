"""Compare a contextual bandit over offers, the paper's future work, with LambdaCrawl and KAB5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from policies import ContextualBandit
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Series
from scripts.experiments.measures import offer_strategies as strategies
from scripts.experiments.measures.offer_freshness import CLICK, OFFER, mean_freshness
from scripts.experiments.measures.offer_strategies import (
    DAYS,
    KAB5,
    KAB5_GAIN,
    LAMBDA_ML,
    LAMBDA_TRUE,
    QUICK_SIZE,
    UNIFORM,
    Run,
    play,
    play_policy,
)
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Trend, trends
from scripts.study.specs import spec

TITLE = "A contextual bandit over offers"
METRIC = CLICK

GAIN, FRESHNESS = "contextual, gain", "contextual, freshness"
PREDICTED = "contextual, freshness, predicted clicks"
AIMS: Mapping[str, Mapping[str, Any]] = {
    GAIN: {"aim": "gain"},
    FRESHNESS: {"aim": "freshness"},
    PREDICTED: {"aim": "freshness"},
}
LOGGED = (LAMBDA_TRUE, LAMBDA_ML, KAB5, KAB5_GAIN, UNIFORM)
BUDGETS: Mapping[str, float] = {"10%": 0.1, "50%": 0.5}
SECTION = "proposed in section 6.2; not tested there"
KNOWS = "it knows the rates of the day, but not the time since each crawl"


@spec("offers-contextual-strategy")
def logged(
    seed: int, *, label: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the mean freshness of a strategy, or of a bandit over strategies, on a run."""
    return mean_freshness(play(Run(seed, num_offers, *days), label, budget)[0])


@spec("offers-contextual-bandit")
def stepped(
    seed: int, *, label: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the mean freshness of a contextual bandit on a run, with the same events."""
    weights = strategies.predictors() if label == PREDICTED else None
    policy = ContextualBandit(weights=weights, **AIMS[label])
    run = Run(seed, num_offers, *days)
    return mean_freshness(play_policy(run, budget, lambda env: policy)[0])


EXPERIMENT = Experiment(
    name="offers-contextual",
    title=TITLE,
    claim=(
        "The paper proposes, as future work, a contextual bandit from the features of an offer to "
        "the value of a crawl, without strategies. Ours learns only from its crawls, and chooses "
        "the offers of highest value, which depends on the time since their last crawl. The "
        "strategies, including LambdaCrawl with true rates, crawl at random by rates, without "
        "memory."
    ),
    metric=METRIC,
    references=(LAMBDA_ML,),
    repetitions=10,
    settings=measure_settings(
        {
            name: {"budget": budget, "num_offers": 5_000, "days": DAYS}
            for name, budget in BUDGETS.items()
        },
        {
            **{label: partial(logged, label=label) for label in LOGGED},
            **{label: partial(stepped, label=label) for label in AIMS},
        },
        strategies.ID,
        quick=QUICK_SIZE,
    ),
    expected=(
        *(Trend(LAMBDA_TRUE, "above", label, tuple(BUDGETS), KNOWS) for label in AIMS),
        *(Trend(label, "above", UNIFORM, tuple(BUDGETS), SECTION) for label in AIMS),
        Trend(FRESHNESS, "above", GAIN, tuple(BUDGETS), "gains end with the next crawls"),
        *trends((FRESHNESS, PREDICTED), "above", LAMBDA_ML, tuple(BUDGETS), SECTION),
        *(Trend(label, "above", KAB5, tuple(BUDGETS), SECTION) for label in (FRESHNESS, PREDICTED)),
    ),
    pictures={
        METRIC: figures.dots(
            [
                Series(metric, f"{metric.replace('_', ' ')}, budget {{setting}}", "")
                for metric in (CLICK, OFFER)
            ],
            Frame(
                f"{TITLE}\nmean and 95% interval over {{seeds}} runs", Axis("freshness"), shared="y"
            ),
            names=(*LOGGED, *AIMS),
        )
    },
)
