"""Evaluation of an agent and of policies to compare with, as a setting of the runner."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import agents
import policies
from agents.catalog import AGENT_FILES, SHIPPED
from agents.runs import read_object
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED
from crawl_envs.evaluation import PolicyFactory, Row, make_env
from crawl_envs.types import Policy
from crawl_envs.types.arguments import one_of
from crawl_envs.types.compiled_policies import CompilablePolicy
from scripts.reporting.comparisons import is_policy, policy_factories
from scripts.reporting.options import PREFIX
from scripts.reporting.settings import Setting
from scripts.training.baselines import chosen_names


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
        one_of("model", model, known, f"a folder with {' or '.join(AGENT_FILES)}, or module:Class")
    return Candidate(model, policy_factories([model])[model], learned=False)


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

        arguments: TrainArguments = read_arguments(file)
        return arguments.env_id, dict(arguments.env_args)
    if file.name == "index.json":
        from agents.index import read_index

        settings = read_index(file.parent).made
        names = ("instance", "num_pages", "bandwidth", "horizon")
        return "CrawlNCIS-v0", {name: settings[name] for name in names if name in settings}
    return _read_config(file.with_name("config.json"))


def _read_config(config: Path) -> tuple[str, dict[str, Any]]:
    """Return the environment named in a file of arguments, of the last stage if several.

    Raises:
        ValueError: the file is damaged.
    """
    if not config.exists():
        return "", {}
    arguments = read_object(config)
    stages = arguments.get("stages")
    last = stages[-1] if isinstance(stages, list) and stages else arguments
    last = last if isinstance(last, dict) else {}
    env_id, env_args = last.get("env_id"), last.get("env_args")
    if not (isinstance(env_id, str) and isinstance(env_args, dict)):
        return "", {}
    return env_id.removeprefix(PREFIX), env_args


def loaded(folder: str, env: Any, *, digest: str = "") -> Policy:
    """Return the agent in a folder, or a shipped one, for an environment.

    Args:
        folder: folder of the agent, or the name of a shipped one, which is the same in every
            checkout: it is kept beside the rows.
        env: environment.
        digest: hash of its file, which distinguishes its rows from those of other agents.

    Raises:
        ValueError: no agent there, or one for other environments.
    """
    agent: Policy = agents.load(folder, env)
    return agent


@dataclass(frozen=True)
class Evaluation(Setting):
    """A setting with seeds from ``FIRST_SEED`` on.

    Attributes:
        agent: label of the agent, which runs with one torch thread, or None.
    """

    first_seed: int = FIRST_SEED
    agent: str | None = None

    def check(self) -> None:
        """Make the environment and the policies and test one action; ValueError if one fails."""
        super().check()
        env = make_env(self.id, **self.arguments)
        env.reset(seed=self.first_seed)
        for label, factory in self.policies.items():
            try:
                try_choosing(env, factory)
            except ValueError as error:
                raise ValueError(f"{label} cannot act here: {error}") from None
        env.close()

    def play(self, label: str, seed: int) -> list[Row]:
        """Return the rows of one policy in one repetition."""
        with one_thread() if label == self.agent else contextlib.nullcontext():
            return super().play(label, seed)


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


def evaluation_of(
    candidate: Candidate, env_id: str, env_args: Mapping[str, Any], specs: Sequence[str]
) -> Evaluation:
    """Return the checked setting that compares a candidate with other policies.

    Args:
        candidate: the agent or policy to evaluate. In the environment of its training, arguments
            default to those of its training.
        env_id: id of the environment.
        env_args: arguments of the environment.
        specs: policies as ``Name`` or ``Name:key=value``, or ``all`` but oracles; the default
            policies if empty.

    Raises:
        ValueError: arguments that the environment rejects, an unknown policy, a named policy that
            cannot act there, or an agent of another environment.
    """
    name = env_id.removeprefix(PREFIX)
    TrainArguments(env_id=name)
    same = candidate.env_id == name
    arguments = {**(candidate.env_args if same else {}), **env_args}
    chosen = Evaluation(
        name,
        name,
        arguments,
        {candidate.label: candidate.factory},
        agent=candidate.label if candidate.learned else None,
    )
    chosen.check()
    free = not specs or list(specs) == ["all"]
    wanted = chosen_names(name, specs) if free else list(specs)
    factories = policy_factories([spec for spec in wanted if spec != candidate.label])
    if free:
        factories = applicable(factories, name, arguments)
    full = replace(chosen, policies={**chosen.policies, **factories})
    full.check()
    return full


def applicable(
    factories: Mapping[str, PolicyFactory],
    env_id: str,
    env_args: Mapping[str, Any],
    refused: dict[str, str] | None = None,
) -> dict[str, PolicyFactory]:
    """Return the policies that can act in an environment; ``refused`` gets why others cannot.

    Raises:
        RuntimeError: any error of a policy but a ValueError.
    """
    env = make_env(env_id, **env_args)
    env.reset(seed=0)
    able, reasons = {}, {} if refused is None else refused
    for label, factory in factories.items():
        try:
            try_choosing(env, factory)
            able[label] = factory
        except ValueError as error:
            reasons[label] = str(error)
        except Exception as error:
            said = f"{label} in {env_id} failed: {type(error).__name__}: {error}"
            raise RuntimeError(said) from error
    env.close()
    return able
