"""Times in all their forms."""

from __future__ import annotations

import email.utils
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.live.logs.times import parse_times

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
        (f"{MOMENT} UTC", MOMENT),
        (f"{MOMENT}.5 UTC", f"{MOMENT}.5"),
        ("2026-02-03 06:05:06 +0200 UTC", MOMENT),
        ("2026/02/03 04:05:06", MOMENT),
        (f"{MOMENT},25", f"{MOMENT}.25"),
        ("20260203T040506Z", MOMENT),
        ("20260203T060506.5+0200", f"{MOMENT}.5"),
        ("20260203T0405", "2026-02-03T04:05"),
        ("Tue, 3 Feb 2026 04:05:06 GMT", MOMENT),
        ("Tue, 03 Feb 2026 04:05:06 UTC", MOMENT),
        ("Tuesday, 03-Feb-26 04:05:06 GMT", MOMENT),
        ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37"),
        ("Tue Feb  3 04:05:06 2026", MOMENT),
        ("Mon, 02 Feb 2026 23:05:06 EST", MOMENT),
        ("3 Feb 2026 06:05 +0200 (CEST)", "2026-02-03T04:05"),
        ("[03/Feb/2026:01:05:06 -0300]", MOMENT),
        ("Tue Feb 03 05:05:06 CET 2026", MOMENT),
        ("Thu Jul 02 10:00:00 CEST 2026", "2026-07-02T08:00:00"),
        ("20260203", "2026-02-03"),
        ("2026020304", "2026-02-03T04"),
        ("202602030405", "2026-02-03T04:05"),
        ("20260203040506789", f"{MOMENT}.789"),
        ("1770091506500000", f"{MOMENT}.5"),
        ("1770091506500000000", f"{MOMENT}.5"),
        ("2024-02-29T23:59:59-12:30", "2024-03-01T12:29:59"),
    ],
)
def test_dates(form, moment):
    expected = np.datetime64(moment, "us").astype(np.float64)
    times = parse_times(pa.array([None, form], pa.large_string()))
    np.testing.assert_array_equal(times.value, [np.nan, expected])
    assert times.dated.tolist() == [False, True]
    assert times.whole_day.tolist() == [False, form in ("2026-02-03", "20260203", "1903-01-01")]


@pytest.mark.parametrize(("form", "days"), [("0", 0.0), ("12.5", 12.5), (".5", 0.5), ("1e3", 1e3)])
def test_days(form, days):
    times = parse_times(pa.array([form], pa.large_string()))
    assert (times.value[0], times.dated[0]) == (days, False)


@pytest.mark.parametrize(
    "form",
    [
        *("now", "-1", "-1e15", "inf", "nan", "2026-02-30", "2026-13-01", "2026-2-3", "03/02/2026"),
        *("20260230000000", "2026-02-03T25:00", "12:00", "Tue, 33 Feb 2026 04:05:06 GMT"),
        *("20260230", "2026-02-03T04:05:06 XYZ", "Tue Feb 03 05:05:06 IST 2026", "20260203T25Z"),
        *("Tue, 3 Foo 2026 04:05:06 GMT", "3 Feb 2026 04:05:06", "2023-02-29", "2026-02-03T04:60Z"),
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


UNCLEAR = [
    ["260203040506", "260204040506"],
    ["260203", "260313"],
    ["2602030405"],
    ["03022026", "28122026"],
    ["177009150600", "177009150700"],
    ["17700915060000000"],
    ["450000000000000000"],
]


@pytest.mark.parametrize("forms", UNCLEAR)
def test_numbers_of_no_clear_unit_are_no_times(forms):
    times = parse_times(pa.array(forms, pa.large_string()))
    assert np.isnan(times.value).all()
    assert "give time_unit (--time-unit)" in times.expected
    assert times.guesses == ()
    times = parse_times(pa.array(forms, pa.large_string()), "days")
    assert times.value.tolist() == [float(form) for form in forms]


def test_numbers_near_those_of_no_clear_unit_are_times():
    for forms in (["260203", "261303"], ["920000000000", "1770091506000"], ["2099990405"]):
        assert not np.isnan(parse_times(pa.array(forms, pa.large_string())).value).any()


@pytest.mark.parametrize(
    ("forms", "name"),
    [  # 1601 to 1970 are 134,774 days, the year 1 to 1970 719,162
        (["13414565106000000"], "microseconds since 1601 (WebKit)"),
        (["134145651060000000"], "100 ns since 1601 (Windows)"),
        (["639056883060000000", "6.3905688306E17"], "100 ns since the year 1 (.NET)"),
    ],
)
def test_numbers_of_other_epochs(forms, name):
    times = parse_times(pa.array(forms, pa.large_string()))
    assert times.value.tolist() == [stamp(MOMENT)] * len(forms)
    assert times.guesses[0] == f"bare numbers, read as {name}: {len(forms)}"


def test_numbers_of_dates_of_no_crawl_are_noted():
    seconds = 1_770_091_506 - 978_307_200  # since 2001, as of macOS
    [note] = parse_times(pa.array([f"{seconds}"], pa.large_string())).guesses
    assert note.endswith("as seconds: 1, from 1995-02-03 to 1995-02-03: are they of another epoch?")


def stamp(text):
    return np.datetime64(text, "us").astype(np.float64)


@pytest.mark.parametrize(
    ("form", "unit", "expected"),
    [
        ("2026", "stamp", stamp("2026-01-01")),
        ("202602", "stamp", stamp("2026-02-01")),
        ("20260203", "stamp", stamp("2026-02-03")),
        ("198001010000", "stamp", stamp("1980-01-01")),
        ("2026020", "stamp", np.nan),
        ("20000012170449", "stamp", np.nan),
        ("1767225600", "stamp", np.nan),
        ("100", "seconds", 100e6),
        ("100.5", "milliseconds", 100_500.0),
        ("20260203", "microseconds", 20260203.0),
        ("1770091506500000000", "nanoseconds", stamp(f"{MOMENT}.5")),
        ("20260203", "days", 20260203.0),
    ],
)
def test_units(form, unit, expected):
    times = parse_times(pa.array([form], pa.large_string()), unit)
    np.testing.assert_array_equal(times.value, [expected])
    assert times.dated[0] == (unit != "days")
    assert times.whole_day[0] == (unit == "stamp" and len(form) == 8)
    assert times.guesses == ()


@pytest.mark.parametrize(
    ("forms", "guesses"),
    [
        (
            ["1767225600", "1767312000000"],
            ["bare numbers, read as seconds: 1", "bare numbers, read as milliseconds: 1"],
        ),
        (["46023", "46024.5"], ["bare numbers, read as days: 2, as of a spreadsheet"]),
        (["46023", "4"], ["bare numbers, read as days: 2"]),
        (["20260203", "20260204"], ["bare numbers, read as yyyymmdd..: 2"]),
        (["2026-02-03T04:05", MOMENT, "2026-02-03"], ["times without a zone, read as UTC: 2"]),
        ([f"{MOMENT}Z", "Tue, 03 Feb 2026 04:05:06 GMT"], []),
    ],
)
def test_guesses_are_said(forms, guesses):
    said = parse_times(pa.array(forms, pa.large_string())).guesses
    assert [text[: len(start)] for text, start in zip(said, guesses, strict=True)] == guesses


def test_stamps_of_a_column_with_a_bad_one_stay_stamps():
    column = pa.array(["202601010000", "202613010000", "202601020000"], pa.large_string())
    expected = [stamp("2026-01-01"), np.nan, stamp("2026-01-02")]
    np.testing.assert_array_equal(parse_times(column).value, expected)


@settings(max_examples=200, deadline=None)
@given(st.datetimes(datetime(1950, 1, 1), datetime(2060, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_readers_of_the_standard_library_agree(moment, minutes):
    moment = moment.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    forms = {
        moment.isoformat(): datetime.fromisoformat,
        moment.strftime("%Y%m%dT%H%M%S%z"): datetime.fromisoformat,
        email.utils.format_datetime(moment): email.utils.parsedate_to_datetime,
        moment.strftime("[%d/%b/%Y:%H:%M:%S %z]"): (
            lambda text: datetime.strptime(text, "[%d/%b/%Y:%H:%M:%S %z]")
        ),
    }
    value = parse_times(pa.array(list(forms), pa.large_string())).value
    assert value.tolist() == [read(form).timestamp() * 1e6 for form, read in forms.items()]
