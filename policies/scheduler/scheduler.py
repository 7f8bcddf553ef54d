"""A live scheduler: which page to fetch next, among any number of pages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import flag, quantity, real, whole
from crawl_envs.types.compiling import ready
from crawl_envs.types.lazy_argmax import lazy_table, new_lazy_argmax
from policies.estimators.histories import truths
from policies.scheduler.choices import (
    ABSENT,
    FAILED,
    READY,
    SENT,
    Choices,
    admit,
    choices_table,
    copy_choices,
    count_signals,
    dismiss,
    fail,
    give_back,
    new_choices,
    reopen,
    take,
)
from policies.scheduler.files import Record
from policies.scheduler.ids import PageIds
from policies.scheduler.learning import LEARNED, PageLearner
from policies.scheduler.page_values import PageValues
from policies.scheduler.reading import (
    Ids,
    as_ids,
    columns_of,
    copies_of,
    numbers_per_page,
)

ROUNDING = 1e-9
"""Share of a fetch by which the allowance may be short: sums of times are rounded."""

LEAST_ROOM = 64
AT_ONCE = 100_000
NO_LIMIT = int(np.iinfo(np.int32).max)


class Fetch(NamedTuple):
    """The answer of :meth:`CrawlScheduler.next`.

    Attributes:
        id: the page to fetch now; None if there is none.
        ask_again: the earliest time at which the answer may be another; ``inf`` if that needs a
            new page or a report.
    """

    id: Any
    ask_again: float


class CrawlScheduler:
    """Chooses the next page to fetch by a crawl value, with a limited bandwidth.

    It is told of pages (:meth:`add`, :meth:`update`, :meth:`remove`), of signals (:meth:`signal`)
    and of fetches (:meth:`report`), and answers :meth:`next` and :meth:`next_batch`. Times are
    numbers in any unit, which is that of all rates. Ids are all strings or all integers. All
    arguments for pages are arrays; there is no Python object per page.

    The page of the largest crawl value is found exactly without evaluating all pages
    (:mod:`crawl_envs.types.lazy_argmax`), and ties go to the page added first where ids are not
    removed. Pages that are handed out are not handed out again until they are reported, or until
    ``timeout`` has passed. Pages without a copy come first, by importance within one call of
    :meth:`add`; they take ``new_share`` of the fetches while other pages are ready.

    A host may be limited in its rate and in its concurrent fetches (:meth:`limit_hosts`). A page
    whose host may not be asked is passed over, not its better's rival: the choice is the largest
    value among the pages that may be fetched now.

    Args:
        policy: an index policy (``GreedyNCIS``) or one that allocates rates (``LambdaCrawl``),
            by name, ``module:Class``, class or instance. Of the latter it crawls the page that is
            overdue by most intervals.
        bandwidth: fetches per unit of time, > 0.
        start: time of the first call, at least.
        timeout: time after which a page that was handed out is ready again.
        new_share: share of the fetches for pages without a copy, in (0, 1].
        burst: most fetches that unused bandwidth is saved for, at least 1. A batch of n pages may
            use n.
        num_sources: sources of signals; ``recall`` and ``false_signal_rate`` then have shape
            (num_sources, n).
        learn: whether change rates and signal quality are learned from what fetches find
            (``changed`` of :meth:`report`), for index policies and one source of signals. Columns
            that are given are where a page starts from.

    Raises:
        ValueError: an argument is out of its range or of another type.
    """

    def __init__(
        self,
        policy: Any,
        bandwidth: float,
        *,
        start: float = 0.0,
        timeout: float = 1.0,
        new_share: float = 0.5,
        burst: int = 1,
        num_sources: int = 1,
        learn: bool = False,
    ) -> None:
        self.values = PageValues(policy)
        self.bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        self.time = real("start", start)
        self.num_sources = whole("num_sources", num_sources, 1)
        self.burst = whole("burst", burst, 1)
        self.allowance = 0.0
        timeout = quantity("timeout", timeout, above=0.0)
        new_share = real("new_share", new_share, above=0.0)
        if new_share > 1.0:
            raise ValueError(f"new_share must lie in (0, 1], got {new_share!r}")
        self.ids, self.columns = PageIds(), dict[str, FloatArray]()
        self.hosts: dict[Any, int] = {}
        self.host_limits = (0.0, NO_LIMIT)
        self.later: list[tuple[IntArray, FloatArray, FloatArray]] = []
        self.allocated = False
        if flag("learn", learn) and not (self.values.apart and self.num_sources == 1):
            raise ValueError("learn must be False but for index policies and one source")
        self.learns, self.learner = learn, cast(PageLearner | None, None)
        room = self.ids.capacity
        self.choices = new_choices({"m": room, "H": LEAST_ROOM, "sent": LEAST_ROOM})
        self.lazy = new_lazy_argmax(np.zeros((room, 1)), room, self.time)
        self._tables = choices_table(self.choices), lazy_table(self.lazy)
        self.choices.lines["timeout"], self.choices.lines["new_share"] = timeout, new_share

    # Pages

    def add(
        self,
        ids: Ids,
        *,
        importance: ArrayLike = 1.0,
        host: ArrayLike | None = None,
        last_crawl: ArrayLike | None = None,
        **columns: ArrayLike,
    ) -> None:
        """Add pages.

        Args:
            ids: n new ids.
            importance: requests per unit of time or another weight, >= 0, (n,) or a number.
            host: the host of each page, any label, (n,) or one for all; None for no limits.
            last_crawl: time of the copy that there is already; None, or NaN for some, if none.
            **columns: ``change_rate``, ``recall``, ``false_signal_rate``, ``complete``, as for
                :class:`crawl_envs.Instance`; the policy says which it needs.

        Raises:
            ValueError: an id is there already or twice in the call, a column is unknown, missing,
                out of its range or of another length, a copy is later than the last call. Nothing
                is added then.
        """
        given = as_ids(ids)
        if given.size == 0:
            return
        assumed = self._assumed(given.size)
        known = self._read_new({**assumed, "importance": importance, **columns}, given.size)
        copies = copies_of(last_crawl, given.size, self.time)
        codes = self._host_codes(host, given.size)
        parameters = self.values.table(known, self.bandwidth) if self.values.apart else None
        rows = self.ids.add(given)
        self._make_room(None if parameters is None else parameters.shape[1])
        for name, column in known.items():
            room = (*column.shape[:-1], self.choices.status.size)
            self.columns.setdefault(name, np.zeros(room))[..., rows] = column
        self._write(rows, parameters)
        if self.learner is not None:
            self.learner.begin(rows, known if set(columns) & set(LEARNED) else None)
        self.choices.host[rows] = codes
        self.lazy.pages["last_crawl"][rows], self.lazy.pages["counted"][rows] = copies, 0.0
        order = np.argsort(-known["importance"], kind="stable")
        self._admit(rows[order])

    def update(self, ids: Ids, **columns: ArrayLike) -> None:
        """Change columns of pages; ValueError as for :meth:`add`, or for unknown ids."""
        rows = self.ids.rows(as_ids(ids))
        known = self._read_changes(columns, rows.size)
        changed = {name: column[..., rows] for name, column in self.columns.items()} | known
        parameters = self.values.table(changed, self.bandwidth) if self.values.apart else None
        for name, column in known.items():
            self.columns[name][..., rows] = column
        self._write(rows, parameters)
        if self.learner is not None and set(columns) & set(LEARNED):
            self.learner.begin(rows, changed)
        if parameters is not None:
            self._admit(_ready(self.choices.status, rows))

    def remove(self, ids: Ids) -> None:
        """Remove pages; ValueError for unknown ids, and nothing is removed then."""
        rows = self.ids.remove(as_ids(ids))
        dismiss(*self._tables, rows)
        self.later = [_without(rows, log) for log in self.later]
        self.allocated &= self.values.apart

    def limit_hosts(
        self, hosts: ArrayLike | None = None, *, gap: float = 0.0, most: int | None = None
    ) -> None:
        """Limit the fetches of hosts, in place of earlier limits.

        When a host opens, all its pages are compared again that came before their turn, so a host
        with many more good pages than fetches costs time in proportion to them.

        Args:
            hosts: labels of hosts; None for all, and for hosts to come.
            gap: least time between two fetches of a host.
            most: most fetches of a host at once; None for no limit.

        Raises:
            ValueError: a limit is out of its range.
        """
        gap = quantity("gap", gap)
        limit = NO_LIMIT if most is None else min(whole("most", most, 1), NO_LIMIT)
        if hosts is None:
            self.host_limits = gap, limit
            codes: Any = slice(None)
        else:
            codes = self._host_codes(np.atleast_1d(np.asarray(hosts)), np.size(hosts))
        self.choices.gap[codes], self.choices.most[codes] = gap, limit
        reopen(self._tables[0])

    def set_bandwidth(self, bandwidth: float, time: float) -> None:
        """Change the bandwidth from a time on, not before the last call."""
        bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        self._advance(self._not_before("time", time))
        self.bandwidth = bandwidth
        self.allocated &= self.values.apart

    # Events

    def signal(self, ids: Ids, times: ArrayLike, source: ArrayLike = 0) -> int:
        """Take note of signals; return the number of those that were ignored.

        Signals of unknown pages, of pages without a copy, and from before a page's copy are
        ignored.

        Args:
            ids: the page of each signal, (n,).
            times: its time, (n,) or a number for all.
            source: its source, from 0, (n,) or a number for all.

        Raises:
            ValueError: a time is not finite, or a source out of its range.
        """
        known, rows, moments, sources = self._read_signals(as_ids(ids), times, source)
        values, weights = self.values, np.zeros(rows.size)
        noted = (rows, moments, sources, weights, values.delay_window)
        ignored = ready(count_signals)(
            self._tables[1], values.value, values.signal_weight, *noted, self.time
        )
        sent = np.isin(self.choices.status[rows], (SENT, FAILED))
        if sent.any():
            self.later.append((rows[sent], moments[sent], weights[sent]))
        return int(ignored) + int((~known).sum())

    def report(
        self,
        ids: Ids,
        times: ArrayLike,
        status: str = "ok",
        changed: ArrayLike | None = None,
    ) -> int:
        """Take note of fetches; return the number of those that were ignored.

        Fetches of unknown pages, and those before the page's copy, are ignored; a repeated report
        changes nothing.

        Args:
            ids: the pages, (n,), whether they were handed out or not.
            times: the times of the copies, (n,) or a number for all.
            status: ``ok`` for fetched or not modified, ``failed`` for pages that shall be handed
                out again after the timeout, ``gone`` for pages to remove.
            changed: whether the content differed from the copy before, (n,) bool, which is learned
                from with ``learn=True``; None if it is not known.

        Raises:
            ValueError: an unknown status; a time is not finite; ``changed`` is not n truth values.
        """
        given = as_ids(ids)
        found = None if changed is None else truths("changed", changed, given.shape)
        known, rows, moments = self._read_report(given, times, status)
        unknown = int((~known).sum())
        if status == "gone":
            self.remove(np.unique(given[known]))
            return unknown
        if status == "failed":
            fail(self._tables[0], rows)
            return unknown
        after = self._signals_after(rows, moments)
        if self.learner is not None and found is not None:
            self._learn(rows, moments, after, found[known])
        if not self.values.apart:
            self._carry(rows, moments)
        arguments = (rows, moments, after, self.time)
        return unknown + int(ready(give_back)(*self._tables, self.values.value, *arguments))

    def _assumed(self, count: int) -> dict[str, float]:
        """Return what is assumed of the parameters of n new pages, if they are learned."""
        if not self.learns:
            return {}
        if self.learner is None:
            self.learner = PageLearner(count / self.bandwidth, self.choices.status.size)
        return self.learner.first()

    def _learn(
        self, rows: IntArray, times: FloatArray, after: FloatArray, changed: BoolArray
    ) -> None:
        """Learn from the first fetch of each page that has a copy, and write its parameters."""
        assert self.learner is not None
        pages = self.lazy.pages
        elapsed = times - pages["last_crawl"][rows]
        once = np.zeros(rows.size, np.bool_)
        once[np.unique(rows, return_index=True)[1]] = True
        used = np.flatnonzero(once & (elapsed > 0.0) & np.isfinite(elapsed))
        signals = (pages["counted"][rows] - after)[used].clip(min=0.0)
        all_of_them = self.learner.learn(rows[used], elapsed[used], signals, changed[used])
        self._write_learned(rows[used])
        if all_of_them:
            present = np.flatnonzero(self.choices.status != ABSENT)
            self.learner.share(present)
            for begin in range(0, present.size, AT_ONCE):
                self._write_learned(present[begin : begin + AT_ONCE])
            self._admit(_ready(self.choices.status, present))

    def _write_learned(self, rows: IntArray) -> None:
        """Write the learned parameters of pages; those that are ready must be admitted after it."""
        assert self.learner is not None
        for name, column in self.learner.columns(rows).items():
            self.columns[name][rows] = column
        columns = {name: column[rows] for name, column in self.columns.items()}
        self._write(rows, self.values.table(columns, self.bandwidth))

    # Choices

    def next(self, time: float) -> Fetch:
        """Return the page to fetch at a time, or the time at which to ask again.

        Raises:
            ValueError: the time is before that of an earlier call.
        """
        pages = self.next_batch(time, 1)
        if len(pages):
            return Fetch(pages[0], self.time)
        return Fetch(None, self._ask_again())

    def next_batch(self, time: float, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch at a time, best first.

        Raises:
            ValueError: the time is before that of an earlier call, or the count is below 1.
        """
        count = whole("count", count, 1)
        self._advance(self._not_before("time", time))
        self.allowance = min(self.allowance, max(self.burst, count))
        allowed = min(count, math.floor(self.allowance + ROUNDING), len(self.ids))
        pages = self._take(max(allowed, 0))
        self.allowance -= pages.size
        return pages

    def _take(self, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch now."""
        self._allocate()
        rows, taken = np.zeros(count, np.int64), 0
        while taken < count:
            arguments = (self.values.value, self.time, rows[taken:])
            taken += ready(take)(*self._tables, *arguments)
            lines = self.choices.lines[0]
            if lines["num_sent"] < self.choices.sent_time.size:
                break
            sizes = self.choices.status.size, self.choices.gap.size
            self._renew_choices(*sizes, 2 * self.choices.sent_time.size)
        return self.ids.ids(rows[:taken])

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.ids)

    def _not_before(self, name: str, time: float) -> float:
        """Return a time; ValueError if it is before the last one."""
        time = real(name, time)
        if time < self.time:
            raise ValueError(f"{name} must be at least {self.time!r}, the last one, got {time!r}")
        return time

    def _advance(self, time: float) -> None:
        """Save the bandwidth until a time."""
        self.allowance += self.bandwidth * (float(time) - self.time)
        self.time = float(time)

    def _ask_again(self) -> float:
        """Return the earliest time of a fetch if nothing else happens."""
        lines, choices = self.choices.lines[0], self.choices
        if self.allowance + ROUNDING < 1.0:
            return self.time + (1.0 - self.allowance) / self.bandwidth
        times = [math.inf]
        if choices.opening_size[0]:
            times.append(float(choices.opening[choices.opening_host[0]]))
        if lines["num_sent"]:
            times.append(float(choices.sent_time[lines["first_sent"]] + lines["timeout"]))
        return max(min(times), float(np.nextafter(self.time, math.inf)))

    # State

    def state(self) -> Record:
        """Return what :meth:`from_state` needs to give the same answers; arrays are shared."""
        rows = self.choices.status.size
        values = {
            "policy": self.values.name,
            "bandwidth": self.bandwidth,
            "time": self.time,
            "allowance": self.allowance,
            "burst": self.burst,
            "num_sources": self.num_sources,
            "learn": self.learns,
            "hosts": list(self.hosts),
            "host_limits": list(self.host_limits),
        }
        arrays: dict[str, NDArray[Any]] = {
            f"choices.{name}": array for name, array in self.choices._asdict().items()
        }
        arrays |= {f"columns.{name}": column for name, column in self.columns.items()}
        arrays |= {f"ids.{name}": array for name, array in self.ids.arrays().items()}
        pages = self.lazy.pages[:rows]
        arrays |= {"last_crawl": pages["last_crawl"], "counted": pages["counted"]}
        if self.learner is not None:
            arrays |= {f"learner.{k}": array for k, array in self.learner.arrays().items()}
        if not self.values.apart:
            arrays["carried"] = self.lazy.parameters[:, -1]
        later = zip(*self.later, strict=True) if self.later else ((), (), ())
        for name, parts in zip(("row", "time", "weight"), later, strict=True):
            arrays[f"later.{name}"] = np.concatenate([np.zeros(0), *parts])
        return Record(values, arrays)

    @classmethod
    def from_state(cls, state: Record, policy: Any = None) -> CrawlScheduler:
        """Return a scheduler with the state of another one.

        ``policy`` is needed where that one's policy has no name.
        """
        values, arrays = state
        chosen = values["policy"] if policy is None else policy
        scheduler = cls(
            chosen,
            values["bandwidth"],
            start=values["time"],
            burst=values["burst"],
            num_sources=values["num_sources"],
            learn=values["learn"],
        )
        learner = _named("learner.", arrays)
        scheduler.learner = PageLearner.from_arrays(learner) if learner else None
        scheduler.allowance = values["allowance"]
        scheduler.hosts = {name: code for code, name in enumerate(values["hosts"])}
        scheduler.host_limits = values["host_limits"][0], values["host_limits"][1]
        scheduler.ids = PageIds.from_arrays(_named("ids.", arrays))
        choices = _named("choices.", arrays)
        scheduler.choices = Choices(*(choices[name].copy() for name in Choices._fields))
        scheduler.columns = {k: a.copy() for k, a in _named("columns.", arrays).items()}
        log = [arrays[f"later.{name}"] for name in ("row", "time", "weight")]
        scheduler.later = [(log[0].astype(np.int64), log[1], log[2])]
        scheduler._restore(arrays)
        return scheduler

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Compute the table of the pages, and start a search with their ages and signals."""
        room = self.choices.status.size
        rows = np.flatnonzero(self.choices.status != ABSENT)
        parameters = np.zeros((room, 1))
        if rows.size:
            columns = {name: column[..., rows] for name, column in self.columns.items()}
            known = self.values.table(columns, self.bandwidth)
            parameters = np.zeros((room, known.shape[1]))
            parameters[rows], self.allocated = known, True
            if "carried" in arrays:
                parameters[:, 1] = arrays["carried"]
        self.lazy = new_lazy_argmax(parameters, len(parameters), self.time)
        for name in ("last_crawl", "counted"):
            self.lazy.pages[name] = arrays[name]
        self._tables = choices_table(self.choices), lazy_table(self.lazy)
        self._admit(np.flatnonzero(self.choices.status == READY))

    def _renew_choices(self, room: int, host_room: int, sent_room: int) -> None:
        """Give room for pages, hosts and sent pages, and keep their states."""
        choices = new_choices({"m": room, "H": host_room, "sent": sent_room})
        copy_choices(self.choices, choices)
        self.choices = choices
        self._tables = choices_table(choices), self._tables[1]

    def _renew_search(self, room: int, width: int) -> None:
        """Give room for pages and for parameters of a width, and keep those of the same width."""
        before, shared = self.lazy, min(room, self.lazy.wake.size)
        parameters = np.zeros((room, width))
        if width == before.parameters.shape[1]:
            parameters[:shared] = before.parameters[:shared]
        self.lazy = new_lazy_argmax(parameters, len(parameters), self.time)
        for name in ("last_crawl", "counted"):
            self.lazy.pages[name][:shared] = before.pages[name][:shared]
        self._tables = self._tables[0], lazy_table(self.lazy)
        self._admit(np.flatnonzero(self.choices.status == READY))

    def _make_room(self, width: int | None = None) -> None:
        """Give room for all ids and hosts, and for parameters of a width."""
        choices, before = self.choices, self.lazy.parameters.shape
        room, hosts = choices.status.size, choices.gap.size
        while hosts < len(self.hosts):
            hosts *= 2
        room = max(room, self.ids.capacity)
        if room > choices.status.size or hosts > choices.gap.size:
            self._renew_choices(room, hosts, choices.sent_time.size)
        if before != (room, width or before[1]):
            self._renew_search(room, width or before[1])
        if self.learner is not None:
            self.learner.make_room(room)
        for name, column in self.columns.items():
            if column.shape[-1] < room:
                self.columns[name] = np.zeros((*column.shape[:-1], room))
                self.columns[name][..., : column.shape[-1]] = column

    def _admit(self, rows: IntArray) -> None:
        ready(admit)(*self._tables, self.values.value, rows, self.time)

    def _write(self, rows: IntArray, parameters: FloatArray | None) -> None:
        if parameters is None:
            self.allocated = False
        else:
            self.lazy.parameters[rows] = parameters

    def _allocate(self) -> None:
        """Solve for the rates of all pages again, where they depend on each other."""
        if self.values.apart or self.allocated or len(self.ids) == 0:
            return
        rows = np.flatnonzero(self.choices.status != ABSENT)
        columns = {name: column[..., rows] for name, column in self.columns.items()}
        if self.lazy.parameters.shape[1] != 2:
            self._renew_search(self.choices.status.size, 2)
        self.lazy.parameters[rows, 0] = self.values.table(columns, self.bandwidth)[:, 0]
        self.allocated = True
        self._admit(_ready(self.choices.status, rows))

    def _carry(self, rows: IntArray, times: FloatArray) -> None:
        """Carry what pages had too few or too many crawls, at most one, to their next interval."""
        self._allocate()
        elapsed = times - self.lazy.pages["last_crawl"][rows]
        rate, carried = self.lazy.parameters[rows].T
        newer = (elapsed > 0.0) & np.isfinite(elapsed)
        late = np.where(newer, elapsed, 0.0) * rate + carried - newer
        self.lazy.parameters[rows, 1] = np.clip(late, -1.0, 1.0)

    def _signals_after(self, rows: IntArray, times: FloatArray) -> FloatArray:
        """Return the weights of signals after the fetches of pages, and forget those before."""
        after = np.zeros(rows.size)
        if not self.later:
            return after
        page, time, weight = (np.concatenate(part) for part in zip(*self.later, strict=True))
        order = np.argsort(rows, kind="stable")
        place = np.minimum(np.searchsorted(rows[order], page), rows.size - 1)
        ours = rows[order][place] == page if rows.size else np.zeros(page.size, np.bool_)
        late = ours & (time > times[order][place]) if rows.size else ours
        np.add.at(after, order[place[late]], weight[late])
        self.later = [(page[~ours], time[~ours], weight[~ours])]
        return after

    def _read_signals(
        self, ids: NDArray[Any], times: ArrayLike, source: ArrayLike
    ) -> tuple[NDArray[np.bool_], IntArray, FloatArray, IntArray]:
        """Return which of n signals are of known pages, and of these rows, times and sources."""
        rows = self.ids.rows(ids, missing="skip")
        known = rows >= 0
        moments = numbers_per_page("times", times, ids.size)[known]
        sources = np.broadcast_to(np.asarray(source), (ids.size,))[known]
        if sources.dtype.kind not in "iu" or np.any((sources < 0) | (sources >= self.num_sources)):
            raise ValueError(f"source must be whole numbers from 0 to {self.num_sources - 1}")
        return known, rows[known], moments, sources.astype(np.int64)

    def _read_report(
        self, ids: NDArray[Any], times: ArrayLike, status: str
    ) -> tuple[NDArray[np.bool_], IntArray, FloatArray]:
        """Return which of n fetches are of known pages, and of these rows and times; pass time."""
        if status not in ("ok", "failed", "gone"):
            raise ValueError(f"status must be 'ok', 'failed' or 'gone', got {status!r}")
        moments = numbers_per_page("times", times, ids.size)
        rows = self.ids.rows(ids, missing="skip")
        known = rows >= 0
        self._advance(moments[known].max(initial=self.time))
        return known, rows[known], moments[known]

    def _read_new(self, columns: Mapping[str, ArrayLike], count: int) -> dict[str, FloatArray]:
        """Return the columns of n new pages, which have those of others and what values need."""
        known = columns_of(columns, count, self.num_sources)
        missing = [name for name in self.values.needs if name not in known]
        if missing:
            raise ValueError(f"{', '.join(missing)} must be given: the policy needs it")
        if self.columns and set(known) != set(self.columns):
            raise ValueError(
                f"columns must be {', '.join(self.columns)} as in earlier calls, "
                f"got {', '.join(known)}"
            )
        return known

    def _read_changes(self, columns: Mapping[str, ArrayLike], count: int) -> dict[str, FloatArray]:
        """Return new columns of n pages, which have these already."""
        known = columns_of(columns, count, self.num_sources)
        unknown = [name for name in known if name not in self.columns]
        if unknown:
            raise ValueError(f"{', '.join(unknown)} must be given when pages are added")
        return known

    def _host_codes(self, host: ArrayLike | None, count: int) -> IntArray:
        """Return the numbers of hosts, (n,); -1 for none."""
        if host is None:
            return np.full(count, -1)
        labels = np.asarray(host)
        if labels.shape not in ((), (count,)):
            raise ValueError(f"host must be a label or {count} labels, got {labels.shape}")
        names, places = np.unique(labels, return_inverse=True)
        known = len(self.hosts)
        codes = np.array([self.hosts.setdefault(name, len(self.hosts)) for name in names.tolist()])
        if len(self.hosts) > self.choices.gap.size:
            self._make_room()
        self.choices.gap[known : len(self.hosts)] = self.host_limits[0]
        self.choices.most[known : len(self.hosts)] = self.host_limits[1]
        return np.broadcast_to(codes[places.reshape(labels.shape)], (count,))


def _ready(status: NDArray[Any], rows: IntArray) -> IntArray:
    """Return those of the rows that are ready."""
    ready_rows: IntArray = rows[status[rows] == READY]
    return ready_rows


def _without(
    rows: IntArray, log: tuple[IntArray, FloatArray, FloatArray]
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return a log of signals without those of some pages."""
    kept = ~np.isin(log[0], rows)
    return log[0][kept], log[1][kept], log[2][kept]


def _named(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
