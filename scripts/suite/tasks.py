"""A task of a suite: an environment with all its arguments, the metric scored, and a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

FIRST_SEED = 3_000_000
"""Seed of the first repetition; repetition i uses ``FIRST_SEED + i``."""
WINDOW, WINDOWS = 8.0, 12
"""Length of a recorded trace's windows in days, and their number; repetition i uses i % 12."""
FIRST_DAY = 100.0
"""Parameters of the recorded trace are fitted to the days before this one."""

NCIS, HARMONIC, OFFERS, LONGEVITY, TRACE, SITES = (
    "CrawlNCIS-v0",
    "CrawlHarmonic-v0",
    "CrawlOffers-v1",
    "CrawlLongevity-v0",
    "CrawlTrace-v0",
    "CrawlSites-v0",
)
MEASURED = "noisy"
"""Task in which the time of decisions, memory and the freshness of pages are measured."""
AS_REWARD: Mapping[str, Callable[[float], float]] = {
    "freshness": lambda value: value,
    "divergence": lambda value: 1.0 - value,
    "penalty": lambda value: -value,
}
"""Functions from the value of a metric to the mean reward per step of the episode."""

SANITY = "sanity"
"""Track of tasks that a formula solves; they do not enter the overall score."""
OPTIMUM, PERIODIC, POISSON = "optimum", "periodic optimum", "Poisson optimum"
ORACLE, CLAIRVOYANT, PERFECT = "oracle", "clairvoyant", "perfect"
INFORMED = "informed"
BOUNDS: Mapping[str, str] = {
    OPTIMUM: "freshness of the optimal thresholds for immediate signals (NCIS, Theorem 1): a bound "
    "in the long run, while an episode starts fresh",
    PERIODIC: "least harmonic cost with the budget on average, in the long run, while an episode "
    "starts fresh",
    POISSON: "least harmonic cost of crawls at random instants (LambdaCrawl), in the long run, "
    "while an episode starts fresh",
    ORACLE: "FragmentDynamic, which reads the true divergence; no proven bound",
    CLAIRVOYANT: "a greedy policy that knows when each page changes next; no proven bound",
    PERFECT: "no page is ever stale, which no budget here allows",
    INFORMED: "the crawl value on the filter of the true law, which sees only signals and crawls",
}


@dataclass(frozen=True)
class Task:
    """A task of a suite.

    Attributes:
        track: group of tasks that are averaged together.
        id: id of the environment.
        arguments: all its arguments except defaults.
        bound: a key of ``BOUNDS``; it scores 1.
        random: policy that scores 0.
        reason: why the suite has it, in a few words.
        averaged: whether it enters the overall score.
        variants: arguments that are added to ``arguments``, a repetition for each; the means over
            them have a table of their own.
        history: whether policies that take a history get the events before the episode.
        most_rounds: largest age that any copy may reach, in units of m / R; None for no limit.
            Policies that can promise it do.
    """

    name: str
    track: str
    id: str
    arguments: Mapping[str, Any]
    metric: str = "freshness"
    bound: str = OPTIMUM
    random: str = "RandomCrawl"
    reason: str = ""
    averaged: bool = True
    variants: tuple[Mapping[str, Any], ...] = ()
    history: bool = False
    most_rounds: float | None = None
