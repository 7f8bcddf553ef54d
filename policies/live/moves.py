"""Permanent redirects: a page gets the id to which it was moved, unless many pages were."""

from __future__ import annotations

import logging
from collections.abc import Container

from policies.live.copies import Copies
from policies.live.fetches import host_of
from policies.live.messages import Scheduler
from policies.live.outages import bring_back

logger = logging.getLogger(__name__)


class Moves:
    """The pages of a crawler that were redirected for good, since its start.

    A page is moved when two fetches in a row end at the same URL by answers 301 and 308 alone. If
    that URL is a page already, the old page is gone. Pages that share an end are not moved, as a
    site that is down may redirect all to its front page or a login; the first one is moved back.
    """

    def __init__(self, scheduler: Scheduler, copies: Copies) -> None:
        self.scheduler, self.copies = scheduler, copies
        self.ends: dict[str, str] = {}  # by page, where its last fetch ended
        self.sources: dict[str, str] = {}  # by end, the page that was redirected, "" for several
        self.due: dict[str, tuple[str, float]] = {}  # by page, its next id, and since when
        self.moved = set[str]()  # pages that have another id since then, or are gone

    def note(self, page: str, end: str, now: float) -> None:
        """Take note of a fetch of a page; ``end`` is "" unless it was redirected for good."""
        before = self.ends.pop(page, "")
        if before:
            self.due.pop(page, None)
        if not end:
            return
        self.ends[page] = end
        source = self.sources.setdefault(end, page)
        if source == page and before == end:
            self.due[page] = end, now
        elif source not in ("", page):
            self.sources[end] = ""
            self.due.pop(source, None)
            self._undo(source, end, now)

    def make(self, until: float, under_way: Container[str]) -> None:
        """Move the pages that were redirected until a time; its callbacks know them by old ids."""
        for page, (end, time) in [*self.due.items()]:
            if time <= until and page not in under_way and page in self.scheduler:
                bring_back(self.scheduler, [end])
                if end in self.scheduler:
                    self.scheduler.report([page], time, "gone")
                    logger.warning(f"{page} is gone: it redirects to {end}, which is a page")
                elif not self._move(page, end):
                    continue
                self.moved.add(page)
                del self.due[page]

    def _move(self, page: str, end: str) -> bool:
        """Move a page; return whether it was not handed out or parked, if its host changes."""
        host = host_of(end)
        try:
            self.scheduler.move([page], [end], None if host == host_of(page) else host)
        except ValueError:
            return False
        self.copies.put({end: self.copies[page]})
        self.copies.remove(page)
        logger.warning(f"{page} is {end} from now on, as it redirects there for good")
        return True

    def _undo(self, page: str, end: str, now: float) -> None:
        """Bring a page back that was not the only one which was redirected to an end."""
        bring_back(self.scheduler, [page])
        if page in self.moved and page not in self.scheduler:
            self.due[end] = page, now
        self.moved.discard(page)
