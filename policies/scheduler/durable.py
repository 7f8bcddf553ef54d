"""A scheduler whose calls outlive the process: a snapshot, and a journal of the calls since."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import ArrayLike, NDArray

from policies.scheduler.files import (
    Journal,
    Record,
    plain,
    read_snapshot,
    records_of,
    write_snapshot,
)
from policies.scheduler.reading import Ids
from policies.scheduler.scheduler import CrawlScheduler, Fetch


class DurableScheduler:
    """A :class:`CrawlScheduler` that writes every call to a journal before it takes effect.

    After a crash at any instant the folder leads to the state after the last call that returned,
    or after the one that was under way. The answers go on as if nothing had happened.

    Args:
        folder: a folder of its own. If it holds a scheduler, that one goes on.
        scheduler: the scheduler to begin with, if the folder holds none.
        policy: as for :meth:`CrawlScheduler.from_state`.
        durable: whether a call waits until it is on the disk, and so outlives the machine too.

    Attributes:
        calls: calls in the journal, since the last snapshot.
        answer: the result of the last call that was made again at the start, or its error.

    Raises:
        ValueError: the folder holds a scheduler and another one is given, or neither; its files
            are damaged or of another format; another process uses it.
        OSError: the folder cannot be written.
    """

    def __init__(
        self,
        folder: str | Path,
        scheduler: CrawlScheduler | None = None,
        *,
        policy: Any = None,
        durable: bool = False,
    ) -> None:
        self.folder, self.durable = Path(folder), durable
        self.calls = 0
        self.answer: Any = None
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._open(scheduler, policy)
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self, scheduler: CrawlScheduler | None, policy: Any) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(
                f"folder must not be in use by another process, {self.folder} is"
            ) from error
        snapshots = sorted(self.folder.glob("snapshot-*[0-9]"))
        if bool(snapshots) == (scheduler is not None):
            held = "a scheduler already" if snapshots else "no scheduler yet"
            raise ValueError(
                f"scheduler must be given for a new folder alone, {self.folder} has {held}"
            )
        if scheduler is not None:
            self.scheduler = scheduler
            self._begin(0)
        else:
            self._restore(snapshots[-1], policy)

    def _restore(self, snapshot: Path, policy: Any) -> None:
        self.number = int(snapshot.name.removeprefix("snapshot-"))
        self.scheduler = CrawlScheduler.from_state(read_snapshot(snapshot), policy)
        self.journal = Journal(self._path("journal", self.number), self.durable)
        for record, _ in records_of(self.journal.path):
            call, self.calls = record.values.pop("call"), self.calls + 1
            try:
                self.answer = getattr(self.scheduler, call)(**record.values, **record.arrays)
            except (ValueError, TypeError) as error:
                self.answer = error  # it was refused then, too

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number:012d}"

    def _begin(self, number: int) -> None:
        """Write a snapshot and begin its journal; then delete the files before it."""
        snapshot = self._path("snapshot", number)
        write_snapshot(snapshot, self.scheduler.state())
        try:
            self.journal = Journal(self._path("journal", number), self.durable)
        except OSError:
            snapshot.unlink()  # calls go on in the journal before it
            raise
        self.number, self.calls = number, 0
        for kind in ("snapshot", "journal"):
            for path in self.folder.glob(f"{kind}-*"):
                if path.name < self._path(kind, number).name:
                    path.unlink()

    def save(self) -> None:
        """Write a snapshot, which shortens the next start."""
        before = self.journal
        self._begin(self.number + 1)
        before.close()

    def close(self) -> None:
        """Leave the folder to others."""
        self.journal.close()
        os.close(self._lock)

    def __enter__(self) -> DurableScheduler:
        """Return the scheduler itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the folder to others."""
        self.close()

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.scheduler)

    def _call(self, call: str, **arguments: Any) -> Any:
        """Write a call to the journal, and make it."""
        record = plain(arguments)
        self.journal.append(Record({"call": call, **record.values}, record.arrays))
        self.calls += 1
        return getattr(self.scheduler, call)(**arguments)

    def add(self, ids: Ids, **columns: Any) -> None:
        """Add pages; see :meth:`CrawlScheduler.add`."""
        self._call("add", ids=ids, **columns)

    def update(self, ids: Ids, **columns: ArrayLike) -> None:
        """Change columns of pages; see :meth:`CrawlScheduler.update`."""
        self._call("update", ids=ids, **columns)

    def remove(self, ids: Ids) -> None:
        """Remove pages; see :meth:`CrawlScheduler.remove`."""
        self._call("remove", ids=ids)

    def limit_hosts(self, hosts: ArrayLike | None = None, **limits: Any) -> None:
        """Limit the fetches of hosts; see :meth:`CrawlScheduler.limit_hosts`."""
        self._call("limit_hosts", hosts=hosts, **limits)

    def set_bandwidth(self, bandwidth: float, time: float) -> None:
        """Change the bandwidth; see :meth:`CrawlScheduler.set_bandwidth`."""
        self._call("set_bandwidth", bandwidth=bandwidth, time=time)

    def signal(self, ids: Ids, times: ArrayLike, source: ArrayLike = 0) -> int:
        """Take note of signals; see :meth:`CrawlScheduler.signal`."""
        return int(self._call("signal", ids=ids, times=times, source=source))

    def report(
        self,
        ids: Ids,
        times: ArrayLike,
        status: str = "ok",
        changed: ArrayLike | None = None,
    ) -> int:
        """Take note of fetches; see :meth:`CrawlScheduler.report`."""
        found = {} if changed is None else {"changed": changed}
        return int(self._call("report", ids=ids, times=times, status=status, **found))

    def next(self, time: float) -> Fetch:
        """Return the next page to fetch; see :meth:`CrawlScheduler.next`."""
        fetch: Fetch = self._call("next", time=time)
        return fetch

    def next_batch(self, time: float, count: int) -> NDArray[Any]:
        """Return the next pages to fetch; see :meth:`CrawlScheduler.next_batch`."""
        pages: NDArray[Any] = self._call("next_batch", time=time, count=count)
        return pages
