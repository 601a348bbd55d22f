"""Readers: they join, renew their lease and leave, and others take over when a lease has expired.

An expired lease only permits others to take over; until one has, its holder may go on. Every
lease is valid for at least its length after the server's start, so that readers can come back.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, text

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
from weir.reader_groups.positions import advance, placed
from weir.reader_groups.starting_points import by_stream

# The condition that a reader's lease has expired; `:lease` is the configured one, in seconds.
LEASE_EXPIRED = """clock_timestamp()
    > greatest(r.lease_until, pg_postmaster_start_time() + :lease * interval '1 second')"""


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
        joined = connection.execute(
            text(
                f"""WITH counted AS (
                    UPDATE reader_group SET next_token = next_token + 1 WHERE group_id = :group_id
                )
                INSERT INTO reader (group_id, reader_id, token, lease_until, joined_at, label)
                SELECT :group_id, :reader_id, :token,
                    clock_timestamp() + :lease * interval '1 second', clock_timestamp(), :label
                WHERE NOT EXISTS (
                    SELECT FROM reader r WHERE r.group_id = :group_id AND r.reader_id <> :reader_id
                    AND (r.lease_until = 'infinity' OR :alone
                         AND r.lease_until > '-infinity' AND NOT {LEASE_EXPIRED}))
                ON CONFLICT (group_id, reader_id) DO UPDATE SET token = excluded.token,
                    lease_until = excluded.lease_until, label = excluded.label"""  # noqa: S608 - constant
            ),
            {
                "group_id": locked.group_id,
                "reader_id": reader_id,
                "token": locked.next_token,
                "lease": lease,
                "label": label,
                "alone": alone,
            },
        )
        if joined.rowcount == 0:
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
        "group_has_query",
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
    connection.execute(
        text(
            """UPDATE reader r SET lease_until = clock_timestamp() + :lease * interval '1 second'
            FROM reader_group g WHERE g.name = :group AND r.group_id = g.group_id
              AND r.reader_id = :reader_id AND r.token = :token
              AND NOT EXISTS (SELECT FROM reader o WHERE o.group_id = r.group_id
                              AND o.reader_id <> r.reader_id
                              AND o.lease_until > clock_timestamp())"""
        ),
        {"group": group, "reader_id": reader_id, "token": token, "lease": lease},
    )


def leave(database: Database, group: str, reader_id: str, token: int, lease: float) -> None:
    """Leave the group: free the reader's segments, and let others take over its open batch at once.
    An old token ends no lease."""

    def work(connection: Connection) -> None:
        locked = lock_group(connection, group)
        parameters = {"group_id": locked.group_id, "reader_id": reader_id, "token": token}
        connection.execute(
            text(
                """UPDATE reader SET lease_until = '-infinity'
                WHERE group_id = :group_id AND reader_id = :reader_id AND token = :token"""
            ),
            parameters,
        )
        release_expired(connection, locked, lease)

    database.transaction(work)


def readers_of(connection: Connection, group: str) -> list[str]:
    """Return the ids of a group's readers."""
    found = connection.execute(
        text("SELECT reader_id FROM reader JOIN reader_group USING (group_id) WHERE name = :name"),
        {"name": group},
    )
    return list(found.scalars())


# No batch read what a person says is read: the group is put behind it.
_PUT = text(
    placed(
        """(SELECT s AS stream_id, group_cut(:g, s) AS cut
            FROM unnest(CAST(:streams AS bigint[])) s)""",
        "reset",
    )
)
_PUT_AT = text(
    """UPDATE placement p SET cut = group_cut(:g, p.stream_id)
    FROM (SELECT stream_id, max(number) AS number FROM placement
          WHERE group_id = :g AND stream_id = ANY(:streams) GROUP BY stream_id) l
    WHERE p.group_id = :g AND p.stream_id = l.stream_id AND p.number = l.number"""
)


def reader_offline(
    database: Database, group: str, reader_id: str, position: str = "", *, request_id: str
) -> dict[str, Any]:
    """Remove a reader from a group by hand, and free what it owns for others at once.

    Its process, if it still runs, is fenced. Without a position, other readers take over its open
    batch as a whole, and continue at the committed position. With one (`0.0=12, 5.1=7`, or for
    several streams `{"nyc/flights": {"0.0": 12}}`) the open batch is abandoned, and what lies
    before the position counts as read. The position must lie between the committed one and the end
    of the batch. Returns `reader_group` and `reader`. Raises NotFound for the reader, and
    InvalidInput for another position.
    """
    request = Request(request_id, "reader_offline", group, {"reader": reader_id, "at": position})

    def work(connection: Connection) -> dict[str, Any]:
        locked = lock_group(connection, group)
        if (before := request.result(connection)) is not None:
            return before
        gone = connection.execute(
            text(
                """WITH counted AS (
                    UPDATE reader_group SET next_token = next_token + 1 WHERE group_id = :g
                ), fenced AS (
                    UPDATE reader_batch SET token = :token
                    WHERE group_id = :g AND reader_id = :r AND state = 'open'
                )
                UPDATE reader SET lease_until = '-infinity', token = :token
                WHERE group_id = :g AND reader_id = :r RETURNING reader_id"""
            ),
            {"g": locked.group_id, "r": reader_id, "token": locked.next_token},
        ).one_or_none()
        if gone is None:
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
    row = connection.execute(
        text(
            """UPDATE reader_batch SET state = 'abandoned', error = :error,
                ended_at = clock_timestamp()
            WHERE group_id = :g AND reader_id = :r AND state = 'open'
            RETURNING batch_id, bounds"""
        ),
        {
            "g": group.group_id,
            "r": reader_id,
            "error": f"the reader was taken offline at {position}",
        },
    ).one_or_none()
    if row is None:
        raise InvalidInput(
            "reader_has_no_batch",
            f"reader {reader_id!r} has no open batch, so its position is the committed one; "
            f"{leave_out('position')}.",
        )
    read = _read_until(connection, group, list(map(Bound.of, row.bounds)), position)
    discard_outputs(connection, group.group_id, row.batch_id)
    connection.execute(
        text(
            """UPDATE reader_group_segment SET state = 'unassigned', reader_id = NULL
            WHERE group_id = :g AND reader_id = :r"""
        ),
        {"g": group.group_id, "r": reader_id},
    )
    streams = {"g": group.group_id, "streams": sorted({bound.stream_id for bound in read})}
    connection.execute(_PUT, streams)
    advance(connection, group, read, reader_id)
    connection.execute(_PUT_AT, streams)


def _read_until(
    connection: Connection, group: LockedGroup, bounds: Sequence[Bound], position: str
) -> list[Bound]:
    """Return the bounds of the part of a batch that lies before a position. A segment that the
    position does not name is unread."""
    rows = connection.execute(
        text(
            """SELECT stream_id, s.stream_name AS stream, g.segment_id, key_low, key_high
            FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]))
                AS b (stream_id, segment_id)
            JOIN segment g USING (stream_id, segment_id) JOIN stream s USING (stream_id)"""
        ),
        {"streams": [b.stream_id for b in bounds], "segments": [b.segment_id for b in bounds]},
    ).all()
    segments = {(row.stream_id, row.segment_id): Segment(*row[2:]) for row in rows}
    names = {row.stream: row.stream_id for row in rows}
    at = {
        (names.get(stream, 0), segment_id): offset
        for stream, written in by_stream(list(names), position).items()
        for segment_id, offset in read_text(written).items()
    }
    if not at:
        raise InvalidInput(
            "position_lacks_stream",
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
                "position_outside_batch",
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
                    "position_skips_segment",
                    f"segment {mine.name} is read only after its predecessor {before.name}, which "
                    "the position does not show as read to its end; add it to the position.",
                )
    return read


def expire(database: Database, lease: float) -> list[dict[str, Any]]:
    """Free the segments of all readers whose lease has expired and that hold no open batch.

    Returns for each such reader `reader_group` and `reader`, and for each group that failed
    `reader_group` and `error`. A failure does not stop the other groups.
    """
    groups = database.transaction(
        lambda c: c.execute(
            text(
                f"""SELECT DISTINCT g.name FROM reader r JOIN reader_group g USING (group_id)
                WHERE {LEASE_EXPIRED}"""  # noqa: S608 - constant
            ),
            {"lease": lease},
        ).all()
    )
    released: list[dict[str, Any]] = []
    for (group,) in groups:
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
    rows = connection.execute(
        text(
            f"""WITH gone AS (
                SELECT reader_id FROM reader r WHERE group_id = :group_id
                AND (lease_until = '-infinity' OR {LEASE_EXPIRED})
                AND reader_id IS DISTINCT FROM CAST(:alive AS text)
                AND reader_id = coalesce(CAST(:only AS text), reader_id)
            ), freed AS (
                UPDATE reader_group_segment p SET state = 'unassigned', reader_id = NULL
                WHERE group_id = :group_id AND reader_id IN (SELECT reader_id FROM gone)
                  AND (stream_id, segment_id) NOT IN (
                      SELECT stream_id, segment_id FROM held_segments(:group_id))
            )
            DELETE FROM reader r WHERE group_id = :group_id
              AND reader_id IN (SELECT reader_id FROM gone)
              AND NOT EXISTS (SELECT FROM reader_batch b WHERE b.group_id = :group_id
                              AND b.state = 'open' AND b.reader_id = r.reader_id)
            RETURNING reader_id"""  # noqa: S608 - constant
        ),
        {"group_id": group.group_id, "lease": lease, "alive": alive, "only": only},
    )
    return [row.reader_id for row in rows]


def replaced(group: str, reader_id: str) -> Fenced:
    """Return the error for a reader whose token is no longer the newest one."""
    return Fenced(
        "reader_replaced",
        f"reader {reader_id!r} is no longer in reader group {group} with this token, because it "
        "joined again, its lease expired, it was taken offline, or the group was reset or deleted; "
        "run the consumer again, which continues at the committed position.",
    )
