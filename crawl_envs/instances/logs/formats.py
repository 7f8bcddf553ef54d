"""Files of crawls: CSV, JSON lines, Parquet, logs of Heritrix, and indexes of web archives.

- ``csv``: a header line and values between commas, or tabs if the header has one (RFC 4180).
- ``jsonl``: a JSON object per line, as in a feed of Scrapy; nested values are no columns.
- ``parquet``: a Parquet file.
- ``heritrix``: ``crawl.log``, with fields between blanks: 1 time of logging in ISO 8601, 2 fetch
  status, an HTTP status or a code below 100 if there was none, 4 URI, 10 digest; 3 is the size, 5
  to 9 are discovery path, referrer, MIME type, thread, and begin and duration of the fetch, 11 and
  12 source tag and annotations (github.com/internetarchive/heritrix3/wiki/Logs).
- ``cdx``: an index whose first line names the fields by letters, of which ``a`` (original URL),
  ``b`` (date) and ``k`` or ``c`` (checksum) are needed and ``s`` (status) is read; its first
  character separates fields
  (iipc.github.io/warc-specifications/specifications/cdx-format/cdx-2015). Without such a line the
  fields begin with ``N b a m s k``, as in the answers of CDX servers.
- ``cdxj``: lines ``urlkey timestamp {"url": .., "status": .., "digest": ..}``, as of pywb
  (pywb.readthedocs.io/en/latest/manual/indexing.html).

All but Parquet may be compressed, with a further extension ``.gz``, ``.bz2`` or ``.zst``. In logs
and indexes ``-`` is an absent value.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.instances.logs.columns import Columns, Wanted
from crawl_envs.types.arguments import one_of

FORMATS = ("csv", "jsonl", "parquet", "heritrix", "cdx", "cdxj")
EXTENSIONS = {name: name for name in FORMATS} | {"tsv": "csv", "jl": "jsonl", "ndjson": "jsonl"}
FIRST_LINES = {
    "parquet": r"PAR1",
    "cdx": r".CDX .|\S+ \d{14} \S+ \S+ (\d{3}|-) ",
    "jsonl": r"\{",
    "cdxj": r"!|\S+ \d{14} \{",
    "heritrix": r"\d{4}-\d\d-\d\dT\S+\s+-?\d+\s",
    "csv": r"[^,\t]+[,\t]",
}
"""Patterns of the first line, where the extension tells nothing."""
HERITRIX = (
    r"^(?P<time>\S+)\s+(?P<status>\S+)\s+\S+\s+(?P<url>\S+)(?:\s+\S+){5}\s+(?P<digest>\S+)(?:\s|$)"
)
CDX_FIELDS = {"a": "url", "b": "time", "s": "status", "k": "digest"}
CDX_LETTERS = "N b a m s k"
CDXJ = re.compile(r"\S+ (?P<time>\d+) (?P<record>\{.*)")
BLOCK = 1 << 24
"""Largest record of a CSV file in bytes."""
BATCH = 100_000
"""JSON lines that are taken apart at a time."""


def read_columns(path: Path, wanted: Wanted, format: str | None = None) -> Columns:
    """Read the wanted columns of a file of one of FORMATS; None to guess it.

    Raises:
        ValueError: no such file, unknown format, a line that does not have it, or a missing column.
    """
    import pyarrow as pa

    if format is not None:
        one_of("format", format, FORMATS)
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        first = _first_line(path)
        if not first:
            raise ValueError(f"{path} is empty or begins with an empty line, expected rows")
        format = format or guess_format(path, first)
        if format == "csv":
            return _read_csv(path, wanted, "\t" if "\t" in first else ",")
        if format == "parquet":
            return _read_parquet(path, wanted)
        if format in ("jsonl", "cdxj"):
            return _read_json(path, wanted, in_index=format == "cdxj")
        pattern = HERITRIX if format == "heritrix" else cdx_pattern(path, first)
        return _read_fields(path, wanted, pattern)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        words = f"a whole {format or 'text'} file"
        raise ValueError(f"{path}: expected {words}, but {str(error).splitlines()[0]}") from None


def guess_format(path: Path, first: str) -> str:
    """Return the format by extension or first line, or raise ValueError."""
    for suffix in reversed(path.suffixes[-2:]):
        if suffix[1:].lower() in EXTENSIONS:
            return EXTENSIONS[suffix[1:].lower()]
    for format, pattern in FIRST_LINES.items():
        if re.match(pattern, first):
            return format
    raise ValueError(f"{path}: first line {first[:60]!r}, expected one of the formats {FORMATS}")


def cdx_pattern(path: Path, first: str) -> str:
    """Return the pattern of lines of an index by its first line, or raise ValueError."""
    named = first[1:5] == "CDX "
    between = first[0] if named else " "
    letters = (first[5:] if named else CDX_LETTERS).split(between)
    fields = {letter: name for letter, name in CDX_FIELDS.items() if letter in letters}
    if "k" not in letters and "c" in letters:
        fields["c"] = "digest"
    for letter, name in (("a", "url"), ("b", "time"), ("k", "digest")):
        if name not in fields.values():
            raise ValueError(f"{path}, line 1: got fields {letters}, expected {letter!r} ({name})")
    word = f"[^{re.escape(between)}]+"
    until = max(map(letters.index, fields)) + 1
    parts = [f"(?P<{fields[x]}>{word})" if x in fields else word for x in letters[:until]]
    return f"^{re.escape(between).join(parts)}(?:{re.escape(between)}|$)"


def _stream(path: Path) -> Any:
    """Return the file as bytes, decompressed by its extension."""
    import pyarrow as pa

    return pa.input_stream(str(path), compression="detect")


def _first_line(path: Path) -> str:
    """Return the beginning of the first line."""
    with io.BufferedReader(_stream(path)) as file:
        return file.readline(100_000).decode("utf-8-sig", "replace").rstrip("\r\n")


def _open(path: Path) -> io.TextIOWrapper:
    """Return the file as UTF-8 text without a byte order mark."""
    stream = io.BufferedReader(_stream(path), 1 << 20)
    return io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")


def _read_csv(path: Path, wanted: Wanted, delimiter: str) -> Columns:
    """Read a CSV file; all columns are text."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    records = _records(path, delimiter)
    _, header = next(records)
    names = wanted.names(path, header)
    try:
        table = arrow.read_csv(
            _stream(path),
            read_options=arrow.ReadOptions(block_size=BLOCK),
            parse_options=arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                include_columns=list(names.values()),
                column_types=dict.fromkeys(names.values(), pa.large_string()),
            ),
        )
    except pa.ArrowInvalid:
        for line, record in records:
            if len(record) != len(header):
                raise ValueError(
                    f"{path}, line {line}: got {len(record)} values, expected {len(header)}, as "
                    f"the header has"
                ) from None
        raise
    return Columns(path, table, names, lambda row: _line(_records(path, delimiter), row + 1))


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the records of a CSV file that are not empty, with the line of each."""
    with _open(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        line = 1
        for record in reader:
            if record:
                yield line, record
            line = reader.line_num + 1


def _line(numbered: Iterator[tuple[int, Any]], row: int) -> str:
    """Return where the element ``row`` of an iterator over numbered lines is."""
    return f"line {next(islice(numbered, row, None))[0]}"


def _read_parquet(path: Path, wanted: Wanted) -> Columns:
    """Read a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = wanted.names(path, file.schema_arrow.names)
        table = file.read(columns=list(names.values()))
    return Columns(path, table, names, lambda row: f"row {row + 1}")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Iterate over the numbered lines that are neither empty nor a header of an index."""
    header = True
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            header &= line[0] == "!" or line[1:5] == "CDX " or not line.strip()
            if line.strip() and not header:
                yield number, line


def _read_fields(path: Path, wanted: Wanted, pattern: str) -> Columns:
    """Read lines whose fields are the groups of a pattern."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array((line.rstrip("\r\n") for _, line in _lines(path)), pa.large_string())
    fields = pc.extract_regex(texts, pattern)
    wrong = fields.is_null().to_numpy(zero_copy_only=False)
    if wrong.any():
        row = int(np.argmax(wrong))
        place, got = _line(_lines(path), row), texts[row].as_py()[:60]
        raise ValueError(f"{path}, {place}: got {got!r}, expected more fields")
    columns = {}
    for group in re.compile(pattern).groupindex:
        values = pc.struct_field(fields, group)
        columns[group] = pc.if_else(pc.equal(values, "-"), None, values)
    names = wanted.names(path, columns)
    return Columns(path, pa.table(columns), names, lambda row: _line(_lines(path), row))


def _read_json(path: Path, wanted: Wanted, in_index: bool) -> Columns:
    """Read JSON lines, or those of an index, in batches; all columns are text."""
    import pyarrow as pa

    lines = _lines(path)
    batches: list[Any] = []
    while batch := list(islice(lines, BATCH)):
        records = [_record(path, number, line, in_index) for number, line in batch]
        present = dict.fromkeys(filter(wanted.includes, chain(wanted.required, *records)))
        texts = {name: [_as_text(record.get(name)) for record in records] for name in present}
        batches.append(pa.table({x: pa.array(t, pa.large_string()) for x, t in texts.items()}))
    table = pa.concat_tables(batches, promote_options="default")
    names = wanted.names(path, table.column_names)
    return Columns(path, table, names, lambda row: _line(_lines(path), row))


def _record(path: Path, number: int, line: str, in_index: bool) -> dict[str, Any]:
    """Return the JSON object of a line, with the time of an index, or raise ValueError."""
    found = CDXJ.match(line) if in_index else None
    try:
        record = json.loads(found["record"] if found else line)
    except json.JSONDecodeError:
        record = None
    if not isinstance(record, dict) or (in_index and not found):
        words = "urlkey, timestamp and a JSON object" if in_index else "a JSON object"
        raise ValueError(f"{path}, line {number}: got {line.strip()[:60]!r}, expected {words}")
    return record | {"time": found["time"]} if found else record


def _as_text(value: Any) -> str | None:
    """Return a value of JSON as text, None if it has none."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
