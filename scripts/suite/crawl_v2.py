"""The tasks of crawl-v2: a crawler is taken over, and page sets, laws and sites are held out.

Every episode starts with the copies of a crawler that went round robin for one cycle
(``start="crawled"``). Page sets come from the stream that no training uses (``pages="test"``).
The score of a task is 0 for random crawling and 1 for the informed reference, which knows the true
law but sees only signals and crawls. Recorded tasks are scored on each site, and tasks across sites
on each episode: 0 is round robin, 1 a clairvoyant that knows when each page changes next. In offers
1 is no stale page at all. These and the sanity track, which formulas solve, are not in the overall
score.

Recorded tasks play the second half of each site's record, at most ``CRAWLS_PER_PAGE`` crawls of
each page: at 3 days per crawl its first 90 days, at 10 its first 300.

The given parameters are fitted to the record before that, which includes the crawled round;
histories end before the round, as its crawls are replayed. So formulas of parameters know a little
more: GREEDY-NCIS fitted without the round loses .004 +- .003 at 100 days per crawl, on 16 sites.

Budgets hold in every slot. ThresholdNCIS, whose budget holds on average, is left out: it scored up
to 1.019 where rates are known, and led late, bursty, periodic, shifting and corrupted.

In the track of guarantees no copy may get older than ``MOST_ROUNDS``, as all are younger at the
start. Policies that can promise it do, and so does the reference. Their promises leave a margin
(docs/promises.md): ages stay below 2, so a policy with a smaller margin may exceed a score of 1.

Rules for learners, which ``scripts.rank`` checks (:mod:`scripts.suite.protocol`):

* Training may use the laws of ``TRAINING_LAWS``, page sets of ``pages="train"`` with at most
  ``MAX_TRAINING_PAGES`` pages, and the recorded sites of the splits train and dev.
* The other laws, larger page sets and the sites of the split test are for tests alone.
* An agent declares the worlds of its training. One that declares none, or one of tests, is refused.
  Shipped agents of that kind are left out. Environments and policies of the user are not checked.
* A learner counts by several trainings, 5 in ``scripts.rank --train``, of at most 2,000,000 steps.
  Repetition k plays training k mod 5, and intervals are over trainings; on recorded sites all
  trainings play all sites, and intervals are over both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crawl_envs.instances import traces
from crawl_envs.instances.traces.collection import site_table
from scripts.suite.tasks import (
    CLAIRVOYANT,
    HARMONIC,
    INFORMED,
    LONGEVITY,
    NCIS,
    OFFERS,
    PERFECT,
    SANITY,
    SITES,
    TRACE,
    Task,
)

MAX_TRAINING_PAGES = 300
TRAINING_LAWS = ("uniform", "partial", "noisy", "cold", "mixed", "late", "bursty", "deploys")
"""Laws of CrawlNCIS-v0 that training may use."""
HIDDEN, MISSPECIFIED, HELD_OUT = "hidden rates", "misspecified", "held-out laws"
MISSED, FRAGMENTS, SHOPPING, PRICES = "missed changes", "fragments", "offers", "prices"
RECORDED, ACROSS, GUARANTEES = "recorded", "across sites", "guarantees"
DAYS_PER_CRAWL = (3, 10, 30, 100)
"""Days between crawls of a page in the recorded tasks."""
CRAWLS_PER_PAGE = 30
"""Largest mean number of crawls of a page in an episode of the recorded tasks."""
MOST_ROUNDS = 3.0
"""Largest age of a copy in the track of guarantees: promises then need a third of the bandwidth."""
TAKEN_OVER: dict[str, Any] = {"start": "crawled", "pages": "test"}
TIGHT: dict[str, Any] = {"instance": "noisy", "bandwidth": 25.0, "horizon": 100.0}


def _pages(name: str, track: str, reason: str, **arguments: Any) -> Task:
    defaults = {"num_pages": 100, "bandwidth": 100.0, "horizon": 20.0, **TAKEN_OVER}
    averaged, arguments = track != SANITY, {**defaults, **arguments}
    return Task(name, track, NCIS, arguments, bound=INFORMED, reason=reason, averaged=averaged)


def _hidden(name: str, track: str, reason: str, **arguments: Any) -> Task:
    arguments = {"horizon": 50.0, **arguments}
    return _pages(name, track, reason, reveal="importance", **arguments)


def _harmonic(name: str, track: str, reason: str, **arguments: Any) -> Task:
    arguments = {"num_pages": 100, "horizon": 100.0, "action": "page", **TAKEN_OVER, **arguments}
    what = name, track, HARMONIC, arguments, "penalty", INFORMED
    return Task(*what, reason=reason, averaged=track != SANITY)


def _fragments(name: str, track: str, reason: str, **arguments: Any) -> Task:
    arguments = {"num_pages": 50, "horizon": 100.0, **TAKEN_OVER, **arguments}
    what = name, track, LONGEVITY, arguments, "divergence", INFORMED
    return Task(*what, reason=reason, averaged=track != SANITY)


def _offers(name: str, action: str, reason: str, **arguments: Any) -> Task:
    arguments = {"num_pages": 1000, "horizon": 7.0, "action": action, **TAKEN_OVER, **arguments}
    random = "UniformCrawl" if action == "rates" else "RandomCrawl"
    what = name, SHOPPING, OFFERS, arguments, "freshness", PERFECT, random, reason
    return Task(*what, averaged=False)


def _window(length: float, days_per_crawl: int) -> list[float]:
    """Return the first and last day that a recorded task plays of a record of ``length`` days."""
    half = length / 2.0
    return [half, min(length, half + CRAWLS_PER_PAGE * days_per_crawl)]


def _recorded(days: int, history: bool, split: str = "test") -> Task:
    arguments = {
        **{"signals": "both", "days_per_crawl": float(days), "start": "crawled"},
        "reveal": "parameters" if history else "importance",
    }
    name = f"{RECORDED if split == 'test' else split}-{days}-{'history' if history else 'nothing'}"
    reason = (
        f"{split} sites, a crawl per page in {days} days, "
        f"{'after half of the record' if history else 'from nothing'}"
    )
    lengths = {row["site"]: float(row["days"]) for row in site_table()}
    variants = tuple(
        {"trace": site, "window": _window(lengths[site], days)} for site in traces.sites(split)
    )
    task = Task(name, RECORDED, TRACE, arguments, bound=CLAIRVOYANT, reason=reason)
    return replace(task, averaged=split == "dev", variants=variants, history=history)


def _sites(name: str, reveal: str, reason: str) -> Task:
    arguments = {
        **{"split": "test", "num_pages": 100, "days_per_crawl": (3.0, 30.0)},
        **{"signals": "both", "start": "crawled", "reveal": reveal},
    }
    where = Task(name, ACROSS, SITES, arguments, bound=CLAIRVOYANT, reason=reason, averaged=False)
    return replace(where, random="RoundRobin")


_SANITY = (
    _pages("uniform", SANITY, "no signals: GREEDY is optimal", instance="uniform"),
    _pages("noisy", SANITY, "known rates and noisy signals: GREEDY-NCIS", instance="noisy"),
    _pages("delayed", SANITY, "signals that come late, by a known law", instance="delayed"),
    _pages("sources", SANITY, "several sources of known quality", instance="sources"),
    _pages("bing-like", SANITY, "a search engine's rates", instance="bing-like", num_pages=1000),
    _harmonic("harmonic", SANITY, "known rates: GreedyHarmonic"),
    _fragments("quality", SANITY, "known divergence curves: FragmentStatic", instance="quality"),
    _fragments("quality-tight", SANITY, "the same, few crawls", instance="quality", bandwidth=2.0),
    _pages("noisy-costs", SANITY, "prices: GREEDY-NCIS", instance="noisy", cost_spread=1.0),
    _fragments("quality-costs", SANITY, "priced fragments", instance="quality", cost_spread=1.0),
)
_HIDDEN = (
    _hidden("uniform-hidden", HIDDEN, "rates to learn, no signals", instance="uniform"),
    _hidden("noisy-hidden", HIDDEN, "rates and the quality of signals to learn", instance="noisy"),
    _hidden("cold", HIDDEN, "pages that hardly change among fast ones", instance="cold"),
    _hidden("mixed-hidden", HIDDEN, "some pages tell each change", instance="mixed"),
    _hidden("noisy-hidden-tight", HIDDEN, "a quarter of the crawls to learn from", **TIGHT),
)
_MISSPECIFIED = (
    _pages("late", MISSPECIFIED, "signals come late by an unknown delay", instance="late"),
    _pages("bursty", MISSPECIFIED, "bursts of changes", instance="bursty"),
    _pages("deploys", MISSPECIFIED, "hosts change all their pages at once", instance="deploys"),
    _hidden("bursty-hidden", MISSPECIFIED, "bursts at hidden rates", instance="bursty"),
    _hidden("deploys-hidden", MISSPECIFIED, "deploys at hidden rates", instance="deploys"),
)
_HELD_OUT = (
    _pages("periodic", HELD_OUT, "a law not trained on: regular changes", instance="periodic"),
    _pages("shifting", HELD_OUT, "a law not trained on: habits that shift", instance="shifting"),
    _pages("corrupted", HELD_OUT, "a law not trained on: wrong parameters", instance="corrupted"),
    _hidden("shifting-hidden", HELD_OUT, "shifting habits at hidden rates", instance="shifting"),
    _hidden(
        *("bursty-hidden-1000", HELD_OUT, "ten times the pages, a quarter of the budget"),
        instance="bursty",
        num_pages=1000,
        bandwidth=250.0,
        horizon=40.0,
    ),
)
_MISSED = (
    _harmonic("harmonic-hidden", MISSED, "rates to learn", reveal="importance"),
    _harmonic(
        *("harmonic-hidden-tight", MISSED, "a quarter of the crawls to learn from"),
        reveal="importance",
        bandwidth=5.0,
        horizon=400.0,
    ),
    _harmonic(
        *("harmonic-hidden-1000", MISSED, "ten times the pages"),
        reveal="importance",
        num_pages=1000,
        horizon=50.0,
    ),
)
HIDDEN_CURVES = {"reveal": "importance"}
_FRAGMENTS = (
    _fragments("quality-hidden", FRAGMENTS, "curves to learn", instance="quality", **HIDDEN_CURVES),
    _fragments("random-hidden", FRAGMENTS, "curves to learn", instance="random", **HIDDEN_CURVES),
)
_OFFERS = (
    _offers("offers-rates", "rates", "a shop's day, crawled at rates"),
    _offers("offers-scores", "scores", "a shop's day, crawled by scores"),
    _offers("offers-scores-tight", "scores", "few crawls", bandwidth=20.0),
)
_PRICES = (
    _hidden("hidden-costs", PRICES, "prices, hidden rates", instance="noisy", cost_spread=1.0),
    _hidden("bursty-costs", PRICES, "prices and bursts", instance="bursty", cost_spread=1.0),
)
_RECORDED = tuple(_recorded(days, history) for history in (False, True) for days in DAYS_PER_CRAWL)
_ACROSS = (
    _sites("sites", "parameters", "a test site, window, size and budget per seed, fitted rates"),
    _sites("sites-hidden", "importance", "a test site and budget per seed, from nothing"),
)
_GUARANTEES = tuple(
    replace(task, most_rounds=MOST_ROUNDS)
    for task in (
        _hidden(
            *("noisy-hidden-promise", GUARANTEES, "no old copies, few crawls to learn from"),
            **TIGHT,
        ),
        _pages("bursty-promise", GUARANTEES, "no old copies while pages burst", instance="bursty"),
    )
)

TASKS = (
    *_SANITY,
    *_HIDDEN,
    *_MISSPECIFIED,
    *_HELD_OUT,
    *_MISSED,
    *_FRAGMENTS,
    *_OFFERS,
    *_PRICES,
    *_RECORDED,
    *_ACROSS,
    *_GUARANTEES,
)
"""All tasks of the suite, in order of their tracks."""
RECORDED_DEV = tuple(
    _recorded(days, history, "dev") for history in (False, True) for days in (10, 30)
)
"""Recorded tasks on the sites of the split dev, to choose settings by."""
