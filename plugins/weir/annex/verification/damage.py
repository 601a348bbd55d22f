"""The damage that was found, recorded until it is seen to be right again."""

import json
from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import Connection

from weir.annex.verification.recorded import Damage
from weir.queries.annex.verification import damage as sql

# By what finds them: each look at a file, a look at its contents, the database, a list of files.
OF_FILES = ("missing", "size", "unreadable", "end", "rows", "commits")
OF_CONTENTS = ("content", "order", "segment", "bytes", "holes")
OF_OFFSETS = ("offsets",)
OF_LISTS = ("unknown", "renamed")


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
    sql.forget(
        connection, stream_id=stream_id, kinds=[*kinds],
        looked_at=None if looked_at is None else [*looked_at],
        paths=[one.path for one in found], found=[one.kind for one in found],
    )  # fmt: skip
    as_json = json.dumps([one._asdict() for one in found])
    kept = {*sql.record(connection, stream_id=stream_id, found=as_json)}
    return [one for one in found if (one.path, one.kind) in kept]


def record_hashes(
    connection: Connection, stream_id: int, hashes: Sequence[tuple[int, int, str, int]]
) -> None:
    """Record the hashes of all bytes of files whose contents were right: segment id, offset, path
    and hash of each."""
    segments, offsets, paths, values = map(list, zip(*hashes, strict=True))
    sql.record_hashes(
        connection, stream_id=stream_id, segments=segments, offsets=offsets, paths=paths,
        hashes=values,
    )  # fmt: skip


def position(connection: Connection, stream_id: int) -> tuple[int, int]:
    """Return the file of a stream (segment id, offset) up to which contents were verified."""
    return sql.position(connection, stream_id=stream_id) or (-1, -1)


def move(connection: Connection, stream_id: int, to: tuple[int, int] | None) -> None:
    """Record up to which file contents were verified; None: up to the end."""
    segment, offset = to or (-1, -1)
    sql.move(connection, stream_id=stream_id, segment=segment, offset=offset, done=to is None)
