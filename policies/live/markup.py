"""Entries of XML as it is on the web, damaged or hostile, in time and memory linear in its size.

There is no tree, and neither declared entities nor other files are read. An entry ends at its end
tag, at the next entry or at the end tag of the root; the text of a part ends at the next tag.
"""

from __future__ import annotations

import codecs
import html
import re
from collections import Counter
from collections.abc import Collection, Iterator
from html.entities import html5
from itertools import islice

MAX_TAGS, MAX_TAGS_BEFORE = 2_500_000, 1000
MAX_PARTS, MAX_DEPTH, MAX_ATTRIBUTES = 50, 64, 200
"""Of an entry, of the parents of a part, and of a tag."""
MAX_LENGTH = 8192
"""Characters that are read of a part of an entry, and of the attributes of a tag."""
STARTS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
STARTS |= {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
DECLARED = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)")
ENCODINGS = re.compile("utf|windows|cp|iso|latin|(us-)?ascii|koi8|mac|big5|gb|hz|s(hift.)?jis|euc")
"""How names of encodings begin; other codecs of Python may take quadratic time."""
TAG = re.compile(
    rf"""<(?:!\[CDATA\[.*?(?:\]\]>|\Z) | !--.*?(?:-->|\Z) | [!?][^<>]*>? | (/?)([^\W\d][\w:.-]*)
    ((?:[^<>"']++|"[^"<]*+"|'[^'<]*+'){{0,{MAX_ATTRIBUTES}}}+|[^<>]*+)>)?""",
    re.DOTALL | re.VERBOSE,
)
"""A tag: its slash, name and attributes; or what looks like one, a ``<`` alone if it is none."""
ATTRIBUTE = re.compile(r"""([^\s"'=]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""")
SECTION = re.compile(r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|(\w{1,40}));")
BYTE = re.compile("[\udc80-\udcff]")
PREFIX = re.compile(r"""xmlns:([\w.-]+)\s*=\s*["'][^"']*(?:2005/Atom|purl\.org/|/sitemap/)""", re.I)
"""The prefixes of namespaces whose elements are read."""

Part = tuple[str, str, str]
"""A part of an entry: its name in lower case without its prefix, its attributes, its text."""


def decode(body: bytes, stated: str = "") -> tuple[str, str]:
    """Return the text of a file, and what is wrong with its encoding.

    A byte order mark counts first, then UTF-8 if it fits, then what is ``stated`` beside the file,
    then what it declares. Bytes that fit neither are those of Latin-1, one by one (:func:`plain`).
    """
    for start, name in STARTS.items():
        if body.startswith(start):
            return body.decode(name, "replace").removeprefix("\ufeff"), ""
    declared = DECLARED.match(body)
    names = [name.lower() for name in (stated, declared[1].decode() if declared else "")]
    for name in ("utf-8", *filter(ENCODINGS.match, names)):
        try:
            text = body.decode(name)
        except (LookupError, UnicodeError):
            continue
        is_other = name == "utf-8" and not body.isascii() and names[1] not in ("", "utf-8", "utf8")
        return text, f"it is in UTF-8, not in {names[1]}" if is_other else ""
    fault = f"it is not in {' or '.join(filter(None, names)) or 'UTF-8'}, its bytes are guessed"
    return body.decode("utf-8", "surrogateescape"), fault


def plain(markup: str) -> str:
    """Return the text of a part without comments, with sections and the entities of HTML read."""
    if "<" not in markup and "&" not in markup and markup.isascii():
        return markup[:MAX_LENGTH].strip()
    texts = [text or "" for text in SECTION.split(markup[:MAX_LENGTH])]
    texts[::2] = [ENTITY.sub(_character, text) for text in texts[::2]]
    return BYTE.sub(lambda byte: chr(ord(byte[0]) - 0xDC00), "".join(texts)).strip()


def _character(entity: re.Match[str]) -> str:
    name = entity[1]
    return html.unescape(entity[0]) if name is None else html5.get(f"{name};", entity[0])


def attributes_of(markup: str) -> dict[str, str]:
    """Return the attributes of a tag, by their names in lower case."""
    rows = ATTRIBUTE.findall(markup[:MAX_LENGTH])
    return {name.lower(): plain(first or second or third) for name, first, second, third in rows}


def root_of(text: str, roots: Collection[str]) -> tuple[str, int]:
    """Return the first element that is a root, and where it begins."""
    for tag in islice(TAG.finditer(text), MAX_TAGS_BEFORE):
        name = (tag[2] or "").rpartition(":")[2].lower()
        if name in roots:
            return name, tag.start()
    return "", 0


def entries_of(
    text: str, begin: int, entries: Collection[str], parts: Collection[str], flaws: Counter[str]
) -> Iterator[list[Part]]:
    """Yield the parts of each entry; those without a name have the attributes of it and around it.

    Args:
        text: the file.
        begin: where its root begins.
        entries: names of entries.
        parts: names of the parts that are read: the children of an entry.
        flaws: counts what is wrong, by what it is.
    """
    prefixes = {"", "atom", "dc", "dcterms", *PREFIX.findall(text[: 2**16])}
    entry: list[Part] | None = None
    around, parents, is_closed = list[Part](), list[str](), False
    root, name, about, begins = "", "", "", -1
    for count, tag in enumerate(TAG.finditer(text, begin)):
        slash, raw, attributes = tag.groups()
        if count > MAX_TAGS:
            flaws[f"more than {MAX_TAGS} tags, the others are left out"] += 1
            return
        if raw is None:
            flaws["a < that is no tag"] += tag[0] == "<"
            continue
        if entry is not None and begins >= 0:
            entry.append((name, about, text[begins : min(tag.start(), begins + MAX_LENGTH)]))
        prefix, _, local = raw.rpartition(":")
        name, root, begins = local.lower() if prefix in prefixes else raw, root or raw, -1
        is_last = raw == root and bool(slash)
        is_closed |= is_last
        if name in entries or (is_last and entry is not None):
            if entry is not None:
                flaws["an entry without its end tag"] += is_last or not slash
                yield entry
            entry = None if slash or attributes.endswith("/") else [*around, ("", attributes, "")]
            parents = []
        elif entry is None:
            around += [("", attributes, "")] if "xml:base" in attributes and len(around) < 9 else []
        elif slash:
            del parents[parents.index(name) if name in parents else len(parents) :]
        else:
            if name in parts and not parents and len(entry) < MAX_PARTS:
                about, begins = attributes, tag.end()
            if not attributes.endswith("/") and len(parents) < MAX_DEPTH:
                parents.append(name)
    if entry is not None:
        flaws["an entry that is cut, and left out"] += 1
    elif not is_closed:
        flaws[f"no end tag </{root}>"] += 1
