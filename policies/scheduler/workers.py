"""Shards of a scheduler where they run: in this process, in processes of their own, or in Ray.

Calls and answers are records as in a journal (:mod:`policies.scheduler.files`): plain values and
arrays. Nothing is unpickled but the policy, when a worker starts.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policies.scheduler.durable import DurableScheduler
from policies.scheduler.files import Record, decoded, pieces_of, plain
from policies.scheduler.scheduler import CrawlScheduler, Fetch

ERRORS = {error.__name__: error for error in (ValueError, TypeError, OSError)}
PATIENCE = 10.0
"""Seconds in which a process has to end."""


class Died(Exception):
    """A worker has ended, and a call has no answer."""


def encoded(values: Mapping[str, Any]) -> bytes:
    """Return a record of values as bytes."""
    return b"".join(pieces_of(plain(values)))


def check(answer: Record) -> None:
    """Raise the error that an answer holds."""
    if "error" in answer.values:
        raise ERRORS.get(answer.values["error"], RuntimeError)(answer.values["said"])


class Shard:
    """One shard: a scheduler, with a journal where it has a folder.

    Args:
        policy: its policy.
        settings: the other arguments of :class:`CrawlScheduler`.
        folder: its folder; None for none.
        durable: as for :class:`DurableScheduler`.
    """

    def __init__(
        self, policy: Any, settings: dict[str, Any], folder: str | None, durable: bool
    ) -> None:
        self.arguments = policy, settings, folder, durable
        self.journal: DurableScheduler | None = None

    def reply(self, payload: bytes) -> bytes:
        """Return the answer to a call: its result, or its error, and the number of calls."""
        record = decoded(payload)
        call = record.values.pop("call")
        try:
            if call == "open":
                return encoded({**self._open(), "calls": self._calls()})
            if call == "last":
                result = self.journal.answer if self.journal is not None else None
                if isinstance(result, Exception):
                    raise result
            else:
                target: Any = self.scheduler if self.journal is None else self.journal
                result = getattr(target, call)(**record.values, **record.arrays)
        except Exception as error:
            said = {"error": type(error).__name__, "said": str(error)}
            return encoded({**said, "calls": self._calls()})
        if isinstance(result, np.ndarray):
            result = {"ids": result, "value": self._value(result)}
        elif isinstance(result, str):
            result = {"why": result}
        elif isinstance(result, Fetch):
            result = {"ask_again": result.ask_again}
        elif not isinstance(result, dict):
            result = {"ignored": getattr(result, "ignored", result)}
        return encoded({**result, "calls": self._calls()})

    def close(self) -> None:
        """Leave the folder to others."""
        if self.journal is not None:
            self.journal.close()

    def _calls(self) -> int:
        return 0 if self.journal is None else self.journal.total

    def _open(self) -> dict[str, Any]:
        """Start the scheduler, or let that of the folder go on; return what it knows."""
        policy, settings, folder, durable = self.arguments
        if folder is not None and DurableScheduler.holds(folder):
            self.journal = DurableScheduler(folder, policy=policy, durable=durable)
            self.scheduler = self.journal.scheduler
        else:
            self.scheduler = CrawlScheduler(policy, **settings)
            self.scheduler.empty -= settings["burst"]
            if folder is not None:
                self.journal = DurableScheduler(folder, self.scheduler, durable=durable)
        known = self.scheduler
        ids = known.ids.ids(known.ids.present())
        columns = np.array(list(known.columns), np.str_)
        return {"ids": ids, "columns": columns, "time": known.time, "bandwidth": known.bandwidth}

    def _value(self, ids: NDArray[Any]) -> float:
        """Return the least value of the last two pages of a batch; NaN if they had no copies."""
        known, least = self.scheduler, np.nan
        for row in known.ids.rows(ids[-2:]):
            page = known.lazy.pages[row]
            age, counted = known.time - page["last_crawl"], page["counted"]
            if np.isfinite(age):
                least = np.fmin(known.values.value(known.lazy.parameters, row, age, counted), least)
        return float(least)


class Worker(Protocol):
    """A shard, wherever it runs; after each :meth:`send` comes one :meth:`receive`."""

    def send(self, payload: bytes) -> None:
        """Begin a call."""

    def receive(self) -> bytes:
        """Return its answer; raise Died if there is none."""

    def close(self) -> None:
        """End the worker."""


class LocalWorker:
    """A shard in this process."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.shard = Shard(*arguments)
        self.close = self.shard.close

    def send(self, payload: bytes) -> None:
        """Make a call."""
        self._payload = self.shard.reply(payload)

    def receive(self) -> bytes:
        """Return its answer."""
        return self._payload


def serve(connection: Connection, arguments: tuple[Any, ...]) -> None:
    """Answer the calls of another process until it closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    shard = Shard(*arguments)
    while True:
        try:
            payload = connection.recv_bytes()
        except EOFError:
            break
        connection.send_bytes(shard.reply(payload))
    shard.close()


class ProcessWorker:
    """A shard in a process of its own, which ends with this one."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, arguments), daemon=True)
        self.process.start()
        other.close()
        self._awaited = 0

    def send(self, payload: bytes) -> None:
        """Begin a call; answers that were not waited for, after an interrupt, are dropped."""
        try:
            while self._awaited:
                self.receive()
            self._connection.send_bytes(payload)
        except (OSError, Died):
            pass  # receive says so
        self._awaited += 1

    def receive(self) -> bytes:
        """Return its answer; raise Died if the process has ended."""
        try:
            payload = self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise Died from error
        self._awaited -= 1
        return payload

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class RayWorker:
    """A shard in an actor of Ray, which is started on this machine if it does not run yet."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        import ray

        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        self._ray, self.actor = ray, ray.remote(Shard).remote(*arguments)

    def send(self, payload: bytes) -> None:
        """Begin a call."""
        self._answer = self.actor.reply.remote(payload)

    def receive(self) -> bytes:
        """Return its answer; raise Died if the actor has ended."""
        try:
            payload: bytes = self._ray.get(self._answer)
        except self._ray.exceptions.RayActorError as error:
            raise Died from error
        return payload

    def close(self) -> None:
        """End the actor."""
        self._ray.kill(self.actor)


BACKENDS: dict[str, type[Any]] = {
    "local": LocalWorker,
    "processes": ProcessWorker,
    "ray": RayWorker,
}
"""Workers by the name of a backend."""
