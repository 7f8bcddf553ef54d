"""Read files of crawls: CSV, JSON lines, Parquet, Heritrix logs, indexes of web archives.

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
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

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
"""The pattern of a file's first line by format."""
HERITRIX = (
    r"^(?P<time>\S+)\s+(?P<status>\S+)\s+(?P<size>\S+)\s+(?P<url>\S+)(?:\s+\S+){5}\s+"
    r"(?P<digest>\S+)"
    r"(?:\s+\S+\s+\S*?(?P<truncated>(?:time|len|header)Trunc)|\s|$)"
)
CDX_FIELDS = {"N": "urlkey", "a": "url", "b": "time", "m": "mime", "s": "status", "k": "digest"}
CDX_FIELDS |= {"r": "redirect"}
CDX_LETTERS = "N b a m s k"
CDX_HEADER = re.compile(r"(\W?)CDX(\W)")
CDXJ = re.compile(r"(?P<urlkey>\S+) (?P<time>\d+) (?=\{)")
SURROGATES = re.compile("[\ud800-\udfff]")
VALUE = re.compile(r"\w+://.*|(?=.*\d)[-+:.TZ\d ]+")
"""Matches a text that cannot be the name of a column."""
BLOCK = 1 << 24
"""Largest record of a CSV file in bytes."""
BATCH = 100_000
"""Records that are read at a time."""
OPTIONAL = {"redirect", "mime", "truncated"}
"""Columns that may be missing in some of several files."""
RESUME = "ends with a resume key: the server has more captures than this file"
Bad = Callable[[int, str], None]
"""Function that is called with the number of a line that cannot be read, and the reason."""
Record: TypeAlias = tuple[int, dict[str, Any]]
"""Number of a line or row, and its values by name."""


def read_columns(path: Path | Sequence[Path], wanted: Wanted, format: str | None = None) -> Columns:
    """Read the wanted columns of files in a format of FORMATS; None guesses the format.

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
        if format == "parquet":
            return _read_parquet(path, wanted)
        return _read_records(path, wanted, format, first, bad)
    except (pa.ArrowException, OSError, EOFError, UnicodeError, csv.Error) as error:
        words = f"a whole {format or 'text'} file"
        raise ValueError(f"{path}: expected {words}, but {str(error).splitlines()[0]}") from None


def guess_format(path: Path, first: str, wanted: Wanted) -> str:
    """Guess a file's format by its first line, else by its extension; ValueError if unknown."""
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
    """Return the pattern of a CDX index's lines, by its first line; ValueError if unknown."""
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

    U+FFFD replaces bytes that are not UTF-8; a URL with it is bad (:class:`Columns`).
    """
    stream = io.BufferedReader(decompressed(path), 1 << 20)
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")


def _read_records(path: Path, wanted: Wanted, format: str, first: str, bad: Bad) -> Part:
    """Read a file record by record, in batches; all columns are text."""
    header: list[str] = []
    notes: list[str] = []
    delimiter = max("|\t;,", key=first.count)
    in_array = format in ("jsonl", "cdxj") and first.startswith("[")
    if format == "csv":
        header, records = _of_csv(path, wanted, delimiter, bad)
    elif format in ("heritrix", "cdx"):
        pattern = re.compile(HERITRIX if format == "heritrix" else cdx_pattern(path, first), re.A)
        header, records = list(pattern.groupindex), _of_lines(path, pattern, bad, notes)
    elif in_array:
        records = _of_array(path, bad, notes)
    else:
        records = _of_objects(path, format == "cdxj", bad)
    names = wanted.names(path, header) if header else {}
    numbers, batches, present = array("q"), list[Any](), dict[str, None]()
    while batch := list(islice(records, BATCH)):
        numbers.extend(number for number, _ in batch)
        present |= dict.fromkeys(chain(*(record for _, record in batch)))
        read = filter(wanted.includes, present)
        texts = {name: [_as_text(record.get(name)) for _, record in batch] for name in read}
        batches.append(pa.table({name: _strings(column) for name, column in texts.items()}))
    names = names or wanted.names(path, present if numbers else wanted.required)
    empty = pa.table(dict.fromkeys(names.values(), pa.array([], pa.large_string())))
    table = pa.concat_tables([empty, *batches], promote_options="default")
    if format == "csv":
        _check_lines(path, table, names, delimiter, numbers)
    return Part(
        path,
        table,
        names,
        "row" if in_array else "line",
        np.array(numbers),
        tuple(notes),
        stamped=format in ("cdx", "cdxj"),
        present=tuple(header or present) if format in ("csv", "jsonl") else (),
    )


def _of_csv(
    path: Path, wanted: Wanted, delimiter: str, bad: Bad
) -> tuple[list[str], Iterator[Record]]:
    """Return the column names of a CSV file, and an iterator over its records."""
    rows = _rows(path, delimiter)
    _, header = next(rows)
    if not any(map(wanted.includes, header)) and any(map(VALUE.fullmatch, header)):
        expected = "expected the names of columns, such as url,time,hash: add a line with them"
        raise ValueError(f"{path}: the first line has values, {header}, {expected}")

    def records() -> Iterator[Record]:
        for line, row in rows:
            if len(row) == len(header):
                yield line, dict(zip(header, row, strict=True))
            else:
                expected = f"expected {len(header)}, as the header has"
                bad(line, f"{path}, line {line}: got {len(row)} values, {expected}")

    return header, records()


def _check_lines(
    path: Path, table: Any, names: Mapping[str, str], delimiter: str, numbers: Sequence[int]
) -> None:
    """Raise ValueError if a value spans several rows, since an open quote swallows what follows."""
    rows = rf"\n[^\n]*{re.escape(delimiter)}"
    for name in names.values():
        broken = pc.fill_null(pc.match_substring_regex(table[name], rows), False)
        if pc.any(broken).as_py():
            raise ValueError(
                f"{path}, line {numbers[broken.to_pylist().index(True)]}, column {name!r}: got a "
                "value of several rows, expected one of a row: a quote may be open"
            )


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the rows of a CSV file that are not empty, with the line of each."""
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
    numbers = np.arange(1, table.num_rows + 1)
    return Part(path, table, names, "row", numbers, present=present)


def _flat_table(table: Any) -> Any:
    """Return a table in which each field of a structure is a column with a dotted name."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that is neither empty nor the header of an index."""
    header = True
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            header &= line[0] == "!" or bool(CDX_HEADER.match(line)) or not line.strip()
            if line.strip() and not header:
                yield number, line


def _of_lines(path: Path, pattern: re.Pattern[str], bad: Bad, notes: list[str]) -> Iterator[Record]:
    """Yield the values that a pattern finds in each line; add a note on a resume key."""
    before = 0
    for (number, line), (following, _) in pairwise(chain(_lines(path), [(0, "")])):
        text = line.rstrip("\r\n")
        if match := pattern.match(text):
            yield number, match.groupdict()
        elif 0 < before < number - 1 and not following and " " not in text:
            notes.append(f"{path} {RESUME}")
        else:
            bad(number, f"{path}, line {number}: got {text[:60]!r}, expected more fields")
        before = number


def _of_objects(path: Path, in_index: bool, bad: Bad) -> Iterator[Record]:
    """Yield the JSON object of each line, with the key and time before it if ``in_index``."""
    for number, line in _lines(path):
        key = CDXJ.match(line) if in_index else None
        try:
            record = _flat(json.loads(line[key.end() :] if key else line))
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or (in_index and not key):
            words = "urlkey, timestamp and a JSON object" if in_index else "a JSON object"
            bad(number, f"{path}, line {number}: got {line.strip()[:60]!r}, expected {words}")
        else:
            yield number, record | (key.groupdict() if key else {})


def _of_array(path: Path, bad: Bad, notes: list[str]) -> Iterator[Record]:
    """Yield the rows of a JSON array of objects, or of arrays after names; note resume keys."""
    with _open(path) as file:
        try:
            rows = [_flat(row) for row in json.load(file)]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: expected a whole JSON array, but {error}") from None
    if len(rows) > 2 and rows[-2] == []:
        rows = rows[:-2]
        notes.append(f"{path} {RESUME}")
    header = rows.pop(0) if rows and isinstance(rows[0], list) else None
    for number, row in enumerate(rows, 1):
        if header and isinstance(row, list) and len(row) == len(header):
            row = dict(zip(header, row, strict=True))
        if isinstance(row, dict):
            yield number, row
        else:
            expected = header or "an object"
            bad(number, f"{path}, row {number}: got {str(row)[:60]}, expected {expected}")


def _flat(row: Any) -> Any:
    """Flatten a JSON object to dotted names without nulls; return any other value as it is."""
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
    """Return an Arrow array of texts; U+FFFD replaces surrogates, which are no UTF-8."""
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        replaced = (text and SURROGATES.sub(REPLACED, text) for text in texts)
        return pa.array(replaced, pa.large_string())


def _as_text(value: Any) -> str | None:
    """Return a JSON value as text; None stays None."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
