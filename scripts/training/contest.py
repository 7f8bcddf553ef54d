"""An agent and the policies that it is measured against, as the runner of jobs plays them."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import agents
import policies
from agents.evolution.stored import read_object
from agents.sb3.arguments import TrainArguments
from crawl_envs.evaluation import PolicyFactory, Row
from crawl_envs.types import Policy
from crawl_envs.types.compiled_policies import CompilablePolicy
from scripts.reporting.comparisons import OF_FRAGMENTS, ON_FRAGMENTS, policy_factories
from scripts.reporting.settings import Setting
from scripts.training.options import PREFIX
from scripts.training.rivals import all_names

FIRST_SEED = 1_000_000
"""First seed of evaluations, away from those that agents are usually trained on."""
USUAL = (
    *("RandomCrawl", "RoundRobin", "LambdaCrawl", "Greedy", "GreedyCIS", "GreedyNCIS"),
    *("GreedyHarmonic", "LearningGreedyNCIS", "LambdaLearnAndCrawl"),
)
"""Policies that an agent is measured against unless others are named, where they can act."""


class Entrant(NamedTuple):
    """Who is evaluated.

    Attributes:
        label: stands in rows and tables.
        factory: builds it for an environment.
        env_id: the environment that it was trained in; empty where nothing is known of it.
        env_args: the arguments of that.
        learned: whether it is an agent, and no analytic policy.
    """

    label: str
    factory: PolicyFactory
    env_id: str = ""
    env_args: Mapping[str, Any] = {}
    learned: bool = True


def entrant_of(model: str) -> Entrant:
    """Return who is meant: a folder or shipped name of an agent, or an analytic policy.

    Raises:
        ValueError: it is none of these, or the agent's file is damaged or foreign.
    """
    folder = agents.SHIPPED / model if model in agents.names() else Path(model)
    files = [folder / name for name in agents.AGENT_FILES if (folder / name).exists()]
    if files:
        digest = hashlib.sha256(files[0].read_bytes()).hexdigest()[:16]
        label = folder.resolve().name
        label = f"agent {label}" if label in policies.names(fragments=True) else label
        return Entrant(label, partial(loaded, str(folder), digest=digest), *_trained_on(files[0]))
    if model.partition(":")[0] in policies.names(fragments=True):
        return Entrant(model, policy_factories([model])[model], learned=False)
    shipped = ", ".join(agents.names()) or "none yet"
    raise ValueError(
        f"model must be a folder with {' or '.join(agents.AGENT_FILES)}, a shipped agent "
        f"({shipped}) or a policy ({', '.join(policies.names(fragments=True))}), got {model!r}"
    )


def _trained_on(file: Path) -> tuple[str, dict[str, Any]]:
    """Return the environment of a training run and its arguments, as far as its file tells."""
    if file.name == "model.zip":
        from agents.sb3.model_file import read_arguments

        told: TrainArguments = read_arguments(file)
        return told.env_id, dict(told.env_args)
    if file.name == "index.json":
        from agents.evolution import read_index

        made = read_index(file.parent).made
        names = ("instance", "num_pages", "bandwidth", "horizon", "reveal")
        return "CrawlNCIS-v0", {name: made[name] for name in names if name in made}
    return _told_beside(file.with_name("config.json"))


def _told_beside(config: Path) -> tuple[str, dict[str, Any]]:
    """Return the environment that a file of arguments names, in its last stage if it has several.

    Raises:
        ValueError: the file is damaged.
    """
    if not config.exists():
        return "", {}
    told = read_object(config)
    stages = told.get("stages")
    last = stages[-1] if isinstance(stages, list) and stages else told
    last = last if isinstance(last, dict) else {}
    env_id, env_args = last.get("env_id"), last.get("env_args")
    if not (isinstance(env_id, str) and isinstance(env_args, dict)):
        return "", {}
    return env_id.removeprefix(PREFIX), env_args


def loaded(folder: str, env: Any, *, digest: str = "") -> Policy:
    """Return the agent in a folder, for an environment.

    Args:
        folder: where it is.
        env: the environment.
        digest: of its file, by which rows of another agent can be told.

    Raises:
        ValueError: there is none, or it does not fit.
    """
    agent: Policy = agents.load(folder, env)
    return agent


@dataclass(frozen=True)
class Contest(Setting):
    """A setting whose repetition i plays the seed ``first_seed + i``.

    Attributes:
        agent: the label of an agent, which is given one thread of torch, or None.
        first_seed: the first seed.
    """

    agent: str | None = None
    first_seed: int = FIRST_SEED

    def check(self) -> None:
        """Make the environment and the policies, and have them choose; ValueError as they raise."""
        super().check()
        env = gymnasium.make(self.id, **self.arguments)
        env.reset(seed=self.first_seed)
        for label, factory in self.policies.items():
            try:
                _choose(env, factory)
            except ValueError as error:
                raise ValueError(f"{label} cannot act here: {error}") from None
        env.close()

    def play(self, label: str, seed: int) -> list[Row]:
        """Return the rows of one policy in one repetition."""
        with _one_thread() if label == self.agent else contextlib.nullcontext():
            rows = super().play(label, self.first_seed + seed)
        return [row._replace(seed=seed) for row in rows]

    def described(self) -> dict[str, Any]:
        """Everything that decides the numbers, as plain values."""
        return {**super().described(), "first_seed": self.first_seed}


def _one_thread() -> contextlib.AbstractContextManager[None]:
    from agents.sb3.torch_threads import threads

    return threads(1)


def _choose(env: gymnasium.Env[Any, Any], factory: PolicyFactory) -> None:
    """Have a policy choose, as playing will; ValueError where it cannot.

    What an environment does not reveal, many policies miss only then.
    """
    core: Any = env.unwrapped
    policy = factory(env)
    if core.action_form in ("page", "rates") and isinstance(policy, CompilablePolicy):
        policy.compile(core.problem, core.num_slots(), core.rng())
        return
    observation, _ = env.reset(seed=FIRST_SEED)
    policy.predict(observation, None, np.ones(1, np.bool_), deterministic=True)


def contest_of(
    entrant: Entrant, env_id: str, env_args: Mapping[str, Any], specs: Sequence[str]
) -> Contest:
    """Return the setting in which an entrant meets others; checked, so that playing will do.

    Args:
        entrant: who is evaluated. In the environment that it was trained in, the arguments that
            are not given are those of its training.
        env_id: id of the environment.
        env_args: its arguments.
        specs: policies as ``Name`` or ``Name:key=value``, or ``all`` that are no oracles; none
            takes the usual ones.

    Raises:
        ValueError: what the environment objects to, an unknown policy, one that is named and
            cannot act there, or an agent that does not fit.
    """
    name = env_id.removeprefix(PREFIX)
    TrainArguments(env_id=name)
    same = entrant.env_id == name
    arguments = {**(entrant.env_args if same else {}), **env_args}
    chosen = Contest(
        name,
        name,
        arguments,
        {entrant.label: entrant.factory},
        agent=entrant.label if entrant.learned else None,
    )
    chosen.check()
    free = not specs or list(specs) == ["all"]
    usual = dict.fromkeys((*USUAL, *(ON_FRAGMENTS if name == OF_FRAGMENTS else ())))
    wanted = list(specs) if not free else all_names(name) if specs else list(usual)
    factories = policy_factories([spec for spec in wanted if spec != entrant.label])
    if free:
        factories = _that_can_act(factories, name, arguments)
    full = replace(chosen, policies={**chosen.policies, **factories})
    full.check()
    return full


def _that_can_act(
    factories: Mapping[str, PolicyFactory], env_id: str, env_args: Mapping[str, Any]
) -> dict[str, PolicyFactory]:
    """Return the policies that an environment gives all they need."""
    env = gymnasium.make(env_id, **env_args)
    env.reset(seed=0)
    found = {}
    for label, factory in factories.items():
        with contextlib.suppress(ValueError):
            _choose(env, factory)
            found[label] = factory
    env.close()
    return found
