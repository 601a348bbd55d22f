"""The damage that was found, recorded until it is seen to be right again."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from weir.queries.annex.verification import damage as sql

# By what finds them: each look at a file, a look at its contents, the database, a list of files.
OF_FILES = ("missing", "size", "unreadable", "end", "rows", "commits")
OF_CONTENTS = ("content", "order", "segment", "bytes", "holes")
OF_OFFSETS = ("offsets",)
OF_LISTS = ("unknown", "renamed")


class Damage(NamedTuple):
    """Something that is not as recorded. `what` is a phrase for people."""

    kind: str
    path: str
    what: str
    segment_id: int | None = None
    start_offset: int | None = None
    events: int | None = None


def record(
    connection: Connection,
    stream_id: int | None,
    found: Sequence[Damage],
    *,
    looked_at: Collection[str] | None,
    kinds: Iterable[str],
) -> list[Damage]:
    """Record damage of a stream (None: of no stream), and delete what was found earlier of the
    `kinds` in the files that were looked at (None: all) and is right again. Return it without that
    of files that the stream no longer has."""
    paths, of = [one.path for one in found], [one.kind for one in found]
    sql.forget(
        connection, stream_id=stream_id, kinds=list(kinds), path=paths, kind=of,
        looked_at=None if looked_at is None else list(looked_at),
    )  # fmt: skip
    recorded = sql.record(
        connection, path=paths, kind=of, what=[one.what for one in found],
        segment=[one.segment_id for one in found], offset=[one.start_offset for one in found],
        events=[one.events for one in found], stream_id=stream_id,
    )  # fmt: skip
    kept = set(recorded)
    return [one for one in found if (one.path, one.kind) in kept]


def record_hashes(
    connection: Connection, stream_id: int, hashes: Sequence[tuple[int, int, str, int]]
) -> None:
    """Record the hashes of all bytes of files whose contents were right: segment id, offset, path
    and hash of each."""
    sql.record_hashes(
        connection, segments=[one[0] for one in hashes], offsets=[one[1] for one in hashes],
        paths=[one[2] for one in hashes], hashes=[one[3] for one in hashes], stream_id=stream_id,
    )  # fmt: skip


def position(connection: Connection, stream_id: int) -> tuple[int, int]:
    """Return the file of a stream (segment id, offset) up to which contents were verified."""
    return sql.position(connection, stream_id=stream_id) or (-1, -1)


def move(connection: Connection, stream_id: int, to: tuple[int, int] | None) -> None:
    """Record up to which file contents were verified; None: up to the end."""
    segment, offset = to or (-1, -1)
    sql.move(connection, stream_id=stream_id, segment=segment, offset=offset, done=to is None)


def in_turn(connection: Connection, again_after: float = 0.0) -> list[int]:
    """Return the streams with files, the one first whose files were not looked at for longest; one
    in which a look has begun goes before others. Without those all of whose files were looked at
    in the last `again_after` seconds."""
    return sql.in_turn(connection, again_after=again_after)
