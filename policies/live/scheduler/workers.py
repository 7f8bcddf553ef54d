"""Run the shards of a scheduler in this process or in Ray actors, and manage their folder."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from crawl_envs.system.files import replacing
from policies.live.scheduler.durable import SHARDS_FILE, DurableScheduler
from policies.live.scheduler.files import Record
from policies.live.scheduler.scheduler import CrawlScheduler

RESTORE = "restore it from a backup, or begin with another folder"
"""The advice of error messages about a folder with missing files."""


class Answer(NamedTuple):
    """The answer of a shard to a call.

    Attributes:
        result: the result of the call; None if it raised an error.
        error: the error that the call raised, or None.
        calls: calls that were ever written to the shard's journal.
        level: the crawl value of the page that was chosen last by its value.
        spending: the state of the shard's spend and cap; None without costs.
    """

    result: Any
    error: Exception | None
    calls: int
    level: float
    spending: dict[str, Any] | None = None


class Shard:
    """A shard in this process: a scheduler, which writes a journal if it has a folder.

    Args:
        policy: the policy of its scheduler.
        state: the scheduler's state if the folder holds none.
        durable: as for :class:`DurableScheduler`.
        folder: the folder of its journal; None for no journal.

    Attributes:
        died: the class of error that a call raises after a shard has died.
    """

    died: Any = ()

    def __init__(self, policy: Any, state: Record, durable: bool, folder: Path | None) -> None:
        self.arguments = policy, state, durable, folder
        self.scheduler: Any = None

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a method of the scheduler; ``open`` opens it, ``last`` repeats its last answer.

        The last answer is that to the call with which the journal ended when it was opened.
        """
        result = error = None
        try:
            if name == "open":
                result = self._open()
            elif name == "last":
                last = self.scheduler.answer
                result, error = (None, last) if isinstance(last, Exception) else (last, None)
            else:
                method = getattr(self.scheduler, name)
                result = method(**arguments) if callable(method) else method
        except Exception as raised:
            error = raised
        if self.scheduler is None:
            return Answer(result, error, 0, 0.0)
        level = float(self.scheduler.pages.choices.lines["level"][0])
        spending = self.scheduler.pace.spending
        state = None if spending is None else dict(vars(spending))
        return Answer(result, error, getattr(self.scheduler, "total", 0), level, state)

    def _open(self) -> dict[str, Any]:
        """Start the scheduler or resume the folder's; return time, bandwidth, columns and ids."""
        policy, state, durable, folder = self.arguments
        if folder is not None and DurableScheduler.holds(folder):
            self.scheduler = DurableScheduler(folder, policy=policy, durable=durable)
        else:
            self.scheduler = CrawlScheduler.from_state(state, policy)
            if folder is not None:
                self.scheduler = DurableScheduler(folder, self.scheduler, durable=durable)
        scheduler, pages = self.scheduler, self.scheduler.pages
        names, ids = [*pages.columns], pages.ids.ids(pages.ids.present())
        clock = {"time": scheduler.time, "bandwidth": scheduler.bandwidth}
        return {**clock, "columns": names, "ids": ids}

    def begin(self, call: str, arguments: Mapping[str, Any]) -> Callable[[], Answer]:
        """Make a call at once; return a function that returns the answer."""
        answer = self.call(call, arguments)
        return lambda: answer

    def close(self) -> None:
        """Release the folder for other processes."""
        if isinstance(self.scheduler, DurableScheduler):
            self.scheduler.close()


class RayShard:
    """A shard in an actor of Ray; Ray is started on this machine if it does not run yet."""

    def __init__(self, *arguments: Any) -> None:
        ray: Any = importlib.import_module("ray")
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        self._ray, self.died = ray, ray.exceptions.RayActorError
        self.actor = ray.remote(Shard).remote(*arguments)

    def begin(self, call: str, arguments: Mapping[str, Any]) -> Callable[[], Answer]:
        """Begin a call; return a function that waits for its answer, or raises ``died``."""
        return partial(self._ray.get, self.actor.call.remote(call, dict(arguments)))

    def close(self) -> None:
        """Release the folder, and end the actor."""
        try:
            self._ray.get(self.actor.close.remote())
        except self.died:
            return
        self._ray.kill(self.actor)


BACKENDS: dict[str, type[Any]] = {"local": Shard, "ray": RayShard}
"""Classes of shards by the name of their backend."""


class Workers:
    """The workers of a scheduler's shards.

    A worker that has died is started again from its folder; its call takes effect exactly once.

    Args:
        start: function of a folder that returns a new worker for it.
        folders: the folder of each shard, None for none.
    """

    def __init__(self, start: Callable[[Path | None], Any], folders: list[Path | None]) -> None:
        self._start, self._folders = start, folders
        self._calls = [0] * len(folders)
        self.workers = [start(folder) for folder in folders]

    def ask(self, call: str, arguments: Mapping[int, Mapping[str, Any]]) -> dict[int, Answer]:
        """Call a method on some shards at the same time; return their answers by shard.

        Raises:
            ValueError: the workers are closed.
            RuntimeError: a shard has died and has no folder, or has died twice.
            Exception: the first error of a shard, after all have answered.
        """
        self.check_open()
        begun = {shard: self.workers[shard].begin(call, x) for shard, x in arguments.items()}
        answers = {}
        for shard, wait in begun.items():
            try:
                answer = wait()
            except self.workers[shard].died:
                answer = self._retry(shard, call, arguments[shard])
            answers[shard], self._calls[shard] = answer, answer.calls
        for answer in answers.values():
            if answer.error is not None:
                raise answer.error
        return answers

    def _retry(self, shard: int, call: str, arguments: Mapping[str, Any]) -> Answer:
        """Start a new worker for a call whose worker has died, and return its answer."""
        folder, failure = self._folders[shard], f"shard {shard} has died twice in one call"
        if folder is None:
            failure = (
                f"shard {shard} has died, and the copies and signals of its pages are lost; with a "
                "folder they would be kept"
            )
            return Answer(None, RuntimeError(failure), self._calls[shard], 0.0)
        self.workers[shard].close()
        worker = self.workers[shard] = self._start(folder)
        try:
            answer: Answer = worker.begin("open", {})()
            if answer.error is None:
                is_missing = answer.calls == self._calls[shard]
                answer = worker.begin(call if is_missing else "last", arguments)()
        except worker.died:
            answer = Answer(None, RuntimeError(failure), self._calls[shard], 0.0)
        return answer

    def check_open(self) -> None:
        """Raise ValueError if the workers are closed."""
        if not self.workers:
            raise ValueError("shards must be open, the scheduler is closed")

    def close(self) -> None:
        """End the workers, and release their folders."""
        for worker in self.workers:
            worker.close()
        self.workers.clear()


def check_folder(folder: Path, shards: int, scheduler: CrawlScheduler) -> list[Path]:
    """Create or check a folder for shards with a scheduler's settings; return the shards' folders.

    Raises:
        ValueError: the folder has other settings or another version, or cannot be read; it holds
            a single scheduler, or some shards are missing.
    """
    if DurableScheduler.holds(folder):
        raise ValueError(
            f"folder must be of shards, {folder} is of a DurableScheduler: open it with that, or "
            "give another folder"
        )
    path, parts = folder / SHARDS_FILE, [folder / f"shard-{k:03d}" for k in range(shards)]
    lines, slack = scheduler.pages.choices.lines[0], scheduler.pages.choices.slack
    settings = {
        "shards": shards,
        "policy": type(scheduler.pages.values.policy).__name__,
        "num_sources": scheduler.num_sources,
        "new_share": float(lines["new_share"]),
        "skew": float(lines["skew"]),
        "resolution": (slack - lines["skew"]).tolist(),
    }
    if (spending := scheduler.pace.spending) is not None:
        settings |= {"cap_period": spending.cap_period, "max_cost": spending.max_cost}
    if not path.exists():
        if count := [part.name for part in folder.glob("shard-*") if DurableScheduler.holds(part)]:
            raise ValueError(f"{path} must be there, as {count[0]} is: {RESTORE}")
        for part in parts:  # before the file, so that none is missing later
            part.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(settings) + "\n")
    try:
        count = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} must hold JSON, it cannot be read: {error}") from error
    if not isinstance(count, dict) or set(count) != set(settings):
        raise ValueError(f"{path} must hold {', '.join(settings)}; it is of another version")
    for name, value in settings.items():
        if value != count[name]:
            raise ValueError(f"{name} must be {count[name]} as in {folder}, got {value}")
    empty = [part for part in parts if not DurableScheduler.holds(part)]
    if len(empty) == len(parts):  # no pages yet, after a crash at the start
        empty = [part for part in parts if not part.exists()]
    if empty:
        raise ValueError(f"{empty[0]} must hold a shard, its pages are missing: {RESTORE}")
    return parts
