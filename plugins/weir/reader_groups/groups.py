"""Create reader groups."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.locks import lock_streams
from weir.controller.requests import Request
from weir.errors import Conflict, InvalidInput
from weir.names import StreamName, reader_group_name
from weir.storage import Database

START = ("head", "tail")
ON_GAP = ("fail", "skip")


def create_reader_group(
    database: Database,
    name: str,
    streams: Sequence[StreamName],
    *,
    start: str = "head",
    subscriber: bool = True,
    on_gap: str = "fail",
    request_id: str,
) -> dict[str, Any]:
    """Create a group that reads `streams` from their head, or from their tail now.

    A subscriber is protected from retention from this very transaction on, by its start cut.
    Raises NotFound for a stream, Conflict when the group exists.
    """
    reader_group_name(name)
    if start not in START or on_gap not in ON_GAP:
        raise InvalidInput(
            f"start is {start!r} and on_gap {on_gap!r}; use one of {START} and one of {ON_GAP}."
        )
    if not streams:
        raise InvalidInput(f"reader group {name} has no stream to read; name at least one.")
    request = Request(
        request_id,
        "create_reader_group",
        name,
        {"streams": sorted(map(str, streams)), "start": start, "subscriber": subscriber,
         "on_gap": on_gap},
    )  # fmt: skip

    def work(connection: Connection) -> dict[str, Any]:
        locked = lock_streams(connection, names=list(dict.fromkeys(streams)))
        if (before := request.result(connection)) is not None:
            return before
        made = connection.execute(
            text(
                """INSERT INTO reader_group (name, subscriber, on_gap)
                VALUES (:name, :subscriber, :on_gap)
                ON CONFLICT (name) DO NOTHING RETURNING group_id"""
            ),
            {"name": name, "subscriber": subscriber, "on_gap": on_gap},
        ).one_or_none()
        if made is None:
            raise Conflict(f"reader group {name} exists already; choose another name.")
        cuts = connection.execute(
            text(
                """WITH starts AS (
                    INSERT INTO reader_group_stream (group_id, stream_id, start_cut, published_cut,
                                                     published_at)
                    SELECT :group_id, s.stream_id, c.cut, CASE WHEN :subscriber THEN c.cut END,
                           CASE WHEN :subscriber THEN clock_timestamp() END
                    FROM stream s CROSS JOIN LATERAL (
                        SELECT CASE WHEN :start = 'head' THEN s.head
                               ELSE tail_cut(s.stream_id) END AS cut) c
                    WHERE s.stream_id = ANY(:ids)
                    RETURNING stream_id, start_cut
                ), entered AS (
                    INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state,
                                                      next_offset)
                    SELECT :group_id, starts.stream_id, e.segment_id,
                           CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END,
                           e.event_offset
                    FROM starts CROSS JOIN LATERAL cut_entries(starts.start_cut) e
                )
                SELECT stream_id, start_cut FROM starts"""
            ),
            {
                "group_id": made.group_id,
                "subscriber": subscriber,
                "start": start,
                "ids": [stream.stream_id for stream in locked],
            },
        )
        names = {stream.stream_id: str(stream.name) for stream in locked}
        return request.done(
            connection,
            {
                "reader_group": name,
                "subscriber": subscriber,
                "start": {names[row.stream_id]: row.start_cut for row in cuts},
            },
        )

    return database.transaction(work)


def group_streams(connection: Connection, name: str) -> list[tuple[int, str]]:
    """The id and the name of each stream that a group reads."""
    rows = connection.execute(
        text(
            """SELECT s.stream_id, s.scope || '/' || s.name FROM reader_group_stream gs
            JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
            WHERE g.name = :name ORDER BY s.stream_id"""
        ),
        {"name": name},
    )
    return [(row[0], row[1]) for row in rows]


def group_tails(connection: Connection, name: str) -> dict[int, dict[str, Any]]:
    """Per stream id the tail of each stream of a group, as cuts: how far a run has to read."""
    rows = connection.execute(
        text(
            """SELECT gs.stream_id, tail_cut(gs.stream_id) AS tail FROM reader_group_stream gs
            JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
            WHERE g.name = :name AND s.state <> 'deleted'"""
        ),
        {"name": name},
    )
    return {row.stream_id: dict(row.tail) for row in rows}
