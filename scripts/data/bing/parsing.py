"""Compiled parsers of the lines of the Bing set.

They read bytes that end with a newline, and stop at anything unexpected: every loop ends at a
newline at the latest. All kernels are in this file, because Numba invalidates its cache by the file
of a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from scripts.data.bing.files import Block, complain

Bytes = NDArray[np.uint8]

TEXT, WHOLE, NUMBER = 0, 1, 2
TAB, NEWLINE, RETURN, SPACE, POINT, COMMA, OPEN, CLOSE = (ord(sign) for sign in "\t\n\r .,[]")
ZERO, NINE, PLUS, MINUS, SMALL_E, LARGE_E = (ord(sign) for sign in "09+-eE")
DIGITS = 18
"""Significant digits that are read; further digits only count for the exponent."""
LARGEST_WHOLE = 2.0**53
FAR = 400
"""Bound of powers of ten: beyond it, every number is 0 or infinite."""
EXACT_POWERS = 22
"""Largest power of ten that is exact in float64."""

HISTORY = (
    "URL_ID, offset of the first crawl in days and [[days since the crawl before, 0 or 1], ...], "
    "separated by tabs, with days > 0 where changed"
)


class Histories(NamedTuple):
    """Crawl histories of n URLs.

    Attributes:
        url_id: (n,) int64.
        first_crawl: days from the start of the record to the first crawl, (n,).
        offsets: start of each URL's crawls in the arrays below, (n + 1,) int64.
        intervals: days since the previous crawl of the URL, (c,).
        changed: whether the URL had changed since then, 0 or 1, (c,) uint8.
    """

    url_id: IntArray
    first_crawl: FloatArray
    offsets: IntArray
    intervals: FloatArray
    changed: NDArray[np.uint8]


@compiled()
def _digits(text: Bytes, at: int, value: int, room: int) -> tuple[int, int, int]:
    """Read digits; return the number after ``value``, the count of dropped digits, and the end."""
    left_out = 0
    while text[at] >= ZERO and text[at] <= NINE:
        if room > 0:
            value = 10 * value + (text[at] - ZERO)
            room -= value > 0
        else:
            left_out += 1
        at += 1
    return value, left_out, at


@compiled()
def read_number(text: Bytes, at: int) -> tuple[float, bool, int]:
    """Read a number >= 0 in decimal notation at position ``at``.

    Returns:
        The number, or NaN; whether it was written as an integer; and its end. With up to 15 digits
        it is the nearest float64. With more it is rounded twice, with an error of at most two units
        in the last place, or three if the power of ten is beyond EXACT_POWERS.
    """
    begin = at
    value, scale, at = _digits(text, at, np.int64(0), DIGITS)
    if at == begin:
        return np.nan, False, at
    whole = scale == 0
    if text[at] == POINT:
        whole, begin = False, at + 1
        room = DIGITS if value == 0 else DIGITS - int(np.floor(np.log10(value))) - 1
        value, left_out, at = _digits(text, begin, value, room)
        if at == begin:
            return np.nan, False, at
        scale -= at - begin - left_out
    if text[at] == SMALL_E or text[at] == LARGE_E:
        whole, at = False, at + 1
        negative = text[at] == MINUS
        at += negative or text[at] == PLUS
        begin = at
        power, left_out, at = _digits(text, begin, np.int64(0), 4)
        if at == begin or left_out:
            return np.nan, False, at
        scale += -power if negative else power
    number = float(value)
    if value == 0 or scale == 0:
        return number, whole, at
    if abs(scale) <= EXACT_POWERS:
        power_of_ten = 10.0 ** abs(scale)
        return (number * power_of_ten if scale > 0 else number / power_of_ten), whole, at
    return number * 10.0 ** float(max(min(scale, FAR), -FAR)), whole, at


@compiled()
def _skip_spaces(text: Bytes, at: int) -> int:
    while text[at] == SPACE:
        at += 1
    return at


@compiled()
def _line_end(text: Bytes, at: int) -> int:
    """Return the start of the next line, -1 unless only white space comes before."""
    while text[at] == SPACE or text[at] == RETURN or text[at] == TAB:
        at += 1
    return at + 1 if text[at] == NEWLINE else -1


@compiled()
def _rows(text: Bytes, kinds: IntArray, values: FloatArray) -> tuple[int, int]:
    """Read rows of columns; return their number, and the start of a bad row or -1."""
    at = row = 0
    while at < text.size:
        begin = at
        for column in range(kinds.size):
            if column > 0:
                if text[at] != TAB:
                    return row, begin
                at += 1
            if kinds[column] == TEXT:
                while text[at] != TAB and text[at] != NEWLINE:
                    at += 1
                continue
            number, whole, at = read_number(text, at)
            if not np.isfinite(number):
                return row, begin
            if kinds[column] == WHOLE and not (whole and number < LARGEST_WHOLE):
                return row, begin
            values[row, column] = number
        at = _line_end(text, at)
        if at < 0:
            return row, begin
        row += 1
    return row, -1


@compiled()
def _histories(
    text: Bytes,
    url_id: IntArray,
    first_crawl: FloatArray,
    offsets: IntArray,
    intervals: FloatArray,
    changed: NDArray[np.uint8],
) -> tuple[int, int]:
    """Read lines of histories; return their number, and the start of a bad one or -1."""
    at = row = crawl = 0
    while at < text.size:
        begin = at
        number, whole, at = read_number(text, at)
        if not (whole and number < LARGEST_WHOLE) or text[at] != TAB:
            return row, begin
        url_id[row] = int(number)
        first_crawl[row], _, at = read_number(text, at + 1)
        if not np.isfinite(first_crawl[row]) or text[at] != TAB or text[at + 1] != OPEN:
            return row, begin
        at = _skip_spaces(text, at + 2)
        while text[at] == OPEN:
            days, _, at = read_number(text, _skip_spaces(text, at + 1))
            at = _skip_spaces(text, at)
            if not np.isfinite(days) or text[at] != COMMA:
                return row, begin
            at = _skip_spaces(text, at + 1)
            flag = text[at] - ZERO
            at = _skip_spaces(text, at + 1) if text[at] != NEWLINE else at
            if text[at] != CLOSE or not (flag == 0 or (flag == 1 and days > 0.0)):
                return row, begin
            intervals[crawl], changed[crawl] = days, flag
            crawl += 1
            at = _skip_spaces(text, at + 1)
            if text[at] == COMMA:
                at = _skip_spaces(text, at + 1)
                if text[at] != OPEN:
                    return row, begin
            elif text[at] != CLOSE:
                return row, begin
        if text[at] != CLOSE:
            return row, begin
        at = _line_end(text, at + 1)
        if at < 0:
            return row, begin
        row += 1
        offsets[row] = crawl
    return row, -1


def parse_rows(path: Path, block: Block, kinds: Sequence[int], expected: str) -> FloatArray:
    """Parse lines of tab-separated columns.

    Args:
        path: path of the file, for errors.
        block: whole lines.
        kinds: TEXT, WHOLE or NUMBER for each column.
        expected: description of a line, for errors.

    Returns:
        The values, (lines, columns); undefined in TEXT columns.

    Raises:
        ValueError: a malformed line.
    """
    lines = np.count_nonzero(block.text == NEWLINE)
    values = np.empty((lines, len(kinds)))
    count, bad = _rows(block.text, np.array(kinds, np.int64), values)
    if bad >= 0:
        raise complain(path, block.first_line + count, block.text[bad:], expected)
    return values


def parse_histories(path: Path, block: Block) -> Histories:
    """Parse lines of the file of crawl histories.

    Raises:
        ValueError: a line that does not match HISTORY.
    """
    lines = np.count_nonzero(block.text == NEWLINE)
    most = np.count_nonzero(block.text == OPEN)
    read = Histories(
        np.empty(lines, np.int64),
        np.empty(lines),
        np.zeros(lines + 1, np.int64),
        np.empty(most),
        np.empty(most, np.uint8),
    )
    count, bad = _histories(block.text, *read)
    if bad >= 0:
        raise complain(path, block.first_line + count, block.text[bad:], HISTORY)
    crawls = int(read.offsets[-1])
    return read._replace(intervals=read.intervals[:crawls], changed=read.changed[:crawls])
