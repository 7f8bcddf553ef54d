"""Read the entries of feeds, sitemaps and indexes of sitemaps, also compressed by gzip.

Malformed files are rejected, or read up to the error; each fault is a sentence.
"""

from __future__ import annotations

import gzip
import html
import io
import math
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import reduce
from itertools import islice
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from lxml import etree

from policies.live.adapters.copies import digest, without_user
from policies.live.adapters.messages import day_of

MAX_BYTES, MAX_ENTRIES, MAX_URL, MAX_SLASHES = 50 * 2**20, 50_000, 2048, 99
"""Most bytes of a file, entries, bytes of a URL and slashes in it, by the sitemap protocol."""
MAX_ELEMENTS, MAX_SITEMAPS, MAX_MEMBERS, CHUNK = 1_000_000, 500, 2000, 2**16
"""``CHUNK`` is the bytes read at once: the root element begins within it, and no tag is longer."""
SITEMAP, INDEX = ("sitemap", ("url",), ("loc",)), ("index", ("sitemap",), ("loc",))
FEED = ("feed", ("item", "entry"), ("link", "guid"))
"""The kind of a file, the names of its entries, and the names of their links by rank."""
KINDS = {"urlset": SITEMAP, "sitemapindex": INDEX, "rss": FEED, "rdf": FEED, "feed": FEED}
DATES = ("updated", "modified", "date", "lastmod", "published", "issued", "pubdate")
"""The names of the dates of an entry, by rank."""
PARTS = {"link", "id", "guid", "loc", *DATES}
ROOT = re.compile(rf"<!--.*?(?:-->|\Z)|<(?:[\w.-]+:)?(html|{'|'.join(KINDS)})\b", re.S | re.I)
ENCODING = rb"<\?xml[^>]*?encoding\s*=\s*.((?:iso|windows|cp|koi8|gb|big5|euc|shift)[\w-]*)"
BASE = "{http://www.w3.org/XML/1998/namespace}base"
LONG_TAG = re.compile(rb"<\w[^<>]{%d}" % CHUNK)
READABLE = bytes.maketrans(bytes({*range(32)} - {*b"\t\n\r"}), 29 * b"\x7f")
AMPERSAND, NO_ENTRY = "\ue000", -2
"""Replaces ``&``, so that the XML parser does not expand or drop entities."""
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|\w{1,40});|\ufffd")
LINE, URL = re.compile(r"\S[^\r\n]*"), re.compile(r"https?://\S+\s*\Z", re.IGNORECASE)
MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0*)?)?(?![\d:.])")
"""Matches midnight, the time of day that programs write if they know only a date."""


class Entry(NamedTuple):
    """An entry of a feed or sitemap.

    ``url`` is the entry's page, or its sitemap in an index. ``key`` has 16 digits that hash its URL
    and id, and 8 that hash its date. ``day`` is the date in days since 1970, NaN without one.
    ``exact`` says whether the date has a time of day.
    """

    url: str
    key: str
    day: float
    exact: bool


class Listing(NamedTuple):
    """The content of a file: kind (``feed``, ``sitemap``, ``index``), entries, faults, digest."""

    kind: str
    entries: list[Entry]
    faults: list[str]
    mark: str | None = None


def read_listing(body: bytes, address: str) -> Listing:
    """Read the entries of a feed, a sitemap (XML or plain text) or an index of sitemaps.

    Args:
        body: the file, compressed by gzip or not.
        address: the file's path or URL; relative links start from it.

    Raises:
        ValueError: the file is too large, or of another kind.
    """
    address = without_user(address)
    body, fault = _unzip(body, address)
    text = _decode(body)
    roots = ((root[1].lower(), root.start()) for root in ROOT.finditer(text[:CHUNK]) if root[1])
    name, begin = next(roots, ("", 0))
    entries = _Entries(address, KINDS.get(name, SITEMAP))
    if name in KINDS:
        fault = _parse(text[begin:], entries, fault)
    elif not URL.match(first[0] if (first := LINE.search(text)) else ""):
        raise ValueError(f"{address} must be a feed or a sitemap, got {body[:40]!r}")
    for line in islice(LINE.finditer(text), 0 if name in KINDS else MAX_ENTRIES + 1):
        entries.add([], line[0])
    faults = [f"{address} is damaged, and read as far as it goes: {fault}"] * bool(fault)
    if entries.count > MAX_ENTRIES or entries.elements > MAX_ELEMENTS:
        size = f"{MAX_ENTRIES} entries or {MAX_ELEMENTS} elements"
        faults.append(f"{address} has more than {size}: the others are left out")
    for what, lost in entries.lost.items():
        faults.append(f"{address} has entries without a {what} ({len(lost)}, as {lost[0]!r})")
    return Listing(entries.kind, [*entries.entries.values()], faults)


def listed(body: bytes, address: str) -> Listing:
    """Read a file by :func:`read_listing`; a rejected file gives no kind and the error as fault."""
    try:
        return read_listing(body, address)
    except ValueError as error:
        return Listing("", [], [str(error)])


def sitemaps_of(listing: Listing, address: str) -> tuple[list[str], list[str]]:
    """Return the sitemaps that an index lists on its own host, and a fault if it lists others."""
    host, urls = urlsplit(address).netloc, [entry.url for entry in listing.entries]
    sitemaps = [url for url in urls if urlsplit(url).netloc == host][:MAX_SITEMAPS]
    fault = f"{address} has sitemaps of other hosts, or many: they are left out"
    return sitemaps, [fault] if len(sitemaps) < len(urls) else []


def _unzip(body: bytes, address: str) -> tuple[bytes, str]:
    """Decompress a gzip file as far as it is sound; return its content and its fault, or ""."""
    content, fault = bytearray(), ""
    if body.startswith(b"\x1f\x8b"):
        if body.count(b"\x1f\x8b\x08") > MAX_MEMBERS:
            raise ValueError(f"{address} must have at most {MAX_MEMBERS} members of gzip")
        file = gzip.GzipFile(fileobj=io.BytesIO(body))
        try:
            while len(content) <= MAX_BYTES and (part := file.read1(CHUNK)):
                content += part
        except (OSError, EOFError, zlib.error) as error:
            fault = f"its gzip: {error}"
        body = bytes(content)
    if len(body) > MAX_BYTES:
        raise ValueError(f"{address} must have at most {MAX_BYTES} bytes")
    return body, fault


def _decode(body: bytes) -> str:
    """Decode a file by its byte order mark, else in UTF-8, else in the encoding it declares."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace")
    declared = re.match(ENCODING, body[:200].lstrip(), re.IGNORECASE)
    for name in ("utf-8-sig", declared[1].decode() if declared else "utf-8"):
        with suppress(LookupError, UnicodeError):
            return body.decode(name)
    return body.decode("utf-8-sig", "replace")  # entries with what does not fit are left out


def _parse(text: str, entries: _Entries, fault: str) -> str:
    """Parse XML into ``entries``, in bounded time and memory; return its fault, or ""."""
    body = LONG_TAG.split(text.replace("&", AMPERSAND).encode().translate(READABLE), 1)[0]
    parser = etree.XMLParser(target=entries, recover=True, resolve_entities=False, encoding="utf-8")
    with suppress(OverflowError):
        etree.fromstring(body, parser)
    errors = [e for e in parser.error_log if e.domain != etree.ErrorDomains.NAMESPACE]
    return fault or (f"{errors[0].message} (line {errors[0].line})" if errors else "")


class _Entries:
    """Collects a file's entries from an XML parser without a tree; a cut entry is left out."""

    def __init__(self, address: str, kind: tuple[str, tuple[str, ...], tuple[str, ...]]) -> None:
        self.bases, (self.kind, self.names, self.links) = [address], kind
        self.entries, self.lost = dict[str, Entry](), dict[str, list[str]]()
        self.count, self.elements, self.depth, self.entry_depth = 0, 0, 0, NO_ENTRY

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.elements, self.depth = self.elements + 1, self.depth + 1
        if self.count > MAX_ENTRIES or self.elements > MAX_ELEMENTS:
            raise OverflowError
        name, base = tag.rpartition("}")[2].lower(), attributes.get(BASE, "")[:MAX_URL]
        if name in self.names:
            self._finish()
            self.entry_depth, self.parts = self.depth, {"base": base}
        elif self.depth == 1:
            self.bases.append(base)
        elif self.depth == self.entry_depth + 1:
            self.about, self.text = attributes, list[str]()

    def data(self, text: str) -> None:
        if self.depth == self.entry_depth + 1:
            self.text.append(text)

    def end(self, tag: str) -> None:
        self.depth -= 1
        if self.depth < self.entry_depth:
            self._finish()
        elif self.depth == self.entry_depth and tag.rpartition("}")[2].lower() in PARTS:
            name, about = tag.rpartition("}")[2].lower(), self.about
            name = name if about.get("isPermaLink", "true").lower() == "true" else "id"
            text = (about.get("href") or "".join(self.text)).replace(AMPERSAND, "&").strip()
            text = ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
            is_page = about.get("rel", "alternate") == "alternate"
            if text and is_page and "html" in about.get("type", "html"):
                self.parts.setdefault(name, text)

    def close(self) -> None: ...

    def _finish(self) -> None:
        if self.entry_depth != NO_ENTRY:
            self.entry_depth, part = NO_ENTRY, self.parts.get
            link, date = (next(filter(None, map(part, names)), "") for names in (self.links, DATES))
            self.add([*self.bases, part("base", "")], link, part("guid") or part("id", ""), date)

    def add(self, bases: list[str], link: str, name: str = "", date: str = "") -> None:
        self.count += 1
        entry = _entry(bases, link, name, date)
        if date and math.isnan(entry.day):
            self.lost.setdefault("date of a known form", []).append(date[:40])
        if not entry.url or entry.url == self.bases[0]:
            self.lost.setdefault("URL of a page", []).append(link[:80])
        elif self.count <= MAX_ENTRIES:
            self.entries.setdefault(entry.key, entry)


def _entry(bases: list[str], link: str, name: str, date: str) -> Entry:
    """Build an entry; its URL has no fragment and no user, and is empty for a link to no page."""
    try:
        is_deep = "".join([*bases, link]).count("/") > MAX_SLASHES  # joined in quadratic time
        parts = urlsplit("" if is_deep else without_user(reduce(urljoin, [*bases, link.strip()])))
        url = parts._replace(fragment="").geturl()
        fits = link and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # where there is no port
        fits = None
    fits = fits and len(url) <= MAX_URL and url.isprintable() and not ENTITY.search(link)
    url = url if fits else ""
    exact = ":" in date and not MIDNIGHT.search(date)
    return Entry(url, digest(f"{url} {name}")[:16] + digest(date)[:8], _day(date), exact)


def _day(date: str) -> float:
    """Convert a date in ISO 8601, W3C-DTF or RFC 5322 to days since 1970; NaN for other texts."""
    if re.fullmatch(r"\d{4}(-\d\d)?", date):
        date += "-01-01"[: 10 - len(date)]
    for read in (str, parsedate_to_datetime):
        with suppress(ValueError, TypeError, IndexError, OverflowError):
            return day_of(str(read(date[:64])))
    return math.nan
