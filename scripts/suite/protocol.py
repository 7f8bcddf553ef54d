"""The learner's protocol: which worlds an agent was trained on, and which are for tests alone.

A world is the id of an environment, and those of its arguments that the rules are about. The agents
of this package name the worlds of their training in their own files. Any other agent has a file
``training.json``:
``{"worlds": [{"id": "CrawlNCIS-v0", "arguments": {"instance": "noisy", "pages": "train"}}]}``.
The rules are those of :mod:`scripts.suite.crawl_v2`.
"""

from __future__ import annotations

import inspect
import json
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from agents.catalog import agent_file, trainings
from agents.runs import CONFIG, read_object
from crawl_envs import FAMILIES, PRESETS
from crawl_envs.instances import traces
from crawl_envs.types.arguments import one_of
from scripts.cli.options import PREFIX
from scripts.study.settings import env_with
from scripts.suite.crawl_v2 import MAX_TRAINING_PAGES, TRAINING_LAWS
from scripts.suite.tasks import NCIS, SITES, TRACE, Task

World = tuple[str, Mapping[str, Any]]
TRAININGS, STEPS = 5, 2_000_000
"""Number of trainings of a learner, and largest number of steps of each."""
DECLARATION = "training.json"
FALLBACK_LAW = "noisy"
"""Law that training uses in place of a law that is held out."""
NUM_PAGES = 100
"""Pages of training for recorded tasks, and for tasks of more than MAX_TRAINING_PAGES pages."""
ALLOWED = (
    f"training may use page sets of pages='train' with at most {MAX_TRAINING_PAGES} pages, "
    f"the laws {', '.join(TRAINING_LAWS)} of {NCIS}, and recorded sites of the splits train and dev"
)


class Training(NamedTuple):
    """How to train the learners ``names``, each ``repeats`` times.

    ``steps`` are those of an algorithm, None for its default, at most STEPS. ``fresh`` discards
    earlier trainings and rows.
    """

    names: Sequence[str] = ()
    repeats: int = TRAININGS
    steps: int | None = None
    fresh: bool = False


def training_world(task: Task) -> World:
    """Return the training version of a task: its arguments with other page sets or sites.

    A held-out law becomes FALLBACK_LAW, and a larger number of pages NUM_PAGES at the same
    bandwidth per page. Recorded tasks become windows of the sites of the split train.
    """
    arguments = {**task.arguments, "resample": True}
    if task.id in (TRACE, SITES):
        return SITES, {**arguments, "split": "train", "num_pages": NUM_PAGES}
    arguments["pages"] = "train"
    if task.id == NCIS and arguments["instance"] not in TRAINING_LAWS:
        arguments["instance"] = FALLBACK_LAW
    if arguments["num_pages"] > MAX_TRAINING_PAGES:
        if "bandwidth" in arguments:
            arguments["bandwidth"] *= NUM_PAGES / arguments["num_pages"]
        arguments["num_pages"] = NUM_PAGES
    return task.id, arguments


def check_worlds(label: str, folders: Iterable[Path]) -> None:
    """Raise ValueError if an agent declares a world of tests, or no world in one of its folders."""
    for folder in folders:
        if not (worlds := declared_worlds(folder)):
            raise ValueError(
                f"agent {label} must declare the worlds of its training, got none in {folder}; "
                f"{DECLARATION} in this folder can name them"
            )
        for id, arguments in worlds:
            if reason := _test_part(id, arguments):
                raise ValueError(
                    f"agent {label} must not be trained on worlds of tests, got {id} with {reason} "
                    f"in {folder}; {ALLOWED}"
                )


def _test_part(id: str, arguments: Mapping[str, Any]) -> str:
    """Return the argument that makes a world one of tests; empty if training may use the world."""
    family, preset = PRESETS.get(id, (id, {}))
    if family not in FAMILIES:
        return ""
    values = _defaults(family) | preset | {**arguments}
    if family in (TRACE, SITES):
        sites = values["trace" if family == TRACE else "split"]
        names = [Path(site).name for site in ([sites] if isinstance(sites, str) else sites)]
        tests = [name for name in names if name in ("test", *traces.sites("test"))]
        return f"{tests[0]!r} of the split test" if tests else ""
    wrong = {
        "pages": values["pages"] != "train",
        "instance": family == NCIS and values["instance"] not in TRAINING_LAWS,
        "num_pages": (values["num_pages"] or 0) > MAX_TRAINING_PAGES,
    }
    return next((f"{key}={reprlib.repr(values[key])}" for key in wrong if wrong[key]), "")


def _defaults(family: str) -> dict[str, Any]:
    """Return the arguments of a family of environments with their default values."""
    module, _, name = FAMILIES[family].partition(":")
    parameters = inspect.signature(getattr(import_module(module), name)).parameters
    return {key: entry.default for key, entry in parameters.items()}


def declared_worlds(folder: Path) -> list[World]:
    """Return the worlds that the agent in a folder declares; none if any of them is unknown.

    Raises:
        ValueError: a file is damaged, or an environment of this package refuses a world.
    """
    path = folder / DECLARATION
    entries: Any = read_object(path).get("worlds") if path.exists() else []
    try:
        worlds = [(world["id"].removeprefix(PREFIX), {**world["arguments"]}) for world in entries]
    except (AttributeError, KeyError, TypeError):
        text = '{"worlds": [{"id": ..., "arguments": {...}}, ...]}'
        raise ValueError(f"{path} is damaged: it must be of the form {text}") from None
    for id, arguments in worlds:
        try:
            _check_world(id, json.dumps(arguments))
        except ValueError as error:
            raise ValueError(f"{path}, world {id}: {error}") from None
    return [*worlds, *(world for run in _runs_of(folder) for world in _worlds_of(run))]


@cache
def _check_world(id: str, arguments: str) -> None:
    """Raise ValueError for arguments, JSON, that an environment of this package refuses."""
    if ":" in id:  # an environment of the user
        return
    one_of("id", id, (*FAMILIES, *PRESETS), "module:id")
    values = json.loads(arguments)
    for name in values:
        one_of("argument", name, _defaults(PRESETS.get(id, (id,))[0]))
    env_with(id, values).close()


def _runs_of(folder: Path) -> list[Mapping[str, Any]]:
    """Return the arguments of the runs that trained an agent, as its files name them."""
    if not trainings(folder):
        return []
    file = agent_file(folder)
    if file.name == "model.zip":
        from agents.sb3.model_file import read_arguments  # it needs torch

        return [vars(read_arguments(file))]
    if file.suffix == ".json":
        return [read_object(file).get("made", {})]
    config = file.with_name(CONFIG)
    last = read_object(config) if config.exists() else {}
    return [{**stage, "start": None} for stage in last.get("stages", [last])]


def _worlds_of(run: Mapping[str, Any]) -> list[World]:
    """Return the worlds of a run of Stable-Baselines3, or of an index or a generalist."""
    pages = {"pages": run.get("pages", "any")}
    if "env_id" in run:
        size = {"num_pages": run["train_pages"]} if run.get("train_pages") else {}
        pinned = {"instance": run["instance"]} if run["instance"] else {}
        world = run["env_id"], {**pages, **run["env_args"], **size, **pinned}
        earlier = declared_worlds(Path(run["start"])) if run.get("start") else []
        return [] if run.get("start") and not earlier else [*earlier, world]
    laws = run.get("pinned") or run.get("instance") or []
    size = {"num_pages": run["num_pages"]} if "num_pages" in run else {}
    laws = [*(laws if isinstance(laws, list) else [laws]), *run.get("hidden_laws", ())]
    family = run.get("family", NCIS)
    drawn = [(family, {**pages, **size, "instance": law}) for law in laws]
    return [*drawn, *([(SITES, {"split": run["sites"]})] if run.get("sites") else [])]
