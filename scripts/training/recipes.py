"""Which run a command asks for: recommended settings, a file of one's own, then its options."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from agents import ALGORITHMS
from agents.cloning.train import CloneArguments
from agents.evolution.arguments import EvolutionArguments
from agents.sb3.arguments import TrainArguments
from agents.sb3.hyperparameters import FALLBACK, WORDS, defaults
from scripts.training.jobs import Cloning, Evolution, Job, Learning
from scripts.training.options import PREFIX

CLONE, ES = "clone", "es"
KINDS = (*ALGORITHMS, CLONE, ES)
"""What can be trained: Stable-Baselines3's algorithms, a clone, and an evolved index."""
CLONING_RATE = 3e-3
"""Step size that suits cloning, where the target does not move."""
OF_CLONES, OF_ES, OF_BOTH = ("teacher",), ("workers",), ("seed", "learning_rate")
"""Options that belong to a clone, to evolution, and to everything."""
SIZES = ("instance", "num_pages", "bandwidth", "horizon")
"""Arguments of the environment that evolution knows."""


@dataclass(frozen=True)
class Wanted:
    """What a command was told.

    Attributes:
        kind: one of KINDS.
        env_id: id of the environment.
        env_args: its arguments.
        instance: arguments of the one instance to train on.
        options: options that were given, by the names of the arguments.
        settings: further ``name=value`` pairs, which win over ``file``.
        file: a file of hyperparameters, in the format of RL-Zoo.
    """

    kind: str
    env_id: str
    env_args: Mapping[str, Any]
    instance: Mapping[str, Any] | None
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    file: Path | None = None


def job_of(wanted: Wanted) -> Job:
    """Return the run that is asked for.

    Raises:
        ValueError: an unknown algorithm, an option that does not apply to it, or a value that it
            does not take.
    """
    if wanted.kind not in KINDS:
        raise ValueError(f"algorithm must be one of {', '.join(KINDS)}, got {wanted.kind!r}")
    if wanted.kind == CLONE:
        return _of_clone(wanted)
    return _of_evolution(wanted) if wanted.kind == ES else _of_learning(wanted)


def _refuse(wanted: Wanted, names: set[str]) -> None:
    for name in wanted.options:
        if name in names:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} does not apply to {wanted.kind}")


def _of_learning(wanted: Wanted) -> Learning:
    _refuse(wanted, {*OF_CLONES, *OF_ES})
    return Learning(_arguments(wanted, wanted.kind, wanted.settings))


def _of_clone(wanted: Wanted) -> Cloning:
    _refuse(wanted, {*OF_ES, "start", "steps"})
    known = {entry.name for entry in fields(CloneArguments)}
    own = {name: value for name, value in wanted.settings.items() if name in known}
    rest = {name: value for name, value in wanted.settings.items() if name not in known}
    for name in OF_CLONES:
        if name in wanted.options:
            own[name] = wanted.options[name]
    return Cloning(
        _arguments(wanted, "ppo", {"learning_rate": CLONING_RATE, **rest}), CloneArguments(**own)
    )


def _of_evolution(wanted: Wanted) -> Evolution:
    taken = {*OF_ES, *OF_BOTH}
    _refuse(wanted, set(wanted.options) - taken)
    if wanted.env_id.removeprefix(PREFIX) != FALLBACK:
        raise ValueError(f"env_id must be {FALLBACK} for {ES}, got {wanted.env_id!r}")
    for name in wanted.env_args:
        if name not in SIZES:
            raise ValueError(f"env-arg must be one of {', '.join(SIZES)} for {ES}, got {name!r}")
    options = {name: value for name, value in wanted.options.items() if name in OF_BOTH}
    told = _from_file(wanted.file, FALLBACK) if wanted.file else {}
    values = {**told, **wanted.settings, **options, **wanted.env_args}
    if wanted.instance is not None:
        values["pinned"] = wanted.instance
    known = [entry.name for entry in fields(EvolutionArguments)]
    for name in values:
        if name not in known:
            raise ValueError(f"settings of {ES} must be among {', '.join(known)}, got {name!r}")
    return Evolution(EvolutionArguments(**values), wanted.options.get("workers", 1))


def _arguments(wanted: Wanted, algorithm: str, settings: Mapping[str, Any]) -> TrainArguments:
    """Return the arguments of a run of an algorithm of Stable-Baselines3."""
    own = {entry.name for entry in fields(TrainArguments)}
    told = _from_file(wanted.file, wanted.env_id) if wanted.file else {}
    given = {**_renamed(told), **_renamed(settings)}
    for name in ("algorithm", "env_id", "env_args", "instance", "model_args"):
        if name in given:
            raise ValueError(f"hyperparameters must not name {name!r}, which the command says")
    values = defaults(algorithm, wanted.env_id)
    values |= {name: value for name, value in given.items() if name in own}
    values |= {name: value for name, value in wanted.options.items() if name in own}
    return TrainArguments(
        algorithm=algorithm,
        env_id=wanted.env_id,
        env_args=wanted.env_args,
        instance=wanted.instance,
        model_args={name: value for name, value in given.items() if name not in own},
        **values,
    )


def _renamed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by the words of a training run, where it has one."""
    return {WORDS.get(name, name): value for name, value in given.items()}


def _from_file(path: Path, env_id: str) -> dict[str, Any]:
    """Return the entry of an environment in a file of hyperparameters.

    Of the policy it takes whether it is an Mlp, and the ``width`` that its arguments name.

    Raises:
        ValueError: the file cannot be read, or has no such entry.
    """
    import yaml  # type: ignore[import-untyped]  # it ships no types

    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"hyperparameters {path} cannot be read: {error}") from None
    name = env_id.removeprefix(PREFIX)
    entry = entries.get(name) if isinstance(entries, dict) else None
    if not isinstance(entry, dict) or not all(isinstance(key, str) for key in entry):
        raise ValueError(f"hyperparameters {path} must have an entry {name}, got none")
    found: dict[str, Any] = {}
    policy = str(entry.pop("policy", ""))
    if policy:
        found["network"] = "mlp" if policy.startswith("Mlp") else "pages"
    width = _width(entry.pop("policy_kwargs", None))
    if width is not None:
        found["width"] = width
    return {**entry, **found}


def _width(kwargs: Any) -> Any:
    """Return the width that the arguments of a policy name, given as values or as a call of ours.

    The text is read, never run.
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
