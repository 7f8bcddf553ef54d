"""Shards of a scheduler where they run: in this process, in processes of their own, or in Ray.

Calls and answers are records as in a journal (:mod:`policies.scheduler.files`): plain values and
arrays, in bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from crawl_envs.types.files import replacing
from crawl_envs.types.worker_processes import new_pool
from policies.scheduler.durable import SHARDS_FILE, DurableScheduler
from policies.scheduler.files import Record, decoded, payload_of, plain
from policies.scheduler.scheduler import CrawlScheduler

RESTORE = "restore it from a backup, or begin with another folder"
"""What to do when files of a folder are missing."""
ERRORS = {error.__name__: error for error in (ValueError, TypeError, OSError)}


def encoded(values: Mapping[str, Any]) -> bytes:
    """Return a record of values as bytes."""
    return b"".join(payload_of(plain(values)))


def check(answer: Record) -> Record:
    """Return an answer; raise the error that it holds."""
    if "error" in answer.values:
        raise ERRORS.get(answer.values["error"], RuntimeError)(answer.values["said"])
    return answer


def check_folder(folder: Path, settings: dict[str, Any]) -> None:
    """Make the folder of shards of these settings.

    Raises:
        ValueError: it is of other settings or of another version, or they cannot be read; it holds
            one scheduler, or some of its shards are missing.
    """
    if DurableScheduler.holds(folder):
        raise ValueError(
            f"folder must be of shards, {folder} is of a DurableScheduler: open it with that, or "
            "give another folder"
        )
    path, parts = folder / SHARDS_FILE, [shard_folder(folder, k) for k in range(settings["shards"])]
    if not path.exists():
        if held := [part.name for part in folder.glob("shard-*") if DurableScheduler.holds(part)]:
            raise ValueError(f"{path} must be there, as {held[0]} is: {RESTORE}")
        for part in parts:  # before the file, so that none is missing later
            part.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(settings) + "\n")
    try:
        held = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} must hold JSON, it cannot be read: {error}") from error
    if not isinstance(held, dict) or set(held) != set(settings):
        raise ValueError(f"{path} must hold {', '.join(settings)}; it is of another version")
    for name, value in settings.items():
        if value != held[name]:
            raise ValueError(f"{name} must be {held[name]} as in {folder}, got {value}")
    empty = [part for part in parts if not DurableScheduler.holds(part)]
    if len(empty) == len(parts):  # no pages yet, after a crash at the start
        empty = [part for part in parts if not part.exists()]
    if empty:
        raise ValueError(f"{empty[0]} must hold a shard, its pages are missing: {RESTORE}")


def shard_folder(folder: Path, shard: int) -> Path:
    """Return the folder of a shard."""
    return folder / f"shard-{shard:03d}"


class Shard:
    """One shard: a scheduler, with a journal where it has a folder.

    Args:
        policy: its policy.
        settings: the other arguments of :class:`CrawlScheduler`.
        folder: its folder; None for none.
        durable: as for :class:`DurableScheduler`.
    """

    def __init__(
        self, policy: Any, settings: dict[str, Any], folder: Path | None, durable: bool
    ) -> None:
        self.arguments = policy, settings, folder, durable
        self.scheduler: CrawlScheduler | DurableScheduler | None = None

    def reply(self, payload: bytes) -> bytes:
        """Return the answer to a call: its result, or its error, and the number of calls."""
        arguments = decoded(payload).named
        call = arguments.pop("call")
        try:
            answer = self._answer(call, arguments)
        except Exception as error:
            answer = {"error": type(error).__name__, "said": str(error)}
        return encoded({**answer, "calls": getattr(self.scheduler, "total", 0)})

    def _answer(self, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Make a call, and return its answer by names."""
        if call == "open":
            return self._open()
        answer: Any
        if call == "last":
            answer = getattr(self.scheduler, "answer", None)
            if isinstance(answer, Exception):
                raise answer
        else:
            answer = getattr(self.scheduler, call)
            answer = answer(**arguments) if callable(answer) else answer
        if hasattr(answer, "_asdict"):
            return dict(answer._asdict())
        assert self.scheduler is not None
        level = self.scheduler.pages.choices.lines["level"][0]  # of the last page chosen by value
        return {"answer": answer, "level": float(level)}

    def _open(self) -> dict[str, Any]:
        """Start the scheduler, or let that of the folder go on; return what it knows."""
        policy, settings, folder, durable = self.arguments
        if folder is not None and DurableScheduler.holds(folder):
            self.scheduler = DurableScheduler(folder, policy=policy, durable=durable)
        else:
            self.scheduler = CrawlScheduler(policy, **settings)
            self.scheduler.empty -= settings["burst"]
            if folder is not None:
                self.scheduler = DurableScheduler(folder, self.scheduler, durable=durable)
        known, pages = self.scheduler, self.scheduler.pages
        about = {"time": known.time, "bandwidth": known.bandwidth, "columns": [*pages.columns]}
        return about | {"ids": pages.ids.ids(pages.ids.present())}

    def close(self) -> None:
        """Leave the folder to others."""
        if isinstance(self.scheduler, DurableScheduler):
            self.scheduler.close()


class LocalWorker:
    """A shard in this process."""

    died: Any = ()

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.shard = Shard(*arguments)
        self.close = self.shard.close

    def submit(self, payload: bytes) -> Future[bytes]:
        """Make a call; return its answer."""
        answer: Future[bytes] = Future()
        answer.set_result(self.shard.reply(payload))
        return answer


_shards: list[Shard] = []
"""The shard of a worker process."""


def _open_shard(*arguments: Any) -> None:
    _shards.append(Shard(*arguments))


def _reply(payload: bytes) -> bytes:
    return _shards[0].reply(payload)


class ProcessWorker:
    """A shard in a process of its own, which ends with this one."""

    died: Any = BrokenProcessPool

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self._pool = new_pool(1, _open_shard, *arguments)
        self._pid = self._pool.submit(os.getpid)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._pid.result()

    def submit(self, payload: bytes) -> Future[bytes]:
        """Begin a call; return its answer, which raises ``died`` if the process has ended."""
        try:
            return self._pool.submit(_reply, payload)
        except BrokenProcessPool as error:
            answer: Future[bytes] = Future()
            answer.set_exception(error)
            return answer

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown()


class RayWorker:
    """A shard in an actor of Ray, which is started on this machine if it does not run yet."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        import ray

        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        self._ray, self.actor = ray, ray.remote(Shard).remote(*arguments)
        self.died = ray.exceptions.RayActorError

    def submit(self, payload: bytes) -> Future[bytes]:
        """Begin a call; return its answer, which raises ``died`` if the actor has ended."""
        answer: Future[bytes] = self.actor.reply.remote(payload).future()
        return answer

    def close(self) -> None:
        """End the actor."""
        self._ray.kill(self.actor)


BACKENDS: dict[str, type[Any]] = {
    "local": LocalWorker,
    "processes": ProcessWorker,
    "ray": RayWorker,
}
"""Workers by the name of a backend."""
