"""KAB5 and LambdaCrawl with stale or misestimated rates, and the effect of learning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crawl_envs.evaluation import Row, summarize
from crawl_envs.types import FloatArray
from policies.bandits import Exp3Bandit
from policies.offers.rates import HistoryRates
from scripts.experiments.offers.setup.playing import DailyRates, OfferLanes, play_days
from scripts.experiments.offers.setup.strategies import (
    GAMMA,
    HISTORY,
    NUM_OFFERS,
    OWN,
    PREDICTED,
    QUICK_EVALUATED,
    QUICK_OFFERS,
    QUICK_WARM_UP,
    TRUTH,
    BanditChooser,
    Run,
    beliefs,
    believed,
    counted,
    crawl_rates,
    log_of,
)
from scripts.reporting.settings import Measurement
from scripts.reporting.verdicts import Claim, Trend

TITLE = "KAB5 and LambdaCrawl by rates that are true, stale, predicted, or averages"
CLAIM = (
    "The paper's reason for a bandit over strategies: LambdaCrawl is optimal if rates are known "
    "and constant, which they are not. So KAB5 should gain on it where rates are wrong and not "
    "where they are true, and by learning: more than arms drawn at random."
)
CLICK, OFFER = "click_freshness", "offer_freshness"
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


class Choice(NamedTuple):
    """Kinds of strategy, and EXP3's gamma and reward to choose among them."""

    kinds: tuple[str, ...]
    gamma: float = 1.0
    reward: str = "literal"


KAB5, KAB5_GAIN, MIXTURE, MOSTLY = "KAB5", "KAB5 gain", "even mixture", "lambda and 1/5 uniform"
CHOICES: Mapping[str, Choice] = {
    KAB5: Choice(FIVE, GAMMA),
    KAB5_GAIN: Choice(FIVE, GAMMA, "gain"),
    MIXTURE: Choice(FIVE),
    MOSTLY: Choice((UNIFORM, LAMBDA, LAMBDA, LAMBDA, LAMBDA)),
}
"""With a gamma of 1 EXP3 always draws all arms with the same probability: it does not learn."""
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


def day_of(source: str, day: int) -> int:
    """Return the day of the rates in use on a day: the same, or always the first."""
    return 0 if source in STALE else day


@lru_cache(maxsize=1)
def plans(run: Run, source: str, budget: float) -> dict[str, FloatArray]:
    """Return crawl rates by kind, (days, m), of a source other than OWN; one row if stale."""
    days = range(1 if source in STALE else run.num_days)
    bandwidth = budget * run.num_offers
    result = {kind: np.empty((len(days), run.num_offers)) for kind in FIVE}
    for day in days:
        rates = believed(run, SOURCES[source], day)
        for kind, rows in result.items():
            rows[day] = crawl_rates(kind, rates, bandwidth)
    return result


def daily(run: Run, source: str, kind: str, budget: float) -> DailyRates:
    """Return a strategy, to be played on the log of the run."""
    if source != OWN or kind == UNIFORM:
        rows = plans(run, HISTORY if source == OWN else source, budget)[kind]
        return lambda day, lanes: rows[day_of(source, day)]
    history = HistoryRates()

    def from_own_crawls(day: int, lanes: OfferLanes) -> FloatArray:
        return crawl_rates(kind, history(lanes.tracker(0)), budget * run.num_offers)

    return from_own_crawls


def weights_of(run: Run, source: str) -> FloatArray:
    """Return the clicks that weight rewards, (days, m); they do not depend on price changes."""
    clicks = beliefs(run, HISTORY if source == OWN else SOURCES[source]).click
    return np.broadcast_to(clicks[0], clicks.shape) if source in STALE else clicks


def played(
    seed: int, *, label: str, source: str, budget: float, num_offers: int, days: Sequence[int]
) -> Mapping[str, float]:
    """Return the mean freshness of the evaluated days, by clicks and by offers."""
    run = Run(seed, num_offers, *days)
    chooser, kinds = None, (LAMBDA,)
    if label != LAMBDA:
        kinds, gamma, reward = CHOICES[label]
        bandit = Exp3Bandit(len(kinds), gamma=gamma)
        rng = np.random.default_rng((seed, len(kinds)))
        chooser = BanditChooser(bandit, weights_of(run, source), rng, reward)
    arms = [daily(run, source, kind, budget) for kind in kinds]
    bandwidth, own = budget * num_offers, source == OWN
    accounts = play_days(log_of(run), arms, bandwidth, seed, chooser, own_crawls=own)
    freshness = counted(run, accounts)
    return {CLICK: float(np.nanmean(freshness.click)), OFFER: float(freshness.offer.mean())}


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
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

    from scripts.reporting.charts import COLOURS, LINE_COLOUR, MARKERS, bare, save

    figure = Figure(figsize=(12.0, 8.4), layout="constrained")
    grid = figure.subplots(len(GAINS), len(BUDGETS), sharey=True, squeeze=False)
    height = -np.arange(len(SOURCES), dtype=float)
    for line, (measure, metric) in zip(grid, GAINS.items(), strict=True):
        summaries = {item[:2]: item for item in summarize(rows, metric)}
        for axes, budget in zip(line, BUDGETS, strict=True):
            for position, label in enumerate(CHOICES):
                items = [summaries.get((setting_name(source, budget), label)) for source in SOURCES]
                mean = np.array([np.nan if one is None else one.mean for one in items])
                half = np.array([np.nan if one is None else one.half_width for one in items])
                axes.errorbar(
                    100.0 * mean,
                    height - 0.17 * (position - 1.5),
                    xerr=np.nan_to_num(100.0 * half),
                    fmt=MARKERS[position],
                    color=COLOURS[position],
                    markersize=5,
                    capsize=2,
                    label=label,
                )
            axes.axvline(0.0, color=LINE_COLOUR, linestyle="--", linewidth=1.0)
            axes.set_title(f"{measure.replace('_', ' ')}, budget {budget}", fontsize=10)
            axes.set_xscale("symlog", linthresh=1.0)
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.set_xlabel("% over LambdaCrawl by the same rates\n(logarithmic beyond 1%)")
            axes.set_yticks(height, list(SOURCES))
            bare(axes)
    count = len({row.seed for row in rows})
    figure.suptitle(f"{TITLE}\nmean and 95% interval over {count} runs", fontsize=11)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    save(figure, path)
