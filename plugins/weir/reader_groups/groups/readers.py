"""Readers: they join, renew their lease and leave, and others take over when a lease has expired.

An expired lease only permits others to take over; until one has, its holder may go on. Every
lease is valid for at least its length after the server's start, so that readers can come back.
"""

from collections.abc import Sequence
from functools import partial
from typing import TypedDict

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.database.once import commit_once
from weir.database.requests import Request
from weir.errors import Conflict, Fenced, InvalidInput, NotFound
from weir.front_ends import do, leave_out
from weir.model.amounts import check_lease
from weir.model.bounds import Bound
from weir.model.names import check_text, reader_label
from weir.model.segment import Segment, segment_name
from weir.model.stream_cut import read_text
from weir.queries.reader_groups.groups import readers as sql
from weir.reader_groups.locks import LockedGroup, lock_group
from weir.reader_groups.outputs.records import discard_outputs
from weir.reader_groups.positions import advance
from weir.reader_groups.starting_points import by_stream


def join(
    database: Database, group: str, reader_id: str, lease: float, *, label: str = "",
    alone: bool = False,
) -> int:  # fmt: skip
    """Join a group, or come back to it; return the reader's token, which fences older ones.

    A retried task comes back: it gets a new token, its segments and its open batch, and the process
    that had the old token is fenced. `label`: a name given to the reader; a pin assigns a
    range to the readers of one label. `alone`: only if no other reader is there. Raises NotFound,
    InvalidInput for an invalid label or lease, and Conflict if a streaming query reads the group,
    or with `alone` any other reader.
    """
    check_lease(lease)
    check_text("reader_id", reader_id)
    if label:
        reader_label(label)

    def work(connection: Connection) -> int:
        locked = lock_group(connection, group)
        if not sql.join(
            connection,
            group_id=locked.group_id,
            reader_id=reader_id,
            token=locked.next_token,
            lease=lease,
            label=label,
            alone=alone,
        ):
            raise _taken(connection, locked, reader_id)
        return locked.next_token

    return database.transaction(work)


def _taken(connection: Connection, group: LockedGroup, reader_id: str) -> Conflict:
    """Return the error for a reader that may not join because of another one."""
    other = sql.other_reader(connection, group_id=group.group_id, reader_id=reader_id)
    assert other is not None  # the statement that took nobody saw it, under the group's lock
    since = f"since {other.joined_at:%Y-%m-%d %H:%M} UTC"
    if not other.query:
        return Conflict(
            "group_has_readers",
            f"reader group {group.name} has the reader {other.reader_id!r} {since}, and a "
            "streaming query must be the only reader of its group; wait until it has ended, or "
            "give the query a reader group of its own.",
        )
    offline = do("reader_offline", reader_group=group.name, reader=other.reader_id)
    return Conflict(
        "group_has_readers",
        f"reader group {group.name} is read by a streaming query, {other.reader_id!r}, "
        f"{since}, and "
        "nobody else may read it meanwhile; start that query again from its checkpoint, or if it "
        f"will not be started again, {offline}.",
    )


def renew(connection: Connection, group: str, reader_id: str, token: int, lease: float) -> None:
    """Renew a reader's lease by `lease` seconds. Raises Fenced if the token is not the newest."""
    if not sql.renew(connection, group=group, reader_id=reader_id, token=token, lease=lease):
        raise replaced(group, reader_id)


def renew_alone(
    connection: Connection, group: str, reader_id: str, token: int, lease: float
) -> None:
    """Renew the lease of a reader that does not get on, if no other reader of its group is there to
    take over what it owns (semantics 13.4). Otherwise change nothing."""
    sql.renew_alone(connection, group=group, reader_id=reader_id, token=token, lease=lease)


def leave(database: Database, group: str, reader_id: str, token: int, lease: float) -> None:
    """Leave the group: free the reader's segments, and let others take over its open batch at once.
    An old token ends no lease."""

    def work(connection: Connection) -> None:
        locked = lock_group(connection, group)
        sql.leave(connection, group_id=locked.group_id, reader_id=reader_id, token=token)
        release_expired(connection, locked, lease)

    database.transaction(work)


def readers_of(connection: Connection, group: str) -> list[str]:
    """Return the ids of a group's readers."""
    return sql.readers_of(connection, name=group)


class ReaderGone(TypedDict):
    """A reader that was taken offline."""

    reader_group: str
    reader: str


def reader_offline(
    database: Database, group: str, reader_id: str, position: str = "", *, request_id: str
) -> ReaderGone:
    """Remove a reader from a group by hand, and free what it owns for others at once.

    Its process, if it still runs, is fenced. Without a position, other readers take over its open
    batch as a whole, and continue at the committed position. With one (`0.0=12, 5.1=7`, or for
    several streams `{"nyc/flights": {"0.0": 12}}`) the open batch is abandoned, and what lies
    before the position counts as read. The position must lie between the committed one and the end
    of the batch. Raises NotFound for the reader, and InvalidInput for another position.
    """
    request = Request[ReaderGone](
        request_id, "reader_offline", group, {"reader": reader_id, "at": position}
    )

    def work(connection: Connection) -> ReaderGone:
        locked = lock_group(connection, group)
        if (before := request.result(connection)) is not None:
            return before
        if not sql.fence(
            connection, group_id=locked.group_id, reader_id=reader_id, token=locked.next_token
        ):
            raise NotFound(
                "reader_not_found",
                f"reader group {group} has no reader {reader_id!r}; the view weir.readers lists "
                "them.",
            )
        if position.strip():
            _give_up(connection, locked, reader_id, position)
        release_expired(connection, locked, lease=0.0, alive=None, only=reader_id)
        return request.done(connection, {"reader_group": group, "reader": reader_id})

    return database.transaction(work)


def _give_up(connection: Connection, group: LockedGroup, reader_id: str, position: str) -> None:
    """Abandon a reader's open batch, and count what lies before a position in it as read."""
    row = sql.abandon(
        connection,
        group_id=group.group_id,
        reader_id=reader_id,
        error=f"the reader was taken offline at {position}",
    )
    if row is None:
        raise InvalidInput(
            "position_invalid",
            f"reader {reader_id!r} has no open batch, so its position is the committed one; "
            f"{leave_out('position')}.",
        )
    read = _read_until(connection, list(map(Bound.of, row.bounds)), position)
    discard_outputs(connection, group.group_id, row.batch_id)
    sql.free(connection, group_id=group.group_id, reader_id=reader_id)
    streams = sorted({bound.stream_id for bound in read})
    sql.put(connection, group_id=group.group_id, streams=streams)
    advance(connection, group, read, reader_id)
    sql.put_at(connection, group_id=group.group_id, streams=streams)


def _read_until(connection: Connection, bounds: Sequence[Bound], position: str) -> list[Bound]:
    """Return the bounds of the part of a batch that lies before a position. A segment that the
    position does not name is unread."""
    rows = sql.segments_of(
        connection, streams=[b.stream_id for b in bounds], segments=[b.segment_id for b in bounds]
    )
    segments = {
        (row.stream_id, row.segment_id): Segment(row.segment_id, row.key_low, row.key_high)
        for row in rows
    }
    names = {row.stream: row.stream_id for row in rows}
    at = {
        (names.get(stream, 0), segment_id): offset
        for stream, written in by_stream(list(names), position).items()
        for segment_id, offset in read_text(written).items()
    }
    if not at:
        raise InvalidInput(
            "position_invalid",
            f"{position!r} has no position in {' and '.join(names)}; write, for example, "
            f'{{"{next(iter(names))}": {{"0.0": 12}}}}.',
        )
    read = []
    for key, offset in at.items():
        bound = next((b for b in bounds if (b.stream_id, b.segment_id) == key), None)
        if bound is None or not isinstance(offset, int) or not bound.start <= offset <= bound.end:
            within = (
                "is not in its batch" if bound is None else f"lies in {bound.start}..{bound.end}"
            )
            raise InvalidInput(
                "position_invalid",
                f"segment {segment_name(key[1])} {within}; give a position between the committed "
                "one and the end of the batch.",
            )
        if offset > bound.start or bound.completes:
            done = bound.completes and offset == bound.end
            read.append(bound._replace(end=offset, completes=done))
    ended = {(bound.stream_id, bound.segment_id) for bound in read if bound.completes}
    unfinished = {key: segment for key, segment in segments.items() if key not in ended}
    for stream_id, segment_id in [(bound.stream_id, bound.segment_id) for bound in read]:
        mine = segments[stream_id, segment_id]
        for (other, before_id), before in unfinished.items():
            if other == stream_id and before_id < segment_id and before.overlaps(mine):
                raise InvalidInput(
                    "position_invalid",
                    f"segment {mine.name} is read only after its predecessor {before.name}, which "
                    "the position does not show as read to its end; add it to the position.",
                )
    return read


def expire(database: Database, lease: float) -> list[dict[str, str]]:
    """Free the segments of all readers whose lease has expired and that hold no open batch.

    Returns for each such reader `reader_group` and `reader`, and for each group that failed
    `reader_group` and `error`. A failure does not stop the other groups.
    """
    groups = database.transaction(lambda c: sql.groups_expired(c, lease=lease))
    released: list[dict[str, str]] = []
    for group in groups:
        one = partial(commit_once, database, partial(_expire_one, group=group, lease=lease))
        gone, failed = database.one_of_many(f"group {group}", one)
        if failed:
            released.append({"reader_group": group, "error": failed})
        released += [{"reader_group": group, "reader": reader} for reader in gone or []]
    return released


def _expire_one(connection: Connection, group: str, lease: float) -> list[str]:
    return release_expired(connection, lock_group(connection, group), lease=lease)


def release_expired(
    connection: Connection,
    group: LockedGroup,
    lease: float,
    alive: str | None = None,
    only: str | None = None,
) -> list[str]:
    """Free the segments of readers whose lease has expired; return the readers that are removed. In
    a transaction that has locked the group.

    A reader with an open batch remains until another one takes over the batch. `alive`: the reader
    that asks, which is alive although its lease may have expired. `only`: look at this reader only.
    """
    return sql.release_expired(
        connection, group_id=group.group_id, lease=lease, alive=alive, only=only
    )


def replaced(group: str, reader_id: str) -> Fenced:
    """Return the error for a reader whose token is no longer the newest one."""
    return Fenced(
        "reader_replaced",
        f"reader {reader_id!r} is no longer in reader group {group} with this token, because it "
        "joined again, its lease expired, it was taken offline, or the group was reset or deleted; "
        "run the consumer again, which continues at the committed position.",
    )
