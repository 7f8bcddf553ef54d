"""Bad input gets one clear error of our own, which names the argument, before work starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
import policies
from crawl_envs import FAMILIES, evaluation, instances
from crawl_envs.types import Instance
from policies import estimators, solvers
from policies.live.scheduler import CrawlScheduler
from tests.environments import of_our_own

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"num_pages": 5, "bandwidth": 5.0, "horizon": 2.0}
NAN, INF, HUGE = float("nan"), float("inf"), 10**12
WORDS = ("x", 3, ["x"], {"a": 1}, np.array(["x"]))
"""What is given in the place of a word."""

OF_FAMILIES: dict[str, tuple[Any, ...]] = {
    "action": WORDS,
    "observation": WORDS[:3],
    "reveal": WORDS[:3],
    "objective": ("x", 3, ["x"], np.ones((2, 2)), {}),
    "bandwidth": (0, -1.0, NAN, INF, "x", [1]),
    "crawl_cost": (-1, "x", NAN),
    "overspend": ("x", 3),
    "resample": ("x", 3),
}
OF_ONE: dict[str, dict[str, tuple[Any, ...]]] = {
    "CrawlNCIS-v0": {
        "instance": (*WORDS, None, ""),
        "num_pages": (0, -1, 2.5, "10", None, HUGE, True, np.ones(2)),
        "horizon": (0, -1, NAN, INF, "x", 1e300),
        "batch": (0, -1, 1.5, "x", HUGE),
        "epoch": (0, -1, "x"),
        "bucket": (-1, "x"),
        "delay": ("x", 3, {"kind": "x"}, {}),
        "corruption": (-1, 2, "x"),
        "pages": WORDS[:3],
        "num_sources": (0, 99, "x"),
        "bandwidth_steps": (3, "x", [(1,)], [(1, -1)], [(-1, 1)]),
        "reward": WORDS[:3],
    },
    "CrawlTrace-v0": {
        "trace": (3, None, "", ["x"], "/nowhere"),
        "window": ((5, 1), 3, "x", (1,), (NAN, 2)),
        "days_per_crawl": (0, -1, "x", INF),
        "importance": WORDS[:3],
        "signals": WORDS[:3],
        "parameters": (3, "/nowhere"),
    },
    "CrawlSites-v0": {
        "split": (3, None, "", ["x"], [3], "/nowhere", []),
        "num_pages": (0, -1, 2.5, "10", None, True),
        "days": (0, -1, "x", NAN, 1e6),
        "days_per_crawl": (0, -1, "x", INF, (1,), (2, 1), ("x", 2)),
        "importance": WORDS[:3],
        "signals": WORDS[:3],
        "start": WORDS[:3],
        "reward": ("requests",),
    },
    "CrawlHarmonic-v0": {
        "epoch": (0.0, NAN, "day"),
        "bucket": (0.5, -1.0, NAN, INF, "big"),
        "batch": (2, 0, 1.5),
        "reward": ("praise", "requests"),
        "num_sources": (2, 0),
    },
    "CrawlLongevity-v0": {"base_versions": (-1, HUGE, "x"), "sketch_size": (0, "x")},
    "CrawlOffers-v1": {
        "num_pages": (0,),
        "reward": ("penalty",),
        "first_day": (-1, "x", 365, HUGE),
        "world": (-1, "x"),
        "price_history": WORDS[:2],
    },
}
MADE = [
    (env_id, name, value)
    for env_id in FAMILIES
    for name, values in (OF_FAMILIES | OF_ONE.get(env_id, {})).items()
    for value in values
    if (env_id, name) != ("CrawlSites-v0", "bandwidth")  # which follows from the days per crawl
]


@pytest.mark.parametrize(("env_id", "name", "value"), MADE)
def test_arguments_of_environments(env_id: str, name: str, value: Any) -> None:
    other = {"epoch": "action", "bucket": "action"}.get(name)  # only for rates
    words = (name, other or name, {"delay": "kind"}.get(name, name), "render_mode")
    with pytest.raises((ValueError, gym.error.Error)) as caught:
        gym.make(env_id, **{name: value})
    of_our_own(caught)
    assert any(word in str(caught.value) for word in words)
    if isinstance(value, int | float | str) and name != "parameters":
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize("env_id", FAMILIES)
@pytest.mark.parametrize("name", ["foo", "reward_"])
def test_unknown_arguments_are_type_errors(env_id: str, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        gym.make(env_id, **{name: 1})


def ready() -> Any:
    env = gym.make("CrawlNCIS-v0", **SIZES)
    env.reset(seed=0)
    return env


def greedy() -> Any:
    return policies.make("GreedyNCIS", ready())


def evaluate(*given: Any, **named: Any) -> Any:
    return list(evaluation.evaluate(*given, **named))


def scheduler() -> CrawlScheduler:
    made = CrawlScheduler("GreedyNCIS", bandwidth=1.0)
    quality = {"recall": [0.5, 0.5], "false_signal_rate": [0.1, 0.1]}
    made.add(["a", "b"], importance=[1.0, 1.0], change_rate=[1.0, 1.0], **quality)
    return made


CALLS: dict[str, Callable[[], Any]] = {
    "policy None": lambda: evaluation.play(ready(), None, 0),  # type: ignore[arg-type]
    "env 3": lambda: evaluation.play(3, greedy(), 0),  # type: ignore[arg-type]
    "env CartPole": lambda: evaluation.play(gym.make("CartPole-v1"), greedy(), 0),
    "env_id unknown": lambda: evaluate("nosuch", {}, [0]),
    "env_id 3": lambda: evaluate(3, {}, [0]),
    "env_id CartPole": lambda: evaluate("CartPole-v1", {}, [0]),
    "policies list": lambda: evaluate("CrawlNCIS-v0", ["GreedyNCIS"], [0]),
    "policy list": lambda: policies.make(["GreedyNCIS"], ready()),  # type: ignore[arg-type]
    "env of make": lambda: policies.make("GreedyNCIS", gym.make("CartPole-v1")),
    "env number": lambda: policies.make("GreedyNCIS", 3),
    "terms x": lambda: policies.make("GreedyNCISApprox", ready(), terms="x"),
    "env of an agent": lambda: agents.load("noisy-index", gym.make("CartPole-v1")),
    "env of an index 3": lambda: agents.load("noisy-index", 3),
    "env of a scorer 3": lambda: agents.load("noisy-pages", 3),
    "nosuch": lambda: agents.load("nosuch"),
    "cycle x": lambda: agents.load("noisy-index", cycle="x"),  # type: ignore[arg-type]
    "change_rate 9e39": lambda: Instance([1.0], 9e39, bandwidth=1.0),
    "instance list": lambda: instances.make(["noisy"]),  # type: ignore[arg-type]
    "problem to ncis": lambda: solvers.ncis(3),  # type: ignore[arg-type]
    "signals of two": lambda: estimators.signal_quality_mle([1.0], [0, 1], [True]),
    "page huge": lambda: estimators.empirical_bayes([1.0], [0], [True], page=[HUGE]),
    "page negative": lambda: estimators.empirical_bayes([1.0], [0], [True], page=[-1]),
    "policy of a scheduler": lambda: CrawlScheduler(3, bandwidth=1.0),  # type: ignore[arg-type]
    "policy unknown": lambda: CrawlScheduler("x", bandwidth=1.0),
    "timeout x": lambda: CrawlScheduler("GreedyNCIS", bandwidth=1.0, timeout="x"),  # type: ignore[arg-type]
    "time x": lambda: scheduler().next("x"),  # type: ignore[arg-type]
    "time nan": lambda: scheduler().next(NAN),
    "changed of two": lambda: scheduler().report(["a"], 0.5, changed=[True, False]),
    "gap negative": lambda: scheduler().limit_hosts(gap=-1, most=0),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls(case: str) -> None:
    with pytest.raises(ValueError, match=case.split()[0]) as caught:
        CALLS[case]()
    of_our_own(caught)
