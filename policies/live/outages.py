"""Outages: while nearly all pages of a host fail, none of them counts as deleted.

A host is down when 10 of its pages in a row begin to fail, all but one of a host with fewer, at
least 3: by any status but 2xx and 304, or without an answer. One page may be answered well. Then no
page of it is gone, and those that were gone since the first failure come back. If no page is
answered, the host is held and asked for one page after ``retry``, and twice as long after each
failure, up to a day. An outage ends when a page that failed or another one is answered well: all
that failed or were gone in it are due then. After a week its missing pages count as deleted.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from policies.live.messages import Scheduler

MAX_RUN, MIN_RUN = 10, 3
MAX_FAILURES = 5
"""Answers 404 in a row after which a page is gone though nothing of its host was answered since."""
MAX_HOLD, MAX_OUTAGE = 1.0, 7.0
"""Days between two fetches of a host that is down, and of an outage."""
MAX_HOSTS = 10_000
logger = logging.getLogger(__name__)


@dataclass
class Host:
    """What a host has answered of late."""

    failing: dict[str, float] = field(default_factory=dict)  # pages, since when
    run: int = 0  # pages in a row that began to fail, the first of them at ``begin``
    begin: float = math.inf
    page: str = ""  # the only one that is answered well in this run
    good: float = -math.inf  # time of the last good answer
    is_down: bool = False
    wait: float = 0.0  # between two fetches while it is down, the last one at ``asked``
    asked: float = -math.inf


class Outages:
    """The hosts of a crawler, which is left alone for ``max_retry_after`` days at most."""

    def __init__(self, scheduler: Scheduler, max_retry_after: float = 1.0) -> None:
        self.scheduler, self.max_retry_after = scheduler, max_retry_after
        self.hosts: defaultdict[str, Host] = defaultdict(Host)

    def note(self, name: str, page: str, is_ok: bool, sent: float, now: float) -> None:
        """Take note of the answer for a page of a host, before it is reported."""
        host = self.hosts[name] = self.hosts.pop(name, Host())  # the last of all
        if len(self.hosts) > MAX_HOSTS:
            del self.hosts[next(iter(self.hosts))]
        if is_ok:
            host.good = max(host.good, sent)
            if host.failing.pop(page, None) is not None or host.page not in ("", page):
                self._end(name, host, now)
                host.run, host.page = 0, ""
            elif host.run:
                if host.is_down and not host.page:
                    self.scheduler.hold(name, now)
                host.page = page
            return
        if page not in host.failing:
            host.failing[page] = sent
            host.run, host.begin = host.run + 1, host.begin if host.run else sent
        if host.is_down:
            self.ask(name, now, 2.0) if sent >= host.asked else None
        elif MIN_RUN <= host.run >= min(MAX_RUN, self.scheduler.pages.count(name) - 1):
            self._begin(name, host, now)

    def ask(self, name: str, now: float, factor: float = 1.0) -> None:
        """Hold a host that is down, as one page of it is fetched; ``factor`` is of its wait."""
        host = self.hosts[name]
        if host.is_down and not host.page and now < host.begin + MAX_OUTAGE:
            host.wait, host.asked = min(factor * host.wait, MAX_HOLD), now
            self.scheduler.hold(name, max(self.scheduler.opens(name), now + host.wait))

    def is_gone(self, name: str, page: str, status: int, failures: int, now: float) -> bool:
        """Return whether a page is gone, by the status that was noted last and failures before."""
        host = self.hosts[name]
        enough = 1 if host.good > host.failing[page] else MAX_FAILURES - 1
        gone = status == 410 or (status == 404 and failures >= enough)
        if gone and not host.is_down:
            del host.failing[page]
        return gone and not (host.is_down and now < host.begin + MAX_OUTAGE)

    def _lost(self, name: str, host: Host) -> list[str]:
        timeout = float(self.scheduler.pages.choices.lines["timeout"][0])
        lost: list[str] = self.scheduler.pages.failed_since(name, host.begin - timeout).tolist()
        return lost

    def _begin(self, name: str, host: Host, now: float) -> None:
        host.is_down, host.wait = True, float(self.scheduler.pages.choices.lines["retry"][0])
        bring_back(self.scheduler, self._lost(name, host))
        self.ask(name, now)
        logger.warning(f"{name} is down: {host.run} of its pages in a row fail; they wait")

    def _end(self, name: str, host: Host, now: float) -> None:
        if host.is_down:
            if lost := self._lost(name, host):
                self.scheduler.revive(lost)
            self.scheduler.hold(name, now)
            host.failing, host.is_down = dict.fromkeys(host.failing, now), False
            logger.warning(f"{name} is back: {len(lost)} pages that failed or were gone are due")


def bring_back(scheduler: Scheduler, urls: Sequence[str], wait: bool = False) -> None:
    """Let those of some pages come back that are gone, as by ``revive``."""
    if gone := [url for url in urls if url not in scheduler]:
        scheduler.revive(gone, wait)
