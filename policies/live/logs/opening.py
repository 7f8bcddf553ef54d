"""Open files: decompress them, and reject files that are not tables or logs."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

COMPRESSED = {rb"\x1f\x8b": "gzip", rb"BZh[1-9]1AY": "bz2", rb"\x28\xb5\x2f\xfd": "zstd"}
HEAD_BYTES = 1 << 16
STATES = (
    "a dump of the states of pages (Nutch's crawldb, StormCrawler's status index) has one row for "
    "each page, whose date is that of the next fetch; expected a row for each fetch, as from nutch "
    "readseg; where it has several rows of a page, name their time: --column time=NAME"
)
FILE_KINDS = {
    r"SQLite format 3": "an SQLite database: export its table by "
    "sqlite3 FILE -header -csv 'select ..' > log.csv",
    r"PK\x03\x04.*\nindexes/": "a WACZ file: unpack it, and read its indexes/index.cdx.gz or .cdxj",
    r"PK\x03\x04.*\n(xl/|content\.xml)|\xd0\xcf\x11\xe0": "a spreadsheet: save its sheet as CSV",
    r"PK\x03\x04|7z\xbc\xaf|Rar!|\xfd7zXZ|\x04\x22M\x18|.{257}ustar": "an archive or compressed "
    "file (zip, tar, 7z, xz ..): unpack it, and read what is in it",
    r"ARROW1|ORC[\x00-\x1f]|Obj\x01": "a table of Arrow, ORC or Avro: write it as Parquet",
    r"WARC/\d|filedesc:": "a WARC or ARC file: read its index, by cdxj-indexer FILE > log.cdxj",
    r"\xff\xfe|\xfe\xff": "text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE > log.csv",
    r"--[ \r\n]|/\*!|CREATE TABLE|INSERT INTO|PGDMP": "an SQL dump: export the table as CSV",
    r"Recno:: \d": "a dump of nutch readseg: docs/recipes.md has a script that makes a log of it",
    r"(?i:\S+\s+version: \d|(?=[^\n]*fetch ?time)(?=[^\n]*retr(y ?interval|ies ?since)))": STATES,
    r"[^\n]*\bnextFetchDate\b": STATES,
    r'\s*\{((?!"url").){0,2000}?"(hits|docs)"\s*:\s*\[\s*\{': "an answer of a search index: "
    "write a document a line, by jq -c '.hits.hits[]._source' (Solr: '.response.docs[]') FILE",
    r"\{([^\n]*[^}\s])?[^\S\n]*\n(\s*[^\s{]|[ \t]+\{)": "a JSON object over several lines, "
    "expected one a line: jq -c '.NAME[]' FILE > log.jsonl writes those of NAME in it",
    r"(\S+ ){3,5}\[\d+/\w+/\d+:[^\]\n]*\] \"|\d+\.\d+ +\d+ \S+ \w+/\d+ |#(Software|Version): ": (
        "an access log of a server or proxy, of who asked for pages; docs/recipes.md says what the "
        "log of one's own server can tell, expected what a crawler found"
    ),
    r"\s*<.{0,2000}<(urlset|sitemapindex|rss|feed|rdf)\b": "a sitemap or feed: write a CSV of its "
    "loc and lastmod (link and pubDate), for signals (--events)",
    r"\s*<": "HTML or XML, expected a table or a log",
    r"https?://[^\s,;|]+\s*\n": "a list of URLs without a header: write url in its first line",
}
"""What a file is that begins with a pattern, and the way out; in a zip, names of files follow."""


def decompressed(path: Path) -> Any:
    """Open a file as a stream of bytes, decompressed if it begins as gzip, bzip2 or zstd does."""
    with path.open("rb") as file:
        head = file.read(8)
    names = (name for magic, name in COMPRESSED.items() if re.match(magic, head))
    return pa.input_stream(str(path), compression=next(names, None))


def check_kind(path: Path, time: str) -> None:
    """Raise ValueError for FILE_KINDS; STATES pass if ``time`` names a column of no fetch."""
    with decompressed(path) as stream:
        head = stream.read(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    if head.startswith("PK") and zipfile.is_zipfile(path):
        head += "\n".join(["", *zipfile.ZipFile(path).namelist()])
    what = next((x for pattern, x in FILE_KINDS.items() if re.match(pattern, head, re.DOTALL)), "")
    if what and (what != STATES or not time or "fetch" in time.lower()):
        raise ValueError(f"{path}: {what}")
