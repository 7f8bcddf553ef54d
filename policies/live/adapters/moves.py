"""Permanent redirects: a page gets the id to which it was moved, unless many pages were."""

from __future__ import annotations

import logging
from collections.abc import Container

from policies.live.adapters.copies import Copies
from policies.live.adapters.messages import Scheduler
from policies.live.adapters.outages import bring_back
from policies.live.urls import host_of, normal_url

logger = logging.getLogger(__name__)


class Moves:
    """The permanent redirects of a crawler since its start.

    A page is moved when two fetches in a row end at the same URL by 301 or 308 alone. If that URL
    is a page already, the old page is gone. Several pages that end at one URL are not moved, since
    a site that is down may redirect all pages to its front page; the first of them is moved back.
    A page that redirects to itself, in any spelling, stays.
    """

    def __init__(self, scheduler: Scheduler, copies: Copies) -> None:
        self.scheduler, self.copies = scheduler, copies
        self.ends: dict[str, str] = {}  # by page, where its last fetch ended
        self.sources: dict[str, str] = {}  # by end, the page that was redirected, "" for several
        self.renamed = set[str]()  # ends that are the ids of their sources now
        self.due: dict[str, tuple[str, str, float]] = {}  # by source, its id, the next, since when

    def note(self, page: str, end: str, now: float) -> None:
        """Record where a fetch of a page ended: the URL after permanent redirects, else ""."""
        before = self.ends.pop(page, "")
        if before:
            self.due.pop(page, None)
            if before != end and self.sources.get(before) == page:
                del self.sources[before]
        if not end or normal_url(end) == normal_url(page):
            return
        source = self.sources.pop(end, page)
        self.ends[page], self.sources[end] = end, source if source == page else ""
        if source == page and before == end:
            self.due[page] = page, end, now
        elif source not in ("", page):
            self.due.pop(source, None)
            self._undo(source, end, now)

    def make(self, until: float, under_way: Container[str]) -> None:
        """Move the pages that were redirected up to a time, except pages that are under way."""
        for source, (old, new, time) in [*self.due.items()]:
            if time > until or old in under_way:
                continue
            bring_back(self.scheduler, [new])
            if old in self.scheduler and new in self.scheduler:
                self.scheduler.report([old], time, "gone")
                logger.warning(f"{old} is gone: it redirects to {new}, which is a page")
            elif old in self.scheduler:
                if not self._rename(old, new):
                    continue
                self.renamed ^= {old if new == source else new}
                why = "others redirect there" if new == source else "it redirects there for good"
                logger.warning(f"{old} is {new} from now on, as {why}")
            del self.due[source]
            self.ends.pop(old, None)

    def _rename(self, old: str, new: str) -> bool:
        """Give a page and its copy a new id; return False if its state forbids a change of host."""
        host = None if host_of(new) == host_of(old) else host_of(new)
        if host is not None and self.scheduler.describe(old)["state"] in ("sent", "parked"):
            return False
        self.copies.put({new: self.copies[old]})  # the old one goes last: a kill loses neither
        self.scheduler.move([old], [new], host)
        self.copies.remove(old)
        return True

    def _undo(self, source: str, end: str, now: float) -> None:
        """Move a page back to its old id, since another page was redirected to the same end."""
        bring_back(self.scheduler, [source])
        if end in self.renamed and source not in self.scheduler:
            self.due[source] = end, source, now
