"""Read the history of a window of a repository's main line, commit by commit."""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from agents.progress import tracked
from scripts.data.git.git_history import Commit, Link, Repository, blob_reader
from scripts.data.git.page_histories import RETURN_DAYS, Page, PageBook
from scripts.data.git.versions import FragmentBook, Version, jaccard_distance, read_version

DAY = 86400.0
TIE = 1e-6
"""Days that separate commits of equal time."""
DEFAULT_DAYS = 1096
MAX_DAYS = 36_525
"""Largest length of a window in days: a century."""
CACHED_VERSIONS = 256
"""Number of versions of pages kept in memory, each of at most 1.4 MB by default."""

VersionOf = Callable[[str], Version | None]
"""A function that returns the version of a blob, given its hash; None if it is missing."""
Missing = dict[str, tuple[str, str]]
"""Path and commit of each missing version, by blob."""


class Change(NamedTuple):
    """A row of the table of changes; ``staleness`` is None if a version is missing."""

    page: Page
    time: float
    authored: float
    kind: str
    lines_added: int
    lines_removed: int
    staleness: float | None


class Announcement(NamedTuple):
    """A commit seen as a signal: touched pages, other touched paths, and mentioned pages."""

    time: float
    authored: float
    touched: list[Page]
    other_paths: list[str]
    mentioned: list[Page]


class Window(NamedTuple):
    """The days of the main line that are recorded.

    ``links`` is the whole main line with ``times`` in days since the window's start; indices
    ``first`` to ``stop`` (exclusive) are in the window.
    """

    start: datetime.date
    days: float
    links: list[Link]
    times: list[float]
    first: int
    stop: int
    reordered: int

    def authored(self, index: int) -> float:
        """Return the author's time of commit ``links[index]``, in days since the window's start."""
        return (self.links[index].authored - midnight(self.start)) / DAY


class History(NamedTuple):
    """Pages, changes and signals of the window.

    ``num_fragments`` has all recorded pages, with None if fragments are not counted; ``fragments``
    is None if they are not recorded.
    """

    book: PageBook
    changes: list[Change]
    announcements: list[Announcement]
    num_fragments: dict[Page, int | None]
    fragments: FragmentBook | None


def midnight(date: datetime.date) -> float:
    """Return the start of a date (UTC) in seconds since 1970."""
    return datetime.datetime(date.year, date.month, date.day, tzinfo=datetime.UTC).timestamp()


def _utc_date(seconds: float) -> datetime.date:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date()


def monotone_times(links: Sequence[Link], origin: float) -> tuple[list[float], int]:
    """Return strictly increasing times of commits in days since ``origin``, and a count.

    The count is the number of commits that were dated before their predecessors.
    """
    times: list[float] = []
    latest, reordered = -math.inf, 0
    for link in links:
        reordered += link.committed < latest
        latest = max(latest, link.committed)
        time = (latest - origin) / DAY
        times.append(max(time, times[-1] + TIE) if times else time)
    return times, reordered


def choose_window(
    links: list[Link], start: datetime.date | None, days: float | None, max_days: int = DEFAULT_DAYS
) -> Window:
    """Return the days to record: by default the last ``max_days`` up to the last commit.

    Raises:
        ValueError: ``days`` is not positive, or no commit lies in the window.
    """
    if not links:
        raise ValueError("--subdir, --include and --exclude must select files, got none")
    if days is not None and not 0.0 < days <= MAX_DAYS:
        bound = f"<= {MAX_DAYS}" if days > MAX_DAYS else "> 0"
        raise ValueError(f"days must be a number {bound}, got {days!r}")
    seconds = [link.committed for link in links]
    first_day, last_day = map(_utc_date, (min(seconds), max(seconds)))
    if start is None:
        back = max_days if days is None else math.ceil(days)
        start = max(first_day, last_day - datetime.timedelta(days=back - 1))
    if days is None:
        days = max(float((last_day - start).days + 1), 1.0)
    times, reordered = monotone_times(links, midnight(start))
    first, stop = bisect_left(times, 0.0), bisect_right(times, days)
    if first == stop:
        raise ValueError(
            f"the {days:g} days from {start} must have a commit, got none; the main line runs from "
            f"{first_day} to {last_day}"
        )
    return Window(start, days, links, times, first, stop, reordered)


def missing_versions(repository: Repository, window: Window) -> Missing:
    """Return the versions that a window needs and the clone lacks.

    Needed are versions that exist at the window's start, all that commits touch from
    ``RETURN_DAYS`` before it, and those that git compares to detect earlier renames.
    """
    present = repository.blobs()
    absent: Missing = {}
    needed: set[str] = set()
    at_path: dict[str | None, str] = {}
    commits = repository.commits(window.links[window.stop - 1].hash, contents=False)
    for index, commit in enumerate(commits):
        if index == window.first:
            needed.update(at_path.values())
        added = any(touch.old_path is None for touch in commit.touches)
        removed = any(touch.new_path is None for touch in commit.touches)
        is_needed = window.times[index] > -RETURN_DAYS or (added and removed)
        for touch in commit.touches:
            at_path.pop(touch.old_path, None)
        for old_path, new_path, old_blob, new_blob, *_ in commit.touches:
            for path, blob in ((old_path, old_blob), (new_path, new_blob)):
                if path is not None and blob is not None and blob not in present:
                    absent.setdefault(blob, (path, commit.hash))
                    needed |= {blob} if is_needed else set()
            if new_blob in absent:
                at_path[new_path] = new_blob
    return {blob: origin for blob, origin in absent.items() if blob in needed}


def read_history(
    repository: Repository, window: Window, fragment_modulus: int, max_bytes: int, missing: Missing
) -> History:
    """Return the pages, changes and signals of a window, read from the main line's commits.

    Only fragments of shingles divisible by ``fragment_modulus`` are kept; 0 keeps none. If versions
    are ``missing``, only renames with equal content are detected, and lines are not counted.

    Raises:
        ValueError: git fails.
    """
    book = PageBook()
    fragments = FragmentBook(fragment_modulus) if fragment_modulus else None
    history = History(book, [], [], {}, fragments)
    with blob_reader(repository) as read:

        @lru_cache(CACHED_VERSIONS)
        def version_of(blob: str) -> Version | None:
            return None if blob in missing else read_version(read(blob, max_bytes))

        commits = _commits(repository, window, contents=not missing)
        for index, commit in zip(tracked(range(window.stop), "commits"), commits, strict=True):
            link, time = window.links[index], window.times[index]
            if commit.hash != link.hash:
                raise ValueError(f"commit must be {link.hash}, got {commit.hash} from git")
            if index == window.first:
                book.start_window()
            if index < window.first:
                book.enter(commit.touches, time, window.authored(index))
            else:
                _enter(history, commit, time, window.authored(index), version_of)
        recorded = [page for page in book.pages if page.death is None or page.death.time >= 0.0]
        for page in tracked(recorded, "content at the start"):
            first = version_of(page.first_blob) if fragments else None
            history.num_fragments[page] = None if first is None else int(first.shingles.size)
    return history


def _commits(repository: Repository, window: Window, contents: bool) -> Iterator[Commit]:
    """Yield the commits up to the window's end; lines are counted only within the window."""
    before = window.links[window.first - 1].hash if window.first else None
    if before is not None:
        yield from repository.commits(before, lines=False, contents=contents)
    yield from repository.commits(window.links[window.stop - 1].hash, before, contents=contents)


def _enter(
    history: History, commit: Commit, time: float, authored: float, version_of: VersionOf
) -> None:
    """Add the changes and the signal of a commit in the window to the history."""
    events, touched = history.book.enter(commit.touches, time, authored)
    fragments = history.fragments
    for page, old_blob, added, removed in events:
        kind, staleness = ("creation", 1.0) if old_blob is None else ("content", None)
        old = None if old_blob is None else version_of(old_blob)
        new = version_of(page.blob) if fragments or old is not None else None
        if old is not None and new is not None:
            kind = "whitespace" if old.ink == new.ink else "content"
            staleness = jaccard_distance(old, new)
        if fragments and (new is None or (old is None and old_blob is not None)):
            fragments.incomplete.add(page)
        elif fragments and new is not None:
            fragments.enter(page, old, new, time)
        history.changes.append(Change(page, time, authored, kind, added, removed, staleness))
    other_paths = [
        path
        for touch in commit.touches
        for path, blob in ((touch.old_path, touch.old_blob), (touch.new_path, touch.new_blob))
        if path is not None and blob is None
    ]
    mentioned = history.book.mentioned(commit.subject)
    history.announcements.append(Announcement(time, authored, touched, other_paths, mentioned))
