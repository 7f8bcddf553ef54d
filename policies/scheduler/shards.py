"""A scheduler in shards: each has a part of the pages, and a share of the bandwidth."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import one_of, quantity, whole
from policies.scheduler.balance import Balance
from policies.scheduler.calls import CALLS, locked, wrapped
from policies.scheduler.files import Record, decoded
from policies.scheduler.ids import PageIds, first_of_each, shards_of
from policies.scheduler.pacing import PacedScheduler
from policies.scheduler.page_values import COLUMNS
from policies.scheduler.reading import READERS, Ids, as_ids, check_names, read
from policies.scheduler.scheduler import CrawlScheduler
from policies.scheduler.workers import BACKENDS, check, check_folder, encoded, shard_folder

UNLIMITED = 1e9
"""Time for which a shard may save bandwidth: the bandwidth is limited here, not there."""
Answers = dict[int, Record]


class ShardedScheduler(AbstractContextManager["ShardedScheduler"], PacedScheduler):
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
            holds shards, these go on at their bandwidth, timeout and waits after failures; what was
            saved of the bandwidth is lost.
        durable: as for :class:`DurableScheduler`.
        balance: time between two exchanges of shares; None for half of that in which every page
            could be crawled once; ``inf`` for equal shares.
        **settings: the other arguments of :class:`CrawlScheduler`, but not ``learn``, nor
            ``keep_gone``.

    Attributes:
        shares: shares of the bandwidth, (shards,), of sum 1.

    Raises:
        ValueError: as for :class:`CrawlScheduler`; an unknown backend; a folder of another number
            of shards, policy, ``num_sources``, ``new_share``, ``skew`` or ``resolution``, that
            cannot be read, of another version, or in use; a folder of one scheduler, or in which a
            shard is missing.
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
        whole_one = CrawlScheduler(policy, bandwidth, **settings)
        super().__init__(bandwidth, whole_one.time, whole_one.burst)
        self._values, self.num_sources = whole_one.pages.values, whole_one.num_sources
        shards = whole("shards", shards, 1)
        one_of("backend", backend, BACKENDS)
        self.period = None
        if balance is not None and balance != math.inf:
            self.period = quantity("balance", balance, above=0.0)
        self._balances = self._values.apart and balance != math.inf and shards > 1
        self._exchange: float | None = None
        own = {"bandwidth": self.bandwidth / shards, "burst": UNLIMITED}
        self._settings, self._start = settings | own, (policy, durable, BACKENDS[backend])
        self.folder = None if folder is None else Path(folder)
        self._calls, self._sizes = [0] * shards, np.zeros(shards, np.int64)
        self.ids, self._columns = PageIds(), dict[str, Any]()
        self._where = np.zeros(self.ids.capacity, np.int64)
        self._workers: list[Any] = []
        if self.folder is not None:
            check_folder(self.folder, {"shards": shards, **_settings_of(whole_one)})
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
        self._ask_all("save")

    def close(self) -> None:
        """End the workers, and leave the folder to others; calls raise ValueError then."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def __exit__(self, *error: object) -> None:
        """End the workers, and leave the folder to others."""
        self.close()

    def __len__(self) -> int:
        """Return the number of pages that are not gone."""
        return len(self.ids)

    def __contains__(self, page_id: Any) -> bool:
        """Return whether a page is there, and not gone."""
        with self.lock:
            return bool(self.ids.rows(as_ids(page_id), missing="skip")[0] >= 0)

    # Calls that do more than to ask the shards

    def add(self, ids: Ids, *, known: Literal["raise", "skip"] = "raise", **columns: Any) -> int:
        """Add pages, and return their number; see :meth:`CrawlScheduler.add`."""
        given = as_ids(ids)
        arrays = read({"importance": 1.0, **columns}, given.size, self.num_sources)
        if one_of("known", known, ("raise", "skip")) == "skip":
            new = first_of_each(given) & (self.ids.rows(given, missing="skip") < 0)
            given, arrays = given[new], {name: array[..., new] for name, array in arrays.items()}
        if given.size == 0:
            return 0
        names = {name: None for name in arrays if name in COLUMNS}
        check_names(names, self._values.needs, self._columns)
        where = shards_of(arrays.get("host", given), self._sizes.size)
        self._place(given, where)
        try:
            self._route("add", where, {"ids": given, **arrays})
        except ValueError:
            late = {"times": sys.float_info.max, "status": "gone"}  # later than any copy
            self._route("report", where, {"ids": given}, **late)
            self._leave(given)
            raise
        self._columns = names
        return int(given.size)

    def remove(self, ids: Ids) -> None:
        """Remove pages; see :meth:`CrawlScheduler.remove`."""
        given = as_ids(ids)
        self._route("remove", self._leave(given), {"ids": given})

    def move(self, ids: Ids, new_ids: Ids) -> None:
        """Give pages other ids; their hosts stay; see :meth:`CrawlScheduler.move`."""
        given, others = as_ids(ids), as_ids(new_ids)
        where = self._where[self.ids.rows(given)]
        self.ids.move(given, others)
        self._route("move", where, {"ids": given, "new_ids": others})

    def configure(
        self,
        time: float,
        *,
        bandwidth: float | None = None,
        burst: float | None = None,
        timeout: float | None = None,
        retry: float | None = None,
    ) -> None:
        """Change settings; see :meth:`CrawlScheduler.configure`."""
        settings = {"timeout": timeout, "retry": retry}
        for name, value in settings.items():
            if value is not None:
                quantity(name, value, above=0.0)
        self._change_pace(time, bandwidth, burst)
        self._ask_all("configure", time=self.time, **settings)
        self._set_shares()

    def reset_clock(self, time: float) -> None:
        """Take the clock back; see :meth:`CrawlScheduler.reset_clock`."""
        self._set_shares()  # lets the time pass
        self._turn_back(time)
        self._ask_all("reset_clock", time=time)
        self._exchange = None

    def source_gap(self, source: int, since: float) -> None:
        """Take note of lost signals; see :meth:`CrawlScheduler.source_gap`."""
        self._set_shares()  # lets the time pass
        self._ask_all("source_gap", source=source, since=since)

    def report(
        self,
        ids: Ids,
        times: ArrayLike,
        status: str = "ok",
        changed: ArrayLike | None = None,
        **more: Any,
    ) -> int:
        """Take note of fetches; see :meth:`CrawlScheduler.report`; shards do not learn."""
        some = {"ids": ids, "times": times, "status": status, "changed": changed, **more}
        ignored: int = self._divide("report", some)
        if status == "gone":
            labels = as_ids(ids)
            known = labels[self.ids.rows(labels, missing="skip") >= 0]
            if ignored > labels.size - known.size:  # of an old report the page stays
                known = known[[not self._has(page) for page in known]]
            self._leave(np.unique(known))
        return ignored

    def _has(self, page_id: Any) -> bool:
        """Return whether the shard of a page has it."""
        [shard] = self._where[self.ids.rows(as_ids(page_id))].tolist()
        answer = self._ask("__contains__", {shard: {"page_id": page_id}})[shard]
        return bool(answer.values["answer"])

    def describe(self, page_id: Any, time: float | None = None) -> dict[str, Any]:
        """Return what is known of a page; see :meth:`CrawlScheduler.describe`."""
        if as_ids(page_id).size != 1:
            raise ValueError(f"page_id must be the id of a page, got {page_id!r:.80}")
        known: dict[str, Any] = self._divide("describe", {"page_id": page_id, "time": time})[
            "answer"
        ]
        return known

    @property
    def ahead(self) -> int:
        """The number of copies and signals ahead of the clock, as :attr:`CrawlScheduler.ahead`.

        Each is counted when its shard is asked next.
        """
        with self.lock:
            return sum(each.values["answer"] for each in self._ask_all("ahead").values())

    def why(self) -> str:
        """Return why there is no page now; see :meth:`CrawlScheduler.why`."""
        if self.is_used_up:
            return f"the bandwidth is used up until {self._ask_again():g}"
        whys = self._ask_all("why").items()
        return "; ".join(f"shard {k}: {each.values['answer']}" for k, each in whys)

    # Choices

    def _advance(self, time: float) -> None:
        self._check_open()
        super()._advance(time)

    def _take(self, count: int) -> NDArray[Any]:
        """Return up to ``count`` pages; what one shard cannot give, the others do."""
        if count == 0:
            return self.ids.ids(np.zeros(0, np.int64))
        self._pass_exchange()
        asked, parts, missing = np.flatnonzero(self._sizes), list[NDArray[Any]](), count
        while missing and asked.size:
            counts = self._balance.split(missing, asked)
            some = {int(k): int(n) for k, n in zip(asked, counts, strict=True) if n}
            answers = self._ask("next_batch", {k: {"count": n} for k, n in some.items()})
            for shard, answer in answers.items():
                ids, level = as_ids(answer.named["answer"]), answer.values["level"]
                parts.append(ids)
                some[shard] -= ids.size
                if level > 0.0:
                    self._balance.note(shard, level, ids.size)
            missing = sum(some.values())
            asked = np.array([k for k in asked if some.get(int(k), 0) == 0])
        return np.concatenate(parts)

    def overview(self, time: float | None = None) -> dict[str, Any]:
        """Return those of the shards by their number; see :meth:`CrawlScheduler.overview`."""
        answers = self._ask_all("overview", time=time).items()
        return {str(shard): each.values["answer"] for shard, each in answers}

    def ask(self, time: float, page_id: Any) -> NoReturn:
        """Raise ValueError: the price of :meth:`CrawlScheduler.ask` is of one scheduler."""
        raise ValueError("ask is a call of one scheduler, not of shards: call next")

    def _next_chance(self) -> float:
        answers = self._ask("next", {int(shard): {} for shard in np.flatnonzero(self._sizes)})
        return min((each.values["ask_again"] for each in answers.values()), default=math.inf)

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

    def _divide(self, name: str, arguments: dict[str, Any]) -> Any:
        """Make a call of the shards that it is about, and join their answers."""
        call = CALLS[name]
        given = arguments.pop(call.by, None)
        unknown = np.zeros(0, np.int64)
        if given is None:
            answers = self._ask_all(name, **arguments)
        else:
            labels = as_ids(given)
            if call.by in ("hosts", "host"):
                where = shards_of(labels, self._sizes.size)
            else:
                rows = self.ids.rows(labels, missing="skip" if call.skips else "raise")
                where = np.where(rows >= 0, self._where[rows], -1)
            per_page = {k: arguments.pop(k) for k in set(arguments) & set(READERS)}
            arrays = {call.by: labels, **read(per_page, labels.size, self.num_sources)}
            known, unknown = where >= 0, labels[where < 0]
            arrays = {key: array[..., known] for key, array in arrays.items()}
            answers = self._route(name, where[known], arrays, **arguments)
        return call.join([each.named for each in answers.values()], unknown)

    def _check_open(self) -> None:
        if not self._workers:
            raise ValueError("shards must be open, the scheduler is closed")

    def _start_worker(self, shard: int) -> Any:
        policy, durable, worker = self._start
        folder = None if self.folder is None else shard_folder(self.folder, shard)
        return worker((policy, self._settings, folder, durable))

    def _open(self, states: Answers) -> None:
        """Take note of the pages, the time and the bandwidths of the shards."""
        for shard, state in states.items():
            ids = as_ids(state.named["ids"])
            if ids.size:
                self._place(ids, shard)
                self._columns = dict.fromkeys(state.values["columns"])
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
        parts = enumerate((self.bandwidth * self.shares).tolist())
        self._ask("configure", {shard: {"bandwidth": part} for shard, part in parts})

    def _ask_all(self, call: str, **values: Any) -> Answers:
        """Make a call of all shards."""
        return self._ask(call, dict.fromkeys(range(self._sizes.size), values))

    def _route(
        self, call: str, where: IntArray, arrays: Mapping[str, Any], **values: Any
    ) -> Answers:
        """Make a call with each shard's part of some arrays, of last axis n; where is (n,).

        One shard is asked even if n is 0: it checks what is not in the arrays.
        """
        order = np.argsort(where.astype(np.int16), kind="stable")
        sorted_arrays = {name: array[..., order] for name, array in arrays.items()}
        ends = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=self._sizes.size))])
        calls, asked = {}, np.flatnonzero(np.diff(ends)).tolist()
        for shard in asked or [int(self._sizes.argmax())]:
            part = slice(ends[shard], ends[shard + 1])
            parts = {name: array[..., part] for name, array in sorted_arrays.items()}
            calls[shard] = {**parts, **values}
        return self._ask(call, calls)

    def _ask(self, call: str, arguments: Mapping[int, Mapping[str, Any]]) -> Answers:
        """Make a call of some shards at the same time; return the answers, or raise an error."""
        self._check_open()
        timed = {"time": self.time} if call in ("next", "next_batch", "configure") else {}
        payloads = {k: encoded({"call": call, **timed, **x}) for k, x in arguments.items()}
        begun = {k: (payload, self._workers[k].submit(payload)) for k, payload in payloads.items()}
        answers: Answers = {}
        errors: list[Exception] = []
        for shard, (payload, future) in begun.items():
            try:
                answer = decoded(self._received(shard, payload, future))
                self._calls[shard] = answer.values["calls"]  # refused ones as well
                answers[shard] = check(answer)
            except (ValueError, TypeError, OSError, RuntimeError) as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return answers

    def _received(self, shard: int, payload: bytes, answer: Any) -> bytes:
        """Return the answer to a call, from a new worker if the one before has died."""
        worker = self._workers[shard]
        try:
            result: bytes = answer.result()
            return result
        except worker.died:
            if self.folder is None:
                self._lost(shard)
        worker.close()
        worker = self._workers[shard] = self._start_worker(shard)
        try:
            state = check(decoded(worker.submit(encoded({"call": "open"})).result()))
            again = state.values["calls"] == self._calls[shard]
            result = worker.submit(payload if again else encoded({"call": "last"})).result()
        except worker.died as error:
            raise RuntimeError(f"shard {shard} has died twice in one call") from error
        return result

    def _lost(self, shard: int) -> NoReturn:
        raise RuntimeError(
            f"shard {shard} has died, and the copies and signals of its {self._sizes[shard]} "
            "pages are lost; with a folder they would be kept"
        ) from None


for _name in set(CALLS) - set(dir(ShardedScheduler)):
    _call = wrapped(getattr(CrawlScheduler, _name), ShardedScheduler._divide)
    setattr(ShardedScheduler, _name, locked(_call))


def _settings_of(scheduler: CrawlScheduler) -> dict[str, Any]:
    """Return the settings that a scheduler keeps for ever, as plain values."""
    lines, slack = scheduler.pages.choices.lines[0], scheduler.pages.choices.slack
    return {
        "policy": type(scheduler.pages.values.policy).__name__,
        "num_sources": scheduler.num_sources,
        "new_share": float(lines["new_share"]),
        "skew": float(lines["skew"]),
        "resolution": (slack - lines["skew"]).tolist(),
    }
