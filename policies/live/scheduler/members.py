"""Add, change and remove the pages of a scheduler, and limit its hosts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import IntArray
from crawl_envs.types.arguments import flag, one_of, quantity, real, whole
from policies.live.scheduler.ids import first_of_each
from policies.live.scheduler.learning import LEARNED
from policies.live.scheduler.pacing import PacedScheduler
from policies.live.scheduler.page_costs import give_costs
from policies.live.scheduler.page_learning import first_columns
from policies.live.scheduler.page_promises import checked_promises, promise, renew_promises
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.reading import Ids, as_ids, check_names, host_labels, read
from policies.live.scheduler.reports import reopen, revive
from policies.live.scheduler.states import NO_LIMIT, PARKED, SENT


class Members(PacedScheduler):
    """The methods of a scheduler that add, change and remove pages, and limit hosts."""

    pages: PageTables

    def add(
        self,
        /,
        ids: Ids,
        *,
        known: Literal["raise", "skip"] = "raise",
        importance: ArrayLike = 1.0,
        host: ArrayLike | None = None,
        group: ArrayLike | None = None,
        last_crawl: ArrayLike | None = None,
        least_interval: ArrayLike = 0.0,
        most_interval: ArrayLike = math.nan,
        cost: ArrayLike | None = None,
        **columns: ArrayLike,
    ) -> int:
        """Add pages, and return their number.

        A gone page comes back with what was learned of it, except with ``known="skip"``.

        Args:
            ids: n new ids.
            known: whether ids of existing pages are an error, or are skipped.
            importance: requests per unit of time or another weight, >= 0, (n,) or a number.
            host: the host of each page, any label, (n,) or one for all; None for no limits.
            group: the label of each page for :meth:`CrawlScheduler.freshness`, (n,) or one for all;
                None or "" for none.
            last_crawl: time of an existing copy, (n,) or a number; None or NaN without a copy.
            least_interval: least time from a copy to the next fetch, >= 0, (n,) or a number.
            most_interval: longest time from a copy to the next fetch, > 0, (n,) or a number; NaN
                for that of the scheduler, ``inf`` for none. A gone page starts anew.
            cost: expected cost of a fetch of each page, > 0, in units of the bandwidth, (n,) or a
                number; None or NaN if it is not known (:mod:`.page_costs`).
            **columns: ``change_rate``, ``recall``, ``false_signal_rate``, ``complete``, as for
                :class:`crawl_envs.Instance`; the policy says which it needs.

        Raises:
            ValueError: an id is there already or twice in the call, a column is unknown, missing,
                out of range or of another length, or promises need too much. Nothing is added then.
        """
        labels, pages = as_ids(ids), self.pages
        visits = {"host": host, "last_crawl": last_crawl, "least_interval": least_interval}
        visits |= {"cost": cost, "most_interval": most_interval, "group": group}
        columns = {"importance": importance, **columns}
        arrays = read({**visits, **columns}, labels.size, pages.num_sources)
        if one_of("known", known, ("raise", "skip")) == "skip":
            is_new = first_of_each(labels) & ~pages.known(labels)[0]
            labels, arrays = labels[is_new], {k: array[..., is_new] for k, array in arrays.items()}
        if labels.size == 0:
            return 0
        visit_arrays = {name: arrays.pop(name) for name in visits if name in arrays}
        costs = visit_arrays.pop("cost", np.full(labels.size, math.nan))
        arrays = {**first_columns(pages, labels.size), **arrays}
        check_names(arrays, pages.values.needs, pages.columns)
        parameters = pages.parameters(arrays)
        promises = checked_promises(pages, np.zeros(0, np.int64), visit_arrays | {"cost": costs})
        rows, is_back = pages.place(labels)
        pages.write(rows, arrays, parameters)
        if pages.learner is not None:
            names = set(columns) & set(LEARNED)
            returning = rows[is_back & (not names)]  # with what was learned of them
            fresh = np.setdiff1d(rows, returning) if returning.size else rows
            pages.learner.begin(fresh, arrays, names)
            if returning.size:
                pages.write_learned(returning)
        if "group" in visit_arrays:
            pages.set_groups(rows, visit_arrays["group"])
        self._write_visits(rows, visit_arrays)
        give_costs(pages, rows, costs, rows[~is_back])
        promise(pages, rows, *promises)
        pages.admit(rows[np.argsort(-arrays["importance"], kind="stable")])
        return int(rows.size)

    def _write_visits(self, rows: IntArray, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the hosts, copy times and least intervals of new pages to the tables."""
        pages = self.pages
        codes = pages.host_codes(arrays["host"]) if "host" in arrays else -1
        copies = arrays.get("last_crawl", np.full(rows.size, math.nan))
        copies = np.where(np.isnan(copies), math.inf, copies)
        pages.choices.host[rows], pages.choices.least[rows] = codes, arrays["least_interval"]
        pages.lazy.pages["last_crawl"][rows], pages.lazy.pages["counted"][rows] = copies, 0.0
        lines, latest = pages.choices.lines, copies[np.isfinite(copies)].max(initial=-math.inf)
        lines["latest_copy"] = np.maximum(lines["latest_copy"], latest)

    def update(self, /, ids: Ids, **columns: ArrayLike) -> None:
        """Change columns, intervals, costs or groups of pages; errors as for :meth:`add`."""
        pages, rows = self.pages, self.pages.rows(ids)
        columns |= {"group": ""} if columns.get("group", "") is None else {}
        arrays = read(columns, rows.size, pages.num_sources)
        promises = checked_promises(pages, rows, arrays)
        intervals, costs = arrays.pop("least_interval", None), arrays.pop("cost", None)
        groups = arrays.pop("group", None)
        unknown = [name for name in arrays if name not in pages.columns]
        if unknown:
            raise ValueError(f"{', '.join(unknown)} must be given when pages are added")
        pages.drawn_from = None
        if groups is not None:
            pages.set_groups(rows, groups)
        if arrays:
            changed = pages.columns_at(rows) | arrays
            pages.write(rows, changed, pages.parameters(changed))
            if pages.learner is not None and set(arrays) & set(LEARNED):
                pages.learner.begin(rows, changed, LEARNED)
            pages.weigh(rows)
        if costs is not None:
            give_costs(pages, rows, costs)
        if intervals is not None:
            pages.choices.least[rows] = intervals
        promise(pages, rows, *promises)
        pages.admit(rows)

    def remove(self, ids: Ids) -> None:
        """Remove pages; ValueError for unknown ids, and nothing is removed then."""
        self.pages.rows(ids)
        rows = self.pages.ids.remove(as_ids(ids))
        self.pages.dismiss(rows, np.full(rows.size, self.time))

    def move(self, ids: Ids, new_ids: Ids, host: ArrayLike | None = None) -> None:
        """Give pages new ids, as after a redirect, and new hosts if given; keep all other data.

        Raises:
            ValueError: an id is unknown, a new one is there already, or one of them is twice there;
                a host is given for a page that is handed out, or parked as its host is closed.
        """
        pages, rows = self.pages, self.pages.rows(ids)
        hosts = read({"host": host}, rows.size, pages.num_sources)
        if hosts and np.isin(pages.choices.status[rows], (SENT, PARKED)).any():
            raise ValueError("host must be left out for pages that are handed out or parked")
        pages.ids.move(as_ids(ids), as_ids(new_ids))
        for labels in hosts.values():
            pages.choices.host[rows] = pages.host_codes(labels)

    def revive(self, ids: Ids, wait: bool = False) -> int:
        """Bring back gone pages, and end waits of failed ones; return the number of unknown ids.

        A page that was gone keeps what was learned of it, and its failures; being gone counts as
        one. With ``wait`` it waits after its failures as usual. Other pages lose their failures.
        """
        labels, pages = as_ids(ids), self.pages
        _, rows = pages.known(labels)
        gone, pages.drawn_from = rows[pages.are_gone(rows)], None
        pages.lazy.pages["counted"][gone] = 0.0
        if pages.learner is not None and gone.size:
            pages.write_learned(gone)
        pages.weigh(gone)
        pages.allocated &= pages.values.apart
        waits = rows, flag("wait", wait), self.time
        ready(revive)(*pages.arguments, pages.values.value, *waits)
        renew_promises(pages, recount=gone.size > 0)
        return int(labels.size - rows.size)

    # Hosts

    def limit_hosts(
        self,
        hosts: ArrayLike | None = None,
        *,
        gap: float | None = None,
        most: float | None = None,
    ) -> None:
        """Limit the fetches of hosts; a limit that is not given stays.

        When a host opens, all pages that waited for it are compared again. So a host with many
        more good pages than fetches costs time in proportion to these pages.

        Args:
            hosts: labels of hosts; None for all present and future hosts.
            gap: least time from the end of a fetch of a host, and from its start, to the next.
            most: most fetches of a host at once; ``inf`` for no limit, or for one fetch if the
                host has a gap.

        Raises:
            ValueError: a limit is out of its range.
        """
        limits: dict[str, float] = {}
        if gap is not None:
            limits["gap"] = quantity("gap", gap)
        if most is not None:
            limits["most"] = NO_LIMIT if most == math.inf else min(whole("most", most, 1), NO_LIMIT)
        codes: Any = slice(None)
        if hosts is None:
            self.pages.host_limits |= limits
        else:
            codes = self.pages.host_codes(host_labels("hosts", hosts))
        for name, limit in limits.items():
            getattr(self.pages.choices, name)[codes] = limit
        ready(reopen)(self.pages.arguments[0])

    def hold(self, host: ArrayLike, until: float) -> None:
        """Set the time before which hosts are not fetched from; ``inf`` for never."""
        until = until if until == math.inf else real("until", until)
        codes = self.pages.host_codes(host_labels("host", host))
        self.pages.choices.held[codes] = until
        ready(reopen)(self.pages.arguments[0])

    def opens(self, host: str) -> float:
        """Return when a host's gap and :meth:`hold` allow a fetch; -inf for an unknown host."""
        code, choices = self.pages.hosts.get(host), self.pages.choices
        return -math.inf if code is None else float(max(choices.opens[code], choices.held[code]))
