"""Files of crawls: CSV, JSON lines, Parquet, logs of Heritrix, and indexes of web archives.

- ``csv``: a header line and values between commas, semicolons, bars or tabs, whichever the header
  has most of (RFC 4180).
- ``jsonl``: a JSON object per line, as in a feed of Scrapy or the index of Common Crawl; or one
  array of objects, or of arrays of which the first has the names, as of CDX servers with
  ``output=json``. Values of objects in it have dotted names: ``hash.body_md5``; an array of one
  value is this value.
- ``parquet``: a Parquet file; fields of structures have dotted names.
- ``heritrix``: ``crawl.log``, with fields between blanks: 1 time of logging in ISO 8601, 2 fetch
  status, an HTTP status or a code below 100 if there was none, 4 URI, 10 digest; 3 is the size, 5
  to 9 are discovery path, referrer, MIME type, thread, and begin and duration of the fetch, 11 is
  the source tag, and 12 has annotations, of which that the content was truncated is read
  (github.com/internetarchive/heritrix3/wiki/Logs).
- ``cdx``: an index whose first line names the fields by letters, of which ``a`` (original URL),
  ``b`` (date) and ``k`` or ``c`` (checksum) are needed and ``N`` (key), ``m`` (MIME type), ``s``
  (status) and ``r`` (target of a redirect) are read; what is before ``CDX`` separates fields
  (iipc.github.io/warc-specifications/specifications/cdx-format/cdx-2015). Without such a line the
  fields begin with ``N b a m s k``, as in the answers of CDX servers.
- ``cdxj``: lines ``urlkey timestamp {"url": .., "status": .., "digest": ..}``, as of pywb
  (pywb.readthedocs.io/en/latest/manual/indexing.html).

The first line tells the format, or else the extension. All but Parquet may be compressed, by gzip,
bzip2 or zstd. A resume key after an empty line at the end, as CDX servers write it, is no row.
"""

from __future__ import annotations

import csv
import io
import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from crawl_envs.types import IntArray
from crawl_envs.types.arguments import one_of
from policies.live.logs.columns import REPLACED, BadRows, Columns, Part, Wanted, with_one_status
from policies.live.logs.opening import check_kind, decompressed

FORMATS = ("csv", "jsonl", "parquet", "heritrix", "cdx", "cdxj")
EXTENSIONS = {name: name for name in FORMATS} | {"tsv": "csv", "jl": "jsonl", "ndjson": "jsonl"}
STAMP = r"(\d\d){2,7}(\d{3})?"
FIRST_LINES = {
    "parquet": r"PAR1",
    "cdx": rf"\W?CDX\W|\S+ {STAMP} \S+ \S+ (\d{{3}}|-) ",
    "jsonl": r"\{\s*[\"}]|\[\s*[\[{\]]|\[$",
    "cdxj": rf"!|\S+ {STAMP} \{{",
    "heritrix": r"\d{4}-\d\d-\d\dT\S+\s+-?\d+\s",
    "csv": r"[^,;|\t]+[,;|\t]",
}
"""Patterns of the first line."""
HERITRIX = (
    r"^(?P<time>\S+)\s+(?P<status>\S+)\s+\S+\s+(?P<url>\S+)(?:\s+\S+){5}\s+(?P<digest>\S+)"
    r"(?:\s+\S+\s+\S*?(?P<truncated>(?:time|len|header)Trunc)|\s|$)"
)
CDX_FIELDS = {"N": "urlkey", "a": "url", "b": "time", "m": "mime", "s": "status", "k": "digest"}
CDX_FIELDS |= {"r": "redirect"}
CDX_LETTERS = "N b a m s k"
CDX_HEADER = re.compile(r"(\W?)CDX(\W)")
CDXJ = re.compile(r"(?P<urlkey>\S+) (?P<time>\d+) (?=\{)")
SURROGATES = re.compile("[\ud800-\udfff]")
VALUE = re.compile(r"\w+://.*|(?=.*\d)[-+:.TZ\d ]+")
"""Text that is no name of a column."""
BLOCK = 1 << 24
"""Largest record of a CSV file in bytes."""
BATCH = 100_000
"""JSON lines that are taken apart at a time."""
OPTIONAL = {"redirect", "mime", "truncated"}
"""Columns that only some of several files may have."""
RESUME = "ends with a resume key: the server has more captures than this file"
Bad = Callable[[int, str], None]
"""Takes the number of a line that cannot be read, and what is wrong."""


def read_columns(path: Path | Sequence[Path], wanted: Wanted, format: str | None = None) -> Columns:
    """Read the wanted columns of files of one of FORMATS; None to guess it.

    Raises:
        ValueError: no such file, unknown format, a missing column, files with other columns than
            the first, or too many lines that do not have the format.
    """
    if format is not None:
        one_of("format", format, FORMATS)
    bad = BadRows(wanted.max_bad)
    parts = [
        with_one_status(_read(one, wanted, format, partial(bad.add, number)), wanted)
        for number, one in enumerate([path] if isinstance(path, Path) else path)
    ]
    for part in parts[1:]:
        differing = (set(part.names) ^ set(parts[0].names)) - OPTIONAL
        if differing:
            raise ValueError(
                f"{part.path}: expected columns as in {parts[0].path}, but {min(differing)!r} is "
                "only in one of them; read files of different kinds one by one"
                f"{wanted.way_out(min(differing))}"
            )
    return Columns(parts, wanted, bad)


def _read(path: Path, wanted: Wanted, format: str | None, bad: Bad) -> Part:
    """Read the wanted columns of one file."""
    if not path.is_file():
        what = "a folder, expected its files" if path.is_dir() else "no such file"
        raise ValueError(f"{path}: {what}")
    try:
        check_kind(path, wanted.columns.get("time", ""))
        with _open(path) as file:
            first = file.readline(100_000).rstrip("\r\n")
        if not first:
            raise ValueError(f"{path} is empty or begins with an empty line, expected rows")
        if first[0] in "\x1f\x00\ufffd":
            expected = "text in UTF-8, also gzip, bzip2 or zstd, or Parquet"
            raise ValueError(f"{path}: begins with {first[:8]!r}, no text, expected {expected}")
        format = format or guess_format(path, first, wanted)
        if format == "csv":
            return _read_csv(path, wanted, max("|\t;,", key=first.count), bad)
        if format == "parquet":
            return _read_parquet(path, wanted)
        if format in ("jsonl", "cdxj"):
            return _read_json(path, wanted, format == "cdxj", bad)
        pattern = HERITRIX if format == "heritrix" else cdx_pattern(path, first)
        return _read_fields(path, wanted, pattern, bad)
    except (pa.ArrowException, OSError, EOFError, UnicodeError) as error:
        words = f"a whole {format or 'text'} file"
        raise ValueError(f"{path}: expected {words}, but {str(error).splitlines()[0]}") from None


def guess_format(path: Path, first: str, wanted: Wanted) -> str:
    """Return the format by the first line, or else the extension, or raise ValueError."""
    suffixes = (suffix[1:].lower() for suffix in reversed(path.suffixes[-2:]))
    extension = [EXTENSIONS[suffix] for suffix in suffixes if suffix in EXTENSIONS]
    header = any(wanted.includes(name.strip('"')) for name in re.split("[,;|\t]", first))
    for format, pattern in FIRST_LINES.items():
        if re.match(pattern, first) and (format != "csv" or header or not extension):
            return format
    if extension:
        return extension[0]
    raise ValueError(f"{path}: first line {first[:60]!r}, expected one of the formats {FORMATS}")


def cdx_pattern(path: Path, first: str) -> str:
    """Return the pattern of lines of an index by its first line, or raise ValueError."""
    header = CDX_HEADER.match(first)
    between = header[1] or header[2] if header else " "
    letters = (first[header.end() :] if header else CDX_LETTERS).split(between)
    fields = {letter: name for letter, name in CDX_FIELDS.items() if letter in letters}
    if "k" not in letters and "c" in letters:
        fields["c"] = "digest"
    for letter, name in (("a", "url"), ("b", "time"), ("k", "digest")):
        if name not in fields.values():
            raise ValueError(f"{path}, line 1: got fields {letters}, expected {letter!r} ({name})")
    word = f"[^{re.escape(between)}]+"
    until = max(map(letters.index, fields)) + 1
    parts = [word] * until
    for letter, name in fields.items():
        parts[letters.index(letter)] = f"(?P<{name}>{word})"
    return f"^{re.escape(between).join(parts)}(?:{re.escape(between)}|$)"


def _open(path: Path) -> io.TextIOWrapper:
    """Return the file as UTF-8 text without a byte order mark, decompressed.

    U+FFFD takes the place of other bytes; a URL with it is none (:class:`Columns`).
    """
    stream = io.BufferedReader(decompressed(path), 1 << 20)
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")


def _read_csv(path: Path, wanted: Wanted, delimiter: str, bad: Bad) -> Part:
    """Read a CSV file; all columns are text."""
    _, header = next(_records(path, delimiter))
    if not any(map(wanted.includes, header)) and any(map(VALUE.fullmatch, header)):
        expected = "expected the names of columns, such as url,time,hash: add a line with them"
        raise ValueError(f"{path}: the first line has values, {header}, {expected}")
    names = wanted.names(path, header)
    skipped = []

    def skip(row: Any) -> str:
        skipped.append(row)
        return "skip"

    read = partial(
        pa.csv.read_csv,
        read_options=pa.csv.ReadOptions(block_size=BLOCK),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
        ),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(names.values()),
            column_types=dict.fromkeys(names.values(), pa.large_string()),
        ),
    )
    try:
        table = read(decompressed(path))
    except pa.ArrowInvalid as error:
        if "invalid UTF8" not in str(error):
            raise
        with _open(path) as file:
            table = read(io.BytesIO(file.read().encode()))

    @cache
    def records() -> IntArray:
        """Return line and number of values of each record, (r, 2)."""
        pairs = ((line, len(record)) for line, record in _records(path, delimiter))
        return np.fromiter(pairs, np.dtype((np.int64, 2)))

    def number(row: int) -> int:
        return int(records()[records()[:, 1] == len(header), 0][row + 1])

    _check_lines(path, table, names, delimiter, number)
    for line, size in records().tolist() if skipped else ():
        if size != len(header):
            expected = f"expected {len(header)}, as the header has"
            bad(line, f"{path}, line {line}: got {size} values, {expected}")

    return Part(path, table, names, "line", number, present=tuple(header))


def _check_lines(
    path: Path,
    table: Any,
    names: Mapping[str, str],
    delimiter: str,
    number: Callable[[int], int],
) -> None:
    """Raise ValueError for a value of several rows: an open quote takes all that follows."""
    rows = rf"\n[^\n]*{re.escape(delimiter)}"
    for name in names.values():
        broken = pc.fill_null(pc.match_substring_regex(table[name], rows), False)
        if pc.any(broken).as_py():
            raise ValueError(
                f"{path}, line {number(broken.to_pylist().index(True))}, column {name!r}: got a "
                "value of several rows, expected one of a row: a quote may be open"
            )


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the records of a CSV file that are not empty, with the line of each."""
    limit = csv.field_size_limit(BLOCK)
    try:
        with _open(path) as file:
            reader, line = csv.reader(file, delimiter=delimiter), 1
            for record in reader:
                if record:
                    yield line, record
                line = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _read_parquet(path: Path, wanted: Wanted) -> Part:
    """Read a Parquet file."""
    with pa.parquet.ParquetFile(path) as file:
        present = tuple(_flat_table(file.schema_arrow.empty_table()).column_names)
        names = wanted.names(path, present)
        table = _flat_table(file.read(columns=list(names.values())))
    return Part(path, table, names, "row", lambda row: row + 1, present=present)


def _flat_table(table: Any) -> Any:
    """Return a table with a column for each field of structures, by dotted names."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Iterate over the numbered lines that are neither empty nor a header of an index."""
    header = True
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            header &= line[0] == "!" or bool(CDX_HEADER.match(line)) or not line.strip()
            if line.strip() and not header:
                yield number, line


def _read_fields(path: Path, wanted: Wanted, pattern: str, bad: Bad) -> Part:
    """Read lines whose fields are the groups of a pattern."""
    numbers = array("q")

    def lines() -> Iterator[str]:
        for number, line in _lines(path):
            numbers.append(number)
            yield line.rstrip("\r\n")

    texts = pa.array(lines(), pa.large_string())
    fields = pc.extract_regex(texts, pattern)
    rows = np.flatnonzero(fields.is_valid())
    notes: tuple[str, ...] = ()
    for row in np.flatnonzero(fields.is_null()).tolist():
        line, got = numbers[row], texts[row].as_py()
        if 0 < row == len(texts) - 1 and " " not in got and numbers[row - 1] < line - 1:
            notes = (f"{path} {RESUME}",)
        else:
            bad(line, f"{path}, line {line}: got {got[:60]!r}, expected more fields")
    fields = fields.take(pa.array(rows))
    table = pa.table({x: pc.struct_field(fields, x) for x in re.compile(pattern).groupindex})
    names = wanted.names(path, table.column_names)
    archive = pattern != HERITRIX
    return Part(path, table, names, "line", lambda row: numbers[rows[row]], notes, archive)


def _read_json(path: Path, wanted: Wanted, in_index: bool, bad: Bad) -> Part:
    """Read JSON lines, those of an index, or an array, in batches; all columns are text."""
    with _open(path) as file:
        in_array = file.read(1) == "["
    records, notes = _in_array(path, bad) if in_array else (_objects(path, in_index, bad), ())
    batches: list[Any] = []
    numbers: list[int] = []
    present: dict[str, None] = {}
    while batch := list(islice(records, BATCH)):
        numbers += [number for number, _ in batch]
        present |= dict.fromkeys(chain(*(row for _, row in batch)))
        read = filter(wanted.includes, present)
        texts = {name: [_as_text(row.get(name)) for _, row in batch] for name in read}
        batches.append(pa.table({name: _strings(column) for name, column in texts.items()}))
    if not batches:
        batches = [pa.table(dict.fromkeys(wanted.required, pa.array([], pa.large_string())))]
    table = pa.concat_tables(batches, promote_options="default")
    every = tuple(present) if numbers else wanted.required
    names, counted = wanted.names(path, every), "row" if in_array else "line"
    found = () if in_index else every  # the other fields of an index are known
    return Part(path, table, names, counted, lambda row: numbers[row], notes, in_index, found)


def _objects(path: Path, in_index: bool, bad: Bad) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the JSON objects of lines, with key and time of an index, and their numbers."""
    for number, line in _lines(path):
        found = CDXJ.match(line) if in_index else None
        try:
            record = _flat(json.loads(line[found.end() :] if found else line))
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or (in_index and not found):
            words = "urlkey, timestamp and a JSON object" if in_index else "a JSON object"
            bad(number, f"{path}, line {number}: got {line.strip()[:60]!r}, expected {words}")
        else:
            yield number, record | (found.groupdict() if found else {})


def _in_array(path: Path, bad: Bad) -> tuple[Iterator[tuple[int, dict[str, Any]]], tuple[str, ...]]:
    """Return the numbered rows of a JSON array of objects, or of arrays after the names; notes."""
    with _open(path) as file:
        try:
            rows = [_flat(row) for row in json.load(file)]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: expected a whole JSON array, but {error}") from None
    notes: tuple[str, ...] = ()
    if len(rows) > 2 and rows[-2] == []:
        rows, notes = rows[:-2], (f"{path} {RESUME}",)
    header, found = (rows.pop(0) if rows and isinstance(rows[0], list) else None), []
    for number, row in enumerate(rows, 1):
        if header and isinstance(row, list) and len(row) == len(header):
            row = dict(zip(header, row, strict=True))
        if isinstance(row, dict):
            found.append((number, row))
        else:
            expected = header or "an object"
            bad(number, f"{path}, row {number}: got {str(row)[:60]}, expected {expected}")
    return iter(found), notes


def _flat(row: Any) -> Any:
    """Return an object without nulls, those in it taken apart by dotted names; else the value."""
    if not isinstance(row, dict):
        return row
    flat: dict[str, Any] = {}
    for name, value in row.items():
        single = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(single, dict):
            flat |= {f"{name}.{inner}": x for inner, x in _flat(single).items()}
        elif single is not None:
            flat[name] = single
    return flat


def _strings(texts: list[str | None]) -> Any:
    """Return an array of texts, with U+FFFD in the place of surrogates, which are no UTF-8."""
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        known = (text and SURROGATES.sub(REPLACED, text) for text in texts)
        return pa.array(known, pa.large_string())


def _as_text(value: Any) -> str | None:
    """Return a value of JSON as text, None if it has none."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
