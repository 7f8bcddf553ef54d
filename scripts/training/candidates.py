"""Agents and policies to compare: their names, and whether they can act in an environment."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import agents
import policies
from agents.catalog import AGENT_FILES, SHIPPED
from agents.runs import read_object
from agents.sb3.comparison import FIRST_SEED
from crawl_envs.evaluation import PolicyFactory
from crawl_envs.types import Policy
from crawl_envs.types.arguments import one_of
from crawl_envs.types.compiled_policies import CompilablePolicy
from scripts.cli.options import PREFIX
from scripts.study.comparisons import (
    OF_FRAGMENTS,
    ON_FRAGMENTS,
    is_oracle,
    is_policy,
    policy_factories,
)
from scripts.study.settings import env_with

SIMPLE = ("RandomCrawl", "RoundRobin")
"""Policies without parameters, which any agent should exceed."""
USUAL = (
    *(*SIMPLE, "LambdaCrawl", "Greedy", "GreedyCIS", "GreedyNCIS"),
    *("GreedyHarmonic", "LearningGreedyNCIS", "LambdaLearnAndCrawl"),
)
"""Default policies to compare with, if they can act in the environment."""


class Candidate(NamedTuple):
    """An agent or policy to evaluate.

    Attributes:
        label: name in rows and tables.
        factory: function of an environment that returns the policy.
        env_id: id of the training environment; empty if unknown.
        env_args: arguments of the training environment.
        learned: True for agents, False for analytic policies.
        training_seconds: wall time of the training, NaN if unknown, 0 for analytic policies.
    """

    label: str
    factory: PolicyFactory
    env_id: str = ""
    env_args: Mapping[str, Any] = {}
    learned: bool = True
    training_seconds: float = 0.0

    @property
    def digest(self) -> str:
        """Hash of the file of an agent or of a policy of one's own; empty for others."""
        return str(getattr(self.factory, "keywords", {}).get("digest", ""))


def candidate_of(model: str) -> Candidate:
    """Return the candidate of a name: folder or name of an agent, or name of a policy.

    Raises:
        ValueError: an unknown name, or a file that is damaged or foreign.
    """
    shipped = model in agents.names()
    folder = SHIPPED / model if shipped else Path(model)
    files = [folder / name for name in AGENT_FILES if (folder / name).exists()]
    if files:
        digest = hashlib.sha256(files[0].read_bytes()).hexdigest()[:16]
        label = folder.resolve().name
        label = f"agent {label}" if label in policies.names(fragments=True) else label
        named = model if shipped else str(folder)
        factory, seconds = partial(loaded, named, digest=digest), _training_seconds(folder)
        return Candidate(label, factory, *_trained_on(files[0]), training_seconds=seconds)
    if not is_policy(model):
        known = (*policies.names(fragments=True), *agents.names())
        also = f"a folder with {' or '.join(AGENT_FILES)}, or module:Class"
        one_of("policy or agent", model, known, also)
    return Candidate(model, policy_factories([model])[model], learned=False)


def candidates_of(names: Iterable[str]) -> dict[str, Candidate]:
    """Return the candidates of names, by label and in order.

    Raises:
        ValueError: as for :func:`candidate_of`, or two of the same label.
    """
    candidates: dict[str, Candidate] = {}
    for name in dict.fromkeys(names):
        candidate = candidate_of(name)
        if candidate.label in candidates:
            raise ValueError(f"entrants must have different names, got {candidate.label!r} twice")
        candidates[candidate.label] = candidate
    return candidates


def _training_seconds(folder: Path) -> float:
    """Return the wall time that the provenance of an agent tells, NaN if there is none."""
    run, shipped = folder / "provenance.json", folder / "score.json"
    if run.exists():
        return float(read_object(run).get("wall_seconds", math.nan))
    if shipped.exists():
        return float(read_object(shipped)["made"].get("wall_seconds", math.nan))
    return math.nan


def _trained_on(file: Path) -> tuple[str, dict[str, Any]]:
    """Return the environment of a training run and its arguments, as far as known."""
    if file.name == "model.zip":
        from agents.sb3.model_file import read_arguments

        arguments = read_arguments(file)
        return arguments.env_id, dict(arguments.env_args)
    if file.name == "index.json":
        from agents.index import StoredIndex

        settings = StoredIndex.read(file.parent).made
        names = ("instance", "num_pages", "bandwidth", "horizon")
        return "CrawlNCIS-v0", {name: settings[name] for name in names if name in settings}
    config = file.with_name("config.json")
    match read_object(config) if config.exists() else {}:  # of the last stage, if several
        case {"env_id": str(env_id), "env_args": dict(env_args)} | {
            "stages": [*_, {"env_id": str(env_id), "env_args": dict(env_args)}]
        }:
            return env_id.removeprefix(PREFIX), env_args
    return "", {}


def loaded(folder: str, env: Any, *, digest: str = "") -> Policy:
    """Return the agent in a folder, or a shipped one, for an environment.

    A folder is kept beside the rows, so that shipped ones, the same in every checkout, are named;
    ``digest``, a hash of its file, distinguishes its rows from those of other agents.
    """
    agent: Policy = agents.load(folder, env)
    return agent


def one_thread() -> contextlib.AbstractContextManager[None]:
    """Return a block in which torch uses one thread."""
    from agents.sb3.torch_threads import threads

    return threads(1)


def try_choosing(env: gymnasium.Env[Any, Any], factory: PolicyFactory) -> None:
    """Have a policy choose an action; ValueError if it cannot.

    Many policies detect missing information only then.
    """
    core: Any = env.unwrapped
    try:
        policy = factory(env)
    except TypeError as error:  # an unknown argument
        raise ValueError(str(error)) from error
    if core.action_form in ("page", "rates") and isinstance(policy, CompilablePolicy):
        policy.compile(core.problem, core.num_slots(), core.rng())
        return
    observation, _ = env.reset(seed=FIRST_SEED)
    policy.predict(observation, None, np.ones(1, np.bool_), deterministic=True)


def chosen_names(env_id: str, specs: Sequence[str]) -> list[str]:
    """Return the policies to compare with: the simple ones first, and others.

    Args:
        env_id: id of the environment.
        specs: names as of :func:`candidate_of`, policies also as ``Name:key=value``; ``all`` for
            all policies without oracles; empty for the usual ones.
    """
    chosen = list(specs)
    if not specs:
        chosen = [*USUAL, *(ON_FRAGMENTS if env_id == OF_FRAGMENTS else ())]
    elif chosen == ["all"]:
        known = policies.names(fragments=env_id == OF_FRAGMENTS)
        chosen = [name for name in known if not is_oracle(name)]
    return list(dict.fromkeys((*SIMPLE, *chosen)))


def applicable(
    factories: Mapping[str, PolicyFactory], env_id: str, env_args: Mapping[str, Any]
) -> tuple[dict[str, PolicyFactory], dict[str, str]]:
    """Return the policies that can act in an environment, and why the others cannot, by label.

    Raises:
        ValueError: an argument that the environment does not have, or rejects.
        RuntimeError: any error of a policy but a ValueError.
    """
    env = env_with(env_id, env_args)
    env.reset(seed=0)
    able, refused = {}, {}
    for label, factory in factories.items():
        try:
            try_choosing(env, factory)
            able[label] = factory
        except ValueError as error:
            refused[label] = str(error)
        except Exception as error:
            said = f"{label} in {env_id} failed: {type(error).__name__}: {error}"
            raise RuntimeError(said) from error
    env.close()
    return able, refused
