"""Runs from requests, hyperparameter files and recommended settings."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from agents.catalog import ALGORITHMS
from agents.cloning.train import CloneArguments
from agents.evolution.arguments import EvolutionArguments, OutcomeArguments
from agents.sb3.arguments import TrainArguments
from agents.sb3.hyperparameters import FALLBACK, WORDS, defaults
from crawl_envs.types.arguments import one_of
from scripts.reporting.options import PREFIX
from scripts.training.jobs import Cloning, Evolution, Job, Learning, Outcomes
from scripts.training.requests import Request

CLONE, ES, INDEX = "clone", "es", "index"
KINDS = (*ALGORITHMS, CLONE, ES, INDEX)
"""Kinds of runs: the algorithms of Stable-Baselines3, cloning, evolution of an index, and learning
one from outcomes of crawls."""
CLONING_RATE = 3e-3
"""Learning rate for cloning, where the target is fixed."""
OF_LEARNING = ("tensorboard", "validation", "callbacks")
"""Options of the algorithms of Stable-Baselines3 alone."""
OF_CLONES, OF_ES, OF_BOTH = ("teacher",), ("workers",), ("seed", "learning_rate")
"""Options of cloning, of evolution alone, and of all runs."""
SIZES = ("instance", "num_pages", "bandwidth", "horizon")
"""Arguments of the environment that the training of an index supports."""


def job_of(request: Request) -> Job:
    """Return the requested run.

    Raises:
        ValueError: an unknown algorithm, an option that does not apply to it, or an invalid value.
    """
    one_of("algorithm", request.kind, KINDS)
    if request.kind == CLONE:
        return _of_clone(request)
    return _of_index(request) if request.kind in (ES, INDEX) else _of_learning(request)


def _refuse(request: Request, names: set[str]) -> None:
    for name in request.options:
        if name in names:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} does not apply to {request.kind}")


def _of_learning(request: Request) -> Learning:
    _refuse(request, {*OF_CLONES, *OF_ES})
    own = {name: request.options[name] for name in OF_LEARNING if name in request.options}
    return Learning(_arguments(request, request.kind, request.settings), **own)


def _of_clone(request: Request) -> Cloning:
    _refuse(request, {*OF_ES, *OF_LEARNING, "start", "steps"})
    known = {entry.name for entry in fields(CloneArguments)}
    own = {name: value for name, value in request.settings.items() if name in known}
    rest = {name: value for name, value in request.settings.items() if name not in known}
    for name in OF_CLONES:
        if name in request.options:
            own[name] = request.options[name]
    return Cloning(
        _arguments(request, "ppo", {"learning_rate": CLONING_RATE, **rest}), CloneArguments(**own)
    )


def _of_index(request: Request) -> Evolution | Outcomes:
    kind, evolves = request.kind, request.kind == ES
    _refuse(request, set(request.options) - {*OF_BOTH, *(OF_ES if evolves else ())})
    if request.env_id.removeprefix(PREFIX) != FALLBACK:
        raise ValueError(f"env_id must be {FALLBACK} for {kind}, got {request.env_id!r}")
    for name in request.env_args:
        one_of(f"env-arg of {kind}", name, SIZES)
    options = {name: value for name, value in request.options.items() if name in OF_BOTH}
    values = {**request.hyperparameters, **request.settings, **options, **request.env_args}
    if request.instance is not None:
        values["pinned"] = request.instance
    arguments = EvolutionArguments if evolves else OutcomeArguments
    known = [entry.name for entry in fields(arguments)]
    for name in values:
        if name not in known:
            raise ValueError(f"settings of {kind} must be among {', '.join(known)}, got {name!r}")
    if evolves:
        return Evolution(EvolutionArguments(**values), request.options.get("workers", 1))
    return Outcomes(OutcomeArguments(**values))


def _arguments(request: Request, algorithm: str, settings: Mapping[str, Any]) -> TrainArguments:
    """Return the arguments of a run of an algorithm of Stable-Baselines3."""
    own = {entry.name for entry in fields(TrainArguments)}
    given = {**_renamed(request.hyperparameters), **_renamed(settings)}
    for name in ("algorithm", "env_id", "env_args", "instance", "model_args"):
        if name in given:
            raise ValueError(f"hyperparameters must not name {name!r}, an argument of the command")
    values = defaults(algorithm, request.env_id)
    values |= {name: value for name, value in given.items() if name in own}
    values |= {name: value for name, value in request.options.items() if name in own}
    return TrainArguments(
        algorithm=algorithm,
        env_id=request.env_id,
        env_args=request.env_args,
        instance=request.instance,
        model_args={name: value for name, value in given.items() if name not in own},
        **values,
    )


def _renamed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with names of SB3 replaced by the names of TrainArguments."""
    return {WORDS.get(name, name): value for name, value in given.items()}


def read_hyperparameters(path: Path | None, env_id: str) -> dict[str, Any]:
    """Return the entry of an environment in a hyperparameter file.

    Only the class of the policy (Mlp or not) and the ``width`` of its arguments are used.

    Raises:
        ValueError: the file cannot be read, or has no such entry.
    """
    if path is None:
        return {}
    import yaml  # type: ignore[import-untyped]  # it ships no types

    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"hyperparameters {path} cannot be read: {error}") from None
    name = env_id.removeprefix(PREFIX)
    entry = entries.get(name) if isinstance(entries, dict) else None
    if not isinstance(entry, dict) or not all(isinstance(key, str) for key in entry):
        raise ValueError(f"hyperparameters {path} must have an entry {name}, got none")
    result: dict[str, Any] = {}
    policy = str(entry.pop("policy", ""))
    if policy:
        result["network"] = "mlp" if policy.startswith("Mlp") else "pages"
    width = _width(entry.pop("policy_kwargs", None))
    if width is not None:
        result["width"] = width
    return {**entry, **result}


def _width(kwargs: Any) -> Any:
    """Return the width in the arguments of a policy, given as values or as a call of ours.

    The text is parsed, never executed.
    """
    if isinstance(kwargs, dict):
        return kwargs.get("width")
    try:
        call = ast.parse(str(kwargs), mode="eval").body
    except SyntaxError:
        return None
    for keyword in call.keywords if isinstance(call, ast.Call) else ():
        if keyword.arg == "width" and isinstance(keyword.value, ast.Constant):
            return keyword.value.value
    return None
