"""A live scheduler: which page to fetch next, among any number of pages."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import flag, one_of, quantity, real, share, whole
from crawl_envs.types.array_tables import lengths_of
from crawl_envs.types.compiling import ready
from crawl_envs.types.lazy_argmax import lazy_table, new_lazy_argmax
from policies.estimators.histories import truths
from policies.scheduler.choices import (
    ABSENT,
    FIELDS,
    GONE,
    NO_LIMIT,
    READY,
    Choices,
    admit,
    choices_table,
    copy_choices,
    look,
    new_choices,
    take,
)
from policies.scheduler.describing import description, reason
from policies.scheduler.files import Record
from policies.scheduler.ids import PageIds
from policies.scheduler.learning import LEARNED, PageLearner
from policies.scheduler.page_values import PageValues, evidence_of
from policies.scheduler.reading import (
    Ids,
    as_ids,
    columns_of,
    copies_of,
    least_of,
    numbers_per_page,
    part_of,
)
from policies.scheduler.reports import dismiss, fail, give_back, reopen
from policies.scheduler.signal_log import count_signals, signals_until, weigh

ROUNDING = 1e-6
"""Share of a fetch by which the allowance may be short: times are rounded."""

LEAST_ROOM = 64
REWRITTEN = 500
"""Pages whose estimates follow new shared distributions with each report."""
BURST = 0.01
"""Time for which unused bandwidth is saved, over the timeout, if it is not given."""
LONGEST_RETRY = 1024.0
"""The longest wait after a failure, over the first one, if it is not given."""
CALLS = (
    "add",
    "update",
    "remove",
    "move",
    "limit_hosts",
    "hold",
    "configure",
    "signal",
    "source_gap",
    "report",
    "next",
    "next_batch",
)
"""The calls that change a scheduler."""
READS = "describe", "why", "warm"
"""The calls that do not."""


PLAIN = (
    "bandwidth",
    "time",
    "empty",
    "taken",
    "burst",
    "num_sources",
    "learns",
    "clamped",
    "keep_gone",
)
"""Attributes of the state that are plain values."""


class Fetch(NamedTuple):
    """The answer of :meth:`CrawlScheduler.next`.

    Attributes:
        id: the page to fetch now; None if there is none.
        ask_again: the earliest time at which the answer may be another; ``inf`` if that needs a
            new page or a report.
    """

    id: Any
    ask_again: float


class Noted(NamedTuple):
    """The answer of :meth:`CrawlScheduler.signal`.

    Attributes:
        ignored: signals of known pages that were ignored.
        unknown: ids of signals of unknown pages, which were ignored too, (k,).
    """

    ignored: int
    unknown: NDArray[Any]


class CrawlScheduler:
    """Chooses the next page to fetch by a crawl value, with a limited bandwidth.

    Pages come and go by :meth:`add`, :meth:`update`, :meth:`move` and :meth:`remove`; it takes note
    of signals (:meth:`signal`) and of fetches (:meth:`report`), and answers :meth:`next` and
    :meth:`next_batch`. Times are numbers in any unit, which is that of all rates. Ids are all
    strings or all integers. All arguments for pages are arrays; there is no Python object per page.
    Threads may share a scheduler: calls wait for each other.

    The page of the largest crawl value is found exactly without evaluating all pages
    (:mod:`crawl_envs.types.lazy_argmax`), and ties go to the page added first where ids are not
    removed. Pages that are handed out are not handed out again until they are reported, or until
    ``timeout`` has passed. Pages without a copy come first, by importance within one call of
    :meth:`add`; they take ``new_share`` of the fetches while other pages are ready.

    The clock is the largest time of the calls of :meth:`next`, :meth:`next_batch` and
    :meth:`configure`; an earlier time counts as that one. A copy or a signal that is ahead of the
    clock at the next choice counts as of then.

    A host may be limited in its rate and in its concurrent fetches (:meth:`limit_hosts`). A page
    whose host may not be asked is passed over, not its better's rival: the choice is the largest
    value among the pages that may be fetched now.

    Args:
        policy: an index policy (``GreedyNCIS``) or one that allocates rates (``LambdaCrawl``),
            by name, ``module:Class``, class or instance. Of the latter it crawls the page that is
            overdue by most intervals.
        bandwidth: fetches per unit of time, > 0.
        start: time of the first call, at least.
        timeout: time after which a page that was handed out is ready again: its fetch is lost.
        new_share: share of the fetches for pages without a copy, in (0, 1].
        burst: time for which unused bandwidth is saved, >= 0: up to 1 + burst * bandwidth fetches.
            A loop whose timers are late needs that much at least. None for a hundredth of the
            timeout. A batch of n pages may use n.
        num_sources: sources of signals, S; ``recall`` and ``false_signal_rate`` then have shape
            (S, n).
        learn: whether change rates and signal quality are learned from what fetches find
            (``changed`` of :meth:`report`), for index policies. Columns that are given are where a
            page starts from.
        retry: wait after a failed fetch, > 0, which doubles with each further failure in a row;
            None for the timeout. The second of several lost fetches counts as a first failure.
        most_retry: the longest such wait; None for 1024 times ``retry``.
        skew: difference between the clocks of sources and of this crawler, >= 0.
        resolution: the unit to which times of signals are rounded down, >= 0, one number or (S,).
            A signal of time t may be of a change up to t + resolution + skew.
        keep_gone: time for which what was learned of a page that is gone is kept.

    Attributes:
        time: the clock.
        clamped: calls whose time was before the clock.

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
        burst: float | None = None,
        num_sources: int = 1,
        learn: bool = False,
        retry: float | None = None,
        most_retry: float | None = None,
        skew: float = 0.0,
        resolution: ArrayLike = 0.0,
        keep_gone: float = 0.0,
    ) -> None:
        self.lock = threading.RLock()
        self.values = PageValues(policy)
        self.bandwidth = quantity("bandwidth", bandwidth, above=0.0)
        self.time = self.empty = real("start", start)
        self.taken = 0
        self.num_sources = whole("num_sources", num_sources, 1)
        timeout = quantity("timeout", timeout, above=0.0)
        self.burst = BURST * timeout if burst is None else quantity("burst", burst)
        new_share = share("new_share", new_share, above=True)
        retry = timeout if retry is None else quantity("retry", retry, above=0.0)
        most = LONGEST_RETRY * retry if most_retry is None else most_retry
        self.ids, self.columns = PageIds(), dict[str, FloatArray]()
        self.hosts: dict[Any, int] = {}
        self.host_limits = (0.0, NO_LIMIT)
        self.gaps: dict[int, tuple[float, float]] = {}
        self.gone: list[tuple[float, int]] = []
        self.allocated, self.clamped, self._idle = False, 0, -math.inf
        self.keep_gone = quantity("keep_gone", keep_gone)
        if flag("learn", learn) and not self.values.apart:
            raise ValueError("learn must be False but for index policies")
        self.learns, self.learner = learn, cast(PageLearner | None, None)
        room = self.ids.capacity
        lengths = {"m": room, "H": LEAST_ROOM, "sent": LEAST_ROOM, "E": LEAST_ROOM}
        self.choices = new_choices(lengths | {"S": self.num_sources})
        self.lazy = new_lazy_argmax(np.zeros((room, 1)), room, self.time)
        self._tables = choices_table(self.choices), lazy_table(self.lazy)
        lines = self.choices.lines
        lines["timeout"], lines["new_share"], lines["retry"] = timeout, new_share, retry
        lines["most_retry"] = quantity("most_retry", most, least=retry)
        lines["skew"] = quantity("skew", skew)
        slack = numbers_per_page("resolution", resolution, self.num_sources)
        if (slack < 0.0).any():
            raise ValueError(f"resolution must be >= 0, got {slack.min()}")
        self.choices.slack[:] = slack + skew

    # Pages

    def add(
        self,
        ids: Ids,
        *,
        known: Literal["raise", "skip"] = "raise",
        importance: ArrayLike = 1.0,
        host: ArrayLike | None = None,
        last_crawl: ArrayLike | None = None,
        least_interval: ArrayLike = 0.0,
        **columns: ArrayLike,
    ) -> int:
        """Add pages, and return their number.

        A page that is gone comes back, with what was learned of it, but not with ``skip``.

        Args:
            ids: n new ids.
            known: whether ids that are there already are an error, or skipped.
            importance: requests per unit of time or another weight, >= 0, (n,) or a number.
            host: the host of each page, any label, (n,) or one for all; None for no limits.
            last_crawl: time of the copy that there is already; None, or NaN for some, if none.
            least_interval: least time from a copy to the next fetch, >= 0, (n,) or a number.
            **columns: ``change_rate``, ``recall``, ``false_signal_rate``, ``complete``, as for
                :class:`crawl_envs.Instance`; the policy says which it needs.

        Raises:
            ValueError: an id is there already or twice in the call, a column is unknown, missing,
                out of its range or of another length. Nothing is added then.
        """
        given = as_ids(ids)
        rest: dict[str, Any] = {"last_crawl": last_crawl, "least_interval": least_interval}
        if one_of("known", known, ("raise", "skip")) == "skip":
            new = self.ids.rows(given, missing="skip") < 0
            new[np.setdiff1d(np.arange(given.size), np.unique(given, return_index=True)[1])] = False
            parts: dict[str, Any] = {**columns, **rest, "importance": importance, "host": host}
            size, given = given.size, given[new]
            parts = {name: part_of(column, new, size) for name, column in parts.items()}
            importance, host = parts.pop("importance"), parts.pop("host")
            rest = {name: parts.pop(name) for name in rest}
            columns = parts
        if given.size == 0:
            return 0
        return self._add(given, host, rest, {"importance": importance, **columns})

    def _add(
        self,
        given: NDArray[Any],
        host: ArrayLike | None,
        rest: Mapping[str, Any],
        columns: Mapping[str, Any],
    ) -> int:
        """Add pages that are new or gone, and return their number."""
        known = self._read_new({**self._assumed(given.size), **columns}, given.size)
        copies = copies_of(rest["last_crawl"], given.size)
        least = least_of(rest["least_interval"], given.size)
        parameters = self.values.table(known, self.bandwidth) if self.values.apart else None
        codes = self._host_codes(host, given.size)
        rows = self.ids.rows(given, missing="skip")
        back = rows >= 0
        back[back] = self._are_gone(rows[back])
        if (rows[~back] >= 0).any() or np.unique(rows[back]).size < back.sum():
            self.ids.add(given[~back | (rows >= 0)])  # says which
        rows[~back] = self.ids.add(given[~back])
        self._make_room(None if parameters is None else parameters.shape[1])
        for name, column in known.items():
            room = (*column.shape[:-1], self.choices.status.size)
            self.columns.setdefault(name, np.zeros(room))[..., rows] = column
        self._write(rows, parameters)
        if self.learner is not None:
            learned = set(columns) & set(LEARNED)
            self.learner.begin(rows if learned else rows[~back], known if learned else None)
            if not learned and back.any():
                self._write_learned(rows[back])
        self.choices.host[rows], self.choices.least[rows] = codes, least
        self.choices.status[rows] = ABSENT
        self.lazy.pages["last_crawl"][rows], self.lazy.pages["counted"][rows] = copies, 0.0
        ahead = copies[np.isfinite(copies)].max(initial=-math.inf)
        lines = self.choices.lines
        lines["latest_copy"] = max(lines["latest_copy"][0], ahead)
        self._admit(rows[np.argsort(-known["importance"], kind="stable")])
        return int(rows.size)

    def update(self, ids: Ids, **columns: ArrayLike) -> None:
        """Change columns of pages, and ``least_interval``; ValueError as for :meth:`add`."""
        rows = self._rows(ids)
        known = self._read_changes(columns, rows.size)
        least = known.pop("least_interval", None)
        changed = {name: column[..., rows] for name, column in self.columns.items()} | known
        parameters = self.values.table(changed, self.bandwidth) if self.values.apart else None
        for name, column in known.items():
            self.columns[name][..., rows] = column
        if known:
            self._make_room(None if parameters is None else parameters.shape[1])
            self._write(rows, parameters)
        if self.learner is not None and set(columns) & set(LEARNED):
            self.learner.begin(rows, changed)
        if least is not None:
            self.choices.least[rows] = least
        if parameters is not None or least is not None:
            self._weigh(rows)
            self._admit(rows)

    def remove(self, ids: Ids) -> None:
        """Remove pages; ValueError for unknown ids, and nothing is removed then."""
        self._rows(ids)
        rows = self.ids.remove(as_ids(ids))
        ready(dismiss)(*self._tables, rows, np.full(rows.size, self.time), False)
        self.allocated &= self.values.apart

    def move(self, ids: Ids, new_ids: Ids) -> None:
        """Give pages other ids, as after a redirect, and keep all else.

        Raises:
            ValueError: an id is unknown, a new one is there already, or one of them is twice there.
        """
        self._rows(ids)
        self.ids.move(as_ids(ids), as_ids(new_ids))

    def _rows(self, ids: Ids) -> IntArray:
        """Return the rows of pages; ValueError if one is unknown or gone."""
        given = as_ids(ids)
        rows = self.ids.rows(given)
        gone = given[self._are_gone(rows)]
        if gone.size:
            raise ValueError(f"ids must be known, {gone[0].item()!r} is gone")
        return rows

    def __contains__(self, page_id: object) -> bool:
        """Return whether a page is there, and not gone."""
        with self.lock:
            row = self.ids.rows(as_ids(cast(Any, page_id)), missing="skip")[0]
            return bool(row >= 0 and not self._are_gone(row))

    def _are_gone(self, rows: IntArray) -> BoolArray:
        """Return which pages are gone."""
        return np.asarray(self.choices.status[rows] == GONE)

    def limit_hosts(
        self,
        hosts: ArrayLike | None = None,
        *,
        gap: float | None = None,
        most: float | None = None,
    ) -> None:
        """Limit the fetches of hosts; a limit that is not given stays.

        When a host opens, all its pages are compared again that came before their turn, so a host
        with many more good pages than fetches costs time in proportion to them.

        Args:
            hosts: labels of hosts; None for all, and for hosts to come.
            gap: least time from the end of a fetch of a host, and from its start, to the next.
            most: most fetches of a host at once; ``inf`` for no limit, but one where there is a
                gap.

        Raises:
            ValueError: a limit is out of its range.
        """
        gap = None if gap is None else quantity("gap", gap)
        if most is not None:
            most = NO_LIMIT if most == math.inf else min(whole("most", most, 1), NO_LIMIT)
        codes: Any = slice(None)
        if hosts is None:
            limits = zip((gap, most), self.host_limits, strict=True)
            gap, most = self.host_limits = tuple(  # type: ignore[assignment]
                before if limit is None else limit for limit, before in limits
            )
        else:
            codes = self._host_codes(np.atleast_1d(np.asarray(hosts)), np.size(hosts))
        if gap is not None:
            self.choices.gap[codes] = gap
        if most is not None:
            self.choices.most[codes] = most
        reopen(self._tables[0])

    def hold(self, host: ArrayLike, until: float) -> None:
        """Ask a host, or some, not before a time, in place of an earlier one; ``inf`` for never."""
        if until != math.inf:
            until = real("until", until)
        codes = self._host_codes(np.atleast_1d(np.asarray(host)), np.size(host))
        self.choices.held[codes] = until
        reopen(self._tables[0])

    def configure(
        self,
        time: float,
        *,
        bandwidth: float | None = None,
        burst: float | None = None,
        timeout: float | None = None,
        retry: float | None = None,
    ) -> None:
        """Change settings from a time on; see :class:`CrawlScheduler` for them."""
        settings = {"bandwidth": bandwidth, "timeout": timeout, "retry": retry}
        given = {k: quantity(k, x, above=0.0) for k, x in settings.items() if x is not None}
        saved = self.burst if burst is None else quantity("burst", burst)
        self._advance(real("time", time))
        self.burst, allowance = saved, self.allowance
        if "bandwidth" in given:
            self.bandwidth = given.pop("bandwidth")
            self.empty, self.taken = self.time - allowance / self.bandwidth, 0
            self.allocated &= self.values.apart
        for name, value in given.items():
            self.choices.lines[name] = value
        lines = self.choices.lines
        lines["most_retry"] = np.maximum(lines["most_retry"], lines["retry"])

    # Events

    def signal(self, ids: Ids, times: ArrayLike, source: ArrayLike = 0) -> Noted:
        """Take note of signals; return how many were ignored, and the ids of unknown pages.

        Signals of pages that are gone or without a copy, and from before a page's copy, are
        ignored, and so are those that are known: of the same page, time and source. A signal of
        the very time of a copy counts if it comes after its report. A page keeps the latest 256.

        Args:
            ids: the page of each signal, (n,).
            times: its time, (n,) or a number for all.
            source: its source, from 0, (n,) or a number for all.

        Raises:
            ValueError: a time is not finite, or a source out of its range.
        """
        given = as_ids(ids)
        known, *signals = self._read_signals(given, times, source)
        values, counts = self.values, np.zeros(2, np.int64)
        arguments = values.value, values.signal_weight, *signals, values.delay_window, self.time
        while True:
            ready(count_signals)(*self._tables, *arguments, counts)
            if counts[0] == signals[0].size:
                break
            self._renew_choices(E=2 * self.choices.event_next.size)
        return Noted(int(counts[1]), given[~known])

    def source_gap(self, source: int, since: float) -> None:
        """Take note that signals of a source were lost from a time until now.

        Pages count as more likely stale, by the changes that the source would have signalled since
        their copies. What fetches find of copies from the gap is not learned from.
        """
        source, since = whole("source", source, 0), real("since", since)
        if source >= self.num_sources:
            raise ValueError(f"source must be below {self.num_sources}, got {source}")
        before = self.gaps.get(source, (since, since))
        since = min(since, before[0]) if since <= before[1] else since
        self.gaps[source] = since, self.time
        rows = np.flatnonzero(~np.isin(self.choices.status, (ABSENT, GONE)))
        self._weigh(rows)
        self._admit(_ready(self.choices.status, rows))

    def _missed(self, rows: IntArray, copies: FloatArray) -> FloatArray:
        """Return the weights of the signals that gaps have lost since copies of pages, (n,)."""
        weights = np.zeros(rows.size)
        late = self.gaps and copies.min(initial=math.inf) < max(
            end for _, end in self.gaps.values()
        )
        if not late or "recall" not in self.columns:
            return weights
        known = {name: column[..., rows] for name, column in self.columns.items()}
        evidence = np.atleast_2d(evidence_of(known))
        signal = self.values.signal_weights(self.lazy.parameters[rows], self.num_sources)
        for source, (since, until) in self.gaps.items():
            lost = np.maximum(until - np.maximum(copies, since), 0.0)
            lost *= np.atleast_2d(known["recall"])[source] * known["change_rate"]
            unit = evidence[source] > 0.0
            weights[unit] += (lost * signal[source])[unit] / evidence[source][unit]
        return weights

    def _weigh(self, rows: IntArray) -> None:
        """Count the signals of pages again, where their weights may have changed."""
        if self.num_sources > 1 or self.gaps:
            missed = self._missed(rows, self.lazy.pages["last_crawl"][rows])
            some = self.values.signal_weight, rows, missed, self.values.delay_window
            ready(weigh)(*self._tables, *some)

    def report(
        self,
        ids: Ids,
        times: ArrayLike,
        status: str = "ok",
        changed: ArrayLike | None = None,
        *,
        retry_at: ArrayLike | None = None,
        ended: ArrayLike | None = None,
    ) -> int:
        """Take note of fetches; return the number of those that were ignored.

        Fetches of unknown pages, of pages that are gone, and those before the page's copy, are
        ignored; a repeated report changes nothing.

        Args:
            ids: the pages, (n,), whether they were handed out or not.
            times: the times of the copies, (n,) or a number for all: when the requests were sent,
                so that a change during a fetch counts as after it.
            status: ``ok`` for fetched or not modified, ``failed`` for pages that shall be handed
                out again later, ``gone`` for pages that are no more.
            changed: whether the content differed from the copy before, (n,) bool, which is learned
                from with ``learn=True``; None if it is not known.
            retry_at: for ``failed``, the time before which the page is not handed out again, (n,)
                or a number for all; None, or NaN for some, for a wait by its failures.
            ended: when the fetches ended, from which gaps of hosts count, (n,) or a number for
                all; None for ``times``.

        Raises:
            ValueError: an unknown status; a time is not finite; ``changed`` is not n truth values.
        """
        given = as_ids(ids)
        found = None if changed is None else truths("changed", changed, given.shape)
        known, rows, moments = self._read_report(given, times, status)
        ends = moments
        if ended is not None:
            ends = numbers_per_page("ended", ended, given.size)[known]
        lines = self.choices.lines[0]
        ends = np.minimum(ends, self.time + lines["timeout"] + lines["skew"])
        unknown = int((~known).sum())
        if status == "gone":
            rows, first = np.unique(rows, return_index=True)
            self._bury(rows, ends[first])
        elif status == "failed":
            waits = np.full(given.size, math.nan) if retry_at is None else retry_at
            until = numbers_per_page("retry_at", waits, given.size, finite=False)[known]
            ready(fail)(*self._tables, self.values.value, rows, ends, until, self.time)
        else:
            if self.learner is not None and found is not None:
                self._learn(rows, moments, found[known])
            if not self.values.apart:
                self._carry(rows, moments)
            values, missed = self.values, self._missed(rows, moments)
            compiled = values.value, values.signal_weight, rows, moments, ends, missed
            old = ready(give_back)(*self._tables, *compiled, values.delay_window, self.time)
            return unknown + int(old)
        return unknown

    def _bury(self, rows: IntArray, ends: FloatArray) -> None:
        """Mark pages as gone, and forget those that were gone for long."""
        ready(dismiss)(*self._tables, rows, ends, True)
        self.choices.sent[rows] = self.time
        self.gone += [(self.time, int(row)) for row in rows]
        self.allocated &= self.values.apart
        self._forget()

    def _forget(self) -> None:
        """Remove the pages that have been gone for long enough."""
        while self.gone and self.gone[0][0] + self.keep_gone <= self.time:
            time, row = self.gone.pop(0)
            if self.choices.status[row] == GONE and self.choices.sent[row] == time:
                self.ids.remove(self.ids.ids(np.array([row])))
                rows = np.array([row]), np.array([self.time])
                ready(dismiss)(*self._tables, *rows, False)

    def _assumed(self, count: int) -> dict[str, FloatArray]:
        """Return what is assumed of the parameters of n new pages, if they are learned."""
        if not self.learns:
            return {}
        if self.learner is None:
            room = self.choices.status.size
            self.learner = PageLearner(count / self.bandwidth, room, self.num_sources)
        first = self.learner.first()
        return {k: np.repeat(x[..., None], count, axis=-1) for k, x in first.items()}

    def _learn(self, rows: IntArray, times: FloatArray, changed: BoolArray) -> None:
        """Learn from the first fetch of each page that has a copy, and write its parameters."""
        assert self.learner is not None
        copies = self.lazy.pages["last_crawl"][rows]
        elapsed = times - copies
        once = np.zeros(rows.size, np.bool_)
        once[np.unique(rows, return_index=True)[1]] = True
        whole_time = copies >= max((end for _, end in self.gaps.values()), default=-math.inf)
        used = np.flatnonzero(once & (elapsed > 0.0) & np.isfinite(elapsed) & whole_time)
        signals = np.zeros((used.size, self.num_sources))
        signals_until(self._tables[0], rows[used], times[used], signals)
        again = self.learner.learn(rows[used], elapsed[used], signals, changed[used])
        if again:
            self.learner.share(np.flatnonzero(~np.isin(self.choices.status, (ABSENT, GONE))))
        begin = int(self.learner.fetches[2])
        following = np.arange(begin, min(begin + REWRITTEN, self.choices.status.size))
        self.learner.fetches[2] += following.size
        following = following[~np.isin(self.choices.status[following], (ABSENT, GONE))]
        self._write_learned(np.union1d(rows[used], following))
        self._admit(_ready(self.choices.status, following))

    def _write_learned(self, rows: IntArray) -> None:
        """Write the learned parameters of pages; those that are ready must be admitted after it."""
        assert self.learner is not None
        for name, column in self.learner.columns(rows).items():
            self.columns[name][..., rows] = column
        columns = {name: column[..., rows] for name, column in self.columns.items()}
        self._write(rows, self.values.table(columns, self.bandwidth))
        self._weigh(rows)

    # Choices

    def next(self, time: float) -> Fetch:
        """Return the page to fetch at a time, or the time at which to ask again."""
        known = self.nothing_yet(time)
        if known is not None:
            return known
        pages = self._next(1)
        if len(pages):
            return Fetch(pages[0], self.time)
        self._idle = self._ask_again()
        return Fetch(None, self._idle)

    def nothing_yet(self, time: float) -> Fetch | None:
        """Return the answer of :meth:`next` if it is known to be none and to change nothing."""
        self._advance(real("time", time))
        if self.time < self._idle:
            return Fetch(None, self._idle)
        if self.allowance < 1.0 - self._rounding():
            return Fetch(None, self._ask_again())
        return None

    def next_batch(self, time: float, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch at a time, best first.

        Raises:
            ValueError: the count is below 1.
        """
        count = whole("count", count, 1)
        self._advance(real("time", time))
        return self._next(count)

    def _next(self, count: int) -> NDArray[Any]:
        """Return the ids of up to ``count`` pages to fetch now."""
        if self.gone:
            self._forget()
        most = max(1.0 + self.burst * self.bandwidth, count)
        if self.allowance > most:
            self.empty, self.taken = self.time - most / self.bandwidth, 0
        allowed = min(count, math.floor(self.allowance + self._rounding()), len(self.ids))
        pages = self._take(max(allowed, 0))
        self.taken += pages.size
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
            self._renew_choices(sent=2 * self.choices.sent_time.size)
        return self.ids.ids(rows[:taken])

    def __len__(self) -> int:
        """Return the number of pages that are not gone."""
        return len(self.ids) - int((self.choices.status == GONE).sum() if self.gone else 0)

    @property
    def allowance(self) -> float:
        """The fetches that may be made now: those since time ``empty`` but for ``taken`` ones."""
        return self.bandwidth * (self.time - self.empty) - self.taken

    @property
    def ahead(self) -> int:
        """The number of copies and signals that were ahead of the clock by more than the skew."""
        return int(self.choices.lines[0]["ahead"])

    def _rounding(self) -> float:
        return ROUNDING + self.bandwidth * math.ulp(self.time)

    def _advance(self, time: float) -> None:
        """Move the clock to a time; an earlier one is counted."""
        self.clamped += time < self.time
        self.time = max(self.time, time)

    def _ask_again(self) -> float:
        """Return the earliest time of a fetch if nothing else happens."""
        lines, choices = self.choices.lines[0], self.choices
        times = [math.inf]
        if self.allowance < 1.0 - self._rounding():
            times = [self.empty + (self.taken + 1) / self.bandwidth]
        else:
            if choices.opening_size[0]:
                times.append(float(choices.opening[choices.opening_host[0]]))
            if choices.waiting_size[0]:
                times.append(float(choices.due[choices.waiting[0]]))
            if lines["num_sent"]:
                times.append(float(choices.sent_time[lines["first_sent"]] + lines["timeout"]))
        return max(min(times), float(np.nextafter(self.time, math.inf)))

    # What it knows

    def describe(self, page_id: Any) -> dict[str, Any]:
        """Return what is known of a page; ValueError if it is unknown.

        Its columns by name, ``copy`` (None if there is none), ``signals``, the ``stale``
        probability by the rates of changes and signals, ``state``, ``failures``, ``value``, and
        ``due``: the time at which it may be fetched and its value reaches that of the pages
        fetched now, if nothing else happens (``inf`` for never); and ``why`` in words.
        """
        row = int(self.ids.rows(as_ids(page_id))[0])
        self._allocate()
        return description(self, row)

    def why(self) -> str:
        """Return why :meth:`next` has no page now, or that it has one."""
        return reason(self)

    def warm(self) -> None:
        """Compile what calls need, and look at all pages, so that no call waits for it."""
        ready(look)(self._tables[1], self.values.value, self.time)
        other = CrawlScheduler(
            self.values.policy, 1.0, num_sources=self.num_sources, learn=self.learns
        )
        sources = (self.num_sources, 1) if self.num_sources > 1 else (1,)
        columns: Any = {name: 0.5 for name in self.values.needs if name != "importance"}
        columns |= {k: np.full(sources, 0.2) for k in LEARNED[1:] if k in columns}
        many: Any = {k: np.repeat(x, 20, axis=-1) if np.ndim(x) else x for k, x in columns.items()}
        other.add(np.arange(20), last_crawl=0.0, host="a", **many)
        other.limit_hosts(gap=0.1)
        other.report([0], 1.0, "failed")
        for turn, count in enumerate((1, 10), 1):
            other.signal([0], 30.0 * turn)
            pages = other.next_batch(30.0 * turn, count)
            other.report(pages, 30.0 * turn, changed=pages > 0)
        other.source_gap(0, 0.0)
        other.describe(0)
        other.report([1], 90.0, "gone")

    # State

    def state(self) -> Record:
        """Return what :meth:`from_state` needs to give the same answers; arrays are shared."""
        rows = self.choices.status.size
        values = {name: getattr(self, name) for name in PLAIN}
        values |= {"policy": self.values.name, "hosts": list(self.hosts)}
        values |= {"host_limits": list(self.host_limits), "gaps": list(self.gaps.items())}
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
        arrays["gone"] = np.array(self.gone, np.float64).reshape(-1, 2)
        return Record(values, arrays)

    @classmethod
    def from_state(cls, state: Record, policy: Any = None) -> CrawlScheduler:
        """Return a scheduler with the state of another one.

        ``policy`` is needed where that one's policy has no name.
        """
        values, arrays = state
        chosen = values["policy"] if policy is None else policy
        sources, learns = values["num_sources"], values["learns"]
        scheduler = cls(chosen, values["bandwidth"], num_sources=sources, learn=learns)
        learner = _named("learner.", arrays)
        scheduler.learner = PageLearner.from_arrays(learner) if learner else None
        for name in PLAIN:
            setattr(scheduler, name, values[name])
        scheduler.hosts = {name: code for code, name in enumerate(values["hosts"])}
        scheduler.host_limits = values["host_limits"][0], values["host_limits"][1]
        scheduler.gaps = {source: (since, until) for source, (since, until) in values["gaps"]}
        scheduler.gone = [(float(time), int(row)) for time, row in arrays["gone"]]
        scheduler.ids = PageIds.from_arrays(_named("ids.", arrays))
        choices = _named("choices.", arrays)
        scheduler.choices = Choices(*(choices[name].copy() for name in Choices._fields))
        scheduler.columns = {k: a.copy() for k, a in _named("columns.", arrays).items()}
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

    def _renew_choices(self, **rooms: int) -> None:
        """Give room for pages, hosts, sent pages and signals, and keep their states."""
        choices = new_choices(lengths_of(self.choices, FIELDS) | rooms)
        copy_choices(self.choices, choices)
        self.choices = choices
        self._tables = choices_table(choices), self._tables[1]

    def _renew_search(self, room: int, width: int) -> None:
        """Give room for pages and for parameters of a width; the search goes on."""
        before, parameters = self.lazy, np.zeros((room, width))
        rows, columns = before.parameters.shape
        parameters[:rows, :columns] = before.parameters
        self.lazy = new_lazy_argmax(parameters, len(parameters), self.time)
        self.lazy.upper[:] = math.inf
        old: Any = before[1:]
        new: Any = self.lazy[1:]
        for array, copy in zip(old, new, strict=True):
            copy[: array.shape[0]] = array
        self._tables = self._tables[0], lazy_table(self.lazy)

    def _make_room(self, width: int | None = None) -> None:
        """Give room for all ids and hosts, and for parameters of a width."""
        choices, before = self.choices, self.lazy.parameters.shape
        room, hosts = choices.status.size, choices.gap.size
        while hosts < len(self.hosts):
            hosts *= 2
        room = max(room, self.ids.capacity)
        if room > choices.status.size or hosts > choices.gap.size:
            self._renew_choices(m=room, H=hosts)
        if before != (room, max(width or 0, before[1])):
            self._renew_search(room, max(width or 0, before[1]))
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
            self.lazy.parameters[rows, : parameters.shape[1]] = parameters
            self.lazy.parameters[rows, parameters.shape[1] :] = 0.0

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
        """Return which of n fetches are of known pages, and of these rows and times."""
        if status not in ("ok", "failed", "gone"):
            raise ValueError(f"status must be 'ok', 'failed' or 'gone', got {status!r}")
        moments = numbers_per_page("times", times, ids.size)
        rows = self.ids.rows(ids, missing="skip")
        known = rows >= 0
        if self.gone:
            known[known] = ~self._are_gone(rows[known])
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
        least = {k: least_of(x, count) for k, x in columns.items() if k == "least_interval"}
        others = {k: x for k, x in columns.items() if k not in least}
        known = columns_of(others, count, self.num_sources)
        unknown = [name for name in known if name not in self.columns]
        if unknown:
            raise ValueError(f"{', '.join(unknown)} must be given when pages are added")
        return known | least

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


def _named(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def guard(scheduler: type[CrawlScheduler]) -> None:
    """Let the calls of a scheduler wait for those of other threads."""
    for call in set(vars(scheduler)) & {*CALLS, *READS, "nothing_yet"}:
        setattr(scheduler, call, _locked(getattr(scheduler, call)))


def _locked(method: Any) -> Any:
    """Return a call that waits for those of other threads."""
    answers = method.__name__ in (*READS, "next", "next_batch", "nothing_yet")

    @functools.wraps(method)
    def locked(self: CrawlScheduler, *arguments: Any, **named: Any) -> Any:
        with self.lock:
            if not answers:
                self._idle = -math.inf
            return method(self, *arguments, **named)

    return locked


guard(CrawlScheduler)
