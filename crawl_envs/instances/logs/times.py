"""Times as people write them: ISO 8601, HTTP dates, Unix seconds, CDX timestamps, or bare days."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray

MICROSECONDS_PER_DAY = 86_400e6
SECONDS_FROM, MILLISECONDS_FROM, STAMPS_FROM, STAMPS_TO = 1e8, 1e11, 1e13, 1e14
"""Numbers from these on are Unix seconds, Unix milliseconds and CDX timestamps; below, days."""
EXPECTED = (
    "an ISO 8601 time, an HTTP date, Unix seconds or milliseconds, 14 digits yyyymmddhhmmss, or a "
    "number of days below 1e8"
)
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_STAMP = r"^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$"
_ISO = (
    r"^(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<time>\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?$"
)
_HTTP, _HTTP_FORMAT = r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$", "%a, %d %b %Y %H:%M:%S GMT"


class Times(NamedTuple):
    """Times of the n rows of a column.

    Attributes:
        value: microseconds since 1970, UTC, where ``dated``, and days elsewhere, (n,) float64; NaN
            where there is none or it cannot be read.
        dated: whether the time is a date and time, not a bare number of days, (n,) bool.
    """

    value: FloatArray
    dated: BoolArray


def parse_times(column: Any) -> Times:
    """Return the times of an Arrow array: of dates, timestamps, numbers or strings.

    ISO 8601 times without a zone are in UTC; HTTP dates have the form of RFC 9110, section 5.6.7.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_temporal(kind):
        return Times(_microseconds(column), np.ones(len(column), np.bool_))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _of_numbers(_float(column))
    number = _matches(column, NUMBER)
    value, dated = _of_numbers(_float(pc.if_else(number, column, None).cast(pa.float64())))
    http = _matches(column, _HTTP)
    parts = [_of_iso(column)]
    if pc.any(http).as_py():
        dates = pc.strptime(column, format=_HTTP_FORMAT, unit="us", error_is_null=True)
        parts.append(_microseconds(pc.if_else(http, dates, None)))
    for part in parts:
        known = ~np.isnan(part)
        value[known], dated[known] = part[known], True
    return Times(value, dated)


def _of_numbers(number: FloatArray) -> Times:
    """Return times of numbers by their magnitude; negative ones and unreadable ones are NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    value = np.where(number < 0.0, np.nan, number)
    value[value >= STAMPS_TO] = np.nan
    stamps = np.flatnonzero(value >= STAMPS_FROM)
    seconds = (value >= SECONDS_FROM) & (value < MILLISECONDS_FROM)
    milliseconds = (value >= MILLISECONDS_FROM) & (value < STAMPS_FROM)
    dated = value >= SECONDS_FROM
    value[seconds] = np.rint(value[seconds] * 1e6)
    value[milliseconds] = np.rint(value[milliseconds] * 1e3)
    if stamps.size:
        digits = pa.array(value[stamps].astype(np.int64)).cast(pa.large_string())
        iso = pc.replace_substring_regex(digits, _STAMP, r"\1-\2-\3T\4:\5:\6")
        value[stamps] = _of_iso(iso)
    return Times(value, dated)


def _of_iso(texts: Any) -> FloatArray:
    """Return microseconds since 1970 of ISO 8601 times, or dates; NaN where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = pc.extract_regex(texts, _ISO)
    date, time, zone = (pc.struct_field(parts, name) for name in ("date", "time", "zone"))
    none, separator, midnight, utc = (pa.scalar(x, texts.type) for x in ("", "T", "00:00", "Z"))
    time = pc.if_else(pc.equal(time, none), midnight, time)
    zone = pc.if_else(pc.equal(zone, none), utc, zone)
    date = pc.binary_join_element_wise(date, time, separator)
    whole = pc.binary_join_element_wise(date, zone, none)
    kind = pa.timestamp("ns", "UTC")
    try:
        return _microseconds(whole.cast(kind))
    except pa.ArrowInvalid:  # such as day 31 of a shorter month
        return np.array([_one_of_iso(text, kind) for text in whole])


def _one_of_iso(text: Any, kind: Any) -> float:
    """Return microseconds since 1970 of one text, NaN if there is no such time."""
    import pyarrow as pa

    try:
        return float(_microseconds(pa.array([text]).cast(kind))[0])
    except pa.ArrowInvalid:
        return np.nan


def _matches(texts: Any, pattern: str) -> Any:
    """Return which texts match a pattern; nulls do not."""
    import pyarrow.compute as pc

    return pc.fill_null(pc.match_substring_regex(texts, pattern), False)


def _microseconds(column: Any) -> FloatArray:
    """Return timestamps or dates as microseconds since 1970, NaN if null."""
    import pyarrow as pa

    return _float(column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()))


def _float(column: Any) -> FloatArray:
    """Return numbers as float64, NaN if null."""
    import pyarrow as pa

    values: FloatArray = np.array(
        column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    )
    return values
