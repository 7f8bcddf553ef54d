"""Parse times in the forms of crawlers: dates in text, stamps of digits, numbers of a unit.

Text is ISO 8601 (its basic form too), one of the three forms of RFC 9110, section 5.6.7, that of
RFC 5322 (mail and feeds), of the common log format, or of Java and ctime. A stamp is
``yyyymmddhhmmss`` and maybe milliseconds, or cut after the year or a later part; what is missing
is the earliest. Numbers that are as large as those of .NET, Windows or WebKit now are of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crawl_envs.types import BoolArray, FloatArray, IntArray

MICROSECONDS_PER_DAY = 86_400e6
UNITS = {"seconds": 1e6, "milliseconds": 1e3, "microseconds": 1.0, "nanoseconds": 1e-3}
"""Number of microseconds in each unit of times since 1970."""
TIME_UNITS = ("days", "stamp", *UNITS)
BOUNDS = (1e7, 1e8, 1e11, 1e14, 1e17)
"""Numbers from these on are no longer of each of TIME_UNITS, from 1e13 to 1e14 again stamps."""
EPOCHS = {
    "microseconds since 1601 (WebKit)": (1.2e16, 1.6e16, 1.0, 11_644_473_600e6),
    "100 ns since 1601 (Windows)": (1.2e17, 1.6e17, 0.1, 11_644_473_600e6),
    "100 ns since the year 1 (.NET)": (6.2e17, 6.7e17, 0.1, 62_135_596_800e6),
}
"""Numbers of other epochs, from .. to .., with the microseconds in one, and from then to 1970."""
YYMMDD = r"^(\d\d(0[1-9]|1[0-2])[0-3]\d(([01]\d|2[0-3])[0-5]\d)?|[0-3]\d[0-3]\d(19|20)\d\d)$"
"""Matches dates whose digits are yymmdd, yymmddhhmm, ddmmyyyy or mmddyyyy."""
YEAR_2001, YEAR_2049, YEAR_2099 = 1e15, 2.5e15, 4.1e15
"""Microseconds since 1970, in 2001, 2049 and 2099: bare numbers outside are noted, or not read."""
SPREADSHEET = (2e4, 8e4)
"""Range of days since 1900 that spreadsheets write, for the years 1954 to 2119."""
YEARS = ("1900", "2100")
"""A column of digits of one length within these years holds stamps if most parse as stamps."""
FIRST, LAST = -6.2e16, 2.5e17
"""Range of times in microseconds since 1970, from the year 5 to 9892."""
EXPECTED = (
    "an ISO 8601 time, an HTTP or mail date, seconds, milliseconds, microseconds or nanoseconds "
    "since 1970, yyyymmdd or yyyymmddhhmmss, or a number of days below 1e7"
)
UNIT_EXPECTED = (
    "a number of a clear unit, before 2100: these may be yymmdd.., ddmmyyyy or of another epoch; "
    "write dates, or give time_unit (--time-unit)"
)
STAMP_EXPECTED = "4, 6, 8, 10, 12, 14 or 17 digits of a time yyyymmddhhmmss and milliseconds"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_CLOCK = (
    r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,6})\d{0,3})?)?"
)
_ZONE = r"(?P<zone>[A-Za-z]{1,4}|[+-]\d\d(?::?\d\d)?)"
_STAMP = (
    r"^(?P<year>\d{4})(?:(?P<month>\d\d)(?:(?P<day>\d\d)(?:(?P<hour>\d\d)(?:(?P<minute>\d\d)"
    r"(?:(?P<second>\d\d)(?P<fraction>\d{3})?)?)?)?)?)?$"
)
_TEXTS = (
    r"^(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)"
    rf"(?:[Tt ]{_CLOCK} ?{_ZONE}?(?: UTC)?)?$",
    rf"^(?P<year>\d{{4}})(?P<month>\d\d)(?P<day>\d\d)[Tt]{_CLOCK.replace(':(', '(')}{_ZONE}?$",
    r"^\[?(?:[A-Za-z]+, *)?(?P<day>\d{1,2})[ /-](?P<month>[A-Za-z]{3})[ /-](?P<year>\d{4}|\d\d)[ :]"
    rf"{_CLOCK} {_ZONE}(?: \([A-Z]+\))?\]?$",
    rf"^[A-Za-z]{{3}} (?P<month>[A-Za-z]{{3}}) +(?P<day>\d{{1,2}}) {_CLOCK} (?:{_ZONE} )?"
    r"(?P<year>\d{4})$",
)
NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
MONTHS = {text: k for k, name in enumerate(NAMES.split(), 1) for text in (name, f"{k:02}")}
ZONES = dict.fromkeys(("", "Z", "UT", "UTC", "GMT", "WET"), 0)
ZONES |= {"EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8}
ZONES |= {"WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9}
"""Hours east of Greenwich by name of time zone: those of RFC 5322, and other unambiguous names."""


class Times(NamedTuple):
    """Times of the n rows of a column.

    Attributes:
        value: microseconds since 1970, UTC, where ``dated``, and days elsewhere, (n,) float64; NaN
            where there is none or it cannot be read. The start of the day if ``whole_day``.
        dated: whether the time is a date and time, not a bare number of days, (n,) bool.
        whole_day: whether it is a date without a time, (n,) bool.
        guesses: what was guessed of the column, in words.
        expected: what was expected where a time cannot be read, in words.
    """

    value: FloatArray
    dated: BoolArray
    whole_day: BoolArray
    guesses: tuple[str, ...] = ()
    expected: str = EXPECTED


def parse_times(column: Any, unit: str | None = None) -> Times:
    """Parse an Arrow array of dates, timestamps, numbers or strings as times.

    Args:
        column: the array; strings have no blanks at their ends.
        unit: one of TIME_UNITS, of bare numbers; None to guess it.
    """
    kind = column.type
    if pa.types.is_temporal(kind):
        microseconds = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        whole_day = np.full(len(column), pa.types.is_date(kind))
        times = Times(_float(microseconds), np.ones(len(column), np.bool_), whole_day)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(column), column, None)
        digits = finite.cast(pa.int64(), safe=False).cast(pa.large_string())
        times = _of_numbers(_float(column), digits, unit)
    else:
        times = _of_texts(column, unit)
    times.value[times.dated & ((times.value < FIRST) | (times.value > LAST))] = np.nan
    return times


def _of_texts(column: Any, unit: str | None) -> Times:
    """Parse texts that are numbers or dates in a known form as times."""
    numeric = pc.fill_null(pc.match_substring_regex(column, NUMBER), False)
    numbers = pc.if_else(numeric, column, None)
    times = _of_numbers(_float(numbers.cast(pa.float64())), numbers, unit)
    texts, zoneless = pc.if_else(numeric, None, column), 0
    for pattern in _TEXTS:
        if texts.null_count == len(texts):
            break
        value, whole_day, local = _of_dates(texts, pattern)
        readable = ~np.isnan(value)
        times.value[readable], times.whole_day[readable] = value[readable], whole_day[readable]
        times.dated[readable] = True
        zoneless += int(np.count_nonzero(readable & local))
        texts = pc.if_else(pa.array(readable), None, texts)
    more = (f"times without a zone, read as UTC: {zoneless}",) if zoneless else ()
    return times._replace(guesses=times.guesses + more)


def _of_numbers(number: FloatArray, texts: Any, unit: str | None) -> Times:
    """Convert numbers to times; ``texts`` are their digits, and negative numbers give NaN."""
    value = np.where((number < 0.0) | np.isinf(number), np.nan, number)
    present = ~np.isnan(value)
    if unit is None and present.any() and _are_stamps(texts):
        kind = np.ones(value.size, np.int64)
    elif unit is None:
        kind = _units(value, present, texts)
    else:
        kind = np.full(value.size, TIME_UNITS.index(unit))
    stamps, whole_day = present & (kind == 1), np.zeros(value.size, np.bool_)
    scales = [*((scale, 0.0) for scale in UNITS.values()), *(x[2:] for x in EPOCHS.values())]
    for rank, (scale, before) in enumerate(scales, 2):
        value[kind == rank] = np.rint(value[kind == rank] * scale) - before
    unclear = present & ((kind < 0) | ((unit is None) & (kind > 1) & (value > YEAR_2099)))
    value[unclear], kind[unclear] = np.nan, -1
    if stamps.any():
        value[stamps], whole_day[stamps], _ = _of_dates(texts.filter(pa.array(stamps)), _STAMP)
    guesses = []
    for rank, name in enumerate((*TIME_UNITS, *EPOCHS)) if unit is None else ():
        if (rows := present & (kind == rank)).any():
            name = "yyyymmdd.." if rank == 1 else name
            guesses.append(f"bare numbers, read as {name}: {np.count_nonzero(rows)}")
            first, last = value[rows].min(), value[rows].max()
            if rank > 1 and not YEAR_2001 <= first <= last <= YEAR_2049:
                dates = [str(np.datetime64(int(x), "us"))[:10] for x in (first, last)]
                guesses[-1] += f", from {dates[0]} to {dates[1]}: are they of another epoch?"
    powers = pc.fill_null(pc.match_substring(texts, "e+", ignore_case=True), False)
    if rounded := np.count_nonzero(present & (kind > 1) & powers.to_numpy(zero_copy_only=False)):
        guesses.append(f"times with a power of ten, perhaps rounded by a spreadsheet: {rounded}")
    if unit is None and present.any() and (kind[present] == 0).all():
        days = number[present]
        if SPREADSHEET[0] <= days.min() and days.max() <= SPREADSHEET[1]:
            guesses[-1] += ", as of a spreadsheet; give time_unit if they are not days"
    expected = UNIT_EXPECTED if unclear.any() else EXPECTED
    return Times(value, present & (kind > 0), whole_day, tuple(guesses), expected)


def _units(value: FloatArray, present: BoolArray, texts: Any) -> IntArray:
    """Guess each number's unit by its size: an index into TIME_UNITS followed by EPOCHS.

    The index is -1 if unclear: for 18 digits of no epoch, and for a column of only yymmdd..
    """
    kind = np.searchsorted(BOUNDS, value, side="right")
    kind[(value >= 1e13) & (value < 1e14)] = 1
    for rank, (low, high, *_) in enumerate(EPOCHS.values(), len(TIME_UNITS)):
        kind[(value >= low) & (value <= high)] = rank
    kind[(kind == len(TIME_UNITS) - 1) & (value < 1e18)] = -1
    low, high = value.min(where=present, initial=np.inf), value.max(where=present, initial=0.0)
    dates = pc.all(pc.match_substring_regex(texts, YYMMDD)).as_py() and (high < 1e8 or low > 2.1e9)
    if dates or (low >= 1e11 and high < 1e12):
        kind[:] = -1
    return kind


def _are_stamps(texts: Any) -> bool:
    """Return whether most texts are stamps, with one length of at least 6 and years in YEARS."""
    texts = texts.drop_null()
    first, last = pc.min_max(texts).as_py().values()
    if pc.count_distinct(pc.utf8_length(texts)).as_py() > 1 or len(first) < 6:
        return False
    in_years = YEARS[0] <= first and last < YEARS[1]
    return bool(in_years and np.isnan(_of_dates(texts, _STAMP)[0]).mean() < 0.5)


def _of_dates(texts: Any, pattern: str) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Parse dates by a pattern; return microseconds since 1970 and masks of no time and no zone."""
    parts = pc.extract_regex(texts, pattern)
    groups = re.compile(pattern).groupindex

    def part(name: str, read: Callable[[str], float] = float, default: float = 0.0) -> FloatArray:
        if name not in groups:
            return np.full(len(texts), default)
        coded = pc.struct_field(parts, name).dictionary_encode()
        values = [read(text) if text else default for text in coded.dictionary.to_pylist()]
        index = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
        result: FloatArray = np.array([*values, np.nan])[index]
        return result

    hour = part("hour", default=np.nan)
    whole_day = np.isnan(hour)
    month = part("month", lambda text: MONTHS.get(text.lower(), np.nan), 1.0)
    day = part("day", default=np.nan)
    dates, day = whole_day & ~np.isnan(day), np.where(np.isnan(day), 1.0, day)
    months = (part("year", _year) - 1970.0) * 12.0 + month - 1.0
    minute, second, zone = part("minute"), part("second"), part("zone", _zone)
    right = (minute < 60.0) & (second < 60.0) & (whole_day | (hour < 24.0))
    right &= ~np.isnan(month + zone)
    start = np.where(right, months, 0.0).astype("datetime64[M]")
    first, following = (x.astype("datetime64[D]").astype(np.float64) for x in (start, start + 1))
    right &= (day >= 1.0) & (day <= following - first)
    minutes = (first + day - 1.0) * 1440.0 + np.where(whole_day, 0.0, hour) * 60.0 + minute - zone
    value = (minutes * 60.0 + second) * 1e6
    value += _float(pc.utf8_rpad(pc.struct_field(parts, "fraction"), 6, "0"))  # microseconds
    no_zone = part("zone", lambda _: 1.0) == 0.0 if "zone" in groups else whole_day
    return np.where(right, value, np.nan), dates, no_zone & ~whole_day


def _year(text: str) -> float:
    """Convert the text of a year to a number; two digits mean 1969 to 2068."""
    return int(text) + (0 if len(text) == 4 else 1900 if int(text) > 68 else 2000)


def _zone(text: str) -> float:
    """Convert a time zone to minutes east of Greenwich; NaN for an unknown name."""
    if text[0] not in "+-":
        return ZONES.get(text.upper(), np.nan) * 60.0
    minutes = int(text[1:3]) * 60 + int(text[3:].lstrip(":") or 0)
    return -minutes if text[0] == "-" else minutes


def _float(column: Any) -> FloatArray:
    """Return numbers as float64, NaN if null."""
    values: FloatArray = np.array(column.cast(pa.float64(), safe=False).to_numpy(False))
    return values
