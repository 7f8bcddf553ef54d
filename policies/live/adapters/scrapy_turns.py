"""Requests that are made once: those with a body at once, steps of redirects when it is their turn.

A step of a redirect waits until its host may be asked. After one, the host's own pages have a turn.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from scrapy import Request

from policies.live.adapters.fetches import host_of
from policies.live.adapters.scrapy_hosts import Hosts


class Turns:
    """The requests of a crawl that are made once, by the times of their turns.

    Args:
        hosts: says when a host may be asked.
        longest: days that a redirect may wait for its turn; its page would be lost.
        is_wanted: whether the answer for a page or feed is still waited for.
    """

    def __init__(self, hosts: Hosts, longest: float, is_wanted: Callable[[str], bool]) -> None:
        self.hosts, self.longest, self.is_wanted = hosts, longest, is_wanted
        self.waiting: list[tuple[float, int, str, Request]] = []  # a heap
        self.number = 0
        self.steps: dict[str, int] = {}  # by page or feed, the redirect that goes on
        self.ends: dict[str, float] = {}  # by host, when it may be asked after the last redirect

    @property
    def due(self) -> float:
        """The time of the first turn; inf if there is none."""
        return self.waiting[0][0] if self.waiting else math.inf

    def add(self, request: Request, time: float, name: str = "") -> None:
        """Let a request be made at a time; ``name`` is the page or feed, of a redirect."""
        self.number += 1
        heapq.heappush(self.waiting, (time, self.number, name, request))
        if name:
            self.steps[name] = self.number

    def redirect(self, name: str, request: Request, now: float) -> float | None:
        """Take the next step of a redirect of a page or feed; return its turn if that is too late.

        A step that waits for the same page or feed is made no more.
        """
        gap, host = self.hosts.gap(request.url), host_of(request.url)
        before = sum(host_of(each.url) == host for *_, each in self.waiting)
        turn = now + gap * (1 + 2 * before)
        if turn - now > self.longest:
            return turn
        self.add(request, now + gap, name)
        return None

    def next(self, now: float) -> Request | None:
        """Return the request whose time has come, None without one."""
        while self.due <= now:
            _, number, name, request = heapq.heappop(self.waiting)
            if not name:
                return request
            if self.steps.get(name) != number:
                continue  # asked for anew
            del self.steps[name]
            if not self.is_wanted(name):
                continue
            host, opens = host_of(request.url), self.hosts.opens(request.url)
            if opens > now:
                if opens <= self.ends.get(
                    host, -math.inf
                ):  # no page was asked since: it is their turn
                    opens += 0.5 * self.hosts.gap(request.url)
                self.add(request, opens, name)
                continue
            self.hosts.ask_alone(request.url, now)
            self.ends[host] = self.hosts.opens(request.url)
            return request
        return None
