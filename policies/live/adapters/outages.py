"""Outages: a 404 or 410 counts as a deletion only while the host answers other pages.

The first failure of a page is never a deletion. A later 404 or 410 is one if the host has answered
enough other pages since then: more than half as many as began to fail within a week. After a week
of failures it is one in any case. Only pages that have a copy, or get no answer, count as failing:
new addresses that never existed are no sign of an outage.

A host is down when five such pages in a row begin to fail, by any status except 2xx and 304. It is
held, and asked for one page after ``retry``, then after twice that, up to six hours. Each time it
is another page; pages that failed before say nothing. The first good answer ends the outage, and
all pages that failed since its start are due.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from policies.live.adapters.messages import Scheduler

MIN_RUN = 5
"""Number of pages in a row that must begin to fail until their host counts as down."""
MAX_HOLD, MAX_OUTAGE = 0.25, 7.0
"""Most days between two fetches of a host that is down; days until a missing page is deleted."""
MAX_GOOD, MAX_HOSTS = 1000, 10_000
logger = logging.getLogger(__name__)


@dataclass
class Failing:
    """A page whose last fetch failed."""

    since: float
    counts: bool  # it has a copy, or its host did not answer
    is_revived: bool = False


@dataclass
class Host:
    """The recent answers of a host."""

    good: dict[str, float] = field(default_factory=dict)  # the last good answer, by page
    failing: dict[str, Failing] = field(default_factory=dict)
    run: int = 0  # pages in a row that began to fail, the first of them at ``begin``
    begin: float = math.inf
    wait: float = 0.0  # between two fetches while the host is down, the last one at ``last_fetch``
    last_fetch: float = -math.inf
    held_until: float = math.nan


class Outages:
    """Tells from the answers of a crawler's hosts which hosts are down and which pages are gone."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.hosts: defaultdict[str, Host] = defaultdict(Host)

    def note(
        self, name: str, page: str, is_ok: bool, sent: float, now: float, is_silent: bool = False
    ) -> None:
        """Record the outcome of a fetch of a host's page; ``is_silent`` if no answer came."""
        host = self.hosts[name] = self.hosts.pop(name, Host())  # the last of all
        if len(self.hosts) > MAX_HOSTS:
            del self.hosts[next(iter(self.hosts))]
        if is_ok:
            self._note_good(name, host, page, sent, now)
        else:
            if page not in host.failing:
                counts = is_silent or self._has_copy(page)
                host.failing[page] = Failing(sent, counts)
                host.begin = host.begin if host.run else sent
                host.run += counts
            self._note_failure(name, host, page, sent, now)

    def _note_good(self, name: str, host: Host, page: str, sent: float, now: float) -> None:
        host.good.pop(page, None)
        host.good[page] = sent
        if len(host.good) > MAX_GOOD:
            del host.good[next(iter(host.good))]
        is_back, begin, host.run = host.failing.pop(page, None) is not None, host.begin, 0
        if host.wait:
            host.wait = 0.0
            self._release(name, host, now)
            lost = [page for page, failing in host.failing.items() if failing.since >= begin]
            logger.warning(f"{name} is back: {len(lost)} pages that failed are due")
        elif is_back:
            lost = [page for page, failing in host.failing.items() if not failing.is_revived]
        else:
            return
        for failing in lost:
            host.failing[failing].is_revived = True
        if lost:
            self.scheduler.revive(lost)

    def _has_copy(self, page: str) -> bool:
        is_known = page in self.scheduler
        return is_known and self.scheduler.describe(page)["copy"] is not None

    def _note_failure(self, name: str, host: Host, page: str, sent: float, now: float) -> None:
        if host.wait and host.failing[page].since < host.begin:
            self._release(name, host, now)  # ask for another page
        elif host.wait and sent >= host.last_fetch:
            host.wait = max(host.wait, min(2.0 * host.wait, MAX_HOLD))
            self.ask(name, now)
        elif not host.wait and host.run >= MIN_RUN:
            host.wait = float(self.scheduler.pages.choices.lines["retry"][0])
            self.ask(name, now)
            logger.warning(f"{name} is down: {host.run} of its pages in a row fail; they wait")

    def _release(self, name: str, host: Host, now: float) -> None:
        if self.scheduler.opens(name) == host.held_until:  # else others hold it
            self.scheduler.hold(name, now)

    def ask(self, name: str, now: float) -> None:
        """Send no further requests to a host that is down while one of its pages is fetched."""
        host = self.hosts[name]
        if host.wait:
            host.last_fetch, until = now, now + host.wait
            if until > self.scheduler.opens(name):
                self.scheduler.hold(name, until)
                host.held_until = until

    def is_gone(self, name: str, page: str, status: int, sent: float, now: float) -> bool:
        """Return whether a failed page counts as deleted; call :meth:`note` before this."""
        host, week = self.hosts[name], now - MAX_OUTAGE
        since = host.failing[page].since
        if status not in (404, 410) or sent <= since:
            return False
        bad = sum(failing.counts and failing.since > week for failing in host.failing.values())
        good = sum(time > since for time in host.good.values())
        return since < week or good >= min(bad // 2 + 1, MAX_GOOD // 2)

    def next_turn(self, name: str, page: str, now: float) -> float:
        """Return until when a failed page waits, so that other pages of a down host are tried."""
        host = self.hosts[name]
        return now + (4.0 if host.failing[page].since >= host.begin else 16.0) * host.wait

    def forget(self, name: str, page: str) -> None:
        """Forget the failures of a page that is gone."""
        self.hosts[name].failing.pop(page, None)


def bring_back(scheduler: Scheduler, urls: Sequence[str], wait: bool = False) -> None:
    """Revive those of some pages that a scheduler does not have or counts as gone."""
    if gone := [url for url in urls if url not in scheduler]:
        scheduler.revive(gone, wait)
