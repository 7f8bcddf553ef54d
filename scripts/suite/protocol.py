"""The learner's protocol: which worlds an agent was trained on, and which are for tests alone.

A world is the id of an environment, and its arguments except defaults. The agents of this package
name the worlds of their training in their own files. Any other agent has a file ``training.json``:
``{"worlds": [{"id": "CrawlNCIS-v0", "arguments": {"instance": "noisy", "pages": "train"}}]}``.
The rules are those of :mod:`scripts.suite.crawl_v2`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from agents.catalog import GENERALIST, agent_file, trainings
from agents.generalist.stored import StoredGeneralist
from agents.index.stored import INDEX, StoredIndex
from agents.runs import CONFIG, read_object
from crawl_envs import FAMILIES, PRESETS
from crawl_envs.instances import traces
from scripts.cli.options import PREFIX
from scripts.suite.crawl_v2 import MAX_TRAINING_PAGES, TRAINING_LAWS
from scripts.suite.tasks import NCIS, SITES, TRACE, Task

World = tuple[str, Mapping[str, Any]]
DECLARATION = "training.json"
FALLBACK_LAW = "noisy"
"""Law that training uses in place of a law that is held out."""
NUM_PAGES = 100
"""Pages of training for recorded tasks, and for tasks of more than MAX_TRAINING_PAGES pages."""
ALLOWED = (
    f"training may use page sets of pages='train' with at most {MAX_TRAINING_PAGES} pages, "
    f"the laws {', '.join(TRAINING_LAWS)} of {NCIS}, and recorded sites of the splits train and dev"
)


def training_world(task: Task) -> World:
    """Return the training version of a task: its arguments with other page sets or sites.

    A held-out law becomes FALLBACK_LAW, and a larger number of pages NUM_PAGES at the same
    bandwidth per page. Recorded tasks become windows of the sites of the split train.
    """
    if task.id in (TRACE, SITES):
        chosen = {"split": "train", "num_pages": NUM_PAGES, "resample": True}
        return SITES, {**task.arguments, **chosen}
    arguments = {**task.arguments, "pages": "train", "resample": True}
    if task.id == NCIS and arguments["instance"] not in TRAINING_LAWS:
        arguments["instance"] = FALLBACK_LAW
    if arguments["num_pages"] > MAX_TRAINING_PAGES:
        if "bandwidth" in arguments:
            arguments["bandwidth"] *= NUM_PAGES / arguments["num_pages"]
        arguments["num_pages"] = NUM_PAGES
    return task.id, arguments


def check_worlds(label: str, folders: Sequence[Path]) -> None:
    """Raise ValueError if an agent declares a world of tests, or no world at all.

    Args:
        label: name of the agent.
        folders: folders of its trainings.
    """
    for folder in folders:
        worlds = declared_worlds(folder)
        if not worlds:
            raise ValueError(
                f"agent {label} must declare the worlds of its training, got none in {folder}; "
                f"{DECLARATION} in the same folder can name them"
            )
        for id, arguments in worlds:
            if reason := _forbidden(id, arguments):
                raise ValueError(
                    f"agent {label} must not be trained on worlds of tests, got {id} with {reason} "
                    f"in {folder}; {ALLOWED}"
                )


def _forbidden(id: str, arguments: Mapping[str, Any]) -> str:
    """Return the argument that makes a world one of tests; empty if training may use the world."""
    family, values = PRESETS.get(id, (id, {}))
    if family not in FAMILIES:
        return ""
    module, _, name = FAMILIES[family].partition(":")
    parameters = inspect.signature(getattr(import_module(module), name)).parameters
    values = {key: entry.default for key, entry in parameters.items()} | values | {**arguments}
    if family in (TRACE, SITES):
        sites = values["trace" if family == TRACE else "split"]
        sites = [sites] if isinstance(sites, str) else sites
        names = {Path(site).name: site for site in sites}
        tests = [site for name, site in names.items() if name in ("test", *traces.sites("test"))]
        return f"the site {tests[0]!r} of the split test" if tests else ""
    if values["pages"] != "train":
        return f"pages={values['pages']!r}"
    if family == NCIS and values["instance"] not in TRAINING_LAWS:
        return f"instance={values['instance']!r}"
    too_many = (values["num_pages"] or 0) > MAX_TRAINING_PAGES
    return f"num_pages={values['num_pages']}" if too_many else ""


def declared_worlds(folder: Path) -> list[World]:
    """Return the worlds that the agent in a folder declares; none if it declares none.

    Raises:
        ValueError: a file is missing or damaged.
    """
    path, worlds = folder / DECLARATION, list[World]()
    if path.exists():
        try:
            entries = read_object(path)["worlds"]
            worlds = [
                (world["id"].removeprefix(PREFIX), {**world["arguments"]}) for world in entries
            ]
        except (AttributeError, KeyError, TypeError):
            text = '{"worlds": [{"id": ..., "arguments": {...}}, ...]}'
            raise ValueError(f"{path} is damaged: it must be of the form {text}") from None
    return [*worlds, *(_worlds_of_file(agent_file(folder)) if trainings(folder) else [])]


def _worlds_of_file(file: Path) -> list[World]:
    """Return the worlds that the file of an agent of this package names."""
    if file.name == GENERALIST:
        made = StoredGeneralist.read(file.parent).made
        laws = [_drawn(NCIS, made, {"instance": law}) for law in made.get("instance", ())]
        return [*laws, *([(SITES, {"split": made["sites"]})] if made.get("sites") else [])]
    if file.name == INDEX:
        made = StoredIndex.read(file.parent).made
        sizes = {name: made[name] for name in ("instance", "num_pages") if name in made}
        pinned = {"instance": "a pinned instance"} if made.get("pinned") else {}
        return [_drawn(NCIS, made, sizes | pinned)] if sizes else []
    if file.name == "model.zip":
        from agents.sb3.model_file import read_arguments  # it needs torch

        return _worlds_of_run(vars(read_arguments(file)))
    config = file.with_name(CONFIG)
    stages = read_object(config) if config.exists() else {"stages": []}
    return [
        world
        for stage in stages.get("stages", [stages])
        for world in _worlds_of_run({**stage, "start": None})
    ]


def _worlds_of_run(run: Mapping[str, Any]) -> list[World]:
    """Return the worlds of a run's arguments, and of the agent that it starts from."""
    earlier = declared_worlds(Path(run["start"])) if run.get("start") else []
    few = {"num_pages": run["train_pages"]} if run.get("train_pages") else {}
    pinned = {"instance": "a pinned instance"} if run.get("instance") else {}
    return [*earlier, _drawn(run["env_id"], run, {**run["env_args"], **few, **pinned})]


def _drawn(id: str, run: Mapping[str, Any], arguments: Mapping[str, Any]) -> World:
    """Return a world with the stream of page sets of its run, unless its arguments name one."""
    return id, {"pages": run.get("pages", "any"), **arguments}
