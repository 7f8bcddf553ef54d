"""Apply events to the pages of a scheduler: signals of sources, and results of fetches."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import one_of, real, whole
from policies.live.scheduler.calls import Noted
from policies.live.scheduler.pacing import PacedScheduler
from policies.live.scheduler.page_costs import settle_costs
from policies.live.scheduler.page_learning import learn
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.reading import Ids, as_ids, read
from policies.live.scheduler.reports import fail, give_back
from policies.live.scheduler.signal_log import count_signals
from policies.live.scheduler.states import MISSED


class Events(PacedScheduler):
    """The methods of a scheduler that take reports of signals and fetches."""

    pages: PageTables

    def signal(self, ids: Ids, times: ArrayLike, source: ArrayLike = 0) -> Noted:
        """Record signals of changes; return how many were ignored, and the ids of unknown pages.

        Signals of pages that are gone or have no copy are ignored, and signals from before the
        copy. A second signal of the same page, time and source is ignored, too. A signal at the
        time of a copy counts if it comes after the copy's report. A page keeps the latest 256.

        Args:
            ids: the page of each signal, (n,).
            times: its time, (n,) or a number for all.
            source: its source, from 0, (n,) or a number for all.

        Raises:
            ValueError: a time is not finite, or a source out of its range.
        """
        labels, pages = as_ids(ids), self.pages
        events = read({"times": times, "source": source}, labels.size, pages.num_sources)
        is_known, rows = pages.known(labels)
        pages.make_room(signals=rows.size)
        signals = rows, events["times"][is_known], events["source"][is_known]
        functions = pages.values.value, pages.values.signal_weight
        ignored = ready(count_signals)(*pages.arguments, *functions, *signals, self.time)
        return Noted(int(ignored), labels[~is_known])

    def source_gap(self, source: int, since: float) -> None:
        """Record that the signals of a source were lost from a time until now.

        Pages then count as more likely stale: by the changes since their copies that the source
        would have signalled. Nothing is learned from the next fetch of such a page.
        """
        source, since = whole("source", source, 0), real("since", since)
        pages = self.pages
        if source >= pages.num_sources:
            raise ValueError(f"source must be below {pages.num_sources}, got {source}")
        start, end = pages.gaps.get(source, (since, since))
        pages.gaps[source] = min(since, start) if since <= end else since, self.time
        rows = pages.living()
        pages.weigh(rows)
        pages.admit(rows, only_ready=True)

    def report(
        self,
        ids: Ids,
        times: ArrayLike,
        status: str = "ok",
        changed: ArrayLike | None = None,
        *,
        retry_at: ArrayLike | None = None,
        ended: ArrayLike | None = None,
        cost: ArrayLike | None = None,
    ) -> int:
        """Record the outcome of fetches; return the number of reports that were ignored.

        Reports of pages that are unknown or gone are ignored. So are old ones: of a fetch that is
        not later than the page's copy, or a failure that is not later than its last one. They
        change nothing, so a report may come twice; except that the cost of a fetch that was lost
        counts. Any other ends the fetch that is under way.

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
            cost: what the fetches cost, > 0, (n,) or a number for all; None, or NaN for some, if it
                is not known. It replaces the cost that was expected, in the bandwidth and the cap,
                and is learned. Without it the cap keeps ``max_cost`` for the fetch; so it does
                after a report whose time is before the page was handed out again.

        Raises:
            ValueError: an unknown status; a time is not finite; ``changed`` is not n truth values;
                a cost is not > 0.
        """
        one_of("status", status, ("ok", "failed", "interrupted", "gone"))
        labels, pages = as_ids(ids), self.pages
        fetches = {"times": times, "retry_at": retry_at, "ended": ended}
        fetches |= {"changed": changed, "cost": cost}
        arrays = read(fetches, labels.size, pages.num_sources)
        is_used, rows = pages.known(labels, gone=False)
        lines = pages.choices.lines[0]
        latest = self.time + lines["timeout"] + lines["skew"]
        if "cost" in arrays or pages.uses_costs:
            costs = arrays.pop("cost", np.full(labels.size, math.nan))[is_used]
            settle_costs(pages, rows, arrays["times"][is_used], costs, latest)
        copies = pages.lazy.pages["last_crawl"][rows]
        is_new = (arrays["times"][is_used] > copies) | np.isinf(copies)
        is_used[is_used], rows = is_new, rows[is_new]
        ignored = int(labels.size - rows.size)
        if rows.size == 0:
            return ignored
        arrays = {name: array[is_used] for name, array in arrays.items()}
        moments = arrays["times"]
        ends = np.minimum(arrays.get("ended", moments), latest)
        if status == "gone":
            self._bury(rows, ends)
        elif status != "ok":
            until = arrays.get("retry_at", np.full(rows.size, math.nan))
            moments = np.minimum(moments, latest)
            if pages.audits is not None:
                is_first = moments > pages.choices.failure_time[rows]
                pages.audits.note(rows[is_first], MISSED)
            failures = rows, moments, ends, until, status == "failed"
            state = *pages.arguments, pages.values.value
            ignored += int(ready(fail)(*state, *failures, self.time))
        else:
            ignored += self._give_back(rows, moments, ends, arrays.get("changed"))
        return ignored

    def _give_back(
        self, rows: IntArray, times: FloatArray, ends: FloatArray, changed: BoolArray | None
    ) -> int:
        """Record new copies of pages, and return the number of ignored older copies."""
        pages, values = self.pages, self.pages.values
        if pages.audits is not None:
            pages.audits.note(rows, MISSED if changed is None else changed, times)
        if changed is not None:
            learn(pages, rows, times, changed)
        if not values.apart:
            pages.allocate()
            pages.carry(rows, times)
        functions = values.value, values.signal_weight
        copies = rows, times, ends, pages.missed(rows, times)
        return int(ready(give_back)(*pages.arguments, *functions, *copies, self.time))

    def _bury(self, rows: IntArray, ends: FloatArray) -> None:
        """Mark pages as gone, or remove them if the scheduler does not remember gone pages."""
        rows, first = np.unique(rows, return_index=True)
        keep = float(self.pages.choices.lines["keep_gone"][0])
        if keep == 0.0:
            self.pages.ids.remove(self.pages.ids.ids(rows))
        until = self.time + keep if keep else -math.inf
        self.pages.dismiss(rows, ends[first], until)

    @property
    def ahead(self) -> int:
        """The number of copies and signals that were ahead of the clock by more than the skew."""
        return int(self.pages.choices.lines[0]["ahead"])
