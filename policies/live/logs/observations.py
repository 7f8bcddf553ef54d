"""Decide what each row of a crawl log shows: changed, unchanged, or gone.

Rows of web archives may be no responses: revisits, requests and metadata. A revisit says that a
response was that of an earlier record: it has the same digest, or the server says that nothing has
changed, in WARC 1.1 the profiles ``identical-payload-digest`` and ``server-not-modified``
(iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1). Indexes often lack the
status of both, and of the second have the digest of no bytes, or none.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b32decode
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.logs.columns import FLAGS, Codes, Columns, expected_kind
from policies.live.logs.crawl_log import OUTCOMES
from policies.live.logs.times import MICROSECONDS_PER_DAY, Times

EVIDENCE = ("changed", "hash", "digest", "etag", "last_modified")
"""Columns that tell whether a page changed, by rank; only the first present one is used."""
PARTIAL, NOT_MODIFIED, GONE = 206, 304, (404, 410)
"""Status of HTTP: RFC 9110, sections 15.3.7, 15.4.5, 15.5.5 and 15.5.11. The digest of a part tells
nothing of the whole."""
FIRST, UNCHANGED, CHANGED, FAILED, REDIRECTED, NOT_FOUND, NO_EVIDENCE = range(len(OUTCOMES))
SHARED = 3
"""Least number of pages that change to the same digest for a note."""


ALGORITHMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
SIZES = {name: hashlib.new(name).digest_size for name in ALGORITHMS}
NOTHING = frozenset(hashlib.new(name).hexdigest() for name in ALGORITHMS)
"""Digests of empty content."""
CODING = re.compile(r"(?i)([-;_:.]+(gzip|gz|br|zstd|deflate)|;;;)+$")
"""Matches the content coding that servers append to entity tags (RFC 9110, section 8.8.3.3)."""
_NAMED = re.compile(r"(?i)(md5|sha-?(?:1|224|256|384|512)):(.+)")
NO_RESPONSES = re.compile(r"(?i)warc/(request|metadata|warcinfo)|application/warc-fields|text/dns")


class Evidence(NamedTuple):
    """What rows tell about content: the column, a value per row (NaN: nothing), texts of digests.

    ``until`` is the end of the day if a Last-Modified has only a day, else ``value``. ``slack`` is
    how much the time of the crawl and the server's clock may differ.
    """

    word: str
    value: FloatArray
    texts: list[str]
    until: FloatArray
    slack: FloatArray


class Crawls(NamedTuple):
    """Crawls sorted by page and time: each one's row, page, time and HTTP status (NaN: unknown)."""

    row: IntArray
    page: IntArray
    time: FloatArray
    status: FloatArray

    def subset(self, mask: BoolArray) -> Crawls:
        """Return the crawls that a mask selects."""
        return Crawls(self.row[mask], self.page[mask], self.time[mask], self.status[mask])

    def first(self) -> BoolArray:
        """Return a mask of the crawls that are their page's first, (n,)."""
        first: BoolArray = np.diff(self.page, prepend=-1) != 0
        return first


def evidence_of(
    rows: Columns, word: str, times: Times, status: FloatArray, dated: bool, tolerance: float
) -> Evidence:
    """Return the evidence of changes in column ``word``; add notes on rows without evidence."""
    truncated = rows.where("truncated", lambda text: FLAGS.get(text.lower()) != 0.0)
    truncated &= word not in ("etag", "last_modified")  # servers make these of the whole content
    rows.note("rows with a part of the content, whose digest is no evidence", truncated)
    if word == "changed":
        value = np.where(truncated, np.nan, rows.flags(word))
        return Evidence(word, value, [], value, value)
    if word != "last_modified":
        number, texts = digests(rows, word)
        empty = [k for k, text in enumerate(texts) if text in NOTHING]
        fine = (np.isnan(status) | (status == 200.0)) & ~are_revisits(rows)
        what = "rows without an error that have the digest of no bytes, taken as content"
        rows.note(what, np.isin(number, empty) & fine)
        value = np.where((number < 0) | truncated, np.nan, number)
        return Evidence(word, value, texts, value, value)
    last, present = rows.parsed(word)
    wrong = present & (np.isnan(last.value) | (last.dated != dated))
    rows.guessed(word, [x for x in last.guesses if dated != ("as days" in x)])
    if wrong.any() and (wrong == present).all():
        row = int(np.argmax(wrong))
        expected = last.expected if np.isnan(last.value[row]) else expected_kind(dated)
        raise ValueError(rows.wrong(word, row, expected)[2] + rows.wanted.way_out(word))
    day = MICROSECONDS_PER_DAY if dated else 1.0
    slack = day * (np.where(times.whole_day, 0.5, 0.0) + tolerance / 86_400.0)
    late = ~wrong & (last.value > times.value + slack)
    rows.note("rows whose Last-Modified cannot be read, no evidence", wrong)
    rows.note("rows whose Last-Modified is later than the crawl, no evidence", late)
    value = np.where(wrong | late, np.nan, last.value)
    return Evidence(word, value, [], value + day * last.whole_day, slack)


def canonical(text: str) -> str:
    """Convert a digest to a form that is the same for all spellings of its value.

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
    """Return a column's canonical digests as codes, -1 for none; add notes on merged spellings."""
    coded = rows.codes(word, optional=True)
    values: dict[str, int] = {}
    texts = coded.texts.to_pylist()
    if word == "etag":  # a reader of CSV takes the quotes of strong tags, but not of weak ones
        texts = [CODING.sub("", text.removeprefix("W/").strip('"')).strip('"') for text in texts]
    named = {match[1].lower().replace("-", "") for text in texts if (match := _NAMED.match(text))}
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


def are_revisits(rows: Columns) -> BoolArray:
    """Return a mask of the rows that are a web archive's revisit records, (n,)."""
    return rows.where("mime", lambda text: text.lower() == "warc/revisit")


def leave_out_records(rows: Columns) -> None:
    """Exclude archive records that are neither responses nor revisits, and add a note on them."""
    no_response = rows.where("mime", lambda text: bool(NO_RESPONSES.match(text)))
    rows.note("records of an archive that are no responses, left out", no_response & rows.good)
    rows.good &= ~no_response


def status_of_revisits(
    rows: Columns, evidence: Evidence, page: IntArray, time: FloatArray, status: FloatArray
) -> FloatArray:
    """Return the status of each row, (n,); a revisit may get that of the record it revisits.

    The revisited record is the page's last one with the same digest, or another page's. Without
    a digest it is the page's previous record; if that has content, the status is 304.
    """
    empty = np.isin(evidence.value, [k for k, x in enumerate(evidence.texts) if x in NOTHING])
    digest = np.where(empty | np.isnan(evidence.value), -1, evidence.value).tolist()
    missing = are_revisits(rows) & (np.isnan(status) | (empty & (status == 200.0)))
    if not evidence.texts or not missing.any():
        return status
    kinds = kinds_of(np.where(missing, np.nan, status)).tolist()
    statuses = np.where(missing, np.nan, status).tolist()
    last_of_page: dict[int, int] = {}
    last_of_digest: dict[tuple[int, int], int] = {}
    in_time = np.argsort(time, kind="stable")
    for row in in_time[rows.good[in_time]].tolist():
        here, anywhere = (int(page[row]), digest[row]), (-1, digest[row])
        unmodified = missing[row] and digest[row] < 0
        if unmodified:
            source = last_of_page.get(here[0], row)
        elif missing[row]:
            source = last_of_digest.get(here, last_of_digest.get(anywhere, row))
        else:
            source = row
            if statuses[row] != NOT_MODIFIED:
                last_of_digest[here] = last_of_digest[anywhere] = row
        statuses[row], kinds[row] = statuses[source], kinds[source]
        if unmodified and kinds[row] == NO_EVIDENCE:
            statuses[row] = float(NOT_MODIFIED)
        if kinds[row] != FAILED:
            last_of_page[here[0]] = row
    rows.note("revisits without a status, read as what they revisit", missing & rows.good)
    return np.array(statuses)


def distinct_crawls(
    page: IntArray, time: FloatArray, status: FloatArray, good: BoolArray
) -> Crawls:
    """Return the crawls of good rows; among a page's rows at one time, keep the most telling.

    Content tells more than 404 and 410, these more than a redirect, and this more than a failure.
    """
    row = np.lexsort((-kinds_of(status), time, page))
    row = row[good[row]]
    crawls = Crawls(row, page[row], time[row], status[row])
    return crawls.subset(crawls.first() | (np.diff(crawls.time, prepend=-1.0) != 0.0))


def observed(evidence: Evidence, crawls: Crawls) -> tuple[NDArray[np.int8], BoolArray]:
    """Return each crawl's outcome, an index into OUTCOMES, and a mask of crawls that found it gone.

    A page is gone at the first 404 or 410 after the last crawl that found it.
    """
    outcome = kinds_of(crawls.status)
    content = outcome == NO_EVIDENCE
    has_evidence = ~np.isnan(evidence.value[crawls.row]) | (crawls.status == NOT_MODIFIED)
    has_evidence &= crawls.status != PARTIAL
    if evidence.word in ("changed", "last_modified"):
        has_evidence[np.flatnonzero(content)[crawls.subset(content).first()]] = True
    alive = content & has_evidence
    copies = crawls.subset(alive)
    changed = np.where(_changes(evidence, copies), CHANGED, UNCHANGED)
    outcome[alive] = np.where(copies.first(), FIRST, changed)
    last = np.full(crawls.page.max(initial=-1) + 1, crawls.page.size)
    last[copies.page] = np.flatnonzero(alive)
    missing = (outcome == NOT_FOUND) & (np.arange(outcome.size) > last[crawls.page])
    gone = np.zeros(outcome.size, np.bool_)
    gone[np.flatnonzero(missing)[crawls.subset(missing).first()]] = True
    return outcome, gone


def shared_digests(evidence: Evidence, crawls: Crawls, outcome: NDArray[np.int8]) -> list[str]:
    """Return a note on digests that several pages changed to, as of one error page; else none."""
    copies = crawls.subset((outcome <= CHANGED) & ~np.isnan(evidence.value[crawls.row]))
    first = np.flatnonzero(copies.first())
    if not (evidence.texts and first.size):
        return []
    value = evidence.value[copies.row]
    changed = np.minimum.reduceat(value, first) != np.maximum.reduceat(value, first)
    counts = np.bincount(value[np.append(first[1:], value.size) - 1][changed].astype(np.int64))
    if (count := counts.max(initial=0)) < SHARED:
        return []
    more = f", and pages with {n - 1} other digests" if (n := (counts >= SHARED).sum()) > 1 else ""
    return [
        f"{count} pages now have the same content, digest {evidence.texts[counts.argmax()]!r}, and "
        f"had other content before{more}: an error page with status 200?"
    ]


def kinds_of(status: FloatArray) -> NDArray[np.int8]:
    """Classify HTTP status codes as NOT_FOUND, REDIRECTED, FAILED, or NO_EVIDENCE for content."""
    redirected = (status >= 300) & (status < 400) & (status != NOT_MODIFIED)
    failed = (status < 100) | (status >= 400)
    kinds = np.select(
        [np.isin(status, GONE), redirected, failed], [NOT_FOUND, REDIRECTED, FAILED], NO_EVIDENCE
    )
    return kinds.astype(np.int8)


def _changes(evidence: Evidence, crawls: Crawls) -> BoolArray:
    """Return a mask of the crawls that found a change since their page's previous crawl, (n,)."""
    value = evidence.value[crawls.row]
    first, unmodified = crawls.first(), crawls.status == NOT_MODIFIED
    if evidence.word == "changed":
        changed = value == 1.0
    elif evidence.word == "last_modified":
        before, slack = np.roll(crawls.time, 1), np.roll(evidence.slack[crawls.row], 1)
        later = evidence.until[crawls.row] > before - slack
        rank = np.arange(value.size)
        latest = np.append(-1, np.maximum.accumulate(np.where(np.isnan(value), -1, rank)))[:-1]
        begin = np.maximum.accumulate(np.where(first, rank, 0))
        changed = np.where(latest >= begin, (value != value[latest]) & later, value > before)
    else:
        # Status 304 has the digest of the crawl before; -1 if there is none.
        with_digest = first | ~(unmodified | np.isnan(value))
        source = np.maximum.accumulate(np.where(with_digest, np.arange(value.size), 0))
        digest = np.nan_to_num(value[source], nan=-1.0)
        changed = digest != np.roll(digest, 1)
    changes: BoolArray = changed & ~unmodified & ~first
    return changes
