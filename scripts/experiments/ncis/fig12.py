"""Busa-Fekete et al., figure 12 (appendix D): a bandwidth that changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np

import policies
from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.experiments.measures.courses import course, recent_share
from scripts.experiments.measures.derived import jackknifed
from scripts.experiments.measures.over_pages import ID
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import gathered, indexed
from scripts.study.specs import spec

TITLE = "A bandwidth that changes (NCIS paper, figure 12)"
RISE, FALL, END = 133.0, 266.0, 400.0
WINDOW, EVERY = 1000, 50
RECENT = WINDOW // EVERY
"""Entries of a course in the paper's window, the "last 1000 crawl events"."""
STEP = 2.0
"""Units of time between two entries of the courses."""
LOW, HIGH, SHIFTING = "R=100", "R=150", "R=100, 150, 100"
BANDWIDTHS: dict[str, dict[str, Any]] = {
    LOW: {"bandwidth": 100.0},
    HIGH: {"bandwidth": 150.0},
    SHIFTING: {"bandwidth": 100.0, "bandwidth_steps": [[RISE, 150.0], [FALL, 100.0]]},
}
POLICIES = {"GREEDY": ("Greedy", "uniform"), "GREEDY-NCIS": ("GreedyNCIS", "noisy")}

RELATIVE_TOLERANCE = 0.01
RISING, FALLING = "time to the new level, rise", "time to the new level, fall"
STRETCHES = (
    ("t in (60, 133)", 60.0, RISE),
    ("t in (160, 266)", 160.0, FALL),
    ("t in (300, 400)", 300.0, END + STEP),
)
SOURCE = "appendix D, figure 12"
FRESH = tuple(f"freshness, {name}" for name, _, _ in STRETCHES)
ACCURATE = tuple(f"accuracy, {name}" for name, _, _ in STRETCHES)

NOTE = (
    "The level of new bandwidth is that of the same policy on the same events with that bandwidth "
    "from the start. Times to it are until freshness over the last 1,000 crawls is within 1%; 6.7 "
    "(rise) and 10 units (fall) of them are that window itself, which still includes crawls from "
    "before the change."
)


@spec("ncis-bandwidth-change")
def measure(seed: int, *, policy: str, instance: str, arm: str) -> dict[str, float]:
    """Simulate 1,000 pages; return recent accuracy and freshness at evenly spaced times."""
    env = gymnasium.make(ID, num_pages=1000, horizon=END, instance=instance, **BANDWIDTHS[arm])
    env.reset(seed=seed)
    episode = course(env, policies.make(policy, env), seed, EVERY)
    times = STEP * np.arange(1, round(END / STEP) + 1)
    entry = np.searchsorted(episode.time, times - 1e-6)
    return {
        **indexed("accuracy", recent_share(episode.hits, episode.requests, RECENT)[entry]),
        **indexed("freshness", recent_share(episode.fresh_time, episode.alive_time, RECENT)[entry]),
    }


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of levels long after the changes, and times until a new level is near (1%)."""
    derived = []
    courses = {name: gathered(rows, name) for name in ("accuracy", "freshness")}
    for name, by_key in courses.items():
        for (setting, arm, seed), values in by_key.items():
            for metric, start, end in STRETCHES:
                level = float(np.nanmean(values[_entry(start) : _entry(end)]))
                derived.append(Row(ID, setting, arm, seed, f"{name}, {metric}", level))
    for setting in POLICIES:
        for metric, start, reference in ((RISING, RISE, HIGH), (FALLING, FALL, LOW)):
            arms = [
                {key[2]: values for key, values in courses["freshness"].items() if key[:2] == arm}
                for arm in ((setting, SHIFTING), (setting, reference))
            ]
            seeds = [seed for seed in arms[0] if seed in arms[1]]
            shifted, steady = (np.array([arm[seed] for seed in seeds]) for arm in arms)
            times = settling_times(shifted, steady, start) if seeds else []
            derived += [
                Row(ID, setting, SHIFTING, seed, metric, time)
                for seed, time in zip(seeds, times, strict=True)
                if time == time
            ]
    return derived


def settling(values: FloatArray, reference: FloatArray, start: float) -> float:
    """Return the time from ``start`` until a course is within 1% of its reference; NaN if never.

    The time is interpolated between the entries of the courses.
    """
    time = STEP * np.arange(1, values.size + 1)
    off = np.abs(values / reference - 1.0) - RELATIVE_TOLERANCE
    near = np.flatnonzero((time >= start) & (off <= 0.0))
    if near.size == 0:
        return float("nan")
    first = int(near[0])
    share = off[first - 1] / (off[first - 1] - off[first])
    return float(time[first - 1] + share * STEP - start)


def settling_times(values: FloatArray, reference: FloatArray, start: float) -> list[float]:
    """Return jackknife pseudo-values, one per seed, of the settling time of mean courses.

    ``values`` and ``reference`` have a row per seed. The mean over seeds is used since a single
    course is too noisy to resolve 1%.
    """
    both = np.stack([values, reference], axis=1)
    return jackknifed(both, lambda some: settling(some[:, 0].mean(0), some[:, 1].mean(0), start))


def _entry(time: float) -> int:
    """Return the position of the first entry of a course at or after ``time``."""
    return int(np.ceil(time / STEP - 1e-9)) - 1


EXPERIMENT = Experiment(
    name="ncis-fig12",
    title=TITLE,
    claim=(
        "When the bandwidth rises from 100 to 150 crawls per unit of time, GREEDY's accuracy rises "
        "to its level at 150. When the bandwidth falls back, so does the accuracy."
    ),
    metric="accuracy",
    repetitions=20,
    settings=measure_settings(
        {
            name: {"policy": policy, "instance": instance}
            for name, (policy, instance) in POLICIES.items()
        },
        {arm: partial(measure, arm=arm) for arm in BANDWIDTHS},
        ID,
    ),
    derive=derive,
    claims=(
        Claim(
            "When the bandwidth rises, the accuracy of GREEDY rises to the new level by itself.",
            SOURCE,
            (
                Trend(HIGH, "above", LOW, ("GREEDY",), SOURCE, metric=ACCURATE[1]),
                Trend(SHIFTING, "about", HIGH, ("GREEDY",), SOURCE, 0.005, ACCURATE[1]),
                Trend(SHIFTING, "about", HIGH, ("GREEDY",), SOURCE, 0.003, FRESH[1]),
                Range(SHIFTING, 0.0, 15.0, ("GREEDY",), SOURCE, RISING),
            ),
            note=NOTE,
        ),
        Claim(
            "When the bandwidth falls back, the accuracy falls back to the old level by itself.",
            SOURCE,
            (
                Trend(SHIFTING, "about", LOW, ("GREEDY",), SOURCE, 0.005, ACCURATE[2]),
                Trend(SHIFTING, "about", LOW, ("GREEDY",), SOURCE, 0.003, FRESH[2]),
                Range(SHIFTING, 0.0, 20.0, ("GREEDY",), SOURCE, FALLING),
            ),
        ),
    ),
    expected=(
        Trend(SHIFTING, "about", HIGH, ("GREEDY-NCIS",), "not in the paper", 0.005, ACCURATE[1]),
        Trend(SHIFTING, "about", LOW, ("GREEDY-NCIS",), "not in the paper", 0.005, ACCURATE[2]),
        Range(SHIFTING, 0.0, 15.0, ("GREEDY-NCIS",), "not in the paper", RISING),
        Range(SHIFTING, 0.0, 20.0, ("GREEDY-NCIS",), "not in the paper", FALLING),
    ),
    pictures={
        "accuracy": figures.lines(
            [Series("accuracy", "{setting}")],
            Frame(
                f"{TITLE}\nmean over {{seeds}} repetitions; bands: 95% intervals",
                Axis("time (units of the instance)"),
                Axis(f"accuracy over the last {WINDOW:,} crawls\n(share of requests served fresh)"),
                upright=[Rule(time, dash=":") for time in (RISE, FALL)],
            ),
            along=STEP * np.arange(1, round(END / STEP) + 1),
            bands=True,
        )
    },
)
