"""The calendar against Python's own, over every year there is."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st

from function.cel.library.times import DAY, Date, date_of, days_before, format_timestamp, parse_timestamp
from function.cel.values import NANO, TIMESTAMP_MAX, TIMESTAMP_MIN, Timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expected(seconds: int) -> Date:
    when = EPOCH + timedelta(seconds=seconds)
    clock = (when.hour, when.minute, when.second)
    day_of_year = when.timetuple().tm_yday - 1
    return Date(when.year, when.month, when.day, *clock, when.isoweekday() % 7, day_of_year)


def test_every_year_begins_and_ends_where_it_does() -> None:
    for year in range(1, 10_000):
        first, last = days_before(year) * DAY, days_before(year + 1) * DAY - 1
        assert date_of(first * NANO) == expected(first)
        assert date_of(last * NANO) == expected(last)


seconds = st.integers(TIMESTAMP_MIN // NANO, TIMESTAMP_MAX // NANO)


@given(seconds)
def test_the_calendar_is_pythons(point: int) -> None:
    assert date_of(point * NANO) == expected(point)


@given(seconds, st.integers(-64_800, 64_800))
def test_an_offset_shifts_the_calendar(point: int, offset: int) -> None:
    assert date_of(point * NANO, offset) == date_of((point + offset) * NANO)


@given(st.integers(TIMESTAMP_MIN, TIMESTAMP_MAX))
def test_a_timestamp_reads_back_as_it_was_written(nanos: int) -> None:
    assert parse_timestamp(format_timestamp(Timestamp(nanos))).nanos == nanos
