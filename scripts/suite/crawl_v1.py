"""The tasks of crawl-v1, which never change, and of ``mini``, one of each of its tracks.

Events come from reserved seeds, which no training, tuning or evaluation of this package uses. The
exception is the recorded track: its seeds are windows of one shipped site, which other experiments
use too.
"""

from __future__ import annotations

from typing import Any

from scripts.suite.tasks import (
    CLAIRVOYANT,
    HARMONIC,
    LONGEVITY,
    NCIS,
    OFFERS,
    OPTIMUM,
    ORACLE,
    PERFECT,
    PERIODIC,
    POISSON,
    TRACE,
    Task,
)


def _pages(name: str, track: str, bound: str = OPTIMUM, **arguments: Any) -> Task:
    defaults = {"num_pages": 100, "bandwidth": 100.0, "horizon": 20.0}
    return Task(name, track, NCIS, {**defaults, **arguments}, bound=bound)


KNOWN_RATES, LEARNING, MISSPECIFIED = "known rates", "unknown rates", "misspecified"
MISSED, FRAGMENTS, SHOPPING, RECORDED = "missed changes", "fragments", "offers", "recorded"

_KNOWN_RATES = (
    _pages("uniform", KNOWN_RATES, instance="uniform"),
    _pages("partial", KNOWN_RATES, instance="partial"),
    _pages("noisy", KNOWN_RATES, instance="noisy"),
    _pages("noisy-tight", KNOWN_RATES, instance="noisy", bandwidth=25.0, horizon=80.0),
    _pages("noisy-ample", KNOWN_RATES, instance="noisy", bandwidth=400.0),
    _pages(
        "noisy-1000", KNOWN_RATES, instance="noisy", num_pages=1000, bandwidth=1000.0, horizon=10.0
    ),
    _pages("noisy-scores", KNOWN_RATES, instance="noisy", action="scores", batch=10),
    _pages("noisy-refresh", KNOWN_RATES, instance="noisy", action="refresh"),
    _pages("delayed", KNOWN_RATES, instance="delayed"),
    _pages("sources", KNOWN_RATES, instance="sources"),
    _pages("mixed", KNOWN_RATES, instance="mixed"),
    _pages("bing-like-1000", KNOWN_RATES, instance="bing-like", num_pages=1000, horizon=20.0),
)
_LEARNING = (
    _pages("uniform-unknown", LEARNING, instance="uniform", reveal="importance", horizon=50.0),
    _pages("noisy-unknown", LEARNING, instance="noisy", reveal="importance", horizon=50.0),
    _pages("cold", LEARNING, instance="cold", reveal="importance", horizon=50.0),
    _pages("mixed-unknown", LEARNING, instance="mixed", reveal="importance", horizon=50.0),
)
_MISSPECIFIED = (
    _pages("late", MISSPECIFIED, instance="late"),
    _pages("corrupted", MISSPECIFIED, instance="corrupted"),
    *(
        _pages(name, MISSPECIFIED, PERFECT, instance=name)
        for name in ("bursty", "periodic", "deploys", "shifting")
    ),
)


def _harmonic(name: str, bound: str = PERIODIC, **arguments: Any) -> Task:
    arguments = {"num_pages": 100, "horizon": 100.0, "action": "page", **arguments}
    random = "UniformCrawl" if arguments["action"] == "rates" else "RandomCrawl"
    return Task(name, MISSED, HARMONIC, arguments, "penalty", bound, random)


_MISSED = (
    _harmonic("harmonic"),
    _harmonic("harmonic-tight", bandwidth=5.0, horizon=400.0),
    _harmonic("harmonic-ample", bandwidth=80.0, horizon=25.0),
    _harmonic("harmonic-1000", num_pages=1000, horizon=20.0),
    _harmonic("harmonic-unknown", reveal="importance"),
    _harmonic("harmonic-rates", POISSON, action="rates", horizon=200.0),
)


def _fragments(name: str, **arguments: Any) -> Task:
    arguments = {"num_pages": 50, "horizon": 100.0, **arguments}
    return Task(name, FRAGMENTS, LONGEVITY, arguments, "divergence", ORACLE)


_FRAGMENTS = (
    _fragments("quality", instance="quality"),
    _fragments("random", instance="random"),
    _fragments("quality-tight", instance="quality", bandwidth=2.0),
    _fragments("quality-unknown", instance="quality", reveal="importance"),
    _fragments("random-unknown", instance="random", reveal="importance"),
    _fragments("quality-signals", instance="quality", signals="noisy"),
)


def _offers(name: str, action: str, **arguments: Any) -> Task:
    arguments = {"num_pages": 1000, "horizon": 7.0, "action": action, **arguments}
    random = "UniformCrawl" if action == "rates" else "RandomCrawl"
    return Task(name, SHOPPING, OFFERS, arguments, "freshness", PERFECT, random)


_OFFERS = (
    _offers("offers-rates", "rates"),
    _offers("offers-rates-tight", "rates", bandwidth=20.0),
    _offers("offers-scores", "scores"),
    _offers("offers-scores-known", "scores", reveal="parameters"),
)


def _recorded(name: str, days_per_crawl: float, **arguments: Any) -> Task:
    arguments = {"trace": "garden-handbook", "days_per_crawl": days_per_crawl, **arguments}
    return Task(name, RECORDED, TRACE, arguments, bound=CLAIRVOYANT)


_RECORDED = tuple(
    _recorded(f"garden-{signals}-{days}", float(days), signals=signals, importance="zipf")
    for signals in ("none", "directory")
    for days in (2, 4)
)

TASKS = (*_KNOWN_RATES, *_LEARNING, *_MISSPECIFIED, *_MISSED, *_FRAGMENTS, *_OFFERS, *_RECORDED)
_MINI_NAMES = (
    *("noisy", "cold", "deploys", "harmonic", "quality", "offers-scores"),
    "garden-directory-4",
)
MINI = tuple(task for task in TASKS if task.name in _MINI_NAMES)
