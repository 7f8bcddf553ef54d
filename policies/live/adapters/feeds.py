"""Feeds and sitemaps as signals: each new entry becomes one signal.

A feed is RSS, Atom, a sitemap or an index of sitemaps (:mod:`policies.live.adapters.listings`).
:class:`Polls` says when each feed is due, reads the answers, and follows indexes. An entry is new
if its URL, id and date were not listed before (:class:`Memory`). :func:`tell` adds new entries to a
scheduler as pages and signals, and then notes them, so that a crash loses none.

A signal has the date of its entry if the date can be right: it has a time of day, and is at most an
hour (``LATE``) before the last poll. Otherwise, and for dates of the future, it has the time of the
poll. At the first poll all entries have their dates; entries without one are pages but no signals.

A URL may have a user and a password. They are sent to its host only, and written nowhere. Malformed
files are rejected, or read up to the error; each fault is a sentence.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from policies.live.adapters.copies import Copy, digest, without_user
from policies.live.adapters.listings import (
    MAX_BYTES,
    MAX_ENTRIES,
    Entry,
    Listing,
    listed,
    sitemaps_of,
)
from policies.live.adapters.messages import Scheduler, add_found, day_of
from policies.live.adapters.outages import bring_back

LATE = 1.0 / 24.0
"""Days by which a new entry may be dated before the last poll, as a cache may hold it back."""
AT_ONCE = 1000
"""Most pages per call of a scheduler."""
PATIENCE = 30.0
"""Most seconds that a server may take for an answer."""


class Memory:
    """A file with the entries that a feed or sitemap listed; ValueError if the file is damaged.

    ``polled`` is the time of the last poll, None before the first. ``keys`` are the keys of its
    entries. After a damaged or empty answer the earlier keys are kept, too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.polled: float | None = None
        self.keys: dict[str, None] = {}
        if path.exists():
            try:
                self.polled, keys = json.loads(path.read_text("utf-8"))
                self.keys = dict.fromkeys(keys)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path} must be what a feed listed: {error}; delete it") from None

    def signals(self, listing: Listing, now: float) -> list[tuple[str, float]]:
        """Return the URL of each new entry and the time of its signal, NaN for no signal."""
        new = (entry for entry in listing.entries if entry.key not in self.keys)
        return [(entry.url, self._time(entry, now)) for entry in new]

    def _time(self, entry: Entry, now: float) -> float:
        if self.polled is None or (entry.exact and entry.day >= self.polled - LATE):
            return now if entry.day > now else entry.day
        return now

    def is_overrun(self, listing: Listing) -> bool:
        """Return whether a feed dropped entries unseen: it lists none of the earlier ones."""
        listed = {entry.key for entry in listing.entries}
        dated_again = {key[:16] for key in self.keys} <= {key[:16] for key in listed}
        overlaps = not (self.keys and listed) or listed & self.keys.keys() or dated_again
        return listing.kind == "feed" and not overlaps

    def keep(self, listing: Listing | None, now: float) -> None:
        """Store the entries and time of a poll; ``listing`` is None if nothing has changed."""
        if listing is not None:
            keys = [entry.key for entry in listing.entries]
            if listing.faults or not keys:
                keys = [*dict.fromkeys([*keys, *self.keys])][: 2 * MAX_ENTRIES]
            self.keys = dict.fromkeys(keys)
        self.polled = now
        _write(self.path, [now, [*self.keys]])


def _write(path: Path, content: Any) -> None:
    """Write content to a JSON file, which is replaced as a whole."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content), "utf-8")
    os.replace(part, path)


def tell(
    scheduler: Scheduler,
    memory: Memory,
    listing: Listing,
    now: float,
    source: int = 0,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Report new entries of a listing to a scheduler as pages and signals, then store them.

    A listed page that is gone comes back; it waits longer each time.

    Args:
        scheduler: a scheduler whose ids are URLs.
        memory: the entries that were listed before.
        listing: the entries that are listed now.
        now: the time, in days since 1970.
        source: number of the source of signals.
        columns: columns of new pages, as for ``add``; None adds no pages.
    """
    if memory.polled is not None and memory.is_overrun(listing):
        scheduler.source_gap(source, memory.polled)
    new = memory.signals(listing, now)
    for some in (new[first : first + AT_ONCE] for first in range(0, len(new), AT_ONCE)):
        urls, added = list(dict.fromkeys(url for url, _ in some)), 0
        if columns is not None:
            added = add_found(scheduler, urls, columns)
        if added < len(urls):
            bring_back(scheduler, urls, wait=True)
        if dated := [(url, day) for url, day in some if not math.isnan(day)]:
            pages, days = zip(*dated, strict=True)
            scheduler.signal(list(pages), list(days), source)
    memory.keep(listing, now)


class Poll(NamedTuple):
    """The last answer of a feed: time, validators, digest (``mark``), kind, faults, sitemaps."""

    time: float
    etag: str | None = None
    modified: str | None = None
    mark: str | None = None
    kind: str = ""
    faults: Sequence[str] = ()
    sitemaps: Sequence[str] = ()


class Polls:
    """When to poll feeds, sitemaps and indexes of sitemaps; the polls continue after a restart.

    Args:
        feeds: sources of signals by address: a URL, or a path for :meth:`fetch`.
        folder: a folder for the listed entries and the last polls.
        every: days between two polls of a feed.
        now: time of the first poll of feeds that were not polled before.
        columns: columns of new pages, as for :func:`tell`.
        spelled: returns the crawler's spelling of a URL.

    Attributes:
        due: the time of the next poll by address without user; sitemaps of an index are feeds.
        last: the last poll by address.

    Raises:
        ValueError: two feeds differ in their users only, or the file of the polls is damaged.
    """

    def __init__(
        self,
        feeds: Mapping[str, int],
        folder: Path,
        every: float,
        now: float,
        columns: Mapping[str, Any] | None = None,
        spelled: Callable[[str], str] = str,
    ) -> None:
        self.feeds = {without_user(url): source for url, source in feeds.items()}
        if len(self.feeds) < len(feeds):
            raise ValueError(f"feeds must differ in more than their users, got {[*self.feeds]}")
        self.users = {without_user(url): user for url in feeds if (user := user_of(url))}
        self.folder, self.every, self.columns, self.spelled = folder, every, columns, spelled
        folder.mkdir(parents=True, exist_ok=True)
        self.file, self.last = folder / "polls.json", dict[str, Poll]()
        try:
            rows = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}
            self.last = {url: Poll(day_of(time), *rest) for url, (time, *rest) in rows.items()}
        except (ValueError, TypeError, AttributeError) as error:
            fault = f"{self.file} must be the last polls of feeds: {error}. Delete it: "
            raise ValueError(f"{fault}all are asked in full, nothing is reported twice") from None
        self.sources, self.due = dict[str, int](), dict[str, float]()
        self._follow(now)

    def next(self, now: float) -> str | None:
        """Return the address of a feed to poll now, and schedule its next poll; None if not due."""
        for feed, due in self.due.items():
            if due <= now:
                self.due[feed] = now + self.every
                return feed
        return None

    def headers(self, feed: str, validators: bool = True) -> dict[str, bytes]:
        """Return the headers to request a feed: authorization, and validators that allow a 304."""
        copy = Copy(*self._last(feed)[1:3]) if validators else Copy()
        indexes = [url for url in self.feeds if feed in self._last(url).sitemaps]
        near = [url for url in (feed, *indexes) if urlsplit(url)[:2] == urlsplit(feed)[:2]]
        users = [{"Authorization": self.users[url]} for url in near if url in self.users]
        return copy.conditions | (users or [{}])[0]

    def read(self, feed: str, body: bytes, address: str) -> Listing | None:
        """Read the entries of a feed's answer; None if the answer is identical to the last one."""
        mark = digest(address) + digest(body)
        return None if self._last(feed).mark == mark else listed(body, address)._replace(mark=mark)

    def take(
        self,
        scheduler: Scheduler,
        feed: str,
        listing: Listing | None,
        address: str,
        now: float,
        validators: Copy | None = None,
    ) -> list[str]:
        """Report the new entries of a feed to a scheduler; return its faults, as sentences.

        Args:
            scheduler: a scheduler whose ids are URLs.
            feed: the feed that was polled; one that its index no longer lists is ignored.
            listing: the result of :meth:`read`; None after an answer 304.
            address: the URL that answered, perhaps after redirects.
            now: the time.
            validators: the answer's validators, for the next poll; None for none.
        """
        if feed not in self.sources:
            return []
        last = self._last(feed)
        last = last._replace(time=now, faults=last.faults if last.mark else ())
        try:
            memory = Memory(self.path(feed))
            if listing is None:
                if memory.polled is not None:  # it is no index
                    memory.keep(None, now)
            else:
                faults, sitemaps = [*listing.faults], last.sitemaps if not listing.kind else []
                if listing.kind == "index":
                    sitemaps, more = sitemaps_of(listing, address)
                    faults += more
                    if sitemaps and feed not in self.feeds:
                        faults.append(f"{feed} is an index in an index: its sitemaps are left out")
                elif listing.kind:
                    keys = memory.keys
                    entries = [
                        entry if entry.key in keys else entry._replace(url=self.spelled(entry.url))
                        for entry in listing.entries
                    ]
                    new = listing._replace(entries=entries)
                    tell(scheduler, memory, new, now, self.sources[feed], self.columns)
                both = (None, None) if faults or validators is None else validators[:2]
                last = Poll(now, *both, listing.mark, listing.kind, faults, sitemaps)
            self.last[feed] = last
            self._follow(now)
            _write(self.file, {url: self.last[url] for url in self.sources if url in self.last})
        except (OSError, ValueError) as error:  # the next poll reports it again
            return self.note(feed, now, str(error))
        return [*last.faults]

    def note(self, feed: str, now: float, fault: str) -> list[str]:
        """Record that a poll of a feed failed with a fault; return the fault in a list."""
        if feed in self.sources:
            self.last[feed] = self._last(feed)._replace(time=now, mark=None, faults=[fault])
        return [fault]

    def path(self, feed: str) -> Path:
        """Return the path of the file with the entries that a feed listed."""
        return self.folder / f"feed-{digest(feed)}.json"

    def _last(self, feed: str) -> Poll:
        """Return a feed's last poll; without validators if the file of its entries is lost."""
        last = self.last.get(feed, Poll(-math.inf))
        has_entries = last.kind in ("", "index") or self.path(feed).exists()
        return last if has_entries else last._replace(etag=None, modified=None, mark=None)

    def _follow(self, now: float) -> None:
        """Schedule polls of the sitemaps that indexes list now, and drop all other sitemaps."""
        self.sources = {
            url: source
            for index, source in reversed(self.feeds.items())
            for url in self._last(index).sitemaps
        } | self.feeds
        for url in self.due.keys() - self.sources.keys():
            del self.due[url]
            self.last.pop(url, None)
            self.path(url).unlink(missing_ok=True)
        for url in [*self.feeds, *self.sources]:
            last = self.last.get(url, Poll(-math.inf)).time
            self.due.setdefault(url, min(max(last + self.every, now), now + self.every))

    def fetch(self, scheduler: Scheduler, feed: str, now: float | None = None) -> list[str]:
        """Fetch a feed, report its new entries to a scheduler, and return its faults.

        ``now`` is in days since 1970, None for the time of the answer.
        """
        try:
            body, address, validators = fetch(feed, self.headers(feed))
        except (OSError, http.client.HTTPException, ValueError) as error:
            fault = str(error) if feed in str(error) else f"{feed} cannot be read: {error}"
            return self.note(feed, day_of(now), fault)
        listing = None if body is None else self.read(feed, body, address)
        return self.take(scheduler, feed, listing, address, day_of(now), validators)


class SameHost(urllib.request.HTTPRedirectHandler):
    """Follow redirects; send user and password only to the host for which they were given."""

    def redirect_request(self, req: Any, *answer: Any) -> Any:
        """Return the next request of a redirect, without authorization if the host changes."""
        request = super().redirect_request(req, *answer)
        if request is not None and urlsplit(request.full_url)[:2] != urlsplit(req.full_url)[:2]:
            request.remove_header("Authorization")
        return request


def fetch(address: str, headers: Mapping[str, bytes] = {}) -> tuple[bytes | None, str, Copy]:
    """Fetch a URL or read a file; return its content, its final address and its validators.

    A file that is too large is cut. The content is None for an answer 304.

    Raises:
        OSError, http.client.HTTPException, ValueError: the URL or file cannot be read.
    """
    if not re.match("https?://", address, re.IGNORECASE):
        with open(address, "rb") as file:
            return file.read(MAX_BYTES + 1), address, Copy()
    sent = {name: text.decode("latin-1") for name, text in headers.items()}
    request = urllib.request.Request(address, headers={"User-Agent": "crawl-envs", **sent})
    body, end = bytearray(), time.monotonic() + PATIENCE
    try:
        with urllib.request.build_opener(SameHost).open(request, timeout=PATIENCE) as answer:
            while (part := answer.read1(2**16)) and len(body) <= MAX_BYTES:
                body += part
                if time.monotonic() > end:
                    raise OSError(f"no end within {PATIENCE:g} seconds")
            copy = Copy(answer.headers.get("ETag"), answer.headers.get("Last-Modified"))
            return bytes(body), answer.url, copy
    except urllib.error.HTTPError as error:
        if error.code == 304:
            return None, address, Copy()
        raise


def user_of(url: str) -> bytes | None:
    """Return the header ``Authorization`` for a URL with a user and password, None without."""
    if without_user(url) == url:
        return None
    user, _, password = urlsplit(url).netloc.rpartition("@")[0].partition(":")
    return b"Basic " + base64.b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password))
