"""Times in all their forms."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from crawl_envs.instances.logs.times import parse_times

MOMENT = "2026-02-03T04:05:06"


@pytest.mark.parametrize(
    ("form", "moment"),
    [
        ("2026-02-03", "2026-02-03"),
        ("2026-02-03T04:05", "2026-02-03T04:05"),
        (MOMENT, MOMENT),
        (f"{MOMENT}Z", MOMENT),
        ("2026-02-03 04:05:06", MOMENT),
        ("2026-02-03 04:05:06 +00:00", MOMENT),
        ("2026-02-03T06:05:06+0200", MOMENT),
        ("2026-02-02T23:05:06-05", MOMENT),
        (f"{MOMENT}.123456789Z", f"{MOMENT}.123456"),
        ("Tue, 03 Feb 2026 04:05:06 GMT", MOMENT),
        ("20260203040506", MOMENT),
        ("1770091506", MOMENT),
        ("1770091506.5", f"{MOMENT}.5"),
        ("1770091506500", f"{MOMENT}.5"),
        ("1.770091506e9", MOMENT),
        ("1903-01-01", "1903-01-01"),
    ],
)
def test_dates(form, moment):
    expected = np.datetime64(moment, "us").astype(np.float64)
    times = parse_times(pa.array([None, form], pa.large_string()))
    np.testing.assert_array_equal(times.value, [np.nan, expected])
    assert times.dated.tolist() == [False, True]


@pytest.mark.parametrize(("form", "days"), [("0", 0.0), ("12.5", 12.5), (".5", 0.5), ("1e3", 1e3)])
def test_days(form, days):
    times = parse_times(pa.array([form], pa.large_string()))
    assert (times.value[0], times.dated[0]) == (days, False)


@pytest.mark.parametrize(
    "form",
    [
        *("now", "-1", "-1e15", "inf", "nan", "2026-02-30", "2026-13-01", "2026-2-3", "03/02/2026"),
        *("20260230000000", "2026-02-03T25:00", "12:00", "Tue, 33 Feb 2026 04:05:06 GMT"),
    ],
)
def test_what_is_no_time(form):
    times = parse_times(pa.array([MOMENT, form, MOMENT], pa.large_string()))
    assert np.isnan(times.value).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("values", "expected", "dated"),
    [
        (pa.array([date(1970, 1, 2)]), 86_400e6, True),
        (pa.array([2], pa.timestamp("s")), 2e6, True),
        (pa.array([20260203040506]), 1770091506e6, True),
        (pa.array([1770091506]), 1770091506e6, True),
        (pa.array([1770091506.25]), 1770091506.25e6, True),
        (pa.array([7], pa.int16()), 7.0, False),
        (pa.array([7.25]), 7.25, False),
    ],
)
def test_types(values, expected, dated):
    times = parse_times(values)
    assert (times.value[0], times.dated[0]) == (expected, dated)
