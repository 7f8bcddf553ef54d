"""Feeds and sitemaps as signals: what they list is a state, and what is new in it is told once.

RSS, Atom, a sitemap or an index of sitemaps is read (:func:`read_listing`) and compared with what
it listed before (:class:`Memory`): an entry is new if its url, id and date were not listed then.
:func:`tell` gives new ones to a scheduler, as pages and signals, and only then notes that they were
told, so that a crash between loses none. :func:`poll` does all of it for a URL or a file.

The time of a signal is the date of its entry where that can be right: it has a time of day, and is
not before the last poll by more than ``LATE``. Else it is the time of the poll, and never after it:
a clock that is days off, a date without a time, or none, costs no more than the wait for the poll.
At the first poll entries have their own dates, and those without one are pages but no signals.

What is not as it should be is refused, or read as far as it goes, with a sentence that says so.
"""

from __future__ import annotations

import calendar
import gzip
import hashlib
import http.client
import io
import json
import math
import os
import re
import time
import urllib.request
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit
from xml.sax import SAXException

import feedparser
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, iterparse

from policies.live.messages import SECONDS_PER_DAY, Scheduler, day_of

LATE = 1.0 / 24.0
"""Days by which a new entry may be dated before the last poll, as where a cache held it back."""
MOST_BYTES, MOST_ENTRIES = 50 * 2**20, 50_000
"""Size of the largest file and its entries, by the protocol of sitemaps."""
MOST_BYTES_OF_FEED, MOST_ELEMENTS, MOST_SITEMAPS = 10 * 2**20, 2_000_000, 500
LONGEST_URL = 2048
AT_ONCE = 1000
"""Pages of one call of a scheduler."""
PATIENCE = 30.0
"""Seconds that an answer may take."""
MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0*)?)?(?![\d:.])")
"""The time that is written by programs which know a date only."""


class Entry(NamedTuple):
    """An entry of a feed or sitemap.

    Attributes:
        url: its page; in an index, a sitemap.
        key: 16 digits of its url and id, and 8 of its date, which tell it from others.
        day: its date, in days since 1970; NaN without one.
        exact: whether the date has a time of day.
    """

    url: str
    key: str
    day: float
    exact: bool


class Listing(NamedTuple):
    """What a file lists: its kind (``feed``, ``sitemap``, ``index``), entries, and what is wrong.

    ``faults`` are sentences. In a feed old entries give way to new ones.
    """

    kind: str
    entries: list[Entry]
    faults: list[str]


def read_listing(body: bytes, address: str) -> Listing:
    """Return what a feed, a sitemap or an index of sitemaps lists, compressed by gzip or not.

    Args:
        body: the file.
        address: its URL, to which links are relative, or its path.

    Raises:
        ValueError: it is too large, of another kind, or declares entities.
    """
    if body[:2] == b"\x1f\x8b":
        try:
            body = gzip.GzipFile(fileobj=io.BytesIO(body)).read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{address} must be a whole file of gzip: {error}") from None
    if len(body) > MOST_BYTES:
        raise ValueError(f"{address} must have at most {MOST_BYTES} bytes")
    kind, rows, fault = _sitemap(body.lstrip(), address)
    if kind == "feed":
        rows, fault = _feed(body, address)
    faults = [f"{address} is damaged, and read as far as it goes: {fault}"] * bool(fault)
    if len(rows) > MOST_ENTRIES:
        faults.append(f"{address} has more than {MOST_ENTRIES} entries: the others are left out")
    entries = {entry.key: entry for entry in reversed(rows[:MOST_ENTRIES]) if entry.url}
    return Listing(kind, list(entries.values())[::-1], faults)


def sitemaps_of(listing: Listing, address: str) -> tuple[list[str], list[str]]:
    """Return the sitemaps of an index at an address, of its host alone, and what is wrong."""
    host, urls = urlsplit(address).netloc, [entry.url for entry in listing.entries]
    own = [url for url in urls if urlsplit(url).netloc == host][:MOST_SITEMAPS]
    fault = f"{address} has sitemaps of other hosts, or many: they are left out"
    return own, [fault] if len(own) < len(urls) else []


def _entry(base: str, link: str, name: str, date: str, day: float) -> Entry:
    """Return an entry, whose url has no fragment; it is empty for what is no page."""
    try:
        parts = urlsplit(urljoin(base, link.strip()))
        url = parts._replace(fragment="").geturl()
        fits = parts.scheme in ("http", "https") and parts.hostname and url != base
        fits = fits and parts.port != 0  # ValueError where there is none
    except ValueError:
        fits = None
    url = url if fits and len(url) <= LONGEST_URL and url.isprintable() else ""
    exact = ":" in date and not MIDNIGHT.search(date)
    return Entry(url, _digest(f"{url} {name}")[:16] + _digest(date)[:8], day, exact)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _sitemap(body: bytes, address: str) -> tuple[str, list[Entry], str]:
    """Return the kind of a file, and the entries and the fault of a sitemap or an index."""
    kinds = {"urlset": "sitemap", "sitemapindex": "index"}
    kind, entries = "", list[Entry]()
    try:
        for count, (event, element) in enumerate(iterparse(io.BytesIO(body), ("start", "end"))):
            name = element.tag.rpartition("}")[2]
            kind = kind or kinds.get(name, "feed")
            if kind == "feed" or len(entries) > MOST_ENTRIES:
                break
            if count > MOST_ELEMENTS:
                return kind, entries, f"it has more than {MOST_ELEMENTS} elements"
            if event == "end" and name in ("url", "sitemap"):
                parts = {part.tag.rpartition("}")[2]: (part.text or "").strip() for part in element}
                date = parts.get("lastmod", "")
                try:
                    day = day_of(date)
                except (ValueError, OverflowError):
                    day = math.nan
                entries.append(_entry(address, parts.get("loc", ""), "", date, day))
                element.clear()
    except DefusedXmlException:
        raise ValueError(f"{address} must not declare entities") from None
    except (ParseError, LookupError, ValueError) as error:  # the last two of its encoding
        return kind or "feed", entries, str(error)
    return kind, entries, ""


def _feed(body: bytes, address: str) -> tuple[list[Entry], str]:
    """Return the entries of a feed, and its fault."""
    if len(body) > MOST_BYTES_OF_FEED:
        raise ValueError(f"{address} must have at most {MOST_BYTES_OF_FEED} bytes, as a feed")
    about: Any = {"response_headers": {"content-location": address}, "sanitize_html": False}
    try:
        found = feedparser.parse(io.BytesIO(body), resolve_relative_uris=False, **about)
    except Exception as error:  # it reads whatever it can, and may fail in any way
        raise ValueError(f"{address} must be a feed or a sitemap: {error!r}") from None
    if not found.entries and not found.get("version"):
        raise ValueError(f"{address} must be a feed or a sitemap, got {body[:40]!r}")
    entries = []
    for each in found.entries:
        kind = "updated" if "updated" in each else "published"
        parsed, date = each.get(f"{kind}_parsed"), str(each.get(kind, ""))
        day = math.nan if parsed is None else calendar.timegm(parsed) / SECONDS_PER_DAY
        link, name = str(each.get("link", "")), str(each.get("id", ""))
        entries.append(_entry(address, link, name, date, day))
    cause = found.get("bozo_exception")
    fault = str(cause) if isinstance(cause, SAXException) else ""
    half = "no element found" in fault or "unclosed token" in fault  # so is the last entry
    return entries[: -1 if half else None], fault


class Memory:
    """What a feed or sitemap listed when it was last told, in a file.

    Attributes:
        polled: time of the last poll, None before the first.
        keys: keys of its entries; where it was damaged or empty, with those before.

    Raises:
        ValueError: the file is damaged.
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
                raise ValueError(f"{path} must be what a feed listed: {error}") from None

    def signals(self, listing: Listing, now: float) -> list[tuple[str, float]]:
        """Return the url of each new entry and the time of its signal, NaN for none."""
        new = (entry for entry in listing.entries if entry.key not in self.keys)
        return [(entry.url, self._time(entry, now)) for entry in new]

    def _time(self, entry: Entry, now: float) -> float:
        if self.polled is None or (entry.exact and entry.day >= self.polled - LATE):
            return now if entry.day > now else entry.day
        return now

    def is_overrun(self, listing: Listing) -> bool:
        """Return whether a feed lists nothing of what it listed, so that entries were lost.

        Where it lists all of it with other dates, none were.
        """
        listed = {entry.key for entry in listing.entries}
        dated_again = {key[:16] for key in self.keys} <= {key[:16] for key in listed}
        overlaps = not (self.keys and listed) or listed & self.keys.keys() or dated_again
        return listing.kind == "feed" and not overlaps

    def keep(self, listing: Listing, now: float) -> None:
        """Note that what is new in a listing was told."""
        keys = [entry.key for entry in listing.entries]
        if listing.faults or not keys:
            keys = [*dict.fromkeys([*keys, *self.keys])][: 2 * MOST_ENTRIES]
        self.polled, self.keys = now, dict.fromkeys(keys)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps([now, keys]), "utf-8")
        os.replace(part, self.path)


def tell(
    scheduler: Scheduler,
    memory: Memory,
    listing: Listing,
    now: float,
    source: int = 0,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Tell a scheduler what is new in a listing, then note that it was told.

    A page that the scheduler keeps as gone does not come back.

    Args:
        scheduler: its ids are URLs.
        memory: what was listed before.
        listing: what is listed now.
        now: the time, in days since 1970.
        source: number of the source of signals.
        columns: columns of pages that are not known yet, as for ``add``; None leaves them out.
    """
    if memory.polled is not None and memory.is_overrun(listing):
        scheduler.source_gap(source, memory.polled)
    found = memory.signals(listing, now)
    for some in (found[first : first + AT_ONCE] for first in range(0, len(found), AT_ONCE)):
        if columns is not None:
            urls = list(dict.fromkeys(url for url, _ in some))
            hosts = [urlsplit(url).hostname or "" for url in urls]
            scheduler.add(urls, known="skip", host=hosts, **columns)
        if dated := [(url, day) for url, day in some if not math.isnan(day)]:
            told, days = zip(*dated, strict=True)
            scheduler.signal(list(told), list(days), source)
    memory.keep(listing, now)


def poll(
    scheduler: Scheduler,
    address: str,
    folder: Path,
    source: int = 0,
    columns: Mapping[str, Any] | None = None,
    now: float | None = None,
) -> list[str]:
    """Read a feed or a sitemap, an index with its sitemaps, and tell a scheduler what is new.

    ``address`` is a URL of http or https, or a path. Feeds may share ``folder``, which keeps what
    was told. ``now`` is in days since 1970, None for now; the others are as for :func:`tell`. What
    is wrong with the feed is returned, a sentence each.
    """
    faults, addresses, folder = list[str](), [address], folder / _digest(address)
    folder.mkdir(parents=True, exist_ok=True)
    for each in addresses:
        try:
            listing, memory = read_listing(*fetch(each)), Memory(folder / f"{_digest(each)}.json")
        except (OSError, http.client.HTTPException, ValueError) as error:
            faults.append(str(error) if each in str(error) else f"{each} cannot be read: {error}")
            continue
        faults += listing.faults
        moment = day_of(None) if now is None else now
        if listing.kind != "index":
            tell(scheduler, memory, listing, moment, source, columns)
        elif each == address:
            sitemaps, more = sitemaps_of(listing, each)
            addresses += sitemaps
            faults += more
            kept = {f"{_digest(url)}.json" for url in addresses}
            for path in folder.glob("*.json"):
                if path.name not in kept:  # of a sitemap that is no longer listed
                    path.unlink()
    return faults


def fetch(address: str) -> tuple[bytes, str]:
    """Return a file of a URL or path, as far as it is not too large, and where it came from.

    Raises:
        OSError, http.client.HTTPException, ValueError: it cannot be read.
    """
    if not re.match("https?://", address):
        with open(address, "rb") as file:
            return file.read(MOST_BYTES + 1), address
    request = urllib.request.Request(address, headers={"User-Agent": "crawl-envs"})
    body, end = bytearray(), time.monotonic() + PATIENCE
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        while (part := answer.read1(2**16)) and len(body) <= MOST_BYTES:
            body += part
            if time.monotonic() > end:
                raise OSError(f"no end within {PATIENCE:g} seconds")
        return bytes(body), answer.url
