"""What open batches read of adjunct stores. Made by `make queries` from sql/queries/adjunct/pins.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

PLACES = text(
    """SELECT s.stream_id, group_cut(:group_id, s.stream_id) AS at,
    tail_cut(s.stream_id) AS tail, EXISTS (
        SELECT FROM held_segments(:group_id) h WHERE h.stream_id = s.stream_id) AS reading
FROM unnest(CAST(:ids AS bigint[])) AS s (stream_id)"""
)


class Place(NamedTuple):
    """A row of `places`."""

    stream_id: int
    at: Cut
    tail: Cut
    reading: bool


def places(connection: Connection, *, group_id: int, ids: Sequence[int]) -> list[Place]:
    """Return where a group is in streams, where they end, and whether an open batch reads them."""
    result = connection.execute(PLACES, {"group_id": group_id, "ids": list(ids)})
    return [Place._make(row) for row in result]


PIN_TARGET = text(
    """INSERT INTO adjunct_pin (group_id, batch_id, store_id, cut, clock, since)
VALUES (:group_id, :batch_id, :store_id, CAST(:cut AS jsonb), :clock, :since)
ON CONFLICT DO NOTHING"""
)


def pin_target(
    connection: Connection,
    *,
    group_id: int,
    batch_id: int,
    store_id: int,
    cut: str,
    clock: int,
    since: int | None,
) -> None:
    """Record the cut to which a version must be complete."""
    result = connection.execute(
        PIN_TARGET,
        {
            "group_id": group_id,
            "batch_id": batch_id,
            "store_id": store_id,
            "cut": cut,
            "clock": clock,
            "since": since,
        },
    )
    result.close()


PIN_VERSION = text(
    """UPDATE adjunct_pin SET pinned_at = clock_timestamp(), version = :version
WHERE group_id = :group_id AND batch_id = :batch_id AND store_id = :store_id AND pinned_at IS NULL
  AND (CAST(:version AS bigint) IS NULL OR EXISTS (
      SELECT FROM adjunct_version n WHERE n.store_id = :store_id AND n.version = :version
        AND n.state = 'published'))"""
)


def pin_version(
    connection: Connection, *, version: int | None, group_id: int, batch_id: int, store_id: int
) -> int:
    """Pin a version, unless one is pinned or it has expired."""
    result = connection.execute(
        PIN_VERSION,
        {"version": version, "group_id": group_id, "batch_id": batch_id, "store_id": store_id},
    )
    return result.rowcount


PINS = text(
    """SELECT store_id, cut, clock, since, pinned_at IS NOT NULL AS pinned, version
FROM adjunct_pin WHERE group_id = :group_id AND batch_id = :batch_id"""
)


class Pinned(NamedTuple):
    """A row of `pins`."""

    store_id: int
    cut: Cut
    clock: int
    since: int | None
    pinned: bool
    version: int | None


def pins(connection: Connection, *, group_id: int, batch_id: int) -> list[Pinned]:
    """Return what is recorded of the stores of a batch."""
    result = connection.execute(PINS, {"group_id": group_id, "batch_id": batch_id})
    return [Pinned._make(row) for row in result]


EXISTING = text(
    """SELECT stream_id FROM stream WHERE stream_id = ANY(:ids) AND state <> 'deleted'"""
)


def existing(connection: Connection, *, ids: Sequence[int]) -> list[int]:
    """Return those of some streams that were not deleted."""
    result = connection.execute(EXISTING, {"ids": list(ids)})
    return [row[0] for row in result]


CLOCKS = text(
    """SELECT coalesce(min(f.clock), 0) AS oldest, coalesce(max(l.clock), 0) AS newest
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
    CAST(:starts AS bigint[]), CAST(:ends AS bigint[]))
    AS b (stream_id, segment_id, first, past)
LEFT JOIN LATERAL commit_at(b.stream_id, b.segment_id, b.first) f ON true
LEFT JOIN LATERAL commit_at(b.stream_id, b.segment_id, b.past - 1) l ON true"""
)


class Clocks(NamedTuple):
    """A row of `clocks`."""

    oldest: int
    newest: int


def clocks(
    connection: Connection,
    *,
    streams: Sequence[int],
    segments: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
) -> Clocks:
    """Return the clocks of the oldest and of the newest event of a batch."""
    result = connection.execute(
        CLOCKS,
        {
            "streams": list(streams),
            "segments": list(segments),
            "starts": list(starts),
            "ends": list(ends),
        },
    )
    row = result.one()
    return Clocks._make(row)


CUT_AT = text("""SELECT stream_cut_at(:stream, clock_time(:clock))""")


def cut_at(connection: Connection, *, stream: str, clock: int) -> Cut:
    """Return the tail of a stream at a clock."""
    result = connection.execute(CUT_AT, {"stream": stream, "clock": clock})
    value: Cut = result.scalar_one()
    return value


CLOCK_BEFORE = text("""SELECT clock_after(:stream_id, CAST(:cut AS jsonb)) - 1 AS clock""")


def clock_before(connection: Connection, *, stream_id: int, cut: str) -> int | None:
    """Return the last clock that a cut includes; None if all of the stream lies before it."""
    result = connection.execute(CLOCK_BEFORE, {"stream_id": stream_id, "cut": cut})
    value: int | None = result.scalar_one()
    return value
