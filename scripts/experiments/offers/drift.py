"""Test whether bandits gain on LambdaCrawl by learning where its rates are stale or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from crawl_envs.evaluation import Row
from policies import Policy
from policies.bandits import Exp3Bandit
from policies.offers.rates import RateSource, StaleRates
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.experiments.measures.derived import relative_to
from scripts.experiments.measures.offer_freshness import CLICK, OFFER, mean_freshness
from scripts.experiments.measures.offer_strategies import (
    DAYS,
    HISTORY,
    KINDS,
    NUM_OFFERS,
    PREDICTED,
    QUICK_SIZE,
    SELF_CRAWLED,
    TRUTH,
    Choice,
    Run,
    bandit,
    play_policy,
    rates_of,
)
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Trend, trends
from scripts.study.specs import spec

TITLE = "KAB5 and LambdaCrawl by rates that are true, stale, predicted, or averages"
METRIC = CLICK
GAINS = {CLICK: "click_gain", OFFER: "offer_gain"}
"""Freshness over LambdaCrawl's with the same rates on the same run, minus 1."""

STALE_TRUTH, STALE_PREDICTED = "truth of day 0", "predicted on day 0"
SOURCES: Mapping[str, str] = {
    TRUTH: TRUTH,
    STALE_TRUTH: TRUTH,
    PREDICTED: PREDICTED,
    STALE_PREDICTED: PREDICTED,
    HISTORY: HISTORY,
    SELF_CRAWLED: SELF_CRAWLED,
}
"""Sources of rates, and their names in the module of strategies."""
STALE = (STALE_TRUTH, STALE_PREDICTED)
BUDGETS: Mapping[str, float] = {"1%": 0.01, "10%": 0.1, "50%": 0.5}
UNIFORM, LAMBDA = "uniform", "lambda"
FIVE = (UNIFORM, "change", "click", "impression", LAMBDA)


KAB5, KAB5_GAIN, MIXTURE, MOSTLY = "KAB5", "KAB5 gain", "even mixture", "lambda and 1/5 uniform"
CHOICES: Mapping[str, Choice] = {
    KAB5: Choice(FIVE),
    KAB5_GAIN: Choice(FIVE, reward="gain"),
    MIXTURE: Choice(FIVE, partial(Exp3Bandit, gamma=1.0)),
    MOSTLY: Choice((UNIFORM, *4 * (LAMBDA,)), partial(Exp3Bandit, gamma=1.0)),
}
"""Bandits over kinds of strategy. EXP3 with a gamma of 1 always draws all arms with the same
probability: it does not learn."""


def setting_name(source: str, budget: str) -> str:
    """Return the name of the setting of a source of rates and a budget."""
    return f"{source}, {budget}"


def settings_of(*sources: str) -> tuple[str, ...]:
    """Return the names of the settings of some sources of rates at all budgets."""
    return tuple(setting_name(source, budget) for source in sources for budget in BUDGETS)


WRONG = settings_of(*(source for source in SOURCES if source != TRUTH))
CLAIMS = (
    Claim(
        "A bandit over strategies can relieve errors of estimation: it beats LambdaCrawl.",
        "section 3.1",
        tuple(
            Trend(label, "above", LAMBDA, WRONG, "section 3.1", metric=metric)
            for label in (KAB5, KAB5_GAIN)
            for metric in (CLICK, OFFER)
        ),
    ),
    Claim(
        "It does so by choosing better than a fixed assignment of resources would.",
        "section 3.2.1",
        trends((KAB5, KAB5_GAIN), "above", (MIXTURE, MOSTLY), WRONG, "section 3.2.1", metric=CLICK),
        note="The even mixture draws the five strategies at random; the other control draws "
        "LambdaCrawl with probability 4/5 and uniform crawling with 1/5. Neither learns.",
    ),
)


def rates_for(run: Run, source: str, env: Any) -> RateSource:
    """Return a source of rates for a run; a stale source keeps the rates of its first day."""
    rates = rates_of(run, SOURCES[source], env)
    return StaleRates(rates) if source in STALE else rates


@spec("offers-drift-freshness")
def simulated(
    seed: int, *, label: str, source: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Simulate a strategy or bandit; return mean freshness by clicks and by offers."""
    run = Run(seed, num_offers, *days)

    def make(env: Any) -> Policy:
        rates = rates_for(run, source, env)
        if label == LAMBDA:
            return KINDS[LAMBDA](rates=rates)
        made = {kind: KINDS[kind](rates=rates) for kind in FIVE}
        return bandit(run, CHOICES[label], made, rates)

    return mean_freshness(play_policy(run, budget, make, own_crawls=source == SELF_CRAWLED)[0])


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of GAINS: freshness over LambdaCrawl's with the same rates, minus 1."""
    return relative_to(rows, LAMBDA, GAINS)


EXPERIMENT = Experiment(
    name="offers-drift",
    title=TITLE,
    claim=(
        "The paper's reason for a bandit over strategies: LambdaCrawl is optimal only if rates "
        "are known and constant. So KAB5 should gain on it if rates are wrong, not if they are "
        "true, and gain more than arms drawn at random, since it learns."
    ),
    metric=METRIC,
    references=(LAMBDA, MIXTURE),
    repetitions=30,
    settings=measure_settings(
        {
            setting_name(source, name): {
                "source": source,
                "budget": budget,
                "num_offers": NUM_OFFERS,
                "days": DAYS,
            }
            for source in SOURCES
            for name, budget in BUDGETS.items()
        },
        {label: partial(simulated, label=label) for label in (LAMBDA, *CHOICES)},
        quick=QUICK_SIZE,
        quick_settings=tuple(
            setting_name(source, "10%") for source in (TRUTH, STALE_PREDICTED, SELF_CRAWLED)
        ),
    ),
    derive=derive,
    claims=CLAIMS,
    expected=trends(
        LAMBDA, "above", CHOICES, settings_of(TRUTH), "an optimum of steady rates", metric=CLICK
    ),
    pictures={
        METRIC: figures.dots(
            [
                Series(
                    gain,
                    f"{measure.replace('_', ' ')}, {budget}",
                    labels=tuple(CHOICES),
                    settings=[setting_name(source, budget) for source in SOURCES],
                    factor=100.0,
                )
                for measure, gain in GAINS.items()
                for budget in BUDGETS
            ],
            Frame(
                f"{TITLE}\nmean and 95% interval over {{seeds}} runs",
                Axis(
                    "% over LambdaCrawl by the same rates\n(logarithmic beyond 1%)",
                    "symlog",
                    linear=1.0,
                    ticks=(-10, -1, 0, 1, 10, 100),
                ),
                columns=len(BUDGETS),
                size=(3.5, 0.0),
                upright=[Rule(0.0)],
            ),
            y={setting_name(source, budget): source for source in SOURCES for budget in BUDGETS},
            labels=tuple(CHOICES),
            names=tuple(SOURCES),
        )
    },
)
