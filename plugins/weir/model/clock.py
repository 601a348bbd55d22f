"""Clocks and event times: numbers of microseconds since 1970 UTC. Pure."""

from datetime import UTC, datetime, timedelta

SECOND = 1_000_000  # of a clock
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clock_time(clock: int) -> datetime:
    """Return the time that a clock or an event time stands for, in UTC.

    The SQL function of the same name returns the same. Raises OverflowError for a time after the
    year 9999.
    """
    return EPOCH + timedelta(microseconds=clock)


def to_clock(at: datetime) -> int:
    """Return the number of microseconds of an aware time."""
    return (at - EPOCH) // timedelta(microseconds=1)


def say_time(clock: int) -> str:
    """Return a time in words, in UTC to the second: 2026-03-01 10:05:00."""
    return f"{clock_time(clock):%Y-%m-%d %H:%M:%S}"
