"""What a feed, a sitemap or an index of sitemaps lists: RSS, Atom, compressed by gzip or not.

What is not as it should be is refused, or read as far as it goes, with a sentence that says so.
"""

from __future__ import annotations

import calendar
import gzip
import hashlib
import io
import math
import re
import zlib
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit
from xml.sax import SAXException

import feedparser
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, iterparse

from policies.live.messages import SECONDS_PER_DAY, day_of

MOST_BYTES, MOST_ENTRIES = 50 * 2**20, 50_000
"""Size of the largest file and its entries, by the protocol of sitemaps."""
MOST_BYTES_OF_FEED, MOST_ELEMENTS, MOST_SITEMAPS = 10 * 2**20, 2_000_000, 500
LONGEST_URL = 2048
ABSOLUTE = re.compile(r"https?://[^/?#;]+([/?#][^;]*)?\Z")
"""Links that mean the same at any address."""
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

    ``faults`` are sentences. In a feed old entries give way to new ones. ``mark`` is the digest of
    the answer that was read, if it is known.
    """

    kind: str
    entries: list[Entry]
    faults: list[str]
    mark: str | None = None


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


def listed(body: bytes, address: str) -> Listing:
    """Return :func:`read_listing`; of what it refuses, no kind and a sentence."""
    try:
        return read_listing(body, address)
    except ValueError as error:
        return Listing("", [], [str(error)])


def sitemaps_of(listing: Listing, address: str) -> tuple[list[str], list[str]]:
    """Return the sitemaps of an index at an address, of its host alone, and what is wrong."""
    host, urls = urlsplit(address).netloc, [entry.url for entry in listing.entries]
    own = [url for url in urls if urlsplit(url).netloc == host][:MOST_SITEMAPS]
    fault = f"{address} has sitemaps of other hosts, or many: they are left out"
    return own, [fault] if len(own) < len(urls) else []


def _entry(base: str, link: str, name: str, date: str, day: float) -> Entry:
    """Return an entry, whose url has no fragment; it is empty for what is no page."""
    try:
        link = link.strip()
        parts = urlsplit(link if ABSOLUTE.match(link) else urljoin(base, link))
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
