"""Follow pages through the history of files: births, renames, returns, deaths, and names."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from scripts.data.git.git_history import Touch

RETURN_DAYS = 30.0
"""Largest number of days after which a removed path that returns is the same page."""
WORD = re.compile(r"[\w+-]+(?:\.[\w+-]+)*")
"""A word: letters, digits, underscores, hyphens, plus signs, and dots between them."""


class Death(NamedTuple):
    """Removal of a page: day by the committer's and the author's clock, and lines removed."""

    time: float
    authored: float
    lines_removed: int


@dataclass(eq=False, slots=True)
class Page:
    """A file that is followed over time.

    ``path`` and ``blob`` are its last path and content. ``first_path`` and ``first_blob`` are its
    path and content at the window's start or at birth. Times are days since the window's start.
    """

    path: str
    first_path: str
    blob: str
    first_blob: str
    born: float
    death: Death | None = None


class Event(NamedTuple):
    """A change of a page in a commit; ``old_blob`` is None for a creation."""

    page: Page
    old_blob: str | None
    lines_added: int
    lines_removed: int


class PageBook:
    """The pages of a repository, updated commit by commit, the oldest first.

    Attributes:
        pages: all pages so far, except those removed for good before the window.
        moved: number of renames in the window.
        returned: number of returns of a path within ``RETURN_DAYS`` in the window.
    """

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.returned = 0
        self.moved = 0
        self._live: dict[str, Page] = {}
        self._dead: dict[str, Page] = {}
        self._named: defaultdict[str | tuple[str, str], dict[Page, None]] = defaultdict(dict)
        self._longest = 0

    def start_window(self) -> None:
        """Drop pages that are gone for good; record path and content of the others as the first."""
        self._dead = {
            path: page
            for path, page in self._dead.items()
            if page.death is not None and page.death.time > -RETURN_DAYS
        }
        self.pages = sorted(
            dict.fromkeys((*self._live.values(), *self._dead.values())),
            key=lambda page: (page.path, page.born),
        )
        self.moved = self.returned = 0
        for page in self.pages:
            page.first_path, page.first_blob = page.path, page.blob

    def enter(
        self, touches: list[Touch], time: float, authored: float
    ) -> tuple[list[Event], list[Page]]:
        """Process a commit; return its creations and changes, and all pages that it touched.

        A rename keeps the page. A path that returns within ``RETURN_DAYS`` is the same page,
        without a gap. Deaths are attributes of the pages.
        """
        before = [self._live.pop(touch.old_path or "", None) for touch in touches]
        for previous in filter(None, before):
            for name in _names(previous.path):
                del self._named[name][previous]
        events: list[Event] = []
        touched: list[Page] = []
        for touch, page in zip(touches, before, strict=True):
            if touch.new_path is not None and touch.new_blob is not None:
                page, event = self._continue(page, touch, touch.new_path, touch.new_blob, time)
                events += [event] if event else []
            elif page is not None:
                page.death = Death(time, authored, touch.lines_removed)
                self._dead[page.path] = page
            touched += [page] if page else []
        return events, touched

    def _continue(
        self, page: Page | None, touch: Touch, path: str, blob: str, time: float
    ) -> tuple[Page, Event | None]:
        """Return the page that has ``path`` now (same, returned or new), and its change, if any."""
        dead = self._dead.pop(path, None) if page is None else None
        if dead is not None and dead.death is not None and time - dead.death.time <= RETURN_DAYS:
            page, dead.death = dead, None
            self.returned += 1
        event = None
        if page is None:
            page = Page(path, path, blob, blob, time)
            self.pages.append(page)
            event = Event(page, None, touch.lines_added, 0)
        elif page.blob != blob:
            event = Event(page, page.blob, touch.lines_added, touch.lines_removed)
        self.moved += page.path != path
        page.path, page.blob = path, blob
        self._live[path] = page
        for name in _names(path):
            self._named[name][page] = None
        parts = PurePosixPath(path.casefold()).parts[-2:]
        self._longest = max(self._longest, *map(len, parts))
        return page, event

    def mentioned(self, subject: str) -> list[Page]:
        """Return the living pages whose file name or stem is in ``subject`` as one or more words.

        If several living pages share the name, ``subject`` must also contain the name of the
        page's directory. Case is ignored.
        """
        text = subject.casefold()
        inside = {
            end for word in WORD.finditer(text) for end in range(word.start() + 1, word.end())
        }
        ends = [end for end in range(len(text) + 1) if end not in inside]
        phrases = dict.fromkeys(
            text[start:end]
            for after, start in enumerate(ends, 1)
            for end in ends[after : bisect_right(ends, start + self._longest)]
        )
        pages: dict[Page, None] = {}
        for name in phrases:
            if len(named := self._named.get(name, {})) < 2:
                pages |= named
                continue
            for directory in phrases:
                pages |= self._named.get((name, directory), {})
        return list(pages)


def _names(path: str) -> set[str | tuple[str, str]]:
    """Return a page's file name and stem in lower case, each alone and with the directory."""
    lower = PurePosixPath(path.casefold())
    names = {lower.name, lower.stem}
    return {*names, *((name, lower.parent.name) for name in names)}
