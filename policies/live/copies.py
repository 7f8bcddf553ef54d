"""What a crawler keeps of its pages beside the scheduler: validators, hashes, and who parses them.

A page's row is written when its content has had time to be processed (``SETTLED``): a crawler that
is killed before that finds the same change again at the next fetch. It is lost by no crash of the
process; a crash of the machine may cost the last seconds.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SETTLED = 5.0
"""Seconds from a fetch until its copy is written."""
MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)|<[a-z/!][^>]*>?",
    re.DOTALL | re.IGNORECASE,
)
"""Comments, scripts, styles and tags, closed or not: in linear time, as pages may be hostile."""
CHARSET = re.compile(r"\bcharset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
START = re.compile(rb"<html\b|<!doctype html\b", re.IGNORECASE)
META = re.compile(rb"<meta\b[^>]{0,256}?\bcharset\s*=\s*[\"']?(?!utf-?16|utf-?32)([\w.:-]+)", re.I)


class Copy(NamedTuple):
    """What is known of the last copy of a page; None for what is not.

    Attributes:
        etag: the validator ``ETag`` of its answer, its bytes as characters of Latin-1.
        modified: the validator ``Last-Modified`` of its answer, likewise.
        digest: hash of its content.
        parser: what requests and parses the page, as JSON.
    """

    etag: str | None = None
    modified: str | None = None
    digest: str | None = None
    parser: str | None = None

    @property
    def conditions(self) -> dict[str, bytes]:
        """The headers by which a server answers 304 if this copy is fresh, as it sent them."""
        both = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value.encode("latin-1") for name, value in both.items() if value is not None}


class Copies:
    """The copies of a crawler, in a file of SQLite.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.base = sqlite3.connect(path, isolation_level=None)
        self.base.execute("PRAGMA journal_mode = WAL")
        self.base.execute("PRAGMA synchronous = NORMAL")
        columns = ", ".join(f"{name} TEXT" for name in Copy._fields)
        self.base.execute(f"CREATE TABLE IF NOT EXISTS copies (url TEXT PRIMARY KEY, {columns})")
        self.fresh: dict[str, tuple[float, Copy]] = {}

    def __getitem__(self, url: str) -> Copy:
        """Return what is known of the copy of a page."""
        if url in self.fresh:
            return self.fresh[url][1]
        found = self.base.execute("SELECT * FROM copies WHERE url = ?", (url,)).fetchone()
        return Copy(*found[1:]) if found else Copy()

    def note(self, url: str, copy: Copy, now: float) -> None:
        """Take note of a copy, at a time in seconds; it is written later (:meth:`write`)."""
        self.fresh[url] = now, copy

    def write(self, until: float) -> None:
        """Write the copies that were taken until a time."""
        self.put({url: copy for url, (time, copy) in self.fresh.items() if time <= until})

    def put(self, copies: Mapping[str, Copy]) -> None:
        """Write copies now, in place of those that were noted."""
        for url in copies:
            self.fresh.pop(url, None)
        rows = [(url, *copy) for url, copy in copies.items()]
        if rows:
            self.base.execute("BEGIN")
            self.base.executemany("INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?, ?)", rows)
            self.base.execute("COMMIT")

    def adopt(self, parsers: Mapping[str, str]) -> None:
        """Keep what parses pages, of those that nothing parses yet; it has seen no copy of them."""
        new = {url: text for url, text in parsers.items() if self[url].parser is None}
        self.put({url: Copy(parser=text) for url, text in new.items()})

    def remove(self, url: str) -> None:
        """Forget a page."""
        self.fresh.pop(url, None)
        self.base.execute("DELETE FROM copies WHERE url = ?", (url,))

    def close(self) -> None:
        """Write all, and close the file."""
        self.write(float("inf"))
        self.base.close()


def text_of(body: bytes, content_type: str = "") -> str | bytes:
    """Return what tells copies of a page apart: the text of HTML, the bytes of anything else.

    The text is without tags, scripts, styles and comments. Its charset is that of its byte order
    mark, of ``content_type`` (the header) or of a meta tag, the first that fits, else UTF-8 or
    Latin-1. Where the header is missing, the body is HTML if it begins as HTML.
    """
    kind = content_type.split(";")[0].strip().lower()
    starts = kind in ("", "application/octet-stream") and START.search(body[:5000])
    if "html" not in kind and not starts:
        return body
    names = ["utf-16"] * body.startswith((b"\xff\xfe", b"\xfe\xff")) + CHARSET.findall(content_type)
    names += [name.decode("latin-1") for name in META.findall(body[:4096])]
    for name in (*names, "utf-8"):
        try:  # idna and punycode, which take quadratic time, refuse this way of errors
            return MARKUP.sub("", body.decode(name, "surrogatepass"))
        except (LookupError, ValueError):
            continue
    return MARKUP.sub("", body.decode("latin-1"))


def without_user(url: str) -> str:
    """Return a URL without its user and password."""
    return re.sub(r"\A(https?://)[^/?#]*@", r"\1", url, flags=re.IGNORECASE)


def digest(content: str | bytes) -> str:
    """Return the hash of a content; white space of a text counts as one blank."""
    if isinstance(content, str):
        content = b" ".join(content.encode("utf-8", "surrogatepass").split())
    return hashlib.blake2b(content, digest_size=16).hexdigest()
