"""Requested runs: what the options of a command asked for, kept in the folder of the run."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from agents.runs import read_object, replace_text

RUN = "run.json"
SEED_FOLDERS, TENSORBOARD = "seed-*", "tensorboard"
RUN_FILES = (
    *("clone.json", "config.json", "curve.csv", "curve.png", "examples.npz", "index.json"),
    *("model.zip", "provenance.json", "ranking.csv", "ranking.png", "rounds.csv", "rows.csv"),
    *(RUN, "runs.csv", "state.json", "validation.csv"),
)
"""Files of a run; the saved rows of the analytic policies are not of one run."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A requested run; all are plain values.

    Attributes:
        kind: an algorithm, ``clone`` or ``es``.
        env_id: id of the environment.
        env_args: arguments of the environment.
        instance: arguments of a fixed instance to train on.
        options: given options, by the names of the arguments.
        settings: further ``name=value`` pairs, with priority over ``hyperparameters``.
        hyperparameters: the entry of a hyperparameter file.
        seeds: number of runs side by side; None for a single run.
        episodes: number of seeds of the comparison.
        policies: policies to compare with.
    """

    kind: str
    env_id: str
    env_args: Mapping[str, Any] = field(default_factory=dict)
    instance: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    episodes: int = 32
    policies: tuple[str, ...] = ()


def save_request(out: Path, request: Request) -> None:
    """Write a request to the folder of its run."""
    replace_text(out / RUN, json.dumps(asdict(request), indent=1) + "\n")


def read_request(out: Path) -> Request:
    """Return the request of the run in a folder.

    Raises:
        ValueError: there is no run, or its file is damaged.
    """
    values = read_object(out / RUN)
    if set(values) != {entry.name for entry in fields(Request)}:
        raise ValueError(f"{out / RUN} is damaged: it must hold the fields of a request")
    return Request(**{**values, "policies": tuple(values["policies"])})


def updated(request: Request, **given: Any) -> Request:
    """Return a request with given values; mappings are merged, None keeps what is there."""
    changes = {}
    for name, value in given.items():
        kept = getattr(request, name)
        if isinstance(value, Mapping) and name != "instance":
            changes[name] = {**kept, **value}
        elif value is not None:
            changes[name] = value
    return replace(request, **changes)


def check_same(out: Path, request: Request) -> None:
    """Raise ValueError if a folder holds a run of another kind, environment or number of runs."""
    if not (out / RUN).exists():
        return
    kept = read_request(out)
    for name in ("kind", "env_id", "seeds"):
        now, then = getattr(request, name), getattr(kept, name)
        if now != then:
            raise ValueError(
                f"{out} holds a run with {name} {then!r}, got {now!r}; name another --out, or "
                "start anew with --fresh"
            )


def discard(out: Path) -> None:
    """Remove the run in a folder, if there is one; other files stay."""
    if not (out / RUN).exists():
        return
    for path in out.glob(SEED_FOLDERS):
        shutil.rmtree(path)
    for name in RUN_FILES:
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(out / TENSORBOARD, ignore_errors=True)


def import_own(names: Iterable[str]) -> None:
    """Import the modules of classes of one's own, ``module:Class``, that a command named.

    Names in files are never imported.

    Raises:
        ValueError: a module that cannot be imported.
    """
    for name in names:
        module, colon, _ = name.partition(":")
        try:
            if colon:
                importlib.import_module(module)
        except Exception as error:  # a module of one's own can raise anything
            raise ValueError(f"network or callback {name!r} cannot be imported: {error}") from None


def own_names(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of classes of one's own in the options of a request."""
    return (options.get("network", ""), *options.get("callbacks", ()))
