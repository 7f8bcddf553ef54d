"""What a feed, a sitemap or an index of sitemaps lists: RSS, Atom, compressed by gzip or not.

Files that are damaged are read except for the entries at fault, with a sentence that says so.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_tz
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from policies.live.markup import ENTITY, Part, attributes_of, decode, entries_of, plain, root_of
from policies.live.messages import SECONDS_PER_DAY, day_of

MAX_BYTES, MAX_ENTRIES = 50 * 2**20, 50_000
"""Size of the largest file and its entries, by the protocol of sitemaps."""
MAX_SITEMAPS, MAX_URL, MAX_LAYERS, MAX_MEMBERS = 500, 2048, 3, 2000
GZIP = b"\x1f\x8b\x08"
KINDS = {"urlset": "sitemap", "sitemapindex": "index", "html": "page"}
KINDS |= dict.fromkeys(("rss", "rdf", "feed", "channel"), "feed")
DATES = ("updated", "modified", "date", "lastmod", "published", "issued", "pubdate")
"""The names of dates; of the first two of an entry the first that can be read counts."""
PARTS = ("link", "id", "guid", "loc", *DATES)
HTML_TYPES = ("", "html", "xhtml", "text/html", "application/xhtml+xml")
LINE, URL = re.compile(r"[^\r\n]*\S[^\r\n]*"), re.compile(r"https?://\S+\Z", re.IGNORECASE)
CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
USER = re.compile(r"\A(https?://)[^/?#]*@", re.IGNORECASE)
NO_ENTITY = re.compile(r"&(?!#?\w+;)")
ABSOLUTE = re.compile(r"https?://[^/?#;]+([/?#][^;]*)?\Z")
"""Links that mean the same at any address."""
MIDNIGHT = re.compile(r"[T ]00:00(:00(\.0*)?)?(?![\d:.])")
"""The time that is written by programs which know a date only."""
YEAR_OR_MONTH = re.compile(r"\d{4}(-\d\d)?")
ONE_DIGIT = re.compile(r"\b\d\b")
ZONE = re.compile(r" ?(?:ETC/)?(?:UTC?|GMT|Z)? ?(?:([+-]\d\d):?(\d\d)?)?\Z")
ZONES = dict.fromkeys(("WEST", "BST", "CET", "MET"), "+1") | {"ET": "-5", "CT": "-6", "MT": "-7"}
ZONES |= dict.fromkeys(("CEST", "MEST", "EET"), "+2") | {"PT": "-8", "MSK": "+3", "EEST": "+3"}
"""Hours east of Greenwich, of names that RFC 5322 has not."""


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


def read_listing(body: bytes, address: str, content_type: str = "") -> Listing:
    """Return what a feed, a sitemap or an index of sitemaps lists; a sitemap may be plain text.

    Args:
        body: the file, compressed by gzip or not.
        address: its URL, to which links are relative, or its path.
        content_type: the header of the answer, which may state an encoding.

    Raises:
        ValueError: it is too large, or of another kind.
    """
    address, flaws = without_user(address), Counter[str]()
    body = _unzip(body, address, flaws)
    charset = CHARSET.search(content_type)
    text, fault = decode(body, charset[1] if charset else "")
    flaws[fault] += bool(fault)
    root, begin = root_of(text, KINDS)
    kind, base = KINDS.get(root, ""), address
    if kind in ("feed", "sitemap", "index"):
        names = ("item", "entry") if kind == "feed" else ("url", "sitemap")
        rows: Iterable[list[Part]] = entries_of(text, begin, names, PARTS, flaws)
    else:
        lines = [line[0].strip() for line in islice(LINE.finditer(text), MAX_ENTRIES + 1)]
        if kind or 2 * sum(bool(URL.match(line)) for line in lines) <= len(lines):
            raise ValueError(
                f"{address} must be a feed or a sitemap, got {'HTML: ' * bool(kind)}{body[:40]!r}"
            )
        kind, base, rows = "sitemap", "", ([("loc", "", line)] for line in lines)
    entries, faults = _entries(rows, base, address, flaws if base else Counter())
    if flaws := +flaws:
        times = {cause: f" ({count} times)" * (count > 1) for cause, count in flaws.items()}
        causes = ", ".join(cause + times[cause] for cause in flaws)
        faults.append(f"{address} is damaged, and read as far as it goes: {causes}")
    return Listing(kind, entries, faults)


def listed(body: bytes, address: str, content_type: str = "") -> Listing:
    """Return :func:`read_listing`; of what it refuses, no kind and a sentence."""
    try:
        return read_listing(body, address, content_type)
    except ValueError as error:
        return Listing("", [], [str(error)])


def sitemaps_of(listing: Listing, address: str) -> tuple[list[str], list[str]]:
    """Return the sitemaps of an index at an address, of its host alone, and what is wrong."""
    host, urls = urlsplit(address).netloc, [entry.url for entry in listing.entries]
    sitemaps = [url for url in urls if urlsplit(url).netloc == host][:MAX_SITEMAPS]
    fault = f"{address} has sitemaps of other hosts, or many: they are left out"
    return sitemaps, [fault] if len(sitemaps) < len(urls) else []


def without_user(url: str) -> str:
    """Return a URL without its user and password."""
    return USER.sub(r"\1", url)


def _unzip(body: bytes, address: str, flaws: Counter[str]) -> bytes:
    """Return a file without its compression by gzip, as far as it goes."""
    for _ in range(MAX_LAYERS):
        if not body.startswith(GZIP):
            break
        if body.count(GZIP) > MAX_MEMBERS:
            raise ValueError(f"{address} must have at most {MAX_MEMBERS} members of gzip")
        content, file = bytearray(), gzip.GzipFile(fileobj=io.BytesIO(body))
        try:
            while len(content) <= MAX_BYTES and (part := file.read1(2**16)):
                content += part
        except (OSError, EOFError, zlib.error) as error:
            flaws[f"its gzip: {error}"] += 1
        body = bytes(content)
    if len(body) > MAX_BYTES:
        raise ValueError(f"{address} must have at most {MAX_BYTES} bytes")
    return body


def _entries(
    rows: Iterable[list[Part]], base: str, address: str, flaws: Counter[str]
) -> tuple[list[Entry], list[str]]:
    """Return the entries of rows, and a sentence for each kind of what is left out."""
    entries, faults = dict[str, Entry](), list[str]()
    no_pages, no_dates = list[str](), list[str]()
    for count, parts in enumerate(rows):
        if count == MAX_ENTRIES:
            faults.append(f"{address} has more than {count} entries: the others are left out")
            break
        entry, link, date = _read(parts, base, flaws)
        if date and math.isnan(entry.day):
            no_dates.append(date[:40])
        if entry.url and entry.url != address:
            entries.setdefault(entry.key, entry)
        else:
            no_pages.append(link[:80])
    for name, rows_out in (("URL of a page", no_pages), ("date of a known form", no_dates)):
        if rows_out:
            some = f"{address} has entries without a {name}"
            faults.append(f"{some} ({len(rows_out)}, as {rows_out[0]!r}): that is left out")
    return [*entries.values()], faults


def _read(parts: list[Part], base: str, flaws: Counter[str]) -> tuple[Entry, str, str]:
    """Return an entry, its link and its date, as they are written."""
    link, permalink, name, dates = (base, ""), (base, ""), "", dict[str, str]()
    for part, markup, content in parts:
        text, about = plain(content), attributes_of(markup) if markup else {}
        at = _join(base, about["xml:base"]) if "xml:base" in about else base
        if not part:
            base, name = at, about.get("rdf:about", "")
        elif part in DATES:
            dates.setdefault(part, text)
        elif part in ("guid", "id"):
            name, is_link = text, about.get("ispermalink", "true").lower() == "true"
            permalink = (at, text) if is_link else permalink
        elif "href" in about:
            is_page = about.get("rel", "alternate") == "alternate"
            link = (at, about["href"]) if is_page and about.get("type", "") in HTML_TYPES else link
        elif text:
            link = at, text.replace("&amp;", "&")
        if "&" in content and "<![" not in content:
            flaws["an & that is not escaped"] += bool(NO_ENTITY.search(content))
    written = [dates[key] for key in DATES if key in dates][:2] or [""]
    days = [_day(date) for date in written]
    best = next((k for k, day in enumerate(days) if not math.isnan(day)), 0)
    link = link if link[1] else permalink
    return _entry(*link, name, written[best], days[best]), link[1], written[best]


def _join(base: str, link: str) -> str:
    """Return a link, absolute by its base; as it is if one of them is no URL, or is too deep."""
    try:
        return link if ABSOLUTE.match(link) or base.count("/") > 64 else urljoin(base, link)
    except ValueError:
        return link


def _entry(base: str, link: str, name: str, date: str, day: float) -> Entry:
    """Return an entry, whose url has no fragment and no user; it is empty for what is no page."""
    try:
        parts = urlsplit(without_user(_join(base, link.strip())))
        url = parts._replace(fragment="").geturl()
        fits = link and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # where there is no port
        fits = None
    fits = fits and len(url) <= MAX_URL and url.isprintable() and not ENTITY.search(link)
    url = url if fits else ""
    exact = ":" in date and not MIDNIGHT.search(date)
    return Entry(url, _digest(f"{url} {name}")[:16] + _digest(date)[:8], day, exact)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _day(date: str) -> float:
    """Return a date in days since 1970, of ISO 8601, W3C-DTF or RFC 5322; NaN for another."""
    with suppress(ValueError):
        return day_of(date)
    date = ONE_DIGIT.sub(r"0\g<0>", " ".join(date[:64].upper().split()))
    if YEAR_OR_MONTH.fullmatch(date):
        date += "-01-01"[: 10 - len(date)]
    hours, minutes, (stem, _, name) = "+0", "0", date.rpartition(" ")
    if name in ZONES:
        hours, date = ZONES[name], stem
    elif ":" in date and (zone := ZONE.search(date)):
        hours, minutes, date = zone[1] or "+0", zone[2] or "0", date[: zone.start()]
    try:
        day = day_of(date.replace("/", "-"))
    except ValueError:
        try:
            date = date.replace("-", " ") + " 00:00" * (":" not in date)
            parts: Any = parsedate_tz(date)
            day = day_of(datetime(*parts[:6]).isoformat()) - (parts[9] or 0) / SECONDS_PER_DAY
        except (ValueError, TypeError, IndexError, OverflowError):
            return math.nan
    return day - (int(hours) + int(f"{hours[0]}{minutes}") / 60.0) / 24.0
