"""The task of all examples, and their scores at its end beside random crawling and two policies.

The score is that of the leaderboard: (x - random) / (bound - random), with the freshness x.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import policies
from crawl_envs.evaluation import Row, evaluate, summarize
from scripts.present.tables import console, plus_minus
from scripts.suite.bounds import BOUND, bound_of
from scripts.suite.scores import MIN_SCORE, scores_of
from scripts.suite.tasks import FIRST_SEED, Task

ID = "crawl_envs:CrawlNCIS-v0"
ARGUMENTS = {"num_pages": 10, "bandwidth": 10.0, "horizon": 20.0, "instance": "noisy"}
"""Ten pages, ten crawls per unit of time: 200 decisions in an episode.

Lanes keep their page sets, so 64 lanes train on 64 page sets. With ``"resample": True`` and
``"pages": "train"`` every episode has new pages, none of those of ``"pages": "test"``."""
TASK = Task("noisy-10", "example", ID, ARGUMENTS)
BESIDE = ("RandomCrawl", "Greedy", "GreedyNCIS")


def scores(label: str, policy: Callable[[Any], Any], seeds: int) -> list[Row]:
    """Return the scores of a policy and of BESIDE on the same events.

    Args:
        label: name of the policy.
        policy: function of an environment; it returns an object with ``predict``, such as a model
            of Stable-Baselines3.
        seeds: number of episodes, with the leaderboard's seeds, from ``FIRST_SEED`` on. No example
            trains with them.
    """
    chosen = range(FIRST_SEED, FIRST_SEED + seeds)
    entrants = {name: partial(policies.make, name) for name in BESIDE} | {label: policy}
    bounds = {BOUND: partial(bound_of, kind=TASK.bound, metric=TASK.metric)}
    rows = evaluate(ID, entrants, chosen, setting=TASK.name, bounds=bounds, **ARGUMENTS)
    table = scores_of([TASK], list(rows), {})
    return [
        Row(ID, TASK.name, row.policy, row.seed, "score", max(row.plain, MIN_SCORE))
        for row in table.itertuples(index=False)
    ]


def report(label: str, policy: Callable[[Any], Any], seeds: int) -> float:
    """Print the scores, and return that of the policy; see :func:`scores`."""
    found = summarize(scores(label, policy, seeds), "score", "GreedyNCIS")
    for each in found:
        beside = plus_minus(each.difference, each.difference_half_width, signed=True)
        shown = plus_minus(each.mean, each.half_width)
        console().print(f"{each.policy:>24}  score {shown}   minus GreedyNCIS {beside}")
    return next(each.mean for each in found if each.policy == label)


def run(main: Callable[..., Any], about: str | None, **defaults: int) -> None:
    """Call ``main`` with the options of the command line; those of False are flags."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in {**defaults, "seed": 1, "episodes": 100}.items():
        kind: Any = {"action": "store_true"} if value is False else {"type": int, "default": value}
        parser.add_argument(f"--{name}", **kind)
    main(**vars(parser.parse_args()))
