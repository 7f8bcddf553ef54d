"""The state of all pages of a scheduler, in arrays that grow, are saved and are restored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba.extending import typeof_impl
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import ready
from crawl_envs.compiled.lazy_argmax import lazy_table, new_lazy_argmax
from crawl_envs.compiled.lazy_argmax import with_room as lazy_with_room
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.scheduler.choices import admit
from policies.live.scheduler.ids import LEAST_ROOM, PageIds
from policies.live.scheduler.learning import PageLearner
from policies.live.scheduler.pacing import Pace
from policies.live.scheduler.page_values import COLUMNS, Address, PageValues, evidence_of
from policies.live.scheduler.reading import Ids, as_ids
from policies.live.scheduler.reports import dismiss
from policies.live.scheduler.signal_log import signals_until, weigh
from policies.live.scheduler.states import (
    ABSENT,
    GONE,
    MISSED,
    NO_LIMIT,
    OPTIONAL_FIELDS,
    READY,
    SENT,
    WAITING,
    Choices,
    choices_table,
    new_choices,
    sort_heap,
    with_room,
)
from policies.values.promises import Lead

OPTIONAL_ARRAYS = {f"columns.{name}" for name in COLUMNS} | {
    f"learner.{name}" for name in PageLearner(1.0, 0).arrays()
}
OPTIONAL_ARRAYS |= {"audits.numbers", "audits.records", "pages.group", "search.rates"}
OPTIONAL_ARRAYS |= {*(f"choices.{name}" for name in OPTIONAL_FIELDS)}
"""Names of the arrays of a saved state that only some schedulers have."""


@typeof_impl.register(Address)
def _type_of(function: Address, context: Any) -> Any:
    """Return the stored type of a compiled function; Numba would else build it at every call."""
    return function.kind


class PageTables:
    """The tables of a scheduler's pages, one page per row, and the search for the best page.

    Args:
        policy: as for :class:`CrawlScheduler`.
        num_sources: sources of signals, S.
        pace: the clock, and the bandwidth by which rates are allocated.
        learns: whether change rates and signal quality are learned from fetches.

    Attributes:
        values: the crawl value.
        ids: the table from ids to rows.
        columns: the pages' columns by name, (rows,) or (S, rows) each.
        choices: the states of pages and hosts.
        lazy: the search for the best page, with the pages' parameters, copies and signal weights.
        arguments: the tables of ``choices`` and ``lazy`` that compiled code takes.
        hosts: numbers of hosts by label; ``host_limits`` are the limits of future hosts.
        gaps: by source, the time from which and until which signals were lost.
        learner: beliefs about the pages; None if nothing is learned.
        most_interval: longest interval of pages that are added without one.
        lead: how long before their deadlines pages are due.
        audits: the audits of pages, None without; ``drawn_from``, what they draw from, or None.
        groups: codes of groups by label; ``group`` has those of pages, (rows,).
    """

    most_interval, lead = np.inf, Lead(0.0, 0.0, 0.0)
    audits: Any = None
    drawn_from: Any = None

    def __init__(self, policy: Any, num_sources: int, pace: Pace, learns: bool) -> None:
        self.pace = pace
        self.values, self.ids = PageValues(policy), PageIds()
        if learns and not self.values.apart:
            raise ValueError("learn must be False but for index policies")
        self.columns: dict[str, FloatArray] = {}
        self.hosts: dict[Any, int] = {}
        self.host_limits: dict[str, float] = {"gap": 0.0, "most": NO_LIMIT}
        self.gaps: dict[int, tuple[float, float]] = {}
        self.num_sources, room = num_sources, self.ids.capacity
        self.groups, self.group = dict[Any, int]({"": 0}), np.zeros(room, np.int32)
        self.learner = PageLearner(1.0, room, num_sources) if learns else None
        self.allocated = False
        lengths = {"m": room, "H": LEAST_ROOM, "Q": LEAST_ROOM + 1, "E": LEAST_ROOM}
        self.choices = new_choices(lengths | {"S": num_sources})
        self.lazy = new_lazy_argmax(np.zeros((room, 1)), room, pace.time, grows=True)
        self.arguments = choices_table(self.choices), lazy_table(self.lazy)

    @property
    def uses_costs(self) -> bool:
        """Whether fetches have costs; else all cost 1."""
        return self.pace.spending is not None

    # Rows

    def __len__(self) -> int:
        """Return the number of pages that are not gone."""
        keeps_gone = self.choices.lines["keep_gone"][0] > 0.0
        return len(self.ids) - int(keeps_gone and (self.choices.status == GONE).sum())

    def rows(self, ids: Ids) -> IntArray:
        """Return the rows of pages; ValueError if one is unknown or gone."""
        labels = as_ids(ids)
        rows = self.ids.rows(labels)
        gone = labels[self.are_gone(rows)]
        if gone.size:
            raise ValueError(f"ids must be known, {gone.item(0)!r:.80} is gone")
        return rows

    def known(self, ids: NDArray[Any], *, gone: bool = True) -> tuple[BoolArray, IntArray]:
        """Return a mask of the known ids, (n,), and their rows; ``gone`` pages may count too."""
        rows = self.ids.rows(ids, missing="skip")
        is_known = rows >= 0
        if not gone:
            is_known[is_known] = ~self.are_gone(rows[is_known])
        return is_known, rows[is_known]

    def are_gone(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows whose pages are gone, (n,)."""
        return np.asarray(self.choices.status[rows] == GONE)

    def living(self) -> IntArray:
        """Return the rows of all pages that are not gone."""
        return np.flatnonzero(~np.isin(self.choices.status, (ABSENT, GONE)))

    def place(self, ids: NDArray[Any]) -> tuple[IntArray, BoolArray]:
        """Give new ids rows, and make gone pages absent; return all rows and a mask of the gone.

        Raises:
            ValueError: an id is of a page that is not gone, or comes twice.
        """
        rows = self.ids.rows(ids, missing="skip")
        back = rows >= 0
        back[back] = self.are_gone(rows[back])
        if (rows[~back] >= 0).any() or np.unique(rows[back]).size < back.sum():
            self.ids.add(ids[~back | (rows >= 0)])  # says which
        rows[~back] = self.ids.add(ids[~back])
        self.make_room()
        self.dismiss(rows[back])
        return rows, back

    def dismiss(
        self, rows: IntArray, ends: FloatArray | None = None, until: float = -np.inf
    ) -> None:
        """Mark pages whose fetches ended at ``ends`` as gone ``until`` a time, or as absent."""
        if self.audits is not None:
            self.audits.note(rows, MISSED)
        self.drawn_from, self.group[rows] = None, 0
        times = np.full(rows.size, -np.inf) if ends is None else ends
        ready(dismiss)(*self.arguments, rows, times, until)
        self.allocated &= self.values.apart

    def forget(self) -> None:
        """Remove the ids of pages that have been gone for longer than gone pages are remembered."""
        if self.choices.lines["num_forgotten"][0]:
            rows = np.flatnonzero((self.choices.status == GONE) & np.isinf(self.choices.due))
            self.ids.remove(self.ids.ids(rows))
            self.dismiss(rows)
            self.choices.lines["num_forgotten"] = 0

    def row(self, page_id: Any, *, gone: bool = False) -> int:
        """Return the row of a page; ValueError if it is unknown, or gone and ``gone`` is False."""
        rows = self.ids.rows(as_ids(page_id)) if gone else self.rows(page_id)
        if rows.size != 1:
            raise ValueError(f"page_id must be the id of a page, got {page_id!r:.80}")
        return int(rows[0])

    def set_timeout(self, timeout: float) -> None:
        """Set the time after which a fetch counts as lost, also for fetches that are under way."""
        choices = self.choices
        choices.due[choices.status == SENT] += timeout - choices.lines["timeout"][0]
        choices.lines["timeout"] = timeout
        sort_heap(choices.due, choices.due_page, choices.due_place)

    def turn_back(self, by: float) -> None:
        """Move the waits and limits of pages and hosts back by a time; cap copies at the clock."""
        now = self.pace.time
        choices, copies = self.choices, self.lazy.pages["last_crawl"]
        names = ["opens", "held", "opening", "retry_at", "failure_time", "due"]
        names += ["reported", "lost_until"]
        for times in (getattr(choices, name) for name in names):
            times -= by
        choices.sent_period[:] = -np.inf
        copies[:] = np.where(np.isfinite(copies), np.minimum(copies, now), copies)
        waits = choices.status == WAITING
        earliest = np.where(np.isfinite(copies), copies + choices.least, -np.inf)
        choices.due[waits] = np.maximum(choices.retry_at, earliest)[waits]
        sort_heap(choices.due, choices.due_page, choices.due_place)
        sort_heap(choices.opening, choices.opening_host, choices.opening_place)
        self.gaps = {k: (min(since, now), min(end, now)) for k, (since, end) in self.gaps.items()}
        if self.audits is not None:
            self.audits.note([*self.audits.pending], MISSED)
        self.restore(*self.state())

    def host_codes(self, labels: NDArray[Any]) -> IntArray:
        """Return the number of each host label, (n,); unknown labels get new numbers."""
        count, names = len(self.hosts), labels.tolist()
        self.hosts |= {
            name: count + k for k, name in enumerate(sorted({*names}.difference(self.hosts)))
        }
        self.make_room()
        for name, limit in self.host_limits.items():
            getattr(self.choices, name)[count : len(self.hosts)] = limit
        return np.array([self.hosts[name] for name in names], np.int64)

    def set_groups(self, rows: IntArray, labels: NDArray[Any]) -> None:
        """Set the group of each page by its label, (n,)."""
        for label in labels.tolist():
            self.groups.setdefault(label, len(self.groups))
        self.drawn_from, self.group[rows] = None, [self.groups[label] for label in labels.tolist()]

    # Columns and values

    def columns_at(self, rows: IntArray) -> dict[str, FloatArray]:
        """Return the columns of the pages in some rows by name, also their costs if they have."""
        costs = {"cost": self.choices.cost[rows]} if self.uses_costs else {}
        return {name: column[..., rows] for name, column in self.columns.items()} | costs

    def parameters(self, columns: Mapping[str, FloatArray]) -> FloatArray | None:
        """Return the parameters of the pages' crawl values, (n, P); None if pages interact."""
        return self.values.table(columns, self.pace.bandwidth) if self.values.apart else None

    def write(
        self, rows: IntArray, columns: Mapping[str, FloatArray], parameters: FloatArray | None
    ) -> None:
        """Store columns of pages, and the parameters of their crawl values, in some rows."""
        for name, column in columns.items():
            if name == "cost":  # a column of choices
                continue
            room = (*column.shape[:-1], self.choices.status.size)
            self.columns.setdefault(name, np.zeros(room))[..., rows] = column
        if parameters is None:
            self.allocated = False
            return
        self.choices.lines["window"] = self.values.delay_window
        self.make_room(width=parameters.shape[1])
        self.lazy.parameters[rows, : parameters.shape[1]] = parameters
        self.lazy.parameters[rows, parameters.shape[1] :] = 0.0

    def write_learned(self, rows: IntArray) -> None:
        """Store the learned estimates of pages; the caller must then admit the ready ones."""
        assert self.learner is not None
        columns = self.columns_at(rows) | self.learner.columns(rows)
        self.write(rows, columns, self.parameters(columns))
        self.weigh(rows)

    def admit(self, rows: IntArray, *, only_ready: bool = False) -> None:
        """Enter pages into the search for the next page, or update those that it has."""
        if only_ready:
            rows = rows[self.choices.status[rows] == READY]
        ready(admit)(*self.arguments, self.values.value, rows, self.pace.time)

    def allocate(self) -> None:
        """Compute the crawl rates of all pages, if the policy allocates rates and pages changed."""
        if self.values.apart or self.allocated or len(self.ids) == 0:
            return
        rows = np.flatnonzero(self.choices.status != ABSENT)
        self.make_room(width=2)
        rates = self.values.table(self.columns_at(rows), self.pace.bandwidth)[:, 0]
        self.lazy.parameters[rows, 0], self.allocated = rates, True
        self.admit(rows, only_ready=True)

    def carry(self, rows: IntArray, times: FloatArray) -> None:
        """Carry each page's missing or surplus crawls, at most one, over to its next interval."""
        order = np.argsort(times, kind="stable")  # of a page that is there twice, its newest copy
        rows, times = rows[order], times[order]
        elapsed = times - self.lazy.pages["last_crawl"][rows]
        rate, carried = self.lazy.parameters[rows].T
        newer = (elapsed > 0.0) & np.isfinite(elapsed)
        late = np.where(newer, elapsed, 0.0) * rate + carried - newer
        self.lazy.parameters[rows, 1] = np.clip(late, -1.0, 1.0)

    # Signals

    @property
    def last_gap(self) -> float:
        """The end of the latest gap in which signals were lost; -inf without gaps."""
        return max((end for _, end in self.gaps.values()), default=-np.inf)

    def lost(self, rows: IntArray, copies: FloatArray) -> FloatArray:
        """Return the expected number of signals that gaps lost since each copy, (S, n)."""
        lost = np.zeros((self.num_sources, rows.size))
        if copies.min(initial=np.inf) < self.last_gap and "recall" in self.columns:
            columns = self.columns_at(rows)
            for source, (since, until) in self.gaps.items():
                time = np.maximum(until - np.maximum(copies, since), 0.0)
                rate = np.atleast_2d(columns["recall"])[source] * columns["change_rate"]
                lost[source] = time * rate
        return lost

    def missed(self, rows: IntArray, copies: FloatArray) -> FloatArray:
        """Return the weight that the signals lost in gaps add to each page since its copy, (n,)."""
        lost = self.lost(rows, copies)
        if not lost.any():
            return np.zeros(rows.size)
        evidence = np.atleast_2d(evidence_of(self.columns_at(rows)))
        signal = self.values.signal_weights(self.lazy.parameters[rows], self.num_sources)
        some = np.divide(lost * signal, evidence, out=np.zeros_like(lost), where=evidence > 0.0)
        weights: FloatArray = some.sum(axis=0)
        return weights

    def signal_counts(self, rows: IntArray) -> FloatArray:
        """Return how many signals of each source the pages got since their copies, (n, S)."""
        counts = np.zeros((rows.size, self.num_sources))
        ready(signals_until)(self.arguments[0], rows, np.full(rows.size, np.inf), counts)
        return counts

    def weigh(self, rows: IntArray) -> None:
        """Sum the weights of the pages' signals again, where the weights may have changed."""
        if self.num_sources > 1 or self.gaps:
            missed = self.missed(rows, self.lazy.pages["last_crawl"][rows])
            ready(weigh)(*self.arguments, self.values.signal_weight, rows, missed)

    # Room and state

    def make_room(self, *, width: int = 0, signals: int = 0) -> None:
        """Enlarge the tables for all ids and hosts, ``width`` parameters and more signals."""
        choices, (rows, columns) = self.choices, self.lazy.parameters.shape
        room, events = self.ids.capacity, int(choices.lines["num_events"][0]) + signals
        sizes = {"m": choices.status.size, "H": choices.gap.size, "E": choices.event_next.size}
        needed = {"m": room, "H": len(self.hosts), "E": events}
        more = {axis: max(n, 2 * sizes[axis]) for axis, n in needed.items() if n > sizes[axis]}
        if not more and width <= columns:
            return
        more["Q"] = more.get("H", sizes["H"]) + 1
        if self.uses_costs:
            more |= {"P": more.get("m", sizes["m"]), "G": more["Q"]}
        more |= {"D": more.get("m", sizes["m"])} if choices.promises.size else {}
        self.choices = with_room(choices, more)
        if "m" in more or width > columns:
            self.lazy = lazy_with_room(self.lazy, room, max(width, columns))
        self.arguments = choices_table(self.choices), lazy_table(self.lazy)
        if "m" in more:
            self.group = np.append(self.group, np.zeros(room - rows, np.int32))
            for name, column in self.columns.items():
                self.columns[name] = np.zeros((*column.shape[:-1], room))
                self.columns[name][..., :rows] = column
            if self.learner is not None:
                self.learner.make_room(room)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return values and arrays by name for :meth:`restore`; the arrays are no copies."""
        values: dict[str, Any] = {"policy": self.values.name, "hosts": list(self.hosts)}
        values |= {"host_limits": self.host_limits, "gaps": list(self.gaps.items())}
        values |= {"most_interval": self.most_interval} if self.most_interval < np.inf else {}
        pages = self.lazy.pages
        search = {"last_crawl": pages["last_crawl"], "counted": pages["counted"]}
        if not self.values.apart:
            search["carried"] = self.lazy.parameters[:, -1]
        if not self.values.apart and self.allocated and self.uses_costs:
            search["rates"] = self.lazy.parameters[:, 0]  # costs have changed since
        choices = self.choices._asdict().items()
        groups: dict[str, Mapping[str, NDArray[Any]]] = {
            "choices": {name: a for name, a in choices if a.size or name not in OPTIONAL_FIELDS}
        }
        groups |= {"columns": self.columns, "ids": self.ids.arrays(), "search": search}
        groups["learner"] = {} if self.learner is None else self.learner.arrays()
        if len(self.groups) > 1:
            values["groups"], groups["pages"] = list(self.groups), {"group": self.group}
        groups["audits"] = {} if self.audits is None else self.audits.arrays()
        arrays = {f"{key}.{name}": a for key, group in groups.items() for name, a in group.items()}
        return values, arrays

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Load the values and arrays that :meth:`state` of tables with the same policy returned."""
        groups: dict[str, dict[str, NDArray[Any]]] = defaultdict(dict)
        for name, array in arrays.items():
            group, _, field = name.partition(".")
            groups[group][field] = array.copy()
        self.hosts = {name: code for code, name in enumerate(values["hosts"])}
        self.host_limits = dict(values["host_limits"])
        self.gaps = {source: (since, until) for source, (since, until) in values["gaps"]}
        self.ids, self.columns = PageIds.from_arrays(groups["ids"]), groups["columns"]
        room = groups["choices"]["status"].size
        self.groups = {name: code for code, name in enumerate(values.get("groups", [""]))}
        self.group = groups["pages"].get("group", np.zeros(room, np.int32))
        if self.audits is not None:
            self.audits.restore(groups["audits"])
        self.choices = Choices(**new_choices({})._asdict() | groups["choices"])
        if groups["learner"]:
            self.learner = PageLearner.from_arrays(groups["learner"])
        rows = np.flatnonzero(self.choices.status != ABSENT)
        parameters = np.zeros((0, 1))
        if rows.size:
            parameters = self.values.table(self.columns_at(rows), self.pace.bandwidth)
        width, start = parameters.shape[1], self.pace.time
        promises = np.full((self.choices.most_interval.size, 3), np.inf)
        self.lazy = new_lazy_argmax(np.zeros((room, width)), room, start, True, promises)
        self.lazy.parameters[rows], self.allocated = parameters, bool(rows.size)
        search = groups["search"]
        if "carried" in search and rows.size:
            self.lazy.parameters[:, 1] = search.pop("carried")
        if "rates" in search:
            self.lazy.parameters[:, 0] = search["rates"]
        for name in ("last_crawl", "counted"):
            self.lazy.pages[name] = search[name]
        self.arguments = choices_table(self.choices), lazy_table(self.lazy)
        self.lead = PageTables.lead
        self.admit(rows, only_ready=True)
