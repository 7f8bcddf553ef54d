"""The request of a training run: its options, saved in the folder of the run."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from agents.catalog import RUNS
from agents.runs import read_object, replace_text
from agents.sb3.hyperparameters import read_entry
from scripts.cli.options import (
    changed,
    default_folder,
    named_values,
    plain_value,
    read_instance,
    without_none,
    words_of,
)
from scripts.training.options import RunOptions, training_options

RUN = "run.json"
SEED_STEP = 1000
"""Difference between the seeds of parallel runs; lane i of a run has the run's seed plus i."""
PAGES = {"pages": "train"}
"""Setting of the commands: train on the page sets of training, and compare on others."""
TENSORBOARD = "tensorboard"
RUN_FILES = (
    *("clone.json", "config.json", "curve.csv", "curve.png", "index.json"),
    *("model.zip", "provenance.json", "ranking.csv", "ranking.png", "rounds.csv", "rows.csv"),
    *(RUN, "runs.csv", "validation.csv"),
)
"""Files of a run that ``discard`` removes; saved rows of analytic policies are kept."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A requested run, in plain values; files are replaced by their contents.

    Attributes:
        kind: kind of the run.
        env_id: id of the environment.
        env_args: arguments of the environment.
        instance: arguments of a fixed instance to train on.
        options: options of the training itself that the user set, by name.
        settings: ``name=value`` pairs, with priority over ``hyperparameters``.
        hyperparameters: the entry of a hyperparameter file.
        seeds: number of parallel runs; None for a single run.
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


def request_of(kind: str, options: RunOptions) -> Request:
    """Return the request that a command makes; a resumed run's request is updated by options.

    Raises:
        ValueError: no environment, another kind or environment than the run to resume has, or
            bad values.
    """
    if options.resume is not None:
        request = read_request(options.resume)
        env_id = options.env_id or request.env_id
        check_same(options.resume, replace(request, kind=kind, env_id=env_id))
    elif options.env_id is not None:
        request = Request(kind=kind, env_id=options.env_id, settings=PAGES)
    else:
        raise ValueError(f"{kind} must be followed by ENV_ID, or by --resume FOLDER")
    values, instance = changed(options), read_instance(options.instance)
    of_training = {name: values[name] for name in training_options(type(options)) if name in values}
    if "learning_rate" in of_training:
        of_training["learning_rate"] = plain_value(of_training["learning_rate"])
    hyperparameters = read_entry(options.hyperparameters, request.env_id)
    return replace(
        request,
        env_args={**request.env_args, **named_values(options.env_arg or [])},
        options={**request.options, **of_training},
        settings={**request.settings, **named_values(options.set or [], "set")},
        hyperparameters={**request.hyperparameters, **hyperparameters},
        instance=request.instance if instance is None else instance,
        seeds=request.seeds if options.seeds is None else options.seeds,
        episodes=request.episodes if options.episodes is None else options.episodes,
        policies=tuple(words_of("--policies", options.policies)) or request.policies,
    )


def runs_of(request: Request, out: Path) -> dict[Path, Request]:
    """Return the runs of a request by folder: one in ``out``, or several in its subfolders.

    Seeds of several runs differ by SEED_STEP. Their folders are ``seed-S``, ``seed-(S+1)``, ...,
    with the seed S of the request.
    """
    if request.seeds is None:
        return {out: request}
    first, options = request.options.get("seed", 0), request.options
    return {
        out / f"seed-{first + run}": replace(
            request, options={**options, "seed": first + SEED_STEP * run}
        )
        for run in range(request.seeds)
    }


def folder_of_run(request: Request) -> Path:
    """Return the default folder of a run, named after its environment, seeds and network."""
    of_training = {name: request.options.get(name) for name in ("seed", "network")}
    named = without_none({**request.env_args, **of_training, "seeds": request.seeds})
    words = (f"{name}={value}" for name, value in named.items())
    return default_folder(request.kind, request.env_id, *words)


def save_request(out: Path, request: Request) -> None:
    """Write a request to the folder of its run."""
    replace_text(out / RUN, json.dumps(asdict(request), indent=1) + "\n")


def read_request(out: Path) -> Request:
    """Read the request of the run in a folder.

    Raises:
        ValueError: there is no run, or its file is damaged.
    """
    values = read_object(out / RUN)
    if set(values) != {entry.name for entry in fields(Request)}:
        raise ValueError(f"{out / RUN} is damaged: it must hold the fields of a request")
    return Request(**{**values, "policies": tuple(values["policies"])})


def check_same(out: Path, request: Request) -> None:
    """Raise ValueError if a folder has a run of another kind, environment or number of runs."""
    if not (out / RUN).exists():
        return
    stored = read_request(out)
    for name in ("kind", "env_id", "seeds"):
        now, then = getattr(request, name), getattr(stored, name)
        if now != then:
            raise ValueError(
                f"{name} must be {then!r} as in {out}, got {now!r}; name another --out, or start "
                "over with --fresh"
            )


def discard(out: Path) -> None:
    """Remove the files of the run in a folder, if there is a run; keep all further files."""
    if not (out / RUN).exists():
        return
    for path in (*out.glob(RUNS), out / TENSORBOARD):
        shutil.rmtree(path, ignore_errors=True)
    for name in RUN_FILES:
        (out / name).unlink(missing_ok=True)


def import_user_classes(algorithm: str, options: Mapping[str, Any]) -> None:
    """Import the modules of user classes, ``module:Class``, that a command names.

    The command can name an algorithm, a network and callbacks. Names in files are never imported.

    Raises:
        ValueError: a module cannot be imported.
    """
    named = [("algorithm", algorithm), ("network", options.get("network", ""))]
    named += [("callback", name) for name in options.get("callback", ())]
    for argument, name in named:
        module, colon, _ = name.partition(":")
        try:
            if colon:
                importlib.import_module(module)
        except (Exception, SystemExit) as error:  # a module of the user can raise anything
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"{argument} {name!r} cannot be imported: {what}") from None
