"""Answer questions about pages: the best now, whether one is due, and their estimates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import ready
from crawl_envs.compiled.promises import DUE
from crawl_envs.types import IntArray
from policies.estimators.measured_freshness import MeasuredFreshness
from policies.live.scheduler.audits import Audits
from policies.live.scheduler.choices import hand_out, take, value_now
from policies.live.scheduler.describing import description, promises_at, stale, states_at, troubles
from policies.live.scheduler.pacing import Fetch, PacedScheduler
from policies.live.scheduler.page_promises import renew_promises
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.price import Price
from policies.live.scheduler.states import GONE, NEW, PARKED, READY, SENT, STATES, WAITING

LISTED = READY, NEW, SENT, WAITING, PARKED, GONE
"""The states of pages that :meth:`CrawlScheduler.why` counts, in this order."""
PROMISE_WORDS = (
    "; {promised} promises need {promised_share:.3g} of the bandwidth, {overdue} overdue, "
    "{late_fetches:g} fetches late so far; by at most {most_late:g}"
)
"""What it says of promises."""


class Asking(PacedScheduler):
    """The calls of a scheduler that hand out pages to fetch, and describe pages.

    Attributes:
        price: the crawl value from which on :meth:`ask` grants a page.
        audits: the audits, whose ``records()`` are the data of :meth:`freshness`; None without.
    """

    pages: PageTables
    price: Price
    audits: Audits | None = None

    # The best pages

    def _take(self, count: int) -> NDArray[Any]:
        pages = self.pages
        pages.allocate()
        rows = np.zeros(count, np.int64)
        if count or not len(pages):  # pages that are gone are forgotten in time
            audited = [] if self.audits is None or not count else self._audit(self.audits, count)
            state, now = (*pages.arguments, pages.values.value), self.time
            rows = rows[len(audited) :]
            rows = rows[: ready(take)(*state, now, rows, self.pace.balance)]
            self._pay(rows)
            rows = np.append(audited, rows) if audited else rows
            renew_promises(pages, rows)
            pages.forget()
        return pages.ids.ids(rows)

    def _audit(self, audits: Audits, count: int) -> list[int]:
        """Hand out up to ``count`` pages that are drawn for audits; return their rows."""
        state, rows = (*self.pages.arguments, self.pages.values.value), list[int]()
        for row in audits.draw():
            if not math.isnan(ready(value_now)(*state, self.time, row)):
                ready(hand_out)(*self.pages.arguments, self.time, row)
                self._pay(np.array([row]))
                rows.append(row)
            if len(rows) == count or self.pace.balance < 0.0:
                break
        return rows

    def _pay(self, rows: IntArray) -> None:
        """Take the fetches of pages that were handed out of the bandwidth and the cap."""
        spending, choices = self.pace.spending, self.pages.choices
        spend = rows.size if spending is None else float(choices.paid_cost[rows].sum())
        if self.audits is not None:
            self.audits.begin(rows)
        self.pace.taken += spend
        if spending is None:
            return
        spending.hand_out(rows.size, spend, self.time)
        choices.sent_period[rows] = spending.period

    def _next_chance(self) -> float:
        choices, times = self.pages.choices, [math.inf]
        if choices.opening_size[0]:
            times.append(float(choices.opening[choices.opening_host[0]]))
        if choices.due_size[0]:
            times.append(float(choices.due[choices.due_page[0]]))
        return min(times)

    @property
    def under_way(self) -> NDArray[Any]:
        """The ids of the pages that were handed out and are not reported yet."""
        return self.pages.ids.ids(np.flatnonzero(self.pages.choices.status == SENT))

    # A page that is asked for

    def ask(self, time: float, page_id: Any) -> Fetch:
        """Return whether a page may be fetched now; for programs that ask page by page.

        Such a program does not call :meth:`next`; it asks for a page whenever it needs the page.
        A page is granted if its crawl value reaches a price. The price falls while much saved
        bandwidth is left (:class:`policies.live.scheduler.price.Price`), so that the bandwidth
        goes to the pages of the largest values. ``burst`` must be at least the time of one fetch,
        and should be the time of 20. With a policy that allocates rates, a page is granted when
        it is due. A page that is due by its promise, or drawn for an audit, is granted by every
        policy. A granted page counts as handed out: its fetch must be reported.

        Args:
            time: the time of the question.
            page_id: the id of the page.

        Returns:
            The page if it is granted; else None, and the latest time to ask again.

        Raises:
            ValueError: the page is unknown or gone, or ``burst`` is too short.
        """
        row, pages, pace = self.pages.row(page_id), self.pages, self.pace
        if pages.values.apart and pace.most_saved < 1.0 + pace.mean_cost:
            raise ValueError(
                f"burst must be at least {pace.mean_cost / pace.bandwidth:g}, the time of a fetch, "
                f"where pages are asked for, got {pace.burst:g}"
            )
        pace.advance(time)
        pages.allocate()
        pace.limit(pace.most_saved)
        if pace.is_used_up or pace.is_capped:
            return Fetch(None, pace.ask_again(self._next_chance))
        is_drawn = self.audits is not None and row in self.audits.draw()
        value = float(ready(value_now)(*pages.arguments, pages.values.value, pace.time, row))
        is_granted = is_drawn or DUE <= value < math.inf
        if math.isnan(value) or not (is_granted or self._grants(value)):
            return Fetch(None, max(self._chance(row, value), pace.soon))
        ready(hand_out)(*pages.arguments, pace.time, row)
        self._pay(np.array([row]))
        renew_promises(pages, np.array([row]))
        return Fetch(page_id, pace.time)

    def _grants(self, value: float) -> bool:
        """Return whether :meth:`ask` grants a page of a crawl value; inf: a page without a copy."""
        if value == math.inf:
            return self.price.takes_new()
        return self.price.takes(value) if self.pages.values.apart else value >= 1.0

    def _chance(self, row: int, value: float) -> float:
        """Return the latest time at which a page that :meth:`ask` refused may be granted."""
        now, independent = self.time, self.pages.values.apart
        if value == math.inf:
            return (now if self.price.last_ask is None else self.price.last_ask) + self.price.span
        price = self.price.value if independent else 1.0
        due = float(description(self.pages, row, now, price)["due"])
        if math.isnan(value):  # its host has other fetches, or it waits
            return due if due > now else self.pace.ask_again(self._next_chance)
        full = now + (self.most_saved - self.allowance) / self.bandwidth
        return min(due, full) if value > 0.0 and independent else due

    # What is asked about pages

    def describe(self, page_id: Any, time: float | None = None) -> dict[str, Any]:
        """Return what is known of a page now, or at a time; ValueError if it is unknown.

        The dict has the page's columns by name; ``copy``, the time of its copy (None without one);
        ``signals``, their number since the copy; ``stale``, the probability that the copy is stale
        by the rates of changes and signals; ``state``; ``failures``; ``value``, its crawl value;
        ``due``, the time at which it may be fetched and its value reaches that of the pages
        fetched now, or the price of :meth:`ask`, if nothing else happens (``inf`` for never); and
        ``why``, the reason in words. With costs it also has ``cost``, and with promises
        ``most_interval`` and ``deadline``, the time at which its copy gets older than that.
        """
        row = self.pages.row(page_id, gone=True)
        self.pages.allocate()
        has_price = self.price.log is not None and self.pages.values.apart
        price = math.exp(self.price.log or 0.0) if has_price else None
        return description(self.pages, row, self._not_before_clock(time), price)

    def why(self) -> str:
        """Return a sentence that says why :meth:`next` has no page now, or that it has one."""
        counts, ask_again = states_at(self.pages, self.time), self.pace.ask_again(self._next_chance)
        states = ", ".join(f"{counts[k]} {STATES[k]}" for k in LISTED)
        reason = f"no page may be fetched before {ask_again:g}"
        if self.pace.is_capped:
            reason = f"the cap is used up until {ask_again:g}"
        elif self.pace.is_used_up:
            reason = f"the bandwidth is used up until {ask_again:g}"
        elif counts[READY] + counts[NEW]:
            reason = "there is a page to fetch"
        if facts := promises_at(self.pages, self.pages.living(), self.time):
            states += PROMISE_WORDS.format(**facts)
        return f"{reason}; pages: {states}"

    def overview(self, time: float | None = None) -> dict[str, Any]:
        """Return a summary of all pages now, or at a time; its cost grows with the number of pages.

        ``states``, the pages by state; ``freshness``, the importance-weighted probability that a
        copy is fresh, by the rates of changes and signals, None where no change rates are known;
        ``failing``, the pages whose last fetch failed; ``starved``, those whose copy is older than
        ten mean times between two fetches of a page; ``likely_stale``, those whose copy is stale
        with more than 95%; ``held``, the hosts of :meth:`hold`; ``allowance``, the cost of the
        fetches that may be made now.

        Where fetches have costs also ``spend``, their total cost; with a cap also
        ``period_spend``, reserved of it in this period, ``cap_left``, and ``overcharged``, the
        number of reports of a cost above ``max_cost``.

        With promises also ``promised``, the pages that have one; ``overdue``, those whose copy is
        older; ``promised_share`` of the bandwidth, above 1 if not all can be kept;
        ``late_fetches``, those made late; ``most_late``, the longest delay, also of overdue pages.
        """
        pages, now = self.pages, self._not_before_clock(time)
        pages.allocate()
        counts, rows = states_at(pages, now), pages.living()
        probability, weight = stale(pages, rows, now), pages.columns.get("importance")
        freshness = None
        if probability is not None and weight is not None and weight[rows].sum() > 0.0:
            freshness = float(1.0 - np.average(probability, weights=weight[rows]))
        troubled = troubles(pages, rows, probability, now, self.pace.fetch_rate)
        spending = self.pace.spending
        return {
            "states": dict(zip(STATES[1:], counts[1:].tolist(), strict=True)),
            "freshness": freshness,
            **{name: int(np.count_nonzero(which)) for name, which in troubled.items()},
            "held": int(np.count_nonzero(pages.choices.held > now)),
            "allowance": min(self.allowance, self.most_saved),
            **({} if spending is None else spending.overview(now)),
            **promises_at(pages, rows, now),
        }

    def freshness(
        self, since: float = -math.inf, until: float = math.inf, group: Any = None
    ) -> MeasuredFreshness:
        """Return the importance-weighted freshness that audits measured, with a band of 95%.

        It is the mean over the instants at which audits were drawn from ``since`` to ``until``, of
        all pages or of a ``group``. Pages without a copy count as stale. Audits without an answer,
        also those under way, widen the band. It holds for all ``until`` at once if ``since`` does
        not depend on what audits found; each ``since``, and each group, has its own 95%.

        Raises ValueError for an unknown group, a time that is no number, ``until`` before
        ``since``, if ``since`` is before the latest 100,000 audits, which are stored, and if
        ``audit_share`` was never above 0.
        """
        if self.audits is None:
            raise ValueError("audit_share must be > 0 for a measured freshness, got 0")
        return self.audits.measure(since, until, group)
