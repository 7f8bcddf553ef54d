"""A scheduler in shards; each has some of the pages and a share of the bandwidth."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import one_of, quantity, whole
from policies.live.scheduler.balance import Balance
from policies.live.scheduler.calls import Noted, passed_on
from policies.live.scheduler.ids import PageIds, first_of_each, shards_of
from policies.live.scheduler.pacing import Pace, PacedScheduler
from policies.live.scheduler.page_values import COLUMNS
from policies.live.scheduler.reading import Ids, as_ids, check_names, read
from policies.live.scheduler.scheduler import CrawlScheduler
from policies.live.scheduler.spending import Spending
from policies.live.scheduler.workers import BACKENDS, Answer, Workers, check_folder

UNLIMITED = 1e9
"""The ``burst`` of each shard: shards need no limit, as their common scheduler limits calls."""


class ShardedScheduler(AbstractContextManager["ShardedScheduler"], PacedScheduler):
    """A :class:`CrawlScheduler` whose pages are divided among shards, with the same calls.

    All pages of a host are in one shard, so that its limits hold; pages without a host are divided
    by their ids. A batch is divided by the shards' shares of the bandwidth, equal at first, as in
    section 5.2 of the NCIS paper. Then shares are exchanged until all shards crawl at the same
    crawl value, as one scheduler would (:mod:`policies.live.scheduler.balance`); with a policy that
    allocates rates they stay equal. Pages of a batch come shard by shard, the best of each first.

    The shards work at the same time with the backend ``ray``; the answers are those of ``local``.
    Large batches are faster: every call waits for all shards.

    A worker that has ended is started again from its folder, and its call is made exactly once.
    Without a folder its pages are lost, and calls of it raise RuntimeError. If this process ends in
    a call, some shards may have made it and others not.

    Args:
        policy, bandwidth: as for :class:`CrawlScheduler`, of all shards together.
        shards: number of shards.
        backend: ``local`` for this process, ``ray`` for one actor of Ray per shard.
        folder: a folder in which each shard has a :class:`DurableScheduler`; None for none. If it
            holds shards, these go on at their bandwidth, timeout and waits after failures; what was
            saved of the bandwidth is lost.
        durable: as for :class:`DurableScheduler`.
        balance: time between two exchanges of shares; None for half of that in which every page
            could be crawled once; ``inf`` for equal shares.
        **settings: the other arguments of :class:`CrawlScheduler`, except ``learn``, ``keep_gone``,
            ``audit_share`` and ``most_interval``, also of pages, as the shards' bandwidths change.

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
        for name in {"learn", "keep_gone", "most_interval", "audit_share"} & set(settings):
            raise ValueError(f"{name} must be left out: only a CrawlScheduler has it")
        first = CrawlScheduler(policy, bandwidth, **settings)  # each shard begins as it does
        super().__init__(Pace(bandwidth, first.time, first.burst))
        self._spendings: dict[int, dict[str, Any]] = {}
        self.pace.empty, self.pace.spending = first.pace.empty, first.pace.spending
        self._values, self.num_sources = first.pages.values, first.num_sources
        shards = whole("shards", shards, 1)
        one_of("backend", backend, BACKENDS)
        if balance not in (None, math.inf):
            balance = quantity("balance", balance, above=0.0)
        self._period, self._balances = balance, self._values.apart and shards > 1
        self._exchange: float | None = None
        self._sizes = np.zeros(shards, np.int64)
        self.ids, self._columns = PageIds(), dict[str, Any]()
        self._where = np.zeros(self.ids.capacity, np.int64)
        self.folder, folders = None, list[Path | None]([None] * shards)
        if folder is not None:
            self.folder = Path(folder)
            folders[:] = check_folder(self.folder, shards, first)
        first.configure(first.time, bandwidth=bandwidth / shards, burst=UNLIMITED)
        first.pace.empty -= UNLIMITED
        start: Any = BACKENDS[backend]
        self._workers = Workers(partial(start, policy, first.state(), durable), folders)
        try:
            self._open(self._ask_all("open"))
            if first.pace.spending is not None:
                self.configure(self.time, cap=first.pace.spending.cap)
        except BaseException:
            self.close()
            raise

    @property
    def shares(self) -> FloatArray:
        """The shares of the shards in the bandwidth, (shards,), of sum 1."""
        return self._balance.shares

    def save(self) -> None:
        """Write snapshots to the folder, which shortens the next start; ValueError without one."""
        if self.folder is None:
            raise ValueError("folder must be given, got None")
        self._ask_all("save")

    def close(self) -> None:
        """End the workers and release the folder for other processes; later calls are errors."""
        self._workers.close()

    def __exit__(self, *error: object) -> None:
        """End the workers."""
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
        labels = as_ids(ids)
        arrays = read({"importance": 1.0, **columns}, labels.size, self.num_sources)
        if one_of("known", known, ("raise", "skip")) == "skip":
            new = first_of_each(labels) & (self.ids.rows(labels, missing="skip") < 0)
            labels, arrays = labels[new], {name: array[..., new] for name, array in arrays.items()}
        if labels.size == 0:
            return 0
        names = {name: None for name in arrays if name in COLUMNS}
        check_names(names, self._values.needs, self._columns)
        where = shards_of(arrays.get("host", labels), self._sizes.size)
        self._place(labels, where)
        try:
            self._route("add", where, {"ids": labels, **arrays})
        except ValueError:
            late = {"times": sys.float_info.max, "status": "gone"}  # later than any copy
            self._route("report", where, {"ids": labels}, **late)
            self._leave(labels)
            raise
        self._columns = names
        return int(labels.size)

    def remove(self, ids: Ids) -> None:
        """Remove pages; see :meth:`CrawlScheduler.remove`."""
        labels = as_ids(ids)
        self._route("remove", self._leave(labels), {"ids": labels})

    def move(self, ids: Ids, new_ids: Ids) -> None:
        """Give pages other ids; their hosts stay; see :meth:`CrawlScheduler.move`."""
        labels, new_labels = as_ids(ids), as_ids(new_ids)
        where = self._where[self.ids.rows(labels)]
        self.ids.move(labels, new_labels)
        self._route("move", where, {"ids": labels, "new_ids": new_labels})

    def configure(
        self,
        time: float,
        *,
        bandwidth: float | None = None,
        burst: float | None = None,
        timeout: float | None = None,
        retry: float | None = None,
        cap: float | None = None,
    ) -> None:
        """Change settings; see :meth:`CrawlScheduler.configure`."""
        settings = {"timeout": timeout, "retry": retry}
        for name, value in settings.items():
            if value is not None:
                quantity(name, value, above=0.0)
        self.pace.change(time, bandwidth, burst, cap)
        self._ask_all("configure", time=self.time, **settings, cap=cap)
        self._set_shares()

    def reset_clock(self, time: float) -> None:
        """Take the clock back; see :meth:`CrawlScheduler.reset_clock`."""
        self._set_shares()  # lets the time pass
        self.pace.turn_back(time)
        self._ask_all("reset_clock", time=time)
        self._exchange = None

    def source_gap(self, source: int, since: float) -> None:
        """Record that a source's signals were lost; see :meth:`CrawlScheduler.source_gap`."""
        self._set_shares()  # lets the time pass
        self._ask_all("source_gap", source=source, since=since)

    update = passed_on(CrawlScheduler.update)
    revive = passed_on(CrawlScheduler.revive)
    limit_hosts = passed_on(CrawlScheduler.limit_hosts)
    hold = passed_on(CrawlScheduler.hold)
    signal = passed_on(CrawlScheduler.signal)
    report = passed_on(CrawlScheduler.report)
    warm = passed_on(CrawlScheduler.warm)

    def _call(self, call: str, arguments: dict[str, Any]) -> Any:
        """Call a method on the shards of the given pages or hosts, or on all; join the answers."""
        if "ids" in arguments:
            return self._call_pages(call, as_ids(arguments.pop("ids")), arguments)
        for name in {"hosts", "host"} & set(arguments):
            if (hosts := arguments.pop(name)) is not None:
                labels = as_ids(hosts)
                where = shards_of(labels, self._sizes.size)
                self._route(call, where, {name: labels}, **arguments)
                return None
        self._ask_all(call, **arguments)
        return None

    def _call_pages(self, call: str, labels: NDArray[Any], arguments: dict[str, Any]) -> Any:
        """Call a method on the shards that have the given pages; return the joined answer."""
        rows = self.ids.rows(labels, missing="raise" if call == "update" else "skip")
        per_page = {key: arguments.pop(key) for key in {*arguments} - {"status", "wait"}}
        arrays = {"ids": labels, **read(per_page, labels.size, self.num_sources)}
        is_known = rows >= 0
        arrays = {key: array[..., is_known] for key, array in arrays.items()}
        where = self._where[rows[is_known]]
        answers = self._route(call, where, arrays, **arguments)
        results, unknown = [answer.result for answer in answers.values()], labels[~is_known]
        if call == "signal":
            return Noted(sum(result.ignored for result in results), unknown)
        if call == "update":
            return None
        ignored = int(sum(results))
        if arguments.get("status") == "gone":
            reported, first = np.unique(labels[is_known], return_index=True)
            if ignored:  # a page stays after an old report
                calls = zip(where[first].tolist(), reported.tolist(), strict=True)
                stays = [self._ask(shard, "__contains__", page_id=page) for shard, page in calls]
                reported = reported[~np.array(stays, np.bool_)]
            self._leave(reported)
        return ignored + unknown.size

    def describe(self, page_id: Any, time: float | None = None) -> dict[str, Any]:
        """Return what is known of a page; see :meth:`CrawlScheduler.describe`."""
        rows = self.ids.rows(as_ids(page_id))
        if rows.size != 1:
            raise ValueError(f"page_id must be the id of a page, got {page_id!r:.80}")
        shard = int(self._where[rows[0]])
        facts: dict[str, Any] = self._ask(shard, "describe", page_id=page_id, time=time)
        return facts

    @property
    def ahead(self) -> int:
        """The number of copies and signals ahead of the clock, as :attr:`CrawlScheduler.ahead`.

        Each is counted when its shard is asked next.
        """
        with self.lock:
            return sum(answer.result for answer in self._ask_all("ahead").values())

    def why(self) -> str:
        """Return why there is no page now; see :meth:`CrawlScheduler.why`."""
        if self.pace.is_capped:
            return f"the cap is used up until {self.pace.ask_again(self._next_chance):g}"
        if self.pace.is_used_up:
            return f"the bandwidth is used up until {self.pace.ask_again(self._next_chance):g}"
        answers = self._ask_all("why").items()
        return "; ".join(f"shard {shard}: {answer.result}" for shard, answer in answers)

    # Choices

    def _advance(self, time: float) -> None:
        self._workers.check_open()
        super()._advance(time)

    def _take(self, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages; shards with pages replace those without."""
        if count == 0:
            return self.ids.ids(np.zeros(0, np.int64))
        self._pass_exchange()
        if self.pace.spending is not None:
            count = min(count, math.floor(self.pace.balance / self.pace.mean_cost) + 1)
        shards, parts, missing = np.flatnonzero(self._sizes), list[NDArray[Any]](), count
        while missing and shards.size:
            counts = self._balance.split(missing, shards)
            some = {int(k): int(n) for k, n in zip(shards, counts, strict=True) if n}
            calls = {shard: {"time": self.time, "count": n} for shard, n in some.items()}
            for shard, answer in self._ask_shards("next_batch", calls).items():
                parts.append(answer.result)
                self.pace.taken += answer.result.size if answer.spending is None else 0
                some[shard] -= answer.result.size
                if answer.level > 0.0:
                    self._balance.note(shard, answer.level, answer.result.size)
            missing = sum(some.values())
            shards = np.array([k for k in shards if some.get(int(k), 0) == 0])
        return np.concatenate(parts)

    def overview(self, time: float | None = None) -> dict[str, Any]:
        """Return the overview of each shard by its number; see :meth:`CrawlScheduler.overview`."""
        answers, spending = self._ask_all("overview", time=time).items(), self.pace.spending
        common = {}
        if spending is not None and spending.has_cap:
            common["cap_left"] = spending.cap - spending.spend_at(self._not_before_clock(time))
        return {str(shard): answer.result | common for shard, answer in answers}

    def ask(self, time: float, page_id: Any) -> NoReturn:
        """Raise ValueError: only a single scheduler has the price of :meth:`CrawlScheduler.ask`."""
        raise ValueError("ask is a call of one scheduler, not of shards: call next")

    def _next_chance(self) -> float:
        calls = {shard: {"time": self.time} for shard in np.flatnonzero(self._sizes).tolist()}
        answers = self._ask_shards("next", calls).values()
        return min((answer.result.ask_again for answer in answers), default=math.inf)

    def _pass_exchange(self) -> None:
        """Exchange shares at the end of each period, by crawl values of its second half."""
        if not self._balances or self._period == math.inf:
            return
        period = self._period or 0.5 * len(self.ids) / self.pace.fetch_rate
        if self._exchange is None:
            self._exchange = self.time + period
        if self.time < self._exchange - 0.5 * period:
            self._balance.forget()
        if self.time >= self._exchange:
            self._balance.exchange(np.flatnonzero(self._sizes == 0))
            self._set_shares()
            self._exchange = self.time + period

    # Pages and shares of the shards

    def _open(self, answers: Mapping[int, Answer]) -> None:
        """Load the pages, the clock and the bandwidths of shards that were just opened."""
        states = [answer.result for answer in answers.values()]
        for shard, state in enumerate(states):
            if state["ids"].size:
                self._place(state["ids"], shard)
                self._columns = dict.fromkeys(state["columns"])
        shares = np.array([state["bandwidth"] for state in states])
        self.pace.time = max(state["time"] for state in states)
        self.pace.bandwidth, self._balance = float(shares.sum()), Balance(shares)
        self.pace.taken = 0

    def _place(self, ids: NDArray[Any], where: IntArray | int) -> None:
        """Store the shard of each new page."""
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
        """Set each shard's bandwidth to its current share of the bandwidth."""
        parts = enumerate((self.bandwidth * self.shares).tolist())
        calls = {shard: {"time": self.time, "bandwidth": part} for shard, part in parts}
        self._ask_shards("configure", calls)

    # Calls of shards

    def _ask_shards(self, call: str, calls: Mapping[int, Mapping[str, Any]]) -> dict[int, Answer]:
        """Call a method on some shards; take the growth of their spend of the common bandwidth."""
        answers, pace = self._workers.ask(call, calls), self.pace
        for shard, answer in answers.items():
            if (state := answer.spending) is not None:
                earlier = self._spendings.get(shard)
                pace.taken += state["spend"] - (earlier["spend"] if earlier else state["before"])
                self._spendings[shard] = state
        if self._spendings:
            spending = pace.spending or Spending()
            spending.add_up(self._spendings.values())
            if pace.spending is None:
                pace.use_costs(spending)
        return answers

    def _ask(self, shard: int, call: str, **values: Any) -> Any:
        """Call a method on one shard, and return its result."""
        return self._ask_shards(call, {shard: values})[shard].result

    def _ask_all(self, call: str, **values: Any) -> dict[int, Answer]:
        """Call a method on all shards, and return their answers by shard."""
        return self._ask_shards(call, dict.fromkeys(range(self._sizes.size), values))

    def _route(
        self, call: str, where: IntArray, arrays: Mapping[str, Any], **values: Any
    ) -> dict[int, Answer]:
        """Call a method on each shard with its part of some arrays, (.., n); return the answers.

        ``where`` has the shard of each entry, (n,). One shard is called even if n is 0, so that
        the other arguments are checked.
        """
        if "most_interval" in arrays:
            raise ValueError("most_interval must be left out: shards make no promises")
        order = np.argsort(where.astype(np.int16), kind="stable")
        sorted_arrays = {name: array[..., order] for name, array in arrays.items()}
        ends = np.concatenate([[0], np.cumsum(np.bincount(where, minlength=self._sizes.size))])
        calls, shards = {}, np.flatnonzero(np.diff(ends)).tolist()
        for shard in shards or [int(self._sizes.argmax())]:
            part = slice(ends[shard], ends[shard + 1])
            parts = {name: array[..., part] for name, array in sorted_arrays.items()}
            calls[shard] = {**parts, **values}
        return self._ask_shards(call, calls)
