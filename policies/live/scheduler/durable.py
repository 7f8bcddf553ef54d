"""A scheduler that survives a restart: a snapshot, and a journal of the calls since."""

from __future__ import annotations

import fcntl
import inspect
import math
import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, partial
from pathlib import Path
from typing import Any

from crawl_envs.types.arguments import flag, one_of, whole
from policies.live.scheduler.calls import CHANGES, passed_on
from policies.live.scheduler.files import Journal, Record, plain, read_snapshot, write_records
from policies.live.scheduler.pacing import Fetch
from policies.live.scheduler.reading import READERS
from policies.live.scheduler.scheduler import CrawlScheduler

REFUSALS = ValueError, TypeError, LookupError, ArithmeticError, AttributeError
"""Errors that refuse a call. The journal has refused calls too; the next record marks them."""
SAVE_EVERY = 10_000
"""Number of calls in a journal after which a snapshot is written."""
SHARDS_FILE = "shards"
"""Name of the file that marks a folder of shards, in which each shard has a folder."""


class DurableScheduler(AbstractContextManager["DurableScheduler"]):
    """A :class:`CrawlScheduler` that writes every call to a journal before it takes effect.

    It has the methods of :class:`CrawlScheduler`. Calls that change nothing are not written, such
    as ``describe``, or ``next`` when it is known that no page is due yet. After a crash at any
    instant the folder restores the state after the last call that returned, or after the call
    that was under way. Answers continue as if nothing had happened. A thread writes snapshots,
    while further calls are written to the next journal.

    Args:
        folder: a folder for this scheduler alone. If it holds a scheduler, that one is resumed.
        scheduler: the scheduler to begin with, if the folder holds none.
        policy: as for :meth:`CrawlScheduler.from_state`. A folder names policies of the registry
            alone, and nothing in it is code.
        durable: whether a call waits until it is on the disk, and so outlives the machine too.
        save_every: calls after which a snapshot is written, which bounds the time of a start.

    Attributes:
        calls: calls in the journals, since the last snapshot was begun.
        total: calls that were ever written.
        answer: the result or error of the last call of the journal, which the start repeats.

    Raises:
        ValueError: the folder holds a scheduler and another one is given, or neither; its files
            are damaged, of another format, or have what this version does not know; another process
            uses it, or it is called after a fork.
        OSError: the folder cannot be written; a snapshot could not be (raised by the next one).
    """

    def __init__(
        self,
        folder: str | Path,
        scheduler: CrawlScheduler | None = None,
        *,
        policy: Any = None,
        durable: bool = False,
        save_every: int = SAVE_EVERY,
    ) -> None:
        self.folder, self.durable = Path(folder), flag("durable", durable)
        self.save_every = whole("save_every", save_every, 1)
        if not isinstance(scheduler, CrawlScheduler | None):
            raise ValueError(f"scheduler must be a CrawlScheduler or None, got {scheduler!r}")
        self.calls = self.total = 0
        self.answer: Any = None
        self._refused = False  # the last call
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._open(scheduler, policy)
        except BaseException:
            os.close(self._lock)
            raise
        self._writer, self._process = ThreadPoolExecutor(1), os.getpid()
        self._saving: Future[None] | None = None

    @staticmethod
    def holds(folder: str | Path) -> bool:
        """Return whether a folder holds a scheduler."""
        return any(Path(folder).glob("snapshot-*[0-9]"))

    def _open(self, scheduler: CrawlScheduler | None, policy: Any) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(
                f"folder must not be in use by another process, {self.folder} is"
            ) from error
        if (self.folder / SHARDS_FILE).exists():
            raise ValueError(
                f"folder must be of one scheduler, {self.folder} is of a ShardedScheduler: open it "
                "with that, or give another folder"
            )
        if self.holds(self.folder) == (scheduler is not None):
            content = "no scheduler yet" if scheduler is None else "a scheduler already"
            raise ValueError(
                f"scheduler must be given for a new folder alone, {self.folder} has {content}"
            )
        for path in self.folder.glob(".snapshot-*.part"):
            path.unlink()  # of a process that has died
        if scheduler is not None:
            self.scheduler, self.number = scheduler, 0
            self.journal = Journal(self._path("journal", 0), self.durable)
            self._write(0, scheduler.state())
        else:
            self._restore(sorted(self.folder.glob("snapshot-*[0-9]"))[-1], policy)

    def _restore(self, snapshot: Path, policy: Any) -> None:
        """Restore the scheduler of a snapshot, and repeat the calls of all later journals."""
        self.number = int(snapshot.name.removeprefix("snapshot-"))
        state, number = read_snapshot(snapshot), self.number
        self.total = state.values.pop("total")
        try:
            self.scheduler = CrawlScheduler.from_state(state, policy)
        except ValueError as error:
            raise ValueError(f"{snapshot} cannot be restored: {error}") from error
        while True:
            following = self._path("journal", self.number + 1)
            path, last = self._path("journal", self.number), not following.exists()
            checks = {"whole": not last, "there": self.number == number}
            self.journal = Journal(path, self.durable, **checks, repeat=partial(self._repeat, path))
            if last:
                break
            self.journal.close()
            self.number += 1

    def _repeat(self, path: Path, record: Record) -> None:
        """Repeat a call of a journal; ValueError if this version treats it differently."""
        arguments = record.named
        call, now = arguments.pop("call", None), arguments.pop("now", math.nan)
        before = arguments.pop("refused", False)
        try:
            if self.calls and before != self._refused:
                was = "refused" if before else "made"
                raise ValueError(f"the one before was {was} there, not here ({self.answer!s:.80})")
            check_change(call, arguments)
        except ValueError as error:
            raise ValueError(
                f"{path} is of another version, at call {self.calls + 1}: {error}. Open the folder "
                "with that version, or begin with another folder"
            ) from error
        self.calls, self.total = self.calls + 1, self.total + 1
        self.scheduler.pace.time = max(self.scheduler.time, now)
        try:
            self.answer, self._refused = getattr(self.scheduler, call)(**arguments), False
        except REFUSALS as error:
            self.answer, self._refused = error, True  # the next record says whether it was

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number:012d}"

    def _write(self, number: int, state: Record) -> None:
        """Write a state as snapshot ``number``; then delete older snapshots and journals."""
        state.values.setdefault("total", 0)
        write_records(self._path("snapshot", number), [state])
        for kind in ("snapshot", "journal"):
            for path in self.folder.glob(f"{kind}-*"):
                if path.name < self._path(kind, number).name:
                    path.unlink()

    def _begin_save(self) -> None:
        """Begin the next journal, and let a thread write the snapshot that comes before it."""
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()  # an error of it is raised once, and the next call tries again
        values, arrays = self.scheduler.state()
        values["total"] = self.total
        state = Record(values, {name: array.copy() for name, array in arrays.items()})
        before, number = self.journal, self.number + 1
        before.sync()  # it must be whole when there is one after it
        self.journal = Journal(self._path("journal", number), self.durable)
        self.number, self.calls = number, 0
        before.close()
        self._saving = self._writer.submit(self._write, number, state)

    def save(self) -> None:
        """Write a snapshot, which shortens the next start; return when it is written."""
        with self.scheduler.lock:
            self._check_open()
            self._begin_save()
            assert self._saving is not None
            saving, self._saving = self._saving, None
        saving.result()

    def close(self) -> None:
        """Release the folder for other processes; later calls raise ValueError."""
        self._writer.shutdown()
        self.journal.close()
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1
        if self._saving is not None:
            self._saving.result()

    def _check_open(self) -> None:
        if self._lock < 0:
            raise ValueError(f"folder must be open, the scheduler of {self.folder} is closed")
        if os.getpid() != self._process:
            raise ValueError(f"{self.folder} must be used by the process that opened it, not forks")

    def __exit__(self, *error: object) -> None:
        """Release the folder for other processes."""
        self.close()

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.scheduler)

    def __contains__(self, page_id: object) -> bool:
        """Return whether a page is there, and not gone."""
        return page_id in self.scheduler

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the scheduler."""
        if name == "scheduler":
            raise AttributeError(name)
        return getattr(self.scheduler, name)

    def next(self, time: float) -> Fetch:
        """Return the next page to fetch; see :meth:`CrawlScheduler.next`."""
        with self.scheduler.lock:
            self._check_open()
            answer: Fetch | None = self.scheduler.nothing_yet(time)
            return answer if answer is not None else self._call("next", {"time": time})

    def _call(self, call: str, arguments: dict[str, Any]) -> Any:
        """Write a call to the journal, make it, and return its result."""
        with self.scheduler.lock:
            self._check_open()
            if self.calls >= self.save_every:
                self._begin_save()
            check_change(call, arguments)
            values, arrays = plain(arguments)
            head = {"call": call, "now": self.scheduler.time}
            head |= {"refused": True} if self._refused else {}
            self.journal.append(Record(head | values, arrays))
            self.calls, self.total = self.calls + 1, self.total + 1
            self._refused = False
            try:
                return getattr(self.scheduler, call)(**values, **arrays)
            except REFUSALS:
                self._refused = True
                raise


@cache
def arguments_of(call: str) -> list[str]:
    """Return the names of the arguments that a scheduler's method takes."""
    names = {*inspect.signature(getattr(CrawlScheduler, call)).parameters}
    return sorted(names.union(READERS if "columns" in names else ()) - {"self", "columns"})


def check_change(call: Any, arguments: Iterable[str]) -> None:
    """Raise ValueError unless a call is a method that changes a scheduler and has the arguments."""
    one_of("call", call, CHANGES)
    for name in arguments:
        one_of(f"argument of {call}", name, arguments_of(call))


for _name in CHANGES:
    if _name != "next":
        setattr(DurableScheduler, _name, passed_on(getattr(CrawlScheduler, _name)))
