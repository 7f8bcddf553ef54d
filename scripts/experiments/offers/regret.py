"""Measure how the regret of EXP3, EXP3-IX and EXP3++ grows with the rounds, on fixed arms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from policies.bandits import (
    Bandit,
    Exp3Bandit,
    Exp3IXBandit,
    Exp3PlusPlusBandit,
    bernoulli_regret,
    growth,
)
from scripts.experiments.measures.derived import jackknifed
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range
from scripts.study.means import means
from scripts.study.rows import gathered, indexed
from scripts.study.settings import Measurement, spec

TITLE = "Regret of the bandits on fixed arms"
METRIC = "slope"
LATE = "late_slope"
REGRET = "regret"
SHARE = "share_of_random"
"""Regret at the last horizon over that of arms drawn at random."""

FIXED_GAMMA, ANYTIME, IX, PLUS_PLUS = "EXP3, gamma .1", "EXP3, anytime", "EXP3-IX", "EXP3++"
BANDITS: Mapping[str, Callable[[], Bandit]] = {
    FIXED_GAMMA: partial(Exp3Bandit, 5, gamma=0.1),
    ANYTIME: partial(Exp3Bandit, 5, gamma=None),
    IX: partial(Exp3IXBandit, 5),
    PLUS_PLUS: partial(Exp3PlusPlusBandit, 5),
}
SUBLINEAR = (ANYTIME, IX, PLUS_PLUS)
NUM_ARMS, BEST = 5, 0.5
FIXED_MEANS = (0.5, 0.45, 0.4, 0.4, 0.4)
FIXED, SHRINKING, WORST = "fixed gaps", "gap 2 sqrt(K/T)", "worst of 8 gaps"
GAPS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
HORIZONS = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
QUICK_HORIZONS = HORIZONS[:4]
LATE_FROM = 10_000

SQUARE_ROOT = "grows as sqrt(T); margin ours"
CLAIMS = (
    Claim(
        "EXP3 provides a nearly optimal regret bound.",
        "section 3.2.3",
        (Range(ANYTIME, -np.inf, 0.55, (FIXED, WORST), SQUARE_ROOT),),
        note="True if exploration is tuned to the rounds, or falls with them.",
    ),
    Claim(
        "So does Algorithm 1, which runs it with gamma = .1 throughout.",
        "sections 3.2.3 and 3.2, Algorithm 1",
        (Range(FIXED_GAMMA, -np.inf, 0.55, (FIXED, WORST), SQUARE_ROOT),),
        note="It always plays a tenth of all rounds at random, and so loses a tenth of the "
        "mean gap per round. Where the gap shrinks with the horizon it does no worse, but there "
        "even arms drawn at random have a regret proportional to sqrt(T).",
    ),
)


def even(gap: float) -> tuple[float, ...]:
    """Return the mean rewards of one good arm, and of arms that are all worse by ``gap``."""
    return (BEST, *(NUM_ARMS - 1) * (BEST - gap,))


def shrinking_gap(horizon: int) -> float:
    """Return the gap between arms that is hardest to detect in T rounds, 2 sqrt(K/T)."""
    return float(2.0 * np.sqrt(NUM_ARMS / horizon))


@spec("offers-regret-fixed-gaps")
def fixed(seed: int, *, label: str, horizons: Sequence[int]) -> Mapping[str, float]:
    """Return the regret of a run at all horizons, on arms with fixed means."""
    regret = bernoulli_regret(BANDITS[label], np.array(FIXED_MEANS), horizons, runs=1, seed=seed)
    return indexed(REGRET, regret)


@spec("offers-regret-shrinking-gap")
def shrinking(seed: int, *, label: str, horizons: Sequence[int]) -> Mapping[str, float]:
    """Return the regret of a run for each horizon, on arms whose gap suits this horizon."""
    regret = [
        bernoulli_regret(
            BANDITS[label],
            np.array(even(shrinking_gap(horizon))),
            [horizon],
            runs=1,
            seed=seed * len(HORIZONS) + place,
        )
        for place, horizon in enumerate(horizons)
    ]
    return indexed(REGRET, regret)


@spec("offers-regret-by-gap")
def gaps(seed: int, *, label: str, horizons: Sequence[int]) -> Mapping[str, float]:
    """Return the regret of a run at all horizons, on arms with each of the gaps GAPS."""
    result: dict[str, float] = {}
    for place, gap in enumerate(GAPS):
        means, gap_seed = np.array(even(gap)), seed * len(GAPS) + place
        course = bernoulli_regret(BANDITS[label], means, horizons, runs=1, seed=gap_seed)
        result |= indexed(f"{REGRET}_{gap:g}", course)
    return result


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return a measurement of all bandits for each of three kinds of arms."""
    arguments = {"horizons": list(QUICK_HORIZONS if quick else HORIZONS)}
    kinds: dict[str, Callable[..., Mapping[str, float]]] = {
        FIXED: fixed,
        SHRINKING: shrinking,
        WORST: gaps,
    }
    return [
        Measurement(name, {label: partial(measure, label=label) for label in BANDITS}, arguments)
        for name, measure in kinds.items()
    ]


def runs_of(rows: Sequence[Row], setting: str, label: str) -> tuple[list[int], FloatArray]:
    """Return the seeds, and regrets by seed, gap (only WORST has several) and horizon."""
    names = [f"{REGRET}_{gap:g}" for gap in GAPS] if setting == WORST else [REGRET]
    selected = [row for row in rows if row[1:3] == (setting, label)]
    by_gap = [gathered(selected, name) for name in names]
    seeds = sorted(key[2] for key in by_gap[0])
    courses = [[by[setting, label, seed] for by in by_gap] for seed in seeds]
    return seeds, np.array(courses)


def mean_regret(courses: FloatArray) -> FloatArray:
    """Return the mean regret over seeds at each horizon, for the gap with the largest, (H,)."""
    return np.asarray(courses.mean(axis=0).max(axis=0))


def growths(courses: FloatArray, first: int) -> list[float]:
    """Return jackknife pseudo-values by seed of regret's exponent over ``HORIZONS[first:]``."""
    horizons = HORIZONS[first : courses.shape[2]]
    return jackknifed(courses, lambda kept: growth(horizons, mean_regret(kept)[first:]))


def random_regret(setting: str, horizons: Sequence[int]) -> FloatArray:
    """Return the mean regret at each horizon if arms are drawn at random, (H,)."""
    rounds = np.array(horizons, float)
    if setting == FIXED:
        return rounds * (max(FIXED_MEANS) - float(np.mean(FIXED_MEANS)))
    gaps = [max(GAPS) if setting == WORST else shrinking_gap(horizon) for horizon in horizons]
    return np.asarray((NUM_ARMS - 1) / NUM_ARMS * rounds * gaps)


def derive(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows of the growth of regret, over all horizons and late, and of regret over random."""
    keys = dict.fromkeys(row[1:3] for row in rows)
    for setting, label in keys:
        seeds, courses = runs_of(rows, setting, label)
        last = courses.shape[2]
        for metric, first in ((METRIC, 0), (LATE, HORIZONS.index(LATE_FROM))):
            if len(seeds) > 1 and last - first > 1:
                for seed, value in zip(seeds, growths(courses, first), strict=True):
                    yield Row("", setting, label, seed, metric, float(value))
        random = random_regret(setting, HORIZONS[:last])[-1]
        if setting != WORST:
            for seed, course in zip(seeds, courses[:, 0], strict=True):
                yield Row("", setting, label, seed, SHARE, float(course[-1] / random))


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw mean regret by rounds on log-log scales, in a panel per kind of arms."""
    chance, root = "random choice", "slope 1/2"
    parts = []
    for setting in dict.fromkeys(row.setting for row in rows):
        for label in BANDITS:
            _, courses = runs_of(rows, setting, label)
            where = courses.mean(axis=0).argmax(axis=0)
            rounds = HORIZONS[: courses.shape[2]]
            worst = pd.DataFrame(courses[:, where, np.arange(len(rounds))], columns=rounds)
            mean = means(worst.melt(var_name="x"), ("x",)).rename(columns={"mean": "y"})
            parts.append(mean.assign(label=label, panel=setting))
        first = mean_regret(runs_of(rows, setting, ANYTIME)[1])[0]
        for label, course in (
            (chance, random_regret(setting, rounds)),
            (root, first * np.sqrt(np.array(rounds) / rounds[0])),
        ):
            data = {"x": rounds, "y": course, "label": label, "panel": setting}
            parts.append(pd.DataFrame(data))
    charts.lines(
        pd.concat(parts),
        path,
        charts.Frame(
            f"{TITLE}: {NUM_ARMS} arms, the best succeeds with probability {BEST:g}\n"
            f"mean and 95% interval over {len({row.seed for row in rows})} runs",
            charts.Axis("rounds T (logarithmic scale)", "log"),
            charts.Axis("regret (logarithmic scale)", "log"),
            columns=3,
            size=(3.5, 3.8),
        ),
        black=(chance, root),
        looks={chance: {"marker": ""}, root: {"marker": ""}},
    )


EXPERIMENT = Experiment(
    name="offers-regret",
    title=TITLE,
    claim=(
        "The paper takes EXP3 because its bound on regret is nearly optimal, and runs it with a "
        "fixed gamma of .1, which has no such bound: its regret grows in proportion to the rounds. "
        "With a gamma that falls, and for EXP3-IX and EXP3++, it grows about as the square root."
    ),
    metric=METRIC,
    repetitions=50,
    settings=measurements,
    derive=derive,
    claims=CLAIMS,
    expected=(
        *(Range(label, -np.inf, 0.55, (FIXED, WORST), SQUARE_ROOT) for label in SUBLINEAR),
        *(Range(label, -np.inf, 0.55, (FIXED,), SQUARE_ROOT, metric=LATE) for label in SUBLINEAR),
        Range(FIXED_GAMMA, 0.9, 1.1, (WORST,), "gamma times the mean gap per round", LATE),
        Range(FIXED_GAMMA, 0.1, np.inf, (FIXED,), "gamma times the mean gap per round", SHARE),
        *(
            Range(label, 0.0, 0.9, (SHRINKING,), "less than a random choice", metric=SHARE)
            for label in BANDITS
        ),
    ),
    pictures={METRIC: plot},
)
