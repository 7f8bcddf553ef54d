"""Digests and entity tags by value: which texts say that the content is the same."""

from __future__ import annotations

import hashlib
import re
from base64 import b32decode

import numpy as np

from policies.live.logs.columns import Codes, Columns

ALGORITHMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
SIZES = {name: hashlib.new(name).digest_size for name in ALGORITHMS}
NOTHING = frozenset(hashlib.new(name).hexdigest() for name in ALGORITHMS)
"""Digests of no bytes."""
CODING = re.compile(r"(?i)([-;_:.]+(gzip|gz|br|zstd|deflate)|;;;)+$")
"""Content coding at the end of an entity tag, as servers add it (RFC 9110, section 8.8.3.3)."""
_NAMED = re.compile(r"(?i)(md5|sha-?(?:1|224|256|384|512)):(.+)")


def canonical(text: str) -> str:
    """Return a text that is the same for digests of one value.

    The name of an algorithm before a colon is no part of the value. Bytes in hexadecimal digits,
    in any case, or in base32 (RFC 4648, all letters in one case) are small hexadecimal digits; this
    takes the length of the algorithm, or, without a name, that of one in hexadecimal digits, or of
    SHA-1 in base32. Any other text is itself. Entity tags are compared weakly (RFC 9110, section
    8.8.3.2).
    """
    if text.startswith('W/"'):
        return text[2:]
    named = _NAMED.fullmatch(text)
    body = named[2] if named else text
    sizes = [SIZES[named[1].lower().replace("-", "")]] if named else list(SIZES.values())
    if len(body) in [2 * size for size in sizes] and re.fullmatch("[0-9A-Fa-f]+", body):
        return body.lower()
    bare = body.rstrip("=").upper()
    in_base32 = body in (body.upper(), body.lower()) and re.fullmatch("[A-Z2-7]+", bare)
    if in_base32 and len(bare) in ([-(-sizes[0] * 8 // 5)] if named else [32]):
        return b32decode(bare + "=" * (-len(bare) % 8)).hex()
    return body


def digests(rows: Columns, word: str) -> Codes:
    """Return the canonical digests of a column, -1 where there is none; note what was merged."""
    coded = rows.codes(word, optional=True)
    values: dict[str, int] = {}
    texts = coded.texts.to_pylist()
    if word == "etag":  # a reader of CSV takes the quotes of strong tags, but not of weak ones
        texts = [CODING.sub("", text.removeprefix("W/").strip('"')).strip('"') for text in texts]
    named = {found[1].lower().replace("-", "") for text in texts if (found := _NAMED.match(text))}
    if len(named) > 1:
        rows.notes.append(
            f"digests in column {rows.names[word]!r} are of several algorithms, of which a change "
            f"counts as one of content: {', '.join(sorted(named))}"
        )
    number = np.array([values.setdefault(canonical(text), len(values)) for text in texts] + [-1])
    if len(values) < len(texts):
        rows.notes.append(
            f"texts in column {rows.names[word]!r} that differ from others only in the name of the "
            f"algorithm, in case or coding (-gzip), and so are the same: {len(texts) - len(values)}"
        )
    return Codes(number[coded.number], list(values))
