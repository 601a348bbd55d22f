"""Event times: when events happened, and up to which time their writers say that all are there.

An event time is a number of microseconds since 1970 UTC. Pure.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from weir.errors import InvalidInput
from weir.front_ends import called, do, leave_out
from weir.model.clock import EPOCH, SECOND, clock_time
from weir.model.names import StreamName

# The years 1 to 9998. Other times count as none: Python has no others, and the views of the
# database round times of the last microseconds of 9999 up to the next year.
FIRST, PAST = -62_135_596_800_000_000, 253_370_764_800_000_000
DONE = "done"  # what a writer states when it appends nothing more
NO_MORE = 2**63 - 1
# The columns whose values Parquet's statistics order as the times that they stand for, and how many
# microseconds one unit of the value in a file is.
UNITS = {
    "timestamp": 1,
    "timestamp_ntz": 1,
    "date": 86_400 * SECOND,
    "byte": SECOND,
    "short": SECOND,
    "integer": SECOND,
    "long": SECOND,
}


@dataclass(frozen=True)
class EventTimes:
    """The event times of an append as its attempt has written them.

    `expression`: what they were computed with. `late`: how many events are earlier than
    `complete_until`, the time that the stream was complete to when they were counted; None if
    nobody counted them. `outside`: whether it is known how many are later than now (`ahead`) and
    far before what the stream is complete to (`behind`); None of them if nobody could count.
    """

    expression: str
    late: int | None
    complete_until: int | None
    outside: bool = False
    ahead: int | None = None
    behind: int | None = None


def stated_until(given: datetime | str | None) -> int | None:
    """Return what a writer states, in microseconds; `NO_MORE` for `done`, None if it states
    nothing.

    A time without an offset is UTC. Raises InvalidInput for what is not a time.
    """
    if given is None or given == "":
        return None
    if isinstance(given, str):
        if given.strip() == DONE:
            return NO_MORE
        try:
            given = datetime.fromisoformat(given.strip())
        except ValueError:
            raise InvalidInput(
                "time_invalid",
                f"complete_until is {given!r}, which is not a time; write, for example, "
                "2013-06-01T00:00:00Z (UTC, unless you give another offset), or done.",
            ) from None
    if not isinstance(given, datetime):
        raise InvalidInput(
            "time_invalid",
            f"complete_until is a {type(given).__name__}; give a datetime, or a text such as "
            "2013-06-01T00:00:00Z.",
        )
    at = given if given.tzinfo else given.replace(tzinfo=UTC)
    return (at - EPOCH) // timedelta(microseconds=1)


def say_time(time: int) -> str:
    """Format an event time, or what a writer states."""
    if time == NO_MORE:
        return DONE
    return clock_time(time).isoformat().replace("+00:00", "Z")


def as_datetime(time: int | None) -> datetime | None:
    """Return an event time as a datetime in UTC."""
    return None if time is None else clock_time(time)


def no_event_time(name: StreamName) -> InvalidInput:
    """Return the sentence for a writer that states something about a stream without event time."""
    return InvalidInput(
        "argument_invalid",
        f"{called('complete_until')} is given, but stream {name} has no event time; "
        f"{leave_out('complete_until')}, or first "
        f"{do('update_stream', stream=str(name), event_time='COLUMN')}.",
    )


def not_complete_yet(name: StreamName, stated: int) -> InvalidInput:
    """Return the sentence for an event time up to which nobody can have appended everything."""
    return InvalidInput(
        "argument_invalid",
        f"complete_until is {say_time(stated)}, which is later than now by Postgres's clock, so "
        f"nothing was changed; give a time up to which all events have been appended, or, if "
        f"events are planned, {do('update_stream', stream=str(name), event_time_ahead='1 d')}.",
    )
