"""The slow, obvious twin of the live scheduler: one page and one rule at a time."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Page:
    """A page; ``row`` decides among equal values."""

    row: int
    parameters: dict
    host: object = None
    copy: float | None = None
    state: str = "ready"  # or new, sent, waiting, parked, gone
    sent: float = -math.inf
    lost: float = -math.inf  # when a fetch that is under way is lost
    fails: int = 0
    retry_at: float = -math.inf
    failure_time: float = -math.inf  # of the last fetch that was reported as failed or interrupted
    least: float = 0.0
    signals: list = field(default_factory=list)  # [time, source, latest time, spent]
    costs: int = 0  # of how many, at most 8, ``mean`` is the mean
    mean: float = 1.0
    cost: float = 1.0  # by which its value is divided
    paid: float = 0.0  # the cost that was expected of its fetch, 0 if it is reported
    period: float = math.nan  # of the cap, when it was handed out
    unreported: list = field(
        default_factory=list
    )  # expected costs of fetches before, without report
    begin: float = -math.inf  # reports of earlier times are of these
    reported: float = -math.inf  # the time of the latest fetch that was reported
    longest: float = math.inf  # its most_interval


@dataclass
class Host:
    gap: float = 0.0
    most: float = math.inf
    opens: float = -math.inf
    held: float = -math.inf
    busy: int = 0
    parked: list = field(default_factory=list)

    def is_open(self, time):
        most = 1 if self.most == math.inf and self.gap > 0.0 else self.most
        return max(self.opens, self.held) <= time and self.busy < most


class NaiveScheduler:
    """Answers as :class:`policies.live.scheduler.CrawlScheduler`, with a value of each page."""

    def __init__(
        self,
        value,
        bandwidth,
        *,
        timeout=1.0,
        new_share=0.5,
        retry=None,
        slack=(0.0,),
        cap=math.inf,
        cap_period=math.inf,
        max_cost=0.0,
        audit_share=0.0,
        seed=0,
    ):
        self.audit_share, self.seed, self.credit_of_audits, self.audits = audit_share, seed, 0.0, []
        self.cap, self.cap_period, self.max_cost = cap, cap_period, max_cost
        self.period, self.period_spend = -math.inf, 0.0
        self.known = {None: []}  # all costs, and those of each host
        self.spend, self.fetches, self.next_lookup = 0.0, 0, 1
        self.uses_costs, self.mean_known = cap < math.inf, max_cost or 1.0
        self.value, self.bandwidth, self.timeout = value, bandwidth, timeout
        self.promised = bandwidth * (1.0 - audit_share) * (1.0 + 1e-9)
        self.new_share, self.credit, self.allowance, self.time = new_share, 0.0, 0.0, 0.0
        self.retry, self.slack = retry or timeout, slack
        self.pages, self.hosts, self.line, self.waiting = {}, {}, [], {}
        self.limits = 0.0, math.inf
        self.promises = False  # there was one
        self.rate, self.share, self.wait, self.wait_cost, self.fetched = 0.0, 0.0, 0.0, 0.0, 0
        self.late_fetches, self.most_late = 0, 0.0

    def add(self, pages):
        pages = list(pages)
        for name in sorted({page.host for _, page, _ in pages} - {None}):
            self.hosts.setdefault(name, Host(*self.limits))
        for key, page, _ in sorted(pages, key=lambda each: -each[2]):
            assert key not in self.pages
            self.pages[key] = page
            self.make_ready(key)

    def more_needed(self, longest, costs, keys=()):
        """Return the bandwidth that a change of promises needs more, None if it is too much."""
        costs = [self.mean_cost() if math.isnan(cost) else cost for cost in costs]
        more = sum(cost / interval for cost, interval in zip(costs, longest, strict=True))
        more -= sum(self.pages[key].cost / self.pages[key].longest for key in keys)
        if self.promises and more > 0.0 and self.rate + more > self.promised:
            self.rate = self.needed()
        return None if more > 0.0 and self.rate + more > self.promised else more

    def promise(self, keys, longest, more):
        """Set the longest intervals of pages."""
        if not self.promises and min(longest) < math.inf:
            self.promises, self.wait_cost = True, self.mean_cost()
        for key, interval in zip(keys, longest, strict=True):
            self.pages[key].longest = float(interval)
        self.rate += more
        self.renew_lead()

    def needed(self):
        """Return the cost per unit of time that all promises need."""
        return sum(self.pages[key].cost / self.pages[key].longest for key in self.present())

    def renew_lead(self, cost=0.0, fetches=0):
        """Let the lead follow a choice; what all promises need is counted now and then."""
        if self.promises:
            cost += self.mean_cost() if fetches and self.audit_share else 0.0
            self.wait_cost, self.fetched = max(self.wait_cost, cost), self.fetched + fetches
            if fetches and self.fetched >= len(self.pages):
                self.wait_cost, self.fetched = max(cost, self.wait_cost / 2.0), 0
                self.rate = self.needed()
            self.wait = 2.0 ** math.ceil(math.log2(self.wait_cost)) / self.promised
            used = self.rate / self.promised
            if used > 1.0 >= self.share:
                self.rate = self.needed()
                used = self.rate / self.promised
            spare = math.floor(max(1.0 - used, 0.0) * 256.0) / 256.0
            self.shortening = min(1.0 / 32.0, spare)
            share = math.ceil(used / (1.0 - self.shortening) * 256.0) / 256.0
            self.share = min(share, 257.0 / 256.0)

    def is_due(self, page):
        """Return whether a page is due by its promise."""
        if page.longest == math.inf:
            return False
        limit = self.limit(page)
        lead = self.share * limit + self.wait
        return self.time - page.copy >= max(limit - lead, 0.0)

    def limit(self, page):
        """Return a page's longest interval, less its own small part."""
        part = math.fmod(page.row * 0.6180339887498949, 1.0)
        return page.longest * (1.0 - self.shortening * part)

    def host(self, page):
        return self.hosts.get(page.host)

    def expected(self, page):
        """Return what a fetch of a page costs, as far as that is known."""
        if page.costs:
            return page.mean
        known = self.known.get(page.host) or self.known[None]
        return sum(known) / len(known) if known else 1.0

    def learn_cost(self, page, cost):
        page.costs = min(page.costs + 1, 8)
        page.mean = cost if page.costs == 1 else page.mean + (cost - page.mean) / page.costs
        self.known[None].append(cost)
        if page.host is not None:
            self.known.setdefault(page.host, []).append(cost)

    def begin_costs(self, costs):
        """Until the first cost all are 1, and those of fetches that are under way are paid."""
        costs = [cost for cost in costs if not math.isnan(cost)]
        if costs and not self.uses_costs:
            self.uses_costs, self.mean_known = True, sum(costs) / len(costs)
            for page in self.pages.values():
                page.paid = float(page.state == "sent")
            self.spend = self.fetches = sum(page.paid for page in self.pages.values())
            self.allowance += 1.0 - min(self.mean_known, 1.0)

    def give_costs(self, keys, costs):
        for key, cost in zip(keys, costs, strict=True):
            if not math.isnan(cost):
                self.pages[key].costs = 0
                self.learn_cost(self.pages[key], cost)
        for key in keys:
            self.pages[key].cost = self.expected(self.pages[key])
        self.look_up()

    def settle(self, page, time, cost):
        """A fetch of a page ended, and its cost may be known."""
        if page is None or page.state == "gone":
            return
        is_late = time < page.begin
        if is_late and page.unreported:
            paid = sum(page.unreported) / len(page.unreported)
            page.unreported = [paid] * (len(page.unreported) - 1)
        elif not is_late and time > page.reported:
            page.reported = min(time, self.time + self.timeout)
            paid, page.paid = page.paid, 0.0
        else:
            return
        if math.isnan(cost):
            return
        self.learn_cost(page, cost)
        page.cost = self.expected(page)
        if paid:
            self.allowance -= cost - paid
            self.spend += cost - paid
            if not is_late and page.period == self.period:
                self.period_spend += cost - self.max_cost

    def look_up(self):
        """Values of pages without a cost follow when there are many more costs than before."""
        count = len(self.known[None])
        if count >= self.next_lookup:
            self.mean_known = sum(self.known[None]) / count
            self.next_lookup = min(2 * count, count + max(len(self.pages), 1))
            for page in self.pages.values():
                if page.state != "gone" and not page.costs:
                    page.cost = self.expected(page)
            self.rate = self.needed()

    def spend_at(self, time):
        """Return what is reserved of the cap in the period of a time."""
        capped = self.cap < math.inf
        return self.period_spend if capped and time // self.cap_period <= self.period else 0.0

    def mean_cost(self):
        return self.spend / self.fetches if self.fetches else self.mean_known

    def present(self):
        return [key for key, page in self.pages.items() if page.state != "gone"]

    def make_ready(self, key):
        page = self.pages[key]
        due = page.retry_at
        if page.copy is not None:
            due = max(due, page.copy + page.least)
        if due > self.time:
            page.state, self.waiting[key] = "waiting", due
        elif page.copy is not None:
            page.state = "ready"
        else:
            page.state = "new"
            self.line.append(key)

    def leave(self, key, end):
        """Take a page out of its state; a fetch of it ends then."""
        page = self.pages[key]
        host = self.host(page)
        if page.state == "sent" and host:
            host.busy -= 1
            host.opens = max(host.opens, end + host.gap)
        if page.state == "parked":
            host.parked.remove(key)
        self.line = [other for other in self.line if other != key]
        self.waiting.pop(key, None)
        page.state = None

    def remove(self, key):
        self.answer(self.pages[key])
        self.leave(key, self.time)
        self.pages.pop(key)

    def gone(self, key, time, cost=math.nan):
        page = self.pages.get(key)
        self.settle(page, time, cost)
        self.look_up()
        if self.is_old(page, time):
            return 1
        end = min(time, self.time + self.timeout)
        self.answer(page)
        self.leave(key, end)
        self.count_failure(page, end)
        page.state, page.signals, page.failure_time = "gone", [], -math.inf
        return 0

    def revive(self, key, wait):
        page = self.pages.get(key)
        if page is None:
            return 1
        if page.state != "gone":
            page.fails = 0
        if page.state != "gone" or not wait:
            page.retry_at = -math.inf
        was_gone = page.state == "gone"
        if page.state in ("gone", "waiting"):
            self.leave(key, self.time)
            self.make_ready(key)
        if was_gone and self.promises:
            self.rate = self.needed()
            self.renew_lead()
        return 0

    def reset_clock(self, time):
        """Take the clock back: what waits has as long to wait as before."""
        by, self.time = self.time - time, time
        for audit in self.pending():
            self.answer(audit.page)
        if time // self.cap_period < self.period:  # what it had spent is not known any more
            self.period, self.period_spend = time // self.cap_period, self.cap
        for page in self.pages.values():
            page.period = math.nan
        for key, page in self.pages.items():
            page.copy = None if page.copy is None else min(page.copy, time)
            for name in ("retry_at", "failure_time", "sent", "lost", "begin", "reported"):
                setattr(page, name, getattr(page, name) - by)
            if page.state == "waiting":
                least = -math.inf if page.copy is None else page.copy + page.least
                self.waiting[key] = max(page.retry_at, least)
            elif page.state == "ready":
                self.make_ready(key)
        for host in self.hosts.values():
            host.opens, host.held = host.opens - by, host.held - by
        self.renew_lead()

    def come_back(self, key, columns, host, copy):
        page = self.pages[key]
        page.parameters, page.host, page.copy, page.least = columns, host, copy, 0.0
        page.fails, page.retry_at, page.longest = 0, -math.inf, math.inf
        self.make_ready(key)

    def move(self, key, new, host=None):
        self.pages[key].host = host or self.pages[key].host
        self.pages = {new if k == key else k: page for k, page in self.pages.items()}
        self.line = [new if k == key else k for k in self.line]
        self.waiting = {new if k == key else k: due for k, due in self.waiting.items()}
        for host in self.hosts.values():
            host.parked = [new if k == key else k for k in host.parked]

    def set_least(self, key, least):
        page = self.pages[key]
        page.least = least
        if page.state in ("ready", "waiting"):
            self.waiting.pop(key, None)
            self.make_ready(key)

    def hold(self, name, until):
        self.hosts.setdefault(name, Host(*self.limits)).held = until

    def advance(self, time):
        if time > self.time:
            self.allowance += self.bandwidth * (time - self.time)
            self.time = time

    def signal(self, key, time, source=0):
        page = self.pages.get(key)
        if page is None or page.state == "gone" or page.copy is None:
            return 1
        latest = min(time + self.slack[source], max(time, self.time, page.copy))
        if latest < page.copy or any(each[:2] == [time, source] for each in page.signals):
            return 1
        page.signals.append([time, source, latest, False])
        return 0

    def counts(self, page):
        """Return the numbers of signals by source that count for the copy."""
        unspent = [source for _, source, _, spent in page.signals if not spent]
        return [unspent.count(source) for source in range(len(self.slack))]

    def end(self, page, end):
        host = self.host(page)
        if host:
            host.busy -= page.state == "sent"
            host.opens = max(host.opens, min(end, self.time + self.timeout) + host.gap)

    def is_old(self, page, time):
        """Return whether a report changes nothing: the page is away, or its copy is not older."""
        away = page is None or page.state == "gone"
        return away or (page.copy is not None and time <= page.copy)

    def report(self, key, time, cost=math.nan, changed=None):
        page = self.pages.get(key)
        self.settle(page, time, cost)
        if self.is_old(page, time):
            return 1
        self.answer(page, changed, time)
        self.end(page, time)
        page.copy, page.fails, page.retry_at = time, 0, -math.inf
        for each in page.signals:
            each[3] |= each[2] <= time
        page.signals = [
            each
            for each in page.signals
            if not (each[2] <= time and each[0] + self.slack[each[1]] < time)
        ]
        if page.state != "parked":
            page.state = None  # the fetch has ended above
            self.leave(key, time)
            self.make_ready(key)
        return 0

    def count_failure(self, page, time):
        page.fails += 1
        page.retry_at = time + min(self.retry * 2.0 ** (page.fails - 1), 1024.0 * self.retry)

    def lose(self, page, time):
        if page.retry_at == -math.inf:
            page.retry_at = time  # the first loss since the copy is free
        else:
            self.count_failure(page, time)

    def fail(self, key, time, retry_at=None, counts=True, cost=math.nan):
        page = self.pages.get(key)
        latest = self.time + self.timeout
        self.settle(page, time, cost)
        if self.is_old(page, time) or min(time, latest) <= page.failure_time:
            return 1
        self.answer(page)
        time = page.failure_time = min(time, latest)
        state = page.state
        self.end(page, time)
        if state == "sent":
            page.state = None
        self.leave(key, time)
        if counts:
            self.count_failure(page, time)
        else:
            self.lose(page, time)
        page.retry_at = max(page.retry_at, -math.inf if retry_at is None else retry_at)
        self.make_ready(key)
        return 0

    def is_open(self, page):
        host = self.host(page)
        return host is None or host.is_open(self.time)

    def park(self, key):
        self.pages[key].state = "parked"
        self.host(self.pages[key]).parked.append(key)

    def choose(self):
        """Pages come first that are due; new ones are owed a share of all, up to one fetch."""
        credit = self.credit + self.new_share * bool(self.line)
        key, fresh = self.next_ready() if self.line and self.promises else None, None
        key = key if key is not None and self.is_due(self.pages[key]) else None
        if key is None and credit >= 1.0:
            key = fresh = self.next_new()
        credit = min(credit, 1.0) - (fresh is not None)
        for other in (self.next_ready, self.next_new):
            key = other() if key is None else key
        self.credit = self.credit if key is None else credit
        return key

    def next_new(self):
        while self.line:
            key = self.line.pop(0)
            if self.is_open(self.pages[key]):
                return key
            self.park(key)
        return None

    def next_ready(self):
        def rank(key):
            page = self.pages[key]
            if self.is_due(page):
                limit = self.limit(page)
                by = (self.time - page.copy) / limit if self.share > 0.5 else -page.copy - limit
                return 1, by, -page.row
            importance = page.parameters["importance"] / page.cost
            columns = {**page.parameters, "importance": importance}
            return 0, self.value(columns, self.time - page.copy, self.counts(page)), -page.row

        ready = [key for key, page in self.pages.items() if page.state == "ready"]
        for key in sorted(ready, key=rank, reverse=True):
            if self.is_open(self.pages[key]):
                return key
            self.park(key)
        return None

    def open_all(self):
        """Let the pages be chosen whose fetch is lost, whose wait is over, whose host opens."""
        sent = {k: p.lost for k, p in self.pages.items() if p.state == "sent"}
        for due, _, key in sorted(
            (t, self.pages[k].row, k) for k, t in (sent | self.waiting).items()
        ):
            page = self.pages[key]
            if due > self.time:
                break
            if page.state == "sent":
                self.lose(page, due)
            self.leave(key, due)
            self.make_ready(key)
        for host in sorted(self.hosts.values(), key=lambda each: max(each.opens, each.held)):
            if host.parked and host.is_open(self.time):
                keys, host.parked = host.parked, []
                for key in keys:
                    self.make_ready(key)

    def correct_clocks(self):
        for key, page in self.pages.items():
            if page.copy is not None and page.copy > self.time:
                page.copy = self.time
                if page.state == "waiting":
                    self.waiting.pop(key)
                    self.make_ready(key)
            for each in page.signals:
                each[2] = min(each[2], self.time)

    def next_batch(self, time, count):
        self.advance(time)
        self.allowance = min(self.allowance, 1.0 + (count - 1) * self.mean_cost())
        if self.allowance < 1.0 - 1e-9 or not self.pages:
            return []
        if self.spend_at(self.time) + self.max_cost > self.cap:
            return []
        self.correct_clocks()
        self.open_all()
        chosen = self.audit(count)
        while len(chosen) < count and self.allowance > 1.0 - 1e-9:
            if self.spend_at(self.time) + self.max_cost > self.cap:
                break
            key = self.choose()
            if key is None:
                break
            self.hand_out(key)
            chosen.append(key)
        self.renew_lead(sum(self.pages[key].paid for key in chosen), len(chosen))
        return chosen

    def hand_out(self, key):
        page = self.pages[key]
        if page.copy is not None and page.copy + page.longest < self.time:
            self.late_fetches += 1
            self.most_late = max(self.most_late, self.time - page.copy - page.longest)
        page.state, page.sent, page.lost = "sent", self.time, self.time + self.timeout
        if self.host(page):
            self.host(page).busy += 1
            host = self.host(page)
            host.opens = max(host.opens, self.time + host.gap)
        if self.cap < math.inf and self.time // self.cap_period > self.period:
            self.period, self.period_spend = self.time // self.cap_period, 0.0
        if page.paid:  # it has no report
            page.unreported.append(page.paid)
            page.begin = self.time - 1e-3 * self.timeout
        page.paid, page.period = page.cost, self.period
        self.allowance -= page.paid
        self.spend, self.fetches = self.spend + page.paid, self.fetches + 1
        self.period_spend += self.max_cost
        self.credit_of_audits += self.audit_share
        for audit in self.pending():
            if audit.page is page and audit.answer == "drawn":
                audit.answer, audit.unsure = "open", audit.time < self.time

    # Audits

    def pending(self):
        return [audit for audit in self.audits if audit.answer in ("drawn", "open")]

    def waiting_pages(self):
        """Return the pages that are drawn and not handed out yet, the oldest first."""
        pages = []
        for audit in self.pending():
            if audit.answer == "drawn" and all(audit.page is not page for page in pages):
                pages.append(audit.page)
        return pages

    def audit(self, count):
        """Hand out the pages that were drawn before and wait, then new ones while they are due."""
        for audit in self.pending():
            if audit.time + self.timeout <= self.time:
                self.answer(audit.page)
        chosen, waits = [], self.waiting_pages()
        while True:
            if len(chosen) == count or self.allowance <= 1.0 - 1e-9:
                return chosen
            if self.spend_at(self.time) + self.max_cost > self.cap:
                return chosen
            if waits:
                page = waits.pop(0)
            elif self.credit_of_audits >= 1.0 - 1e-9:
                page = self.draw()
            else:
                return chosen
            may = page.state == "ready" and self.is_open(page)
            if may and any(page is other for other in self.waiting_pages()):
                (key,) = (key for key, other in self.pages.items() if other is page)
                self.hand_out(key)
                chosen.append(key)
            while len(self.waiting_pages()) > 16:
                self.answer(self.waiting_pages()[0])

    def draw(self):
        """Draw a page; all that is noted of it is of this instant, except what its fetch finds."""
        self.credit_of_audits -= 1.0
        number = np.random.default_rng([self.seed, len(self.audits)]).random(513)
        (page,), others = self.by_importance(number[:1]), self.by_importance(number[1:257])
        beliefs = self.belief(page), sum(map(self.belief, others)) / 256.0
        answer = "open" if page.state == "sent" else "drawn"
        is_there = page.copy is not None
        answer = answer if is_there else "stale"
        self.audits.append(Audit(page, self.time, answer, beliefs, is_there))
        return page

    def by_importance(self, numbers):
        pages = [self.pages[key] for key in self.present()]
        pages.sort(key=lambda page: page.row)
        sums = list(itertools.accumulate(page.parameters["importance"] for page in pages))
        return [pages[bisect.bisect(sums, number * sums[-1])] for number in numbers]

    def belief(self, page):
        """Return the probability that a copy is stale."""
        if page.copy is None:
            return 1.0
        rate, own = page.parameters["change_rate"], page.parameters
        recall, false = np.atleast_1d(own["recall"]), np.atleast_1d(own["false_signal_rate"])
        level = rate * (1.0 - recall.sum()) * max(self.time - page.copy, 0.0)
        evidence = np.where(recall > 0.0, np.log1p(recall * rate / false), 0.0)
        level += sum(np.multiply(self.counts(page), np.clip(evidence, 1e-9, 700.0)))
        return 1.0 - math.exp(-level)

    def answer(self, page, changed=None, time=None):
        """End the audits of a page whose fetch, of a copy of a time, found something, or nothing.

        It may not hold for the draw if a change after the draw, or a fetch before it, explains it.
        """
        for audit in self.pending():
            if audit.page is page:
                if changed is not None:
                    audit.unsure &= audit.time < time if changed else time < audit.time
                audit.answer = {None: "missed", True: "stale", False: "fresh"}[changed]


@dataclass
class Audit:
    page: Page
    time: float
    answer: str
    beliefs: tuple
    unsure: bool = True
