"""What an answer lacks because it was truncated: how many events, when and why (semantics 10)."""

import warnings
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.errors import Truncated, TruncatedWarning
from weir.model.names import StreamName


class Missing(NamedTuple):
    """Events of a stream that were truncated; when and why the last of them was, if that is
    recorded."""

    stream: str
    events: int
    truncated_at: datetime | None
    reason: str | None

    def __str__(self) -> str:
        """Return it as the beginning of a sentence."""
        when = ""
        if self.truncated_at is not None:
            last = "" if self.events == 1 else "the last of them "
            at = self.truncated_at.astimezone(UTC)
            when = f", {last}at {at:%Y-%m-%d %H:%M:%S} UTC ({self.reason})"
        were = "event of stream {} was" if self.events == 1 else "events of stream {} were"
        return f"{self.events:,} {were.format(self.stream)} truncated{when}"

    def warn(self) -> None:
        """Warn the program that called Weir."""
        warnings.warn(TruncatedWarning(f"{self}; the answer lacks them."), stacklevel=3)


def missing_between(
    connection: Connection,
    stream: StreamName,
    since: datetime | None,
    until: datetime | None,
    *,
    empty: bool,
) -> Missing | None:
    """Return what was truncated of an answer that takes what was committed after a time and up to
    another; None if nothing was.

    An answer without `since` begins at the head, and lacks nothing unless it is `empty`. Call it in
    the snapshot of the answer, with closed times.
    """
    if since is None and not empty:
        return None
    row = connection.execute(
        text(
            """SELECT events, truncated_at, reason FROM truncated_between(
                :stream, CAST(:since AS timestamptz), CAST(:until AS timestamptz))"""
        ),
        {"stream": str(stream), "since": since, "until": until},
    ).one()
    return Missing(str(stream), *row) if row.events else None


def truncated(missing: Missing, what_to_do: str) -> Truncated:
    """Return the error that a position lies before the head."""
    return Truncated(
        "events_truncated", f"this place lies before the head: {missing}; {what_to_do}."
    )
