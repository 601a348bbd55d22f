"""Times as addresses in streams: as people write them, and closed so that they stay what they were.

A time stands for the cut that was the tail then (`queries.stream_cut_at`): what was committed at or
before it lies before the cut. `since` and `until` take what was committed after the one and up to
the other, so two spans that meet have no event twice and leave none out.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import NamedTuple

from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.model.names import StreamName
from weir.queries.controller import times as sql

Moment = datetime | date | str  # a time as people give it


class Span(NamedTuple):
    """Two times, each None if it was not given."""

    since: datetime | None
    until: datetime | None

    def check_alone(self, start: object, end: object) -> None:
        """Check that neither end is given both as a cut and as a time. Raises InvalidInput."""
        for cut, at, word, other in (
            (start, self.since, "start", "since"),
            (end, self.until, "end", "until"),
        ):
            if cut is not None and at is not None:
                raise InvalidInput(
                    "argument_invalid",
                    f"both {word} ({cut}) and {other} ({at}) are given; give one of them.",
                )


def parse_time(written: Moment) -> datetime:
    """Return an aware time. Without an offset it is in UTC; a date is its first moment.

    Raises InvalidInput for what is not a time.
    """
    at: datetime | None = None
    if isinstance(written, datetime):
        at = written
    elif isinstance(written, date):
        at = datetime.combine(written, time())
    elif isinstance(written, str):
        try:
            at = datetime.fromisoformat(written.strip().removesuffix("UTC").rstrip())
        except ValueError:
            at = None
    if at is None:
        shown = written.strip() if isinstance(written, str) else written
        raise InvalidInput(
            "time_invalid",
            f"{shown!r} is not a time; write, for example, 2013-06-01T00:00:00Z (UTC, unless you "
            "give another offset).",
        )
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def parse_span(since: Moment | None, until: Moment | None) -> Span:
    """Return both times. Raises InvalidInput for what is not a time, and if `since` is later."""
    span = Span(
        None if since is None else parse_time(since), None if until is None else parse_time(until)
    )
    if span.since and span.until and span.since > span.until:
        raise InvalidInput(
            "time_invalid",
            f"since, {since}, is after until, {until}; give the earlier time first.",
        )
    return span


def close_span(database: Database, names: Sequence[StreamName], span: Span) -> None:
    """Close the later time of a span in streams that exist: no later commit gets a clock at or
    before it. Raises InvalidInput for a future time."""
    if (at := span.until or span.since) is not None:
        _close(database, names, at)


def close_now(database: Database, names: Sequence[StreamName]) -> datetime:
    """Close this moment in streams that exist, or their last clock if that is later. Return it."""
    return _close(database, names, None)


def _close(database: Database, names: Sequence[StreamName], at: datetime | None) -> datetime:
    return database.transaction(
        lambda connection: sql.close(connection, names=[str(name) for name in names], at=at)
    )
