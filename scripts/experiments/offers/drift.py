"""KAB5 and LambdaCrawl with stale or misestimated rates, and the effect of learning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from crawl_envs.evaluation import Row
from crawl_envs.types import Policy
from policies.bandits import Exp3Bandit
from policies.offers.rates import RateSource, StaleRates
from scripts.experiments.offers.setup.measures import CLICK, OFFER, mean_freshness
from scripts.experiments.offers.setup.strategies import (
    HISTORY,
    KINDS,
    NUM_OFFERS,
    OWN,
    PREDICTED,
    QUICK_EVALUATED,
    QUICK_OFFERS,
    QUICK_WARM_UP,
    TRUTH,
    Choice,
    Run,
    bandit,
    play_policy,
    rates_of,
)
from scripts.present.verdicts import Claim, Trend
from scripts.study.settings import Measurement

TITLE = "KAB5 and LambdaCrawl by rates that are true, stale, predicted, or averages"
CLAIM = (
    "The paper's reason for a bandit over strategies: LambdaCrawl is optimal if rates are known "
    "and constant, which they are not. So KAB5 should gain on it where rates are wrong and not "
    "where they are true, and by learning: more than arms drawn at random."
)
METRIC = CLICK
GAINS = {CLICK: "click_gain", OFFER: "offer_gain"}
"""Freshness over LambdaCrawl's with the same rates on the same run, minus 1."""
REPETITIONS, QUICK_REPETITIONS = 30, 2

STALE_TRUTH, STALE_PREDICTED = "truth of day 0", "predicted on day 0"
SOURCES: Mapping[str, str] = {
    TRUTH: TRUTH,
    STALE_TRUTH: TRUTH,
    PREDICTED: PREDICTED,
    STALE_PREDICTED: PREDICTED,
    HISTORY: HISTORY,
    OWN: OWN,
}
"""Sources of rates here, and in the module of strategies; OWN counts changes at own crawls."""
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
"""Bandits over kinds of strategy. With a gamma of 1 EXP3 does not learn: it always draws all arms
with the same probability."""
REFERENCE = LAMBDA
FURTHER_REFERENCES = (MIXTURE,)


def setting_name(source: str, budget: str) -> str:
    """Return the name of a setting."""
    return f"{source}, {budget}"


def settings_of(*sources: str) -> tuple[str, ...]:
    """Return the names of all settings of some sources."""
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
        tuple(
            Trend(label, "above", control, WRONG, "section 3.2.1", metric=CLICK)
            for label in (KAB5, KAB5_GAIN)
            for control in (MIXTURE, MOSTLY)
        ),
        note="The even mixture draws the five strategies at random; the other control draws "
        "LambdaCrawl with probability 4/5 and uniform crawling with 1/5. Neither learns.",
    ),
)
EXPECTED = tuple(
    Trend(LAMBDA, "above", label, settings_of(TRUTH), "an optimum of steady rates", metric=CLICK)
    for label in CHOICES
)


def rates_for(run: Run, source: str, env: Any) -> RateSource:
    """Return the rates of a source of SOURCES, those of the first day if it is stale."""
    rates = rates_of(run, SOURCES[source], env)
    return StaleRates(rates) if source in STALE else rates


def played(
    seed: int, *, label: str, source: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the mean freshness of the evaluated days, by clicks and by offers."""
    run = Run(seed, num_offers, *days)

    def make(env: Any) -> Policy:
        rates = rates_for(run, source, env)
        if label == LAMBDA:
            return KINDS[LAMBDA](env, rates=rates)
        made = {kind: KINDS[kind](env, rates=rates) for kind in FIVE}
        return bandit(run, env, CHOICES[label], made, rates)

    return mean_freshness(play_policy(run, budget, make, own_crawls=source == OWN)[0])


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return LambdaCrawl, the bandits and the controls, by source and budget."""
    given = {"num_offers": QUICK_OFFERS} if quick else {"num_offers": NUM_OFFERS}
    days = [QUICK_WARM_UP, QUICK_EVALUATED] if quick else [Run(0).warm_up, Run(0).evaluated]
    labels: Sequence[str] = (LAMBDA, *CHOICES)
    measures: dict[str, Callable[..., Mapping[str, float]]] = {
        label: partial(played, label=label) for label in labels
    }
    return [
        Measurement(
            setting_name(source, name),
            measures,
            {"source": source, "budget": budget, "days": days, **given},
        )
        for source in SOURCES
        for name, budget in BUDGETS.items()
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return GAINS: freshness relative to LambdaCrawl's with the same rates."""
    return list(_gains(rows))


def _gains(rows: Sequence[Row]) -> Iterator[Row]:
    base = {(row.setting, row.seed, row.metric): row.value for row in rows if row.policy == LAMBDA}
    for row in rows:
        known = base.get((row.setting, row.seed, row.metric), 0.0)
        if row.policy != LAMBDA and row.metric in GAINS and known > 0.0:
            yield row._replace(metric=GAINS[row.metric], value=row.value / known - 1.0)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw gains over LambdaCrawl with 95% intervals by source, a panel per measure and budget."""
    from scripts.present import charts
    from scripts.study.means import means, table

    values = table(rows, *GAINS.values())
    data = means(values.assign(value=100.0 * values["value"]), ("setting", "policy", "metric"))
    where = {setting_name(s, b): (s, b) for s in SOURCES for b in BUDGETS}
    data = data[data.setting.isin(list(where)) & data.policy.isin(list(CHOICES))]
    measures = {gain: measure.replace("_", " ") for measure, gain in GAINS.items()}
    panel = data.metric.map(measures) + data.setting.map(lambda name: f", {where[name][1]}")
    data = data.assign(y=data.setting.map(lambda name: where[name][0]), panel=panel)
    titles = [f"{measure}, {budget}" for measure in measures.values() for budget in BUDGETS]
    charts.dots(
        data.sort_values("panel", key=lambda names: names.map(titles.index)).rename(
            columns={"policy": "label", "mean": "x"}
        ),
        path,
        charts.Frame(
            f"{TITLE}\nmean and 95% interval over {values.seed.nunique()} runs",
            charts.Axis(
                "% over LambdaCrawl by the same rates\n(logarithmic beyond 1%)",
                "symlog",
                linear=1.0,
                ticks=(-10, -1, 0, 1, 10, 100),
            ),
            columns=len(BUDGETS),
            size=(3.5, 0.0),
            upright=[charts.Rule(0.0)],
        ),
        labels=tuple(CHOICES),
        names=tuple(SOURCES),
    )
