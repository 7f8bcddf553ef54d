"""Which pages a repository's files are: their births, renames, returns and deaths, and names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from scripts.data.git.git_history import Touch

RETURN_DAYS = 30.0
"""A path that comes back within so many days is the page it was."""
INSIDE_WORDS = "_-+"
"""Besides letters and digits, and a dot between them, what does not end a word."""


class Death(NamedTuple):
    """When a page was removed: days by committer and by author, and lines removed."""

    time: float
    authored: float
    lines_removed: int


@dataclass(eq=False, slots=True)
class Page:
    """A file over time.

    ``path`` is its last path, ``first_path`` that at the window's start or at birth; ``blob`` its
    last content, ``first_blob`` that at the window's start or at birth. Times are days since the
    window's start.
    """

    path: str
    first_path: str
    blob: str
    first_blob: str
    born: float
    death: Death | None = None


class Event(NamedTuple):
    """A change of a page in one commit: ``old_blob`` is None for a creation."""

    page: Page
    old_blob: str | None
    lines_added: int
    lines_removed: int


class PageBook:
    """The pages of a repository while its main line is read, oldest commit first.

    Attributes:
        pages: all pages so far, without those that were gone for good when the window started.
        moved: renames since then.
        returned: returns of a path within ``RETURN_DAYS`` since then.
    """

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.returned = 0
        self.moved = 0
        self._live: dict[str, Page] = {}
        self._dead: dict[str, Page] = {}
        self._named: defaultdict[str, dict[Page, None]] = defaultdict(dict)
        self._longest = 0

    def start_window(self) -> None:
        """Forget the pages that are gone for good; the others begin as they are now."""
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
        """Enter one commit; return its creations and changes, and all pages that it touched.

        A rename keeps the page. A path that returns within ``RETURN_DAYS`` continues the page it
        was, as if it had never been gone. Deaths are told by the pages themselves.
        """
        before = [self._live.pop(touch.old_path or "", None) for touch in touches]
        for page in before:
            if page is not None:
                self._rename(page, None)
        events: list[Event] = []
        touched: list[Page] = []
        for touch, page in zip(touches, before, strict=True):
            if touch.new_path is None or touch.new_blob is None:
                if page is not None:
                    page.death = Death(time, authored, touch.lines_removed)
                    self._dead[page.path] = page
            else:
                page, event = self._continue(page, touch, touch.new_path, touch.new_blob, time)
                if event is not None:
                    events.append(event)
            if page is not None:
                touched.append(page)
        return events, touched

    def _continue(
        self, page: Page | None, touch: Touch, path: str, blob: str, time: float
    ) -> tuple[Page, Event | None]:
        """Give ``path`` its page: the one it was, one that returns, or a new one."""
        if page is None:
            page = self._returning(path, time)
        if page is None:
            page = Page(path, path, blob, blob, time)
            self.pages.append(page)
            event: Event | None = Event(page, None, touch.lines_added, 0)
        elif page.blob != blob:
            event = Event(page, page.blob, touch.lines_added, touch.lines_removed)
        else:
            event = None
        self.moved += page.path != path
        page.path, page.blob = path, blob
        self._live[path] = page
        self._rename(page, path)
        return page, event

    def _returning(self, path: str, time: float) -> Page | None:
        """The page that died at ``path`` a short while ago, alive again."""
        page = self._dead.pop(path, None)
        if page is None or page.death is None or time - page.death.time > RETURN_DAYS:
            return None
        page.death = None
        self.returned += 1
        return page

    def _rename(self, page: Page, path: str | None) -> None:
        """Enter the names of a page that is now at ``path``, or strike those that it had."""
        for name in _names(path or page.path):
            if path is None:
                self._named[name].pop(page, None)
                if not self._named[name]:
                    del self._named[name]
            else:
                self._named[name][page] = None
                self._longest = max(self._longest, len(name))

    def mentioned(self, subject: str) -> list[Page]:
        """The living pages whose file name, or its stem, stands in ``subject`` as a word.

        Case is ignored. A word ends where neither neighbours are letters, digits, underscores,
        hyphens, plus signs, or dots between such; names of several words are found as well.
        """
        text = subject.casefold()
        inside = [letter.isalnum() or letter in INSIDE_WORDS for letter in text]
        for index, letter in enumerate(text):
            if letter == "." and 0 < index < len(text) - 1:
                inside[index] = inside[index - 1] and inside[index + 1]
        ends = [index for index, both in enumerate(pairwise(inside), 1) if not all(both)]
        ends = [0, *ends, len(text)]
        found: dict[Page, None] = {}
        for first, start in enumerate(ends):
            for end in ends[first + 1 :]:
                if end - start > self._longest:
                    break
                found.update(self._named.get(text[start:end], {}))
        return list(found)


def _names(path: str) -> set[str]:
    """The file name of a path and its stem, in lower case."""
    name = PurePosixPath(path)
    return {name.name.casefold(), name.stem.casefold()}
