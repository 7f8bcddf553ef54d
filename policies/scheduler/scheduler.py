"""A live scheduler: which page to fetch next, among any number of pages."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import LARGEST, flag, one_of, quantity, real, share, whole
from policies.base.registry import POLICIES
from policies.scheduler.calls import Noted
from policies.scheduler.choices import hand_out, look, take, worth
from policies.scheduler.describing import description, overview, reason, states_at
from policies.scheduler.files import Record
from policies.scheduler.ids import first_of_each
from policies.scheduler.learning import BEST_CHANGES, LEARNED, MAX_AGE, PageLearner
from policies.scheduler.pacing import SAVED, Fetch, PacedScheduler
from policies.scheduler.page_values import COLUMNS
from policies.scheduler.pages import PageTables
from policies.scheduler.price import Price
from policies.scheduler.reading import (
    Ids,
    amounts,
    as_ids,
    check_names,
    host_labels,
    read,
)
from policies.scheduler.reports import fail, give_back, reopen, revive
from policies.scheduler.signal_log import count_signals, signals_until
from policies.scheduler.states import ABSENT, GONE, NO_LIMIT, PARKED, SENT

REWRITTEN = 500
"""Pages whose estimates follow new shared distributions with each report."""
BURST = 0.01
"""Time for which unused bandwidth is saved, over the timeout, if it is not given."""
LONGEST_RETRY = 1024.0
"""The longest wait after a failure, over the first one, if it is not given."""


class CrawlScheduler(PacedScheduler):
    """Chooses the next page to fetch by a crawl value, with a limited bandwidth.

    Pages come and go by :meth:`add`, :meth:`update`, :meth:`move` and :meth:`remove`; it takes note
    of signals (:meth:`signal`) and of fetches (:meth:`report`), and answers :meth:`next` and
    :meth:`next_batch`. Times are numbers in any unit, which is that of all rates. Ids are all
    strings, of 65,536 bytes in UTF-8 at most, or all integers. All arguments for pages are arrays;
    there is no Python object per page.
    Threads may share a scheduler: calls wait for each other.

    The page of the largest crawl value is found exactly, with several sources of signals but for
    rounding, without evaluating all pages (:mod:`crawl_envs.compiled.lazy_argmax`), and ties go to
    the page added first where ids are not removed. Pages that are handed out are not handed out
    again until they are reported, or until ``timeout`` has passed. Pages without a copy come first,
    by importance within one call of :meth:`add`; they take ``new_share`` of the fetches while other
    pages are ready.

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
            None for the timeout. A lost fetch counts, but for the first since the copy if nothing
            failed before it.
        most_retry: the longest such wait; None for 1024 times ``retry``.
        skew: difference between the clocks of sources and of this crawler, >= 0.
        resolution: the unit to which times of signals are rounded down, >= 0, one number or (S,).
            A signal of time t may be of a change up to t + resolution + skew.
        keep_gone: time for which what was learned of a page that is gone is kept.

    Attributes:
        time: the clock.
        clamped: calls whose time was before the clock.
        price: the price of :meth:`ask`.

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
        timeout = quantity("timeout", timeout, above=0.0)
        super().__init__(bandwidth, start, BURST * timeout if burst is None else burst)
        self.num_sources = whole("num_sources", num_sources, 1)
        self.pages = PageTables(policy, self.num_sources, self.time)
        if flag("learn", learn) and not self.pages.values.apart:
            raise ValueError("learn must be False but for index policies")
        self.learns = learn
        retry = timeout if retry is None else quantity("retry", retry, above=0.0)
        most = min(LONGEST_RETRY * retry, LARGEST) if most_retry is None else most_retry
        lines = self.pages.choices.lines
        lines["timeout"], lines["retry"] = timeout, retry
        lines["most_retry"] = quantity("most_retry", most, least=retry)
        lines["new_share"] = share("new_share", new_share, above=True)
        self.price = Price(self.time, new_share)
        lines["skew"], lines["keep_gone"] = quantity("skew", skew), quantity("keep_gone", keep_gone)
        self.pages.choices.slack[:] = amounts("resolution", resolution, self.num_sources) + skew

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
        given, pages = as_ids(ids), self.pages
        placed = {"host": host, "last_crawl": last_crawl, "least_interval": least_interval}
        columns = {"importance": importance, **columns}
        arrays = read({**placed, **columns}, given.size, self.num_sources)
        if one_of("known", known, ("raise", "skip")) == "skip":
            new = first_of_each(given) & ~pages.known(given)[0]
            given, arrays = given[new], {name: array[..., new] for name, array in arrays.items()}
        if given.size == 0:
            return 0
        own = {name: arrays.pop(name) for name in placed if name in arrays}
        arrays = {**self._assumed(given.size), **arrays}
        check_names(arrays, pages.values.needs, pages.columns)
        parameters = pages.parameters(arrays, self.bandwidth)
        rows, back = pages.place(given)
        pages.write(rows, arrays, parameters)
        if pages.learner is not None:
            learned = set(columns) & set(LEARNED)
            pages.learner.begin(rows if learned else rows[~back], arrays, learned)
            if not learned and back.any():
                pages.write_learned(rows[back], self.bandwidth)
        codes = pages.host_codes(own["host"]) if "host" in own else -1
        copies = own.get("last_crawl", np.full(given.size, math.nan))
        copies = np.where(np.isnan(copies), math.inf, copies)
        pages.choices.host[rows], pages.choices.least[rows] = codes, own["least_interval"]
        pages.lazy.pages["last_crawl"][rows], pages.lazy.pages["counted"][rows] = copies, 0.0
        lines, ahead = pages.choices.lines, copies[np.isfinite(copies)].max(initial=-math.inf)
        lines["latest_copy"] = np.maximum(lines["latest_copy"], ahead)
        pages.admit(rows[np.argsort(-arrays["importance"], kind="stable")], self.time)
        return int(rows.size)

    def update(self, ids: Ids, **columns: ArrayLike) -> None:
        """Change columns of pages, and ``least_interval``; ValueError as for :meth:`add`."""
        pages, rows = self.pages, self.pages.rows(ids)
        known = read(columns, rows.size, self.num_sources)
        least = known.pop("least_interval", None)
        unknown = [name for name in known if name not in pages.columns]
        if unknown:
            raise ValueError(f"{', '.join(unknown)} must be given when pages are added")
        if known:
            changed = pages.of(rows) | known
            pages.write(rows, changed, pages.parameters(changed, self.bandwidth))
            if pages.learner is not None and set(known) & set(LEARNED):
                pages.learner.begin(rows, changed, LEARNED)
            pages.weigh(rows)
        if least is not None:
            pages.choices.least[rows] = least
        if pages.values.apart or least is not None:
            pages.admit(rows, self.time)

    def remove(self, ids: Ids) -> None:
        """Remove pages; ValueError for unknown ids, and nothing is removed then."""
        self.pages.rows(ids)
        rows = self.pages.ids.remove(as_ids(ids))
        self.pages.dismiss(rows, np.full(rows.size, self.time))

    def move(self, ids: Ids, new_ids: Ids, host: ArrayLike | None = None) -> None:
        """Give pages other ids, as after a redirect, and perhaps another host; keep all else.

        Raises:
            ValueError: an id is unknown, a new one is there already, or one of them is twice there;
                a host is given for a page that is handed out, or parked as its host is closed.
        """
        pages, rows = self.pages, self.pages.rows(ids)
        hosts = read({"host": host}, rows.size, self.num_sources)
        if hosts and np.isin(pages.choices.status[rows], (SENT, PARKED)).any():
            raise ValueError("host must be left out for pages that are handed out or parked")
        pages.ids.move(as_ids(ids), as_ids(new_ids))
        for labels in hosts.values():
            codes = pages.host_codes(labels)
            pages.choices.host[rows] = codes

    def revive(self, ids: Ids, wait: bool = False) -> int:
        """Bring back pages that are gone, end the waits of failed ones; count unknown ids.

        A page that was gone keeps what was learned of it and its failures, of which being gone is
        one; with ``wait`` it waits by them, from then on. Other pages have no failures any more.
        """
        labels, pages = as_ids(ids), self.pages
        _, rows = pages.known(labels)
        gone = rows[pages.are_gone(rows)]
        pages.lazy.pages["counted"][gone] = 0.0
        if pages.learner is not None and gone.size:
            pages.write_learned(gone, self.bandwidth)
        pages.weigh(gone)
        pages.allocated &= pages.values.apart
        ready(revive)(*pages.arguments, pages.values.value, rows, flag("wait", wait), self.time)
        return int(labels.size - rows.size)

    def __contains__(self, page_id: object) -> bool:
        """Return whether a page is there, and not gone."""
        with self.lock:
            return bool(self.pages.known(as_ids(cast(Any, page_id)), gone=False)[0][0])

    def __len__(self) -> int:
        """Return the number of pages that are not gone."""
        return len(self.pages)

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
        pages, limits = self.pages, {}
        if gap is not None:
            limits["gap"] = quantity("gap", gap)
        if most is not None:
            limits["most"] = NO_LIMIT if most == math.inf else min(whole("most", most, 1), NO_LIMIT)
        codes: Any = slice(None)
        if hosts is None:
            pages.host_limits |= limits
        else:
            codes = pages.host_codes(host_labels("hosts", hosts))
        for name, limit in limits.items():
            getattr(pages.choices, name)[codes] = limit
        reopen(pages.arguments[0])

    def hold(self, host: ArrayLike, until: float) -> None:
        """Ask a host, or some, not before a time, in place of an earlier one; ``inf`` for never."""
        until = until if until == math.inf else real("until", until)
        codes = self.pages.host_codes(host_labels("host", host))
        self.pages.choices.held[codes] = until
        reopen(self.pages.arguments[0])

    def opens(self, host: str) -> float:
        """Return the time from which a host may be asked, by its gap and :meth:`hold`; or -inf."""
        code, choices = self.pages.hosts.get(host), self.pages.choices
        return -math.inf if code is None else float(max(choices.opens[code], choices.held[code]))

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
        settings = {"timeout": timeout, "retry": retry}
        given = {k: quantity(k, x, above=0.0) for k, x in settings.items() if x is not None}
        self._change_pace(time, bandwidth, burst)
        self.pages.allocated &= bandwidth is None
        lines = self.pages.choices.lines
        if "timeout" in given:
            sent = self.pages.choices.status == SENT
            self.pages.delay(sent, given["timeout"] - lines["timeout"][0])
        for name, value in given.items():
            lines[name] = value
        lines["most_retry"] = np.maximum(lines["most_retry"], lines["retry"])

    def reset_clock(self, time: float) -> None:
        """Take the clock back, where it was wrong; ValueError if that is not before it.

        Copies and signals of the future count as of the new time, and what waits has as long to
        wait as before. Waits that are over stay over, and forgotten pages stay forgotten. If it is
        more than a mean interval, what was learned of the pages fetched since the new time, and
        the rates given for them, are forgotten: their intervals were as wrong as the clock.
        """
        by = self._turn_back(time)
        if self.pages.learner is not None and by > len(self.pages.ids) / self.bandwidth:
            self._forget_learned(time)
        self.price.time -= by
        self.price.asked = None if self.price.asked is None else self.price.asked - by
        self.pages.turn_back(time, by, self.bandwidth)

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
        given, pages = as_ids(ids), self.pages
        events = read({"times": times, "source": source}, given.size, self.num_sources)
        known, rows = pages.known(given)
        pages.make_room(signals=rows.size)
        some = rows, events["times"][known], events["source"][known]
        functions = pages.values.value, pages.values.signal_weight
        ignored = ready(count_signals)(*pages.arguments, *functions, *some, self.time)
        return Noted(int(ignored), given[~known])

    def source_gap(self, source: int, since: float) -> None:
        """Take note that signals of a source were lost from a time until now.

        Pages count as more likely stale, by the changes that the source would have signalled since
        their copies. What fetches find of copies from the gap is not learned from.
        """
        source, since = whole("source", source, 0), real("since", since)
        if source >= self.num_sources:
            raise ValueError(f"source must be below {self.num_sources}, got {source}")
        pages = self.pages
        before = pages.gaps.get(source, (since, since))
        pages.gaps[source] = min(since, before[0]) if since <= before[1] else since, self.time
        rows = pages.living()
        pages.weigh(rows)
        pages.admit(rows, self.time, only_ready=True)

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

        Reports of pages that are unknown or gone are ignored. So are old ones: of a fetch that is
        not later than the page's copy, or a failure that is not later than its last one. They
        change nothing, so a report may come twice. Any other ends the fetch that is under way.

        Args:
            ids: the pages, (n,), whether they were handed out or not.
            times: the times of the copies, (n,) or a number for all: when the requests were sent,
                so that a change during a fetch counts as after it.
            status: ``ok`` for fetched or not modified, ``failed`` for pages that shall be handed
                out again later, ``interrupted`` for fetches of which nothing is known, as of a
                crawler that was killed: like lost ones, the first one since the copy is no failure;
                ``gone`` for pages that are no more.
            changed: whether the content differed from the copy before, (n,) bool, which is learned
                from with ``learn=True``; None if it is not known.
            retry_at: for ``failed`` and ``interrupted``, the time before which the page is not
                handed out again, (n,) or a number for all; None, or NaN for some, for none. Nor is
                it before the end of the wait by its failures.
            ended: when the fetches ended, from which gaps of hosts count, (n,) or a number for
                all; None for ``times``.

        Raises:
            ValueError: an unknown status; a time is not finite; ``changed`` is not n truth values.
        """
        one_of("status", status, ("ok", "failed", "interrupted", "gone"))
        labels, pages = as_ids(ids), self.pages
        some = {"times": times, "retry_at": retry_at, "ended": ended, "changed": changed}
        arrays = read(some, labels.size, self.num_sources)
        known, rows = pages.known(labels, gone=False)
        copies = pages.lazy.pages["last_crawl"][rows]
        new = (arrays["times"][known] > copies) | np.isinf(copies)
        known[known], rows = new, rows[new]
        ignored = int(labels.size - rows.size)
        if rows.size == 0:
            return ignored
        arrays = {name: array[known] for name, array in arrays.items()}
        moments, lines = arrays["times"], pages.choices.lines[0]
        latest = self.time + lines["timeout"] + lines["skew"]
        ends = np.minimum(arrays.get("ended", moments), latest)
        if status == "gone":
            self._bury(rows, ends)
        elif status != "ok":
            until = arrays.get("retry_at", np.full(rows.size, math.nan))
            fetches = rows, np.minimum(moments, latest), ends, until, status == "failed"
            functions = *pages.arguments, pages.values.value
            ignored += int(ready(fail)(*functions, *fetches, self.time))
        else:
            ignored += self._give_back(rows, moments, ends, arrays.get("changed"))
        return ignored

    def _give_back(
        self, rows: IntArray, times: FloatArray, ends: FloatArray, changed: BoolArray | None
    ) -> int:
        """Take note of new copies, and return the number of old ones."""
        pages, values = self.pages, self.pages.values
        if pages.learner is not None and changed is not None:
            self._learn(rows, times, changed)
        if not values.apart:
            pages.allocate(self.bandwidth, self.time)
            pages.carry(rows, times)
        functions, missed = (values.value, values.signal_weight), pages.missed(rows, times)
        arrays = rows, times, ends, missed
        return int(ready(give_back)(*pages.arguments, *functions, *arrays, self.time))

    def _bury(self, rows: IntArray, ends: FloatArray) -> None:
        """Mark pages as gone, or remove them if gone ones are not kept."""
        rows, first = np.unique(rows, return_index=True)
        keep = float(self.pages.choices.lines["keep_gone"][0])
        if keep == 0.0:
            self.pages.ids.remove(self.pages.ids.ids(rows))
        self.pages.dismiss(rows, ends[first], self.time + keep if keep else -math.inf)

    # What fetches found

    def _assumed(self, count: int) -> dict[str, FloatArray]:
        """Return what is assumed of the parameters of n new pages, if they are learned."""
        if not self.learns:
            return {}
        pages, interval = self.pages, (len(self.pages) + count) / self.bandwidth
        if pages.learner is None:
            room = pages.choices.status.size
            pages.learner = PageLearner(interval, room, self.num_sources)
        pages.learner.rescale(interval)
        first = pages.learner.first()
        return {k: np.repeat(x[..., None], count, axis=-1) for k, x in first.items()}

    def _learn(self, rows: IntArray, times: FloatArray, changed: BoolArray) -> None:
        """Learn from the first fetch of each page that has a copy, and write its parameters."""
        pages, learner = self.pages, self.pages.learner
        assert learner is not None
        copies = pages.lazy.pages["last_crawl"][rows]
        elapsed = times - copies
        useful = (elapsed > 0.0) & np.isfinite(elapsed) & (copies >= pages.last_gap)
        used = np.flatnonzero(first_of_each(rows) & useful)
        signals = np.zeros((used.size, self.num_sources))
        signals_until(pages.arguments[0], rows[used], times[used], signals)
        if learner.learn(rows[used], elapsed[used], signals, changed[used]):
            learner.share(pages.living())
        following = learner.next_rows(REWRITTEN)
        following = following[~np.isin(pages.choices.status[following], (ABSENT, GONE))]
        pages.write_learned(np.union1d(rows[used], following), self.bandwidth)
        pages.admit(following, self.time, only_ready=True)
        looked = np.union1d(following, learner.rows_in_turn(used.size, len(pages.ids)))
        self._explore(np.setdiff1d(looked, rows))

    def _forget_learned(self, since: float) -> None:
        """Forget what was learned of the pages that have a copy since a time."""
        pages, learner = self.pages, self.pages.learner
        assert learner is not None
        copies = pages.lazy.pages["last_crawl"]
        rows = np.flatnonzero((copies > since) & np.isfinite(copies))
        learner.begin(rows, {}, ())
        learner.share(pages.living())
        pages.write_learned(np.intersect1d(rows, pages.living()), self.bandwidth)

    def _explore(self, rows: IntArray) -> None:
        """Forget what was learned of pages without a fetch for long, and value them highly."""
        pages, max_age = self.pages, MAX_AGE * len(self.pages.ids) / self.bandwidth
        assert pages.learner is not None
        ages = self.time - pages.lazy.pages["last_crawl"][rows]
        old = (ages > max_age) & ~np.isin(pages.choices.status[rows], (ABSENT, GONE, SENT))
        if not old.any():
            return
        rows, columns = rows[old], pages.of(rows[old])
        pages.learner.begin(rows, columns, ())
        columns |= {"change_rate": BEST_CHANGES / ages[old], "recall": 0.0 * columns["recall"]}
        pages.write(rows, columns, pages.values.table(columns, self.bandwidth))
        pages.weigh(rows)
        pages.admit(rows, self.time, only_ready=True)

    # Choices

    def _take(self, count: int) -> NDArray[Any]:
        pages = self.pages
        pages.allocate(self.bandwidth, self.time)
        rows = np.zeros(count, np.int64)
        if count or not len(pages):  # pages that are gone are forgotten in time
            taken = ready(take)(*pages.arguments, pages.values.value, self.time, rows)
            rows = rows[:taken]
            pages.forget()
        return pages.ids.ids(rows)

    def _next_chance(self) -> float:
        choices, times = self.pages.choices, [math.inf]
        if choices.opening_size[0]:
            times.append(float(choices.opening[choices.opening_host[0]]))
        if choices.due_size[0]:
            times.append(float(choices.due[choices.due_page[0]]))
        return min(times)

    @property
    def ahead(self) -> int:
        """The number of copies and signals that were ahead of the clock by more than the skew."""
        return int(self.pages.choices.lines[0]["ahead"])

    @property
    def under_way(self) -> NDArray[Any]:
        """The ids of the pages that were handed out and are not reported yet."""
        return self.pages.ids.ids(np.flatnonzero(self.pages.choices.status == SENT))

    # What holders of copies ask for

    def ask(self, time: float, page_id: Any) -> Fetch:
        """Return whether a page may be fetched now, for one who holds copies and asks before.

        For loops that do not call :meth:`next`, in which pages are asked for at times of their own.
        A page is granted by its crawl value, at a price that follows what is left of the saved
        bandwidth (:class:`policies.scheduler.price.Price`), so that all of it goes to the pages of
        the largest values. ``burst`` must be the time of a fetch at least, and should be that of
        20. With a policy that allocates rates, a page is granted when it is due. A page that is
        granted is handed out: it must be reported.

        Args:
            time: the time.
            page_id: the page.

        Returns:
            The page; or None, and when to ask again, at the latest.

        Raises:
            ValueError: the page is unknown or gone, or ``burst`` is too short.
        """
        row, pages, most = self._row(page_id), self.pages, self.most_saved
        if pages.values.apart and most < 2.0:
            raise ValueError(
                f"burst must be at least {1.0 / self.bandwidth:g}, the time of a fetch, where "
                f"pages are asked for, got {self.burst:g}"
            )
        self._advance(real("time", time))
        pages.allocate(self.bandwidth, self.time)
        if self.allowance > most:
            self._allow(most)
        if self.is_used_up:
            return Fetch(None, self._ask_again())
        worthy = float(ready(worth)(*pages.arguments, pages.values.value, self.time, row))
        if not self._grants(worthy, most):
            return Fetch(None, max(self._chance(row, worthy, most), self._soon()))
        ready(hand_out)(*pages.arguments, self.time, row)
        self.taken += 1
        return Fetch(page_id, self.time)

    def _grants(self, worthy: float, most: float) -> bool:
        """Return whether a page of a value is granted; inf without a copy, NaN if it may not be."""
        if math.isnan(worthy):
            return False
        span = most / self.bandwidth
        if worthy == math.inf:
            return self.price.takes_new(self.time, span)
        if not self.pages.values.apart:
            return worthy >= 1.0
        return self.price.takes(worthy, self._fill(most), self.time, span)

    def _fill(self, most: float) -> float:
        """Return the share of the fetches that may be saved that is left, beyond one."""
        return min(max((self.allowance - 1.0) / (most - 1.0), 0.0), 1.0)

    def _chance(self, row: int, worthy: float, most: float) -> float:
        """Return the time at which a page that was refused may be granted, if nothing happens."""
        if worthy == math.inf:
            asked = self.time if self.price.asked is None else self.price.asked
            return asked + most / self.bandwidth
        price = self.price.value(self._fill(most)) if self.pages.values.apart else 1.0
        due = float(description(self.pages, row, self.time, price)["due"])
        if math.isnan(worthy):  # its host has other fetches, or it waits
            return due if due > self.time else self._ask_again()
        full = self.time + (most - self.allowance) / self.bandwidth
        return min(due, full) if worthy > 0.0 and self.pages.values.apart else due

    def _soon(self) -> float:
        """Return the first time after the clock."""
        return float(np.nextafter(self.time, math.inf))

    # What it knows

    def describe(self, page_id: Any, time: float | None = None) -> dict[str, Any]:
        """Return what is known of a page now, or at a time; ValueError if it is unknown.

        Its columns by name, ``copy`` (None if there is none), the number of ``signals`` since then,
        the ``stale`` probability by the rates of changes and signals, ``state``, ``failures``,
        ``value``, and ``due``: the time at which it may be fetched and its value reaches that of
        the pages fetched now, or the price of :meth:`ask`, if nothing else happens (``inf`` for
        never); and ``why`` in words.
        """
        row = self._row(page_id, gone=True)
        self.pages.allocate(self.bandwidth, self.time)
        asked = self.price.log is not None and self.pages.values.apart
        price = math.exp(self.price.log or 0.0) if asked else None
        return description(self.pages, row, self._at(time), price)

    def _at(self, time: float | None) -> float:
        """Return a time that is not before the clock."""
        return self.time if time is None else max(self.time, real("time", time))

    def _row(self, page_id: Any, gone: bool = False) -> int:
        """Return the row of a page; ValueError if it is unknown, or gone and that is not asked."""
        rows = self.pages.ids.rows(as_ids(page_id)) if gone else self.pages.rows(page_id)
        if rows.size != 1:
            raise ValueError(f"page_id must be the id of a page, got {page_id!r:.80}")
        return int(rows[0])

    def why(self) -> str:
        """Return why :meth:`next` has no page now, or that it has one."""
        return reason(states_at(self.pages, self.time), self.is_used_up, self._ask_again())

    def overview(self, time: float | None = None) -> dict[str, Any]:
        """Return what is known of all pages now, or at a time; it looks at each of them.

        ``states``, the pages by state; ``freshness``, the importance-weighted probability that a
        copy is fresh, by the rates of changes and signals, None where no change rates are known;
        ``failing``, the pages whose last fetch failed; ``starved``, those whose copy is older than
        ten mean times between two fetches of a page; ``late``, those whose copy is stale with more
        than 95%; ``held``, the hosts of :meth:`hold`; ``allowance``, the fetches that may be made
        now.
        """
        self.pages.allocate(self.bandwidth, self.time)
        told = overview(self.pages, self._at(time), self.bandwidth)
        return told | {"allowance": min(self.allowance, self.most_saved)}

    def warm(self) -> None:
        """Compile what calls need, and look at all pages, so that no call waits for it."""
        ready(look)(self.pages.arguments[1], self.pages.values.value, self.time)
        other = CrawlScheduler(
            self.pages.values.policy, 1.0, num_sources=self.num_sources, learn=self.learns
        )
        several = self.num_sources > 1
        shares = np.full((self.num_sources, 1) if several else (1,), 0.2 / self.num_sources)
        columns: Any = {name: 0.5 for name in self.pages.values.needs if name != "importance"}
        columns |= {k: shares for k in LEARNED[1:] if k in columns}
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
        other.revive([1])

    # State

    def state(self) -> Record:
        """Return what :meth:`from_state` needs to give the same answers; arrays are shared."""
        values, arrays = self.pages.state()
        values |= {"num_sources": self.num_sources, "learns": self.learns}
        values["price"] = self.price.state()
        return Record(values | {name: getattr(self, name) for name in SAVED}, arrays)

    @classmethod
    def from_state(cls, state: Record, policy: Any = None) -> CrawlScheduler:
        """Return a scheduler with the state of another one.

        ``policy`` is needed where that one's policy has no name in the registry: a state names no
        code that would be imported.

        Raises:
            ValueError: the state has other names than this version's, or needs a ``policy``.
        """
        values, arrays = state
        settings: Any = {"num_sources": values.get("num_sources"), "learn": values.get("learns")}
        name = values.get("policy")
        if policy is None and name not in POLICIES:
            raise ValueError(f"policy must be given where that of the state is {name!r}")
        if isinstance(policy, str) and name not in (None, policy):
            raise ValueError(f"policy must be {name!r} as in the state, got {policy!r}")
        chosen = name if policy is None else policy
        scheduler = cls(chosen, values.get("bandwidth", 0.0), **settings)
        some = {f"columns.{name}" for name in COLUMNS}
        some |= {f"learner.{name}" for name in PageLearner(1.0, 0).arrays()}
        if wrong := (state.named.keys() ^ scheduler.state().named.keys()) - some:
            raise ValueError(f"state must be of this version, which differs in {sorted(wrong)}")
        for name in SAVED:
            setattr(scheduler, name, values[name])
        scheduler.price.restore(values["price"])
        scheduler.pages.restore(values, arrays, scheduler.bandwidth, scheduler.time)
        return scheduler
