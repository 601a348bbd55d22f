"""What the metadata says of a stream's past: epochs, segments and commits, in one snapshot.

The number of statements does not depend on the length of the history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy import Connection

from weir.controller.locks import no_such_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.model.clock import say_time
from weir.model.key_space import even_split
from weir.model.names import StreamName
from weir.model.segment import Segment
from weir.model.segment_rates import Commit
from weir.model.split_points import HotSegment
from weir.queries.annex.back_test import recorded as sql
from weir.queries.annex.back_test.recorded import PastCommits, RecordedEpoch, RecordedSegment

SAMPLED_RANGES = 16  # of each of which the files give a sample of its own
MOST_ROWS = 2_000_000  # of epochs, of segments, and of commits in segments, that are read


@dataclass(frozen=True)
class Recorded:
    """The past of a stream from `begin` to `end`; times are in microseconds since 1970.

    `commits`: of each segment, by id, by clock; in the unit that was asked for.
    """

    stream_id: int
    begin: int
    end: int
    unit: str
    epochs: Sequence[RecordedEpoch]
    segments: Sequence[RecordedSegment]
    commits: Mapping[int, Sequence[Commit]]

    def sampled_ranges(self) -> list[HotSegment]:
        """Return what to ask of the files to learn where all events since `begin` lie: ranges that
        tile the key space.
        """
        return [
            HotSegment(self.stream_id, Segment(i, *keys), 2, 1.0, 1, self.unit, self.begin)
            for i, keys in enumerate(even_split(SAMPLED_RANGES))
        ]


def recorded(
    database: Database, stream: StreamName, *, unit: str = "events", since: datetime | None = None
) -> Recorded:
    """Read the past of a stream in one snapshot, by four statements.

    `unit`: events or bytes. `since`: where to begin (None: at its creation). Raises NotFound for an
    unknown stream, and InvalidInput if there are more than `MOST_ROWS` of something, or if `since`
    is in the future.
    """
    return database.snapshot(lambda c: _read(c, stream, unit, since))


def _read(
    connection: Connection, stream: StreamName, unit: str, since: datetime | None
) -> Recorded:
    found = sql.past_stream(connection, stream=str(stream), since=since)
    if found is None:
        raise no_such_stream(stream)
    id, begin, most = found.stream_id, max(found.since, found.known), MOST_ROWS + 1
    end = found.now if found.sealed_clock is None else found.sealed_clock
    if begin >= end:
        raise InvalidInput(
            "time_in_future",
            f"the history of {stream} ends at {say_time(end)} UTC, which is not after "
            f"{say_time(begin)} UTC; give an earlier time, or check the clock of the database.",
        )
    epochs = sql.past_epochs(connection, id=id, since=found.since, most=most)
    segments = sql.past_segments(connection, id=id, since=found.since, known=found.known, most=most)
    rows = sql.past_commits(connection, id=id, since=found.since, most=most)
    if max(len(epochs), len(segments), len(rows)) > MOST_ROWS:
        raise InvalidInput(
            "answer_too_large",
            f"{stream} has more than {MOST_ROWS:,} epochs, segments, or commits to segments since "
            f"{say_time(begin)} UTC; begin later.",
        )
    begins = {one.segment_id: max(one.begin, begin) for one in segments}
    return Recorded(id, begin, end, unit, epochs, segments, _commits(rows, begins, unit))


def _commits(
    rows: Sequence[PastCommits], begins: Mapping[int, int], unit: str
) -> dict[int, list[Commit]]:
    """Return the commits of each segment, each with the clock of the one before it."""
    found = {}
    for segment_id, entries in groupby(rows, key=lambda row: row.segment_id):
        since, commits = begins[segment_id], []
        for row in entries:
            amount = row.bytes if unit == "bytes" else row.events
            commits.append(Commit(row.clock, min(since, row.clock), amount))
            since = row.clock
        found[segment_id] = commits
    return found
