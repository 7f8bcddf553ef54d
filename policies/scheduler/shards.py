"""A scheduler in shards: each has a part of the pages, and a share of the bandwidth."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import one_of, quantity, whole
from policies.scheduler.balance import Balance
from policies.scheduler.files import Record, decoded
from policies.scheduler.ids import shards_of
from policies.scheduler.reading import Ids, as_ids, copies_of, least_of, numbers_per_page
from policies.scheduler.scheduler import CrawlScheduler, Noted, guard
from policies.scheduler.workers import BACKENDS, Died, Worker, check, encoded

UNLIMITED = 1e9
"""Time for which a shard may save bandwidth: the bandwidth is limited here, not there."""
DIVIDED = {"update": "ids", "describe": "page_id", "limit_hosts": "hosts", "hold": "host"}
"""Calls by the argument by which they are divided among the shards; None is for all."""


class ShardedScheduler(CrawlScheduler):
    """A :class:`CrawlScheduler` whose pages are divided among shards, with the same calls.

    All pages of a host are in one shard, so that its limits hold; pages without a host are divided
    by their ids. A batch is divided by the shards' shares of the bandwidth, equal at first, as in
    section 5.2 of the NCIS paper. Then shares are exchanged until all shards crawl at the same
    crawl value, as one scheduler would (:mod:`policies.scheduler.balance`); with a policy that
    allocates rates they stay equal. Pages of a batch come shard by shard, the best of each first.

    The shards work at the same time with the backends ``processes`` and ``ray``; the answers are
    those of ``local``. A script that starts processes needs ``if __name__ == "__main__":``. Large
    batches are faster: every call waits for all shards.

    A worker that has ended is started again from its folder, and its call is made exactly once.
    Without a folder its pages are lost, and calls of it raise RuntimeError. If this process ends in
    a call, some shards may have made it and others not.

    Args:
        policy: as for :class:`CrawlScheduler`.
        bandwidth: likewise, of all shards together.
        shards: number of shards.
        backend: ``local`` for this process, ``processes`` for one process per shard, ``ray`` for
            one actor of Ray per shard.
        folder: a folder in which each shard has a :class:`DurableScheduler`; None for none. If it
            holds shards, these go on, at their bandwidth; what was saved of it is lost.
        durable: as for :class:`DurableScheduler`.
        balance: time between two exchanges of shares; None for half of that in which every page
            could be crawled once; ``inf`` for equal shares.
        **settings: the other arguments of :class:`CrawlScheduler`, but not ``learn``, nor
            ``keep_gone``.

    Attributes:
        shares: shares of the bandwidth, (shards,), of sum 1.

    Raises:
        ValueError: as for :class:`CrawlScheduler`; an unknown backend; a folder of another number
            of shards, or in use.
        ImportError: Ray is not installed.
    """

    def __init__(
        self,
        policy: Any,
        bandwidth: float,
        *,
        shards: int = 2,
        backend: str = "local",
        folder: str | Path | None = None,
        durable: bool = False,
        balance: float | None = None,
        **settings: Any,
    ) -> None:
        for name in {"learn", "keep_gone"} & set(settings):
            raise ValueError(f"{name} must be left out: shards do not learn")
        super().__init__(policy, bandwidth, **settings)
        shards = whole("shards", shards, 1)
        one_of("backend", backend, BACKENDS)
        self.period = None
        if balance is not None and balance != math.inf:
            self.period = quantity("balance", balance, above=0.0)
        self._balances = self.values.apart and balance != math.inf and shards > 1
        self._exchange: float | None = None
        own = {"bandwidth": self.bandwidth / shards, "burst": UNLIMITED}
        self._settings, self._start = settings | own, (policy, durable, BACKENDS[backend])
        self.folder = None if folder is None else Path(folder)
        self._calls, self._sizes = [0] * shards, np.zeros(shards, np.int64)
        self._where = np.zeros(self.ids.capacity, np.int64)
        self._workers: list[Worker] = []
        _check_folder(self.folder, shards)
        try:
            for shard in range(shards):
                self._workers.append(self._start_worker(shard))
            self._open(self._ask_all("open"))
        except BaseException:
            self.close()
            raise

    @property
    def shares(self) -> FloatArray:
        """The shares of the shards in the bandwidth, (shards,), of sum 1."""
        shares: FloatArray = self._balance.shares
        return shares

    def save(self) -> None:
        """Write snapshots to the folder, which shortens the next start; ValueError without one."""
        if self.folder is None:
            raise ValueError("folder must be given, got None")
        self._ask({shard: {"call": "save"} for shard in range(len(self._workers))})

    def close(self) -> None:
        """End the workers, and leave the folder to others."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def __enter__(self) -> ShardedScheduler:
        """Return the scheduler itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers, and leave the folder to others."""
        self.close()

    def state(self) -> NoReturn:
        """Raise ValueError: the shards have the states, and keep them in their folders."""
        raise ValueError("folder must be given to keep the state of shards")

    # Pages

    def _add(
        self,
        given: NDArray[Any],
        host: ArrayLike | None,
        rest: Mapping[str, Any],
        columns: Mapping[str, Any],
    ) -> int:
        known = self._read_new(columns, given.size)
        pages: dict[str, Any] = {"ids": given, **known}
        labels = given if host is None else np.asarray(host)
        if labels.shape not in ((), given.shape):
            raise ValueError(f"host must be a label or {given.size} labels, got {labels.shape}")
        if host is not None:
            pages["host"] = np.broadcast_to(labels, given.shape)
        copies = copies_of(rest["last_crawl"], given.size)
        pages["last_crawl"] = np.where(np.isinf(copies), math.nan, copies)
        pages["least_interval"] = least_of(rest["least_interval"], given.size)
        where = shards_of(pages.get("host", given), len(self._workers))
        self._place(given, where)
        try:
            self._route("add", where, pages)
        except ValueError:
            self._route("report", where, {"ids": given}, times=self.time, status="gone")
            self._leave(given)
            raise
        self.columns = known  # their names
        return given.size

    def _are_gone(self, rows: IntArray) -> BoolArray:
        return np.zeros(np.shape(rows), np.bool_)  # they are removed

    def remove(self, ids: Ids) -> None:
        """Remove pages; see :meth:`CrawlScheduler.remove`."""
        given = as_ids(ids)
        self._route("remove", self._leave(given), {"ids": given})

    def configure(self, time: float, **settings: Any) -> None:
        """Change settings; see :meth:`CrawlScheduler.configure`."""
        super().configure(time, **settings)
        shared = {k: x for k, x in settings.items() if k in ("timeout", "retry")}
        self._ask_all("configure", time=self.time, **shared)
        self._set_shares()

    def source_gap(self, source: int, since: float) -> None:
        """Take note of lost signals; see :meth:`CrawlScheduler.source_gap`."""
        super().source_gap(source, since)
        self._set_shares()  # lets the time pass
        self._ask_all("source_gap", source=source, since=since)

    def move(self, ids: Ids, new_ids: Ids) -> None:
        """Give pages other ids; see :meth:`CrawlScheduler.move`."""
        given, others = as_ids(ids), as_ids(new_ids)
        where = self._where[self.ids.rows(given)]
        self.ids.move(given, others)
        self._route("move", where, {"ids": given, "new_ids": others})

    def signal(self, ids: Ids, times: ArrayLike, source: ArrayLike = 0) -> Noted:
        """Take note of signals; see :meth:`CrawlScheduler.signal`."""
        given = as_ids(ids)
        known, rows, moments, sources = self._read_signals(given, times, source)
        events = {"ids": given[known], "times": moments, "source": sources}
        return Noted(_ignored(self._route("signal", self._where[rows], events)), given[~known])

    def report(
        self,
        ids: Ids,
        times: ArrayLike,
        status: str = "ok",
        changed: ArrayLike | None = None,
        **more: Any,
    ) -> int:
        """Take note of fetches; see :meth:`CrawlScheduler.report`; shards do not learn."""
        given = as_ids(ids)
        known, rows, moments = self._read_report(given, times, status)
        events = {"ids": given[known], "times": moments}
        for name in {"retry_at", "ended"} & {name for name, x in more.items() if x is not None}:
            column = numbers_per_page(name, more[name], given.size, finite=name == "ended")
            events[name] = column[known]
        answers = self._route("report", self._where[rows], events, status=status)
        if status == "gone":
            self._leave(np.unique(given[known]))
        return int((~known).sum()) + _ignored(answers)

    # Choices

    def _take(self, count: int) -> NDArray[Any]:
        """Return up to ``count`` pages; what one shard cannot give, the others do."""
        if count == 0:
            return self.ids.ids(np.zeros(0, np.int64))
        self._pass_exchange()
        asked, parts, missing = np.flatnonzero(self._sizes), list[NDArray[Any]](), count
        while missing and asked.size:
            counts = self._balance.split(missing, asked)
            calls = {
                int(shard): {"call": "next_batch", "time": self.time, "count": int(number)}
                for shard, number in zip(asked, counts, strict=True)
                if number
            }
            given = np.zeros(asked.size, np.int64)
            for shard, answer in self._ask(calls).items():
                ids, value = answer.arrays["ids"], answer.values["value"]
                parts.append(ids)
                given[asked == shard] = ids.size
                if not math.isnan(value):
                    self._balance.note(shard, value, ids.size)
            missing -= int(given.sum())
            asked = asked[given == counts]
        return np.concatenate(parts)

    def _ask_again(self) -> float:
        own = super()._ask_again()
        if own < math.inf:
            return own
        call = {"call": "next", "time": self.time}
        answers = self._ask({int(shard): call for shard in np.flatnonzero(self._sizes)})
        return min((each.values["ask_again"] for each in answers.values()), default=math.inf)

    def describe(self, page_id: Any) -> dict[str, Any]:
        """Return what is known of a page; see :meth:`CrawlScheduler.describe`."""
        (answer,) = self._divide("describe", {"page_id": page_id}).values()
        return {k: x for k, x in answer.values.items() if k != "calls"} | answer.arrays

    def why(self) -> str:
        """Return why there is no page now; see :meth:`CrawlScheduler.why`."""
        if self.allowance < 1.0 - self._rounding():
            return super().why()
        whys = self._ask_all("why").items()
        return "; ".join(f"shard {k}: {each.values['why']}" for k, each in whys)

    def warm(self) -> None:
        """Compile what calls need; see :meth:`CrawlScheduler.warm`."""
        self._ask_all("warm")

    def _pass_exchange(self) -> None:
        """Exchange shares when it is time; values of the first half of a period are not used."""
        if not self._balances:
            return
        period = self.period or 0.5 * len(self.ids) / self.bandwidth
        if self._exchange is None:
            self._exchange = self.time + period
        if self.time < self._exchange - 0.5 * period:
            self._balance.forget()
        if self.time >= self._exchange:
            self._balance.exchange(np.flatnonzero(self._sizes == 0))
            self._set_shares()
            self._exchange = self.time + period

    # Workers

    def _ask_all(self, call: str, **values: Any) -> dict[int, Record]:
        """Make a call of all shards."""
        return self._ask({shard: {"call": call, **values} for shard in range(self._sizes.size)})

    def _divide(self, call: str, arguments: dict[str, Any]) -> dict[int, Record]:
        """Make a call of the shards with the ids, or the hosts, that it is about."""
        key = DIVIDED[call]
        given = arguments.pop(key, None)
        if given is None:
            return self._ask_all(call, **arguments)
        labels = as_ids(given)
        by_host = key.startswith("host")
        where = shards_of(labels, len(self._workers)) if by_host else self._where[self._rows(given)]
        if call == "update":
            arguments = self._read_changes(arguments, labels.size)
        paged = {k for k, x in arguments.items() if np.shape(x)[-1:] == labels.shape}
        arrays = {key: labels, **{k: np.asarray(arguments.pop(k)) for k in paged}}
        return self._route(call, where, arrays, **arguments)

    def _start_worker(self, shard: int) -> Worker:
        policy, durable, worker = self._start
        folder = None if self.folder is None else str(self.folder / f"shard-{shard:03d}")
        started: Worker = worker((policy, self._settings, folder, durable))
        return started

    def _open(self, states: Mapping[int, Record]) -> None:
        """Take note of the pages, the time and the bandwidths of the shards."""
        for shard, state in states.items():
            if state.arrays["ids"].size:
                self._place(state.arrays["ids"], shard)
                self.columns = dict.fromkeys(state.arrays["columns"].tolist(), np.zeros(0))
        shares = np.array([state.values["bandwidth"] for state in states.values()])
        self.time = max(state.values["time"] for state in states.values())
        self.bandwidth, self._balance = float(shares.sum()), Balance(shares)

    def _place(self, ids: NDArray[Any], where: IntArray | int) -> None:
        """Take note of the shards of new pages."""
        rows = self.ids.add(ids)
        if self._where.size < self.ids.capacity:
            self._where = np.resize(self._where, self.ids.capacity)
        self._where[rows] = where
        self._sizes += np.bincount(self._where[rows], minlength=self._sizes.size)

    def _leave(self, ids: NDArray[Any]) -> IntArray:
        """Forget pages, and return their shards."""
        where = self._where[self.ids.remove(ids)]
        self._sizes -= np.bincount(where, minlength=self._sizes.size)
        return where

    def _set_shares(self) -> None:
        """Give shards their bandwidths, from now on."""
        shares = self.shares
        self._ask(
            {
                int(shard): {
                    "call": "configure",
                    "bandwidth": float(self.bandwidth * shares[shard]),
                    "time": self.time,
                }
                for shard in range(shares.size)
            }
        )

    def _route(
        self, call: str, where: IntArray, arrays: Mapping[str, Any], **values: Any
    ) -> dict[int, Record]:
        """Make a call with each shard's part of some arrays, of last axis n; where is (n,)."""
        order = np.argsort(where.astype(np.int16), kind="stable")
        sorted_arrays = {name: array[..., order] for name, array in arrays.items()}
        ends = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=self._sizes.size))])
        calls = {}
        for shard in np.flatnonzero(np.diff(ends)).tolist():
            part = slice(ends[shard], ends[shard + 1])
            parts = {name: array[..., part] for name, array in sorted_arrays.items()}
            calls[shard] = {"call": call, **parts, **values}
        return self._ask(calls)

    def _ask(self, calls: Mapping[int, Mapping[str, Any]]) -> dict[int, Record]:
        """Make a call of each shard at the same time; return the answers, or raise one's error."""
        payloads = {shard: encoded(call) for shard, call in calls.items()}
        for shard, payload in payloads.items():
            self._workers[shard].send(payload)
        answers: dict[int, Record] = {}
        errors: list[Exception] = []
        for shard, payload in payloads.items():
            try:
                answer = answers[shard] = decoded(self._received(shard, payload))
                self._calls[shard] = answer.values["calls"]
                check(answer)
            except (ValueError, TypeError, OSError, RuntimeError) as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return answers

    def _received(self, shard: int, payload: bytes) -> bytes:
        """Return the answer to a call, from a new worker if the one before has died."""
        try:
            return self._workers[shard].receive()
        except Died:
            if self.folder is None:
                self._lost(shard)
        self._workers[shard].close()
        worker = self._workers[shard] = self._start_worker(shard)
        try:
            worker.send(encoded({"call": "open"}))
            state = decoded(worker.receive())
            check(state)
            again = state.values["calls"] == self._calls[shard]
            worker.send(payload if again else encoded({"call": "last"}))
            return worker.receive()
        except Died as error:
            raise RuntimeError(f"shard {shard} has died twice in one call") from error

    def _lost(self, shard: int) -> NoReturn:
        raise RuntimeError(
            f"shard {shard} has died, and the copies and signals of its {self._sizes[shard]} "
            "pages are lost; with a folder they would be kept"
        ) from None


def _divided(call: str) -> Any:
    """Return a method that divides a call among the shards."""
    method = getattr(CrawlScheduler, call)
    names = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def divided(self: ShardedScheduler, *arguments: Any, **named: Any) -> None:
        self._divide(call, {**dict(zip(names, arguments, strict=False)), **named})

    return divided


for _call in set(DIVIDED) - {"describe"}:
    setattr(ShardedScheduler, _call, _divided(_call))
guard(ShardedScheduler)


def _ignored(answers: Mapping[int, Record]) -> int:
    """Return the number of events that the shards ignored."""
    return sum(int(answer.values["ignored"]) for answer in answers.values())


def _check_folder(folder: Path | None, shards: int) -> None:
    """Make the folder of a number of shards; ValueError if it is of another number."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "shards"
    if not path.exists():
        path.write_text(f"{shards}\n")
    elif path.read_text().strip() != str(shards):
        raise ValueError(f"shards must be {path.read_text().strip()} as in {folder}, got {shards}")
