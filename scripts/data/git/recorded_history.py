"""History of the recorded window of a repository's main line, read commit by commit."""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from scripts.data.git.fragment_spells import FragmentBook
from scripts.data.git.git_history import BlobReader, Commit, Link, Repository, blob_reader, commits
from scripts.data.git.page_histories import Page, PageBook
from scripts.data.git.shingles import Version, jaccard_distance, read_version

DAY = 86400.0
TIE = 1e-6
"""Days between commits of equal time."""
DEFAULT_DAYS = 1096
BLOB_BYTES = 1 << 20
"""Bytes of a file that are read."""
CACHED_SHINGLES = 4_000_000


class Change(NamedTuple):
    """One row of the table of changes, with the page instead of its number."""

    page: Page
    time: float
    authored: float
    kind: str
    lines_added: int
    lines_removed: int
    staleness: float


class Announcement(NamedTuple):
    """A commit as signal: pages touched, paths of other files touched, and pages mentioned."""

    time: float
    authored: float
    touched: list[Page]
    others: list[str]
    mentioned: list[Page]


class Window(NamedTuple):
    """The recorded window of the main line.

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
        """Return the author's time of a commit, in days since the window's start."""
        return (self.links[index].authored - midnight(self.start)) / DAY


class Versions:
    """Versions of blobs, with a cache of the most recent ones."""

    def __init__(self, reader: BlobReader) -> None:
        self._reader = reader
        self._kept: OrderedDict[str, Version] = OrderedDict()
        self._size = 0

    def __call__(self, blob: str) -> Version:
        """Return the version of a blob."""
        if blob in self._kept:
            self._kept.move_to_end(blob)
            return self._kept[blob]
        version = read_version(self._reader.read(blob, BLOB_BYTES))
        self._kept[blob] = version
        self._size += version.shingles.size + 100
        while self._size > CACHED_SHINGLES and len(self._kept) > 1:
            self._size -= self._kept.popitem(last=False)[1].shingles.size + 100
        return version


class History(NamedTuple):
    """Contents of the window."""

    book: PageBook
    changes: list[Change]
    announcements: list[Announcement]
    num_fragments: dict[Page, int]
    fragments: FragmentBook


def midnight(date: datetime.date) -> float:
    """Return the start of a date (UTC) in seconds since 1970."""
    return datetime.datetime(date.year, date.month, date.day, tzinfo=datetime.UTC).timestamp()


def monotone_times(links: Sequence[Link], origin: float) -> tuple[list[float], int]:
    """Return each commit's time in days since ``origin``, strictly increasing.

    Also returns how many commits were dated before their predecessors.
    """
    times: list[float] = []
    latest, reordered = -math.inf, 0
    for link in links:
        reordered += link.committed < latest
        latest = max(latest, link.committed)
        time = (latest - origin) / DAY
        times.append(max(time, times[-1] + TIE) if times else time)
    return times, reordered


def choose_window(links: list[Link], start: datetime.date | None, days: float | None) -> Window:
    """Choose the window: by default up to the last commit's day, at most ``DEFAULT_DAYS`` long.

    Raises:
        ValueError: ``days`` is not positive, or no commit lies in the window.
    """
    if not links:
        raise ValueError("no commit touches the folders named by --subdir")
    if days is not None and not (math.isfinite(days) and days > 0.0):
        raise ValueError(f"days must be a number > 0, got {days!r}")
    utc = datetime.UTC
    first_day, last_day = (
        datetime.datetime.fromtimestamp(pick(link.committed for link in links), utc).date()
        for pick in (min, max)
    )
    if start is None:
        back = DEFAULT_DAYS if days is None else math.ceil(days)
        start = max(first_day, last_day - datetime.timedelta(days=back - 1))
    if days is None:
        days = max(float((last_day - start).days + 1), 1.0)
    times, reordered = monotone_times(links, midnight(start))
    first, stop = bisect_left(times, 0.0), bisect_right(times, days)
    if first == stop:
        raise ValueError(
            f"no commit lies in the {days:g} days from {start}; "
            f"the main line runs from {first_day} to {last_day}"
        )
    return Window(start, days, links, times, first, stop, reordered)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Yield a transient progress bar on standard error."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        yield progress


def read_history(
    repository: Repository, window: Window, subdirs: Sequence[str], fragment_modulus: int
) -> History:
    """Read the main line up to the window's end, and the versions of the window.

    Only fragments of shingles divisible by ``fragment_modulus`` are kept.

    Raises:
        ValueError: git fails or an object is missing.
    """
    book = PageBook()
    history = History(book, [], [], {}, FragmentBook(fragment_modulus))
    before = window.links[window.first - 1].hash if window.first else None
    last = window.links[window.stop - 1].hash
    with _progress() as progress, blob_reader(repository) as reader:
        versions = Versions(reader)
        if before is not None:
            earlier = commits(repository, before, None, subdirs, lines=False)
            shown = progress.track(earlier, window.first, description="before the window")
            for index, commit in _checked(shown, window, 0):
                book.enter(commit.touches, window.times[index], window.authored(index))
        book.start_window()
        inside = commits(repository, last, before, subdirs)
        total = window.stop - window.first
        shown = progress.track(inside, total, description="in the window")
        for index, commit in _checked(shown, window, window.first):
            _enter(history, commit, window.times[index], window.authored(index), versions)
        recorded = [page for page in book.pages if page.death is None or page.death.time >= 0.0]
        for page in progress.track(recorded, description="content at the start"):
            history.num_fragments[page] = int(versions(page.first_blob).shingles.size)
    return history


def _checked(commits: Iterable[Commit], window: Window, first: int) -> Iterator[tuple[int, Commit]]:
    """Yield the commits with their numbers from ``first`` on, checked against the main line."""
    for index, commit in enumerate(commits, first):
        if commit.hash != window.links[index].hash:
            raise ValueError(f"expected commit {window.links[index].hash}, git gave {commit.hash}")
        yield index, commit


def _enter(
    history: History, commit: Commit, time: float, authored: float, versions: Versions
) -> None:
    """Add a commit of the window to the history."""
    events, touched = history.book.enter(commit.touches, time, authored)
    for page, old_blob, added, removed in events:
        old = None if old_blob is None else versions(old_blob)
        new = versions(page.blob)
        kind, staleness = _compare(old, new)
        history.fragments.enter(page, old, new, time)
        history.changes.append(Change(page, time, authored, kind, added, removed, staleness))
    others = [
        path
        for touch in commit.touches
        for path, blob in ((touch.old_path, touch.old_blob), (touch.new_path, touch.new_blob))
        if path is not None and blob is None
    ]
    mentioned = history.book.mentioned(commit.subject)
    history.announcements.append(Announcement(time, authored, touched, others, mentioned))


def _compare(old: Version | None, new: Version) -> tuple[str, float]:
    """Return kind and staleness of a change between versions (None: no page)."""
    if old is None:
        return "creation", 1.0
    kind = "whitespace" if old.ink == new.ink else "content"
    return kind, jaccard_distance(old, new)
