"""Bad input gets one clear error of our own, which names the argument, before work starts."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import agents
import policies
from crawl_envs import FAMILIES, evaluation, instances
from crawl_envs.types import Instance
from policies import estimators, solvers
from policies.scheduler import CrawlScheduler

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
    "probe": ("x", 3),
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
    "CrawlLongevity-v0": {"base_versions": (-1, HUGE, "x"), "sketch_size": (0, "x")},
    "CrawlOffers-v1": {
        "first_day": (-1, "x", HUGE),
        "world": (-1, "x"),
        "price_history": WORDS[:2],
    },
}
MADE = [
    (env_id, name, value)
    for env_id in FAMILIES
    for name, values in (OF_FAMILIES | OF_ONE.get(env_id, {})).items()
    for value in values
]


def refused(call: Callable[[], Any], word: str = "") -> str:
    """Return the message of an error of our own, which names ``word``; fail on any other."""
    with pytest.raises((ValueError, ResetNeeded)) as caught:
        call()
    place = Path(traceback.extract_tb(caught.value.__traceback__)[-1].filename)
    assert place.is_relative_to(ROOT), place
    assert ".venv" not in place.parts
    message = str(caught.value)
    assert word in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("env_id", "name", "value"), MADE)
def test_arguments_of_environments(env_id: str, name: str, value: Any) -> None:
    other = {"epoch": "action", "bucket": "action"}.get(name)  # only for rates
    words = (name, other or name, {"delay": "kind"}.get(name, name), "render_mode")
    with pytest.raises((ValueError, gym.error.Error)) as caught:
        gym.make(env_id, **{name: value})
    assert any(word in str(caught.value) for word in words)


@pytest.mark.parametrize("env_id", FAMILIES)
@pytest.mark.parametrize("name", ["foo", "reward_"])
def test_unknown_arguments_are_type_errors(env_id: str, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        gym.make(env_id, **{name: 1})


def env(**arguments: Any) -> Any:
    return gym.make("CrawlNCIS-v0", **{**SIZES, **arguments})


def ready(**arguments: Any) -> Any:
    made = env(**arguments)
    made.reset(seed=0)
    return made


def vector(num_envs: Any = 2, **arguments: Any) -> Any:
    return gym.make_vec("CrawlNCIS-v0", num_envs=num_envs, **{**SIZES, **arguments})


def ready_vector(**arguments: Any) -> Any:
    made = vector(**arguments)
    made.reset(seed=0)
    return made


def with_state(**changes: Any) -> None:
    core = ready().unwrapped
    core.set_state({**core.get_state(), **changes})


def masked(mask: Any) -> None:
    ready_vector().reset(options={"reset_mask": mask})


ENVIRONMENTS: dict[str, Callable[[], Any]] = {
    **{f"num_envs {n}": lambda n=n: vector(n) for n in (0, -1, 1.5, "x", HUGE)},
    **{f"autoreset_mode {m}": lambda m=m: vector(autoreset_mode=m) for m in ("x", 3)},
    "copy x": lambda: vector(copy="x"),
    **{
        f"action {number}": lambda action=action: ready().step(action)
        for number, action in enumerate((99, -1, 1.5, "x", None, np.zeros(3)))
    },
    **{
        f"action scores {number}": lambda action=action: ready(action="scores").step(action)
        for number, action in enumerate((np.zeros(3), np.full(5, NAN), "abc", [[1], [1, 2]]))
    },
    "action refresh": lambda: ready(action="refresh").step([1, 0]),
    **{
        f"action rates {number}": lambda action=action: ready(action="rates").step(action)
        for number, action in enumerate((np.full(5, -1.0), np.full(5, NAN), "x"))
    },
    **{
        f"action vector {number}": lambda action=action: ready_vector().step(action)
        for number, action in enumerate(([[0], [1, 2]], [0], "x", None))
    },
    **{f"seed {seed}": lambda seed=seed: env().reset(seed=seed) for seed in ("x", -1, 1.5)},
    **{
        f"options {number}": lambda options=options: env().reset(options=options)
        for number, options in enumerate(("x", {"x": 1}, {"instance": 3}, {"tape": 3}))
    },
    **{
        f"reset_mask {number}": lambda mask=mask: masked(mask)
        for number, mask in enumerate(([[1], [1, 2]], np.array([True]), np.array([0, 1])))
    },
    **{f"seed of a vector {s}": lambda s=s: vector().reset(seed=s) for s in ([1], "x", [-1, 0])},
    **{f"lane {lane}": lambda lane=lane: ready().unwrapped.ledger(lane) for lane in (-1, 9, "x")},
    "reset before ledger": lambda: env().unwrapped.ledger(),
    "reset before tracker": lambda: env().unwrapped.tracker(),
    "reset before step": lambda: env().unwrapped.step(0),
    **{f"state {s}": lambda s=s: ready().unwrapped.set_state(s) for s in (3, "x", {})},
    **{
        f"state with {name}": lambda name=name: with_state(**{name: 3})
        for name in ("np_random", "foo")
    },
}


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_use_of_environments(case: str) -> None:
    refused(ENVIRONMENTS[case], case.split()[0])


def instance() -> Instance:
    return instances.make("noisy", num_pages=5, bandwidth=5.0)


def greedy() -> Any:
    return policies.make("GreedyNCIS", env())


def simulate(*given: Any, **named: Any) -> Any:
    return evaluation.simulate(*given, **named)


def evaluate(*given: Any, **named: Any) -> Any:
    return list(evaluation.evaluate(*given, **named))


EVALUATION: dict[str, Callable[[], Any]] = {
    "instance 3": lambda: simulate(3, greedy(), 2.0),
    "policy as a class": lambda: simulate(instance(), policies.GreedyNCIS, 2.0),
    "tape 3": lambda: simulate(instance(), greedy(), 2.0, tape=3),
    "horizon x": lambda: simulate(instance(), greedy(), "x"),
    "horizon 1e300": lambda: simulate(instance(), greedy(), 1e300),
    "seed x": lambda: simulate(instance(), greedy(), 2.0, seed="x"),
    "policy class": lambda: evaluation.play(ready(), policies.GreedyNCIS, 0),  # type: ignore[arg-type]
    "policy None": lambda: evaluation.play(ready(), None, 0),  # type: ignore[arg-type]
    "env 3": lambda: evaluation.play(3, greedy(), 0),  # type: ignore[arg-type]
    "env CartPole": lambda: evaluation.play(gym.make("CartPole-v1"), greedy(), 0),
    "env_id unknown": lambda: evaluate("nosuch", {}, [0]),
    "env_id 3": lambda: evaluate(3, {}, [0]),
    "env_id CartPole": lambda: evaluate("CartPole-v1", {}, [0]),
    "policies list": lambda: evaluate("CrawlNCIS-v0", ["GreedyNCIS"], [0]),
    "seed of evaluate": lambda: evaluate("CrawlNCIS-v0", {}, [-1]),
    "policy number": lambda: policies.make(3),  # type: ignore[arg-type]
    "policy list": lambda: policies.make(["GreedyNCIS"], env()),  # type: ignore[arg-type]
    "env of make": lambda: policies.make("GreedyNCIS", gym.make("CartPole-v1")),
    "env number": lambda: policies.make("GreedyNCIS", 3),
    "terms x": lambda: policies.make("GreedyNCISApprox", env(), terms="x"),
    "terms 0": lambda: policies.make("GreedyNCISApprox", env(), terms=0),
    "policy module": lambda: policies.make("nosuch:Foo", env()),
    "policy no class": lambda: policies.make("math:pi", env()),
    "env of an agent": lambda: agents.load("noisy-index", gym.make("CartPole-v1")),
    "env of an index 3": lambda: agents.load("noisy-index", 3),
    "env of a scorer 3": lambda: agents.load("noisy-pages", 3),
    "nosuch": lambda: agents.load("nosuch"),
    "cycle x": lambda: agents.load("noisy-index", cycle="x"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", EVALUATION)
def test_evaluation_policies_and_agents(case: str) -> None:
    refused(EVALUATION[case], case.split()[0])


def scheduler() -> CrawlScheduler:
    made = CrawlScheduler("GreedyNCIS", bandwidth=1.0)
    quality = {"recall": [0.5, 0.5], "false_signal_rate": [0.1, 0.1]}
    made.add(["a", "b"], importance=[1.0, 1.0], change_rate=[1.0, 1.0], **quality)
    return made


PAGE = {"bandwidth": 1.0}
THEORY: dict[str, Callable[[], Any]] = {
    "importance negative": lambda: Instance([-1.0], 1.0, **PAGE),
    "importance text": lambda: Instance(["a"], 1.0, **PAGE),
    "importance empty": lambda: Instance([], 1.0, **PAGE),
    "importance None": lambda: Instance(None, 1.0, **PAGE),  # type: ignore[arg-type]
    "importance ragged": lambda: Instance([[1], [1, 2]], 1.0, **PAGE),
    "change_rate 9e39": lambda: Instance([1.0], 9e39, **PAGE),
    "change_rate nan": lambda: Instance([1.0], NAN, **PAGE),
    "change_rate shape": lambda: Instance([1.0, 2.0], [1.0, 2.0, 3.0], **PAGE),
    "instance list": lambda: instances.make(["noisy"]),  # type: ignore[arg-type]
    "seed of make": lambda: instances.make("noisy", seed="x"),  # type: ignore[arg-type]
    "given to ncis": lambda: solvers.ncis(3),  # type: ignore[arg-type]
    "importance of a solver": lambda: solvers.binary_periodic([-1.0], [1.0], 1.0),
    "bandwidth of a solver": lambda: solvers.binary_periodic([1.0], [1.0], 0.0),
    "change_rate of a solver": lambda: solvers.harmonic([1.0], [NAN], 1.0),
    "change_rate of two": lambda: solvers.harmonic([1.0, 2.0], [1.0], 1.0),
    "signals of two": lambda: estimators.signal_quality_mle([1.0], [0, 1], [True]),
    "intervals negative": lambda: estimators.fit_change_rates([-1.0], [True]),
    "intervals text": lambda: estimators.fit_change_rates(["x"], [True]),
    "page huge": lambda: estimators.empirical_bayes([1.0], [0], [True], page=[HUGE]),
    "page negative": lambda: estimators.empirical_bayes([1.0], [0], [True], page=[-1]),
    "policy of a scheduler": lambda: CrawlScheduler(3, bandwidth=1.0),  # type: ignore[arg-type]
    "policy unknown": lambda: CrawlScheduler("x", bandwidth=1.0),
    "bandwidth zero": lambda: CrawlScheduler("GreedyNCIS", bandwidth=0.0),
    "timeout x": lambda: CrawlScheduler("GreedyNCIS", bandwidth=1.0, timeout="x"),  # type: ignore[arg-type]
    "time x": lambda: scheduler().next("x"),  # type: ignore[arg-type]
    "time nan": lambda: scheduler().next(NAN),
    "bogus": lambda: scheduler().report(["a"], 0.5, "bogus"),
    "changed of two": lambda: scheduler().report(["a"], 0.5, changed=[True, False]),
    "gap negative": lambda: scheduler().limit_hosts(gap=-1, most=0),
}


@pytest.mark.parametrize("case", THEORY)
def test_instances_solvers_estimators_and_the_scheduler(case: str) -> None:
    refused(THEORY[case], case.split()[0])
