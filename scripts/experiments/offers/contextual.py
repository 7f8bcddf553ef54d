"""A contextual bandit over offers, beside LambdaCrawl and KAB5: the paper's future work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from crawl_envs.evaluation import Row
from policies import ContextualBandit
from scripts.experiments.offers.setup import strategies
from scripts.experiments.offers.setup.measures import CLICK, OFFER, mean_freshness
from scripts.experiments.offers.setup.strategies import (
    ID,
    KAB5,
    KAB5_GAIN,
    LAMBDA_ML,
    LAMBDA_TRUE,
    QUICK_EVALUATED,
    QUICK_OFFERS,
    QUICK_WARM_UP,
    UNIFORM,
    Run,
    play,
    play_policy,
)
from scripts.present.verdicts import Trend
from scripts.study.settings import Measurement

TITLE = "A contextual bandit over offers"
CLAIM = (
    "The paper proposes, as future work, a contextual bandit from the features of an offer "
    "to the value of a crawl, without strategies. Ours learns from its own crawls alone, and "
    "crawls the offers of highest value, given the time since each was crawled. The strategies, "
    "LambdaCrawl with true rates among them, crawl at random by rates, and so without memory."
)
CLAIMS = ()
METRIC = CLICK
REPETITIONS, QUICK_REPETITIONS = 10, 2
REFERENCE = LAMBDA_ML

GAIN, FRESHNESS = "contextual, gain", "contextual, freshness"
PREDICTED = "contextual, freshness, predicted clicks"
AIMS: Mapping[str, Mapping[str, Any]] = {
    GAIN: {"aim": "gain"},
    FRESHNESS: {"aim": "freshness"},
    PREDICTED: {"aim": "freshness"},
}
LOGGED = (LAMBDA_TRUE, LAMBDA_ML, KAB5, KAB5_GAIN, UNIFORM)
BUDGETS: Mapping[str, float] = {"10%": 0.1, "50%": 0.5}
NUM_OFFERS = 5_000
SECTION = "proposed in section 6.2; not tested there"
KNOWS = "it knows the rates of the day, but not the time since each crawl"
EXPECTED = (
    *(Trend(LAMBDA_TRUE, "above", label, tuple(BUDGETS), KNOWS) for label in AIMS),
    *(Trend(label, "above", UNIFORM, tuple(BUDGETS), SECTION) for label in AIMS),
    Trend(FRESHNESS, "above", GAIN, tuple(BUDGETS), "gains end with the next crawls"),
    *(
        Trend(label, "above", LAMBDA_ML, tuple(BUDGETS), SECTION)
        for label in (FRESHNESS, PREDICTED)
    ),
    *(Trend(label, "above", KAB5, tuple(BUDGETS), SECTION) for label in (FRESHNESS, PREDICTED)),
)


def logged(
    seed: int, *, label: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the mean freshness of a strategy, or of a bandit over strategies."""
    return mean_freshness(play(Run(seed, num_offers, *days), label, budget)[0])


def stepped(
    seed: int, *, label: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the mean freshness of a contextual bandit, on the same events."""
    weights = strategies.predictors() if label == PREDICTED else None
    make = partial(ContextualBandit, weights=weights, **AIMS[label])
    return mean_freshness(play_policy(Run(seed, num_offers, *days), budget, make)[0])


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all labels at both budgets."""
    given = {"num_offers": QUICK_OFFERS if quick else NUM_OFFERS}
    days = [QUICK_WARM_UP, QUICK_EVALUATED] if quick else [Run(0).warm_up, Run(0).evaluated]
    measures: dict[str, Callable[..., Mapping[str, float]]] = {
        **{label: partial(logged, label=label) for label in LOGGED},
        **{label: partial(stepped, label=label) for label in AIMS},
    }
    return [
        Measurement(name, measures, {"budget": budget, "days": days, **given}, ID)
        for name, budget in BUDGETS.items()
    ]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw both measures with 95% intervals, a panel per measure and budget."""
    from scripts.present import charts
    from scripts.study.means import means, table

    data = means(table(rows, CLICK, OFFER), ("metric", "setting", "policy"))
    panel = data.metric.str.replace("_", " ") + ", budget " + data.setting
    charts.dots(
        data.assign(panel=panel).rename(columns={"policy": "y", "mean": "x"}).sort_values("panel"),
        path,
        charts.Frame(
            f"{TITLE}\nmean and 95% interval over {len({row.seed for row in rows})} runs",
            {name: charts.Axis("freshness") for name in panel},
            shared="y",
        ),
        names=(*LOGGED, *AIMS),
    )
