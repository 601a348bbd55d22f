"""Create reader groups."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.locks import LockedGroup, LockedStream, lock_streams
from weir.controller.retention_queue import queueing
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, InvalidInput
from weir.model.amounts import LONGEST, say_age
from weir.model.names import StreamName, reader_group_name
from weir.model.stream_cut import first_behind
from weir.reader_groups.starting_points import Cuts, check_not_below_the_head, find_place

ON_GAP = ("fail", "skip")
RELEASE = ("automatic", "manual")


def create_reader_group(
    database: Database,
    name: str,
    streams: Sequence[StreamName],
    *,
    start: str = "head",
    end: str = "",
    subscriber: bool = True,
    on_gap: str = "fail",
    release: str = "automatic",
    time_out: int | None = None,
    request_id: str,
) -> dict[str, Any]:
    """Create a group that reads `streams` from one place, and stops at another if `end` names one.

    Places are those of `weir.reader_groups.starting_points`. A subscriber is protected from
    retention from this very transaction on, by its start cut; `release`: by what it releases
    events, `time_out`: seconds without activity after which it holds nothing back any more. Raises
    NotFound for a stream, Truncated for a place below the head, Conflict when the group exists.
    """
    reader_group_name(name)
    check_settings(on_gap, release, time_out)
    if not streams:
        raise InvalidInput(
            "group_without_streams",
            f"reader group {name} has no stream to read; name at least one.",
        )
    request = Request(
        request_id,
        "create_reader_group",
        name,
        {"streams": sorted(map(str, streams)), "start": start, "end": end,
         "subscriber": subscriber, "on_gap": on_gap, "release": release, "time_out": time_out},
    )  # fmt: skip

    def work(connection: Connection) -> dict[str, Any]:
        locked = lock_streams(connection, names=list(dict.fromkeys(streams)))
        if (before := request.result(connection)) is not None:
            return before
        starts = find_place(connection, locked, start)
        ends = find_place(connection, locked, end) if end.strip() else {}
        made = create_in(
            connection, name, locked, starts, ends, subscriber=subscriber, on_gap=on_gap,
            release=release, time_out=time_out,
        )  # fmt: skip
        return request.done(connection, made)

    return database.transaction(work)


def create_in(
    connection: Connection,
    name: str,
    streams: Sequence[LockedStream],
    starts: Cuts,
    ends: Cuts,
    *,
    subscriber: bool,
    on_gap: str,
    release: str = "automatic",
    time_out: int | None = None,
) -> dict[str, Any]:
    """The same in a transaction that has locked the streams and knows the cuts."""
    stops = {stream_id: end.to_json() for stream_id, end in ends.items()}
    check_not_below_the_head(connection, streams, starts, stops)
    for stream in streams:
        start, end = starts[stream.stream_id], ends.get(stream.stream_id)
        if end is not None and (behind := first_behind(start, end)) is not None:
            raise InvalidInput(
                "end_before_start",
                f"the end lies before the start in segment {behind.name} of stream {stream.name}.",
            )
    made = connection.execute(
        text(
            """INSERT INTO reader_group (name, subscriber, on_gap, release, time_out)
            VALUES (:name, :subscriber, :on_gap, :release, :time_out)
            ON CONFLICT (name) DO NOTHING RETURNING group_id"""
        ),
        {"name": name, "subscriber": subscriber, "on_gap": on_gap, "release": release,
         "time_out": time_out},
    ).one_or_none()  # fmt: skip
    if made is None:
        raise Conflict("group_exists", f"reader group {name} exists already; choose another name.")
    enter_streams(connection, made.group_id, subscriber, starts, ends)
    return {
        "reader_group": name,
        "subscriber": subscriber,
        "start": {str(s.name): starts[s.stream_id].to_json() for s in streams},
    }


def enter_streams(
    connection: Connection, group_id: int, subscriber: bool, starts: Cuts, ends: Cuts
) -> None:
    """Let a group stand at cuts of streams that it did not read so far."""
    connection.execute(
        text(
            f"""WITH starts AS (
                INSERT INTO reader_group_stream (group_id, stream_id, start_cut, end_cut,
                                                 published_cut, published_at)
                SELECT :group_id, c.stream, c.start_cut, c.end_cut,
                       CASE WHEN :subscriber THEN c.start_cut END,
                       CASE WHEN :subscriber THEN clock_timestamp() END
                FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
                    AS c (stream bigint, start_cut jsonb, end_cut jsonb)
                RETURNING stream_id, start_cut
            ), due AS (
                {queueing("starts JOIN stream USING (stream_id) WHERE state = 'active'")}
            )
            INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
            SELECT :group_id, starts.stream_id, e.segment_id,
                   CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END,
                   e.event_offset
            FROM starts CROSS JOIN LATERAL cut_entries(starts.start_cut) e"""  # noqa: S608 - constants
        ),
        {
            "group_id": group_id,
            "subscriber": subscriber,
            "cuts": json.dumps(
                [
                    {"stream": s, "start_cut": cut.to_json()}
                    | ({"end_cut": ends[s].to_json()} if s in ends else {})
                    for s, cut in starts.items()
                ]
            ),
        },
    )


def check_settings(on_gap: str, release: str, time_out: int | None) -> None:
    """Raises InvalidInput for what a group can't do."""
    if on_gap not in ON_GAP:
        raise InvalidInput("argument_invalid", f"on_gap is {on_gap!r}; use one of {ON_GAP}.")
    if release not in RELEASE:
        raise InvalidInput("argument_invalid", f"release is {release!r}; use one of {RELEASE}.")
    if time_out is not None and not 1 <= time_out <= LONGEST:
        raise InvalidInput(
            "argument_invalid",
            f"the time-out of a subscriber is {time_out} s; give more than 0 and no more than "
            f"{say_age(LONGEST)}, or none to have none.",
        )


def group_streams(connection: Connection, name: str) -> list[tuple[int, str]]:
    """The id and the name of each stream that a group reads."""
    rows = connection.execute(
        text(
            """SELECT s.stream_id, s.stream_name FROM reader_group_stream gs
            JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
            WHERE g.name = :name ORDER BY s.stream_id"""
        ),
        {"name": name},
    )
    return [(row[0], row[1]) for row in rows]


def group_tails(connection: Connection, name: str) -> dict[int, dict[str, Any]]:
    """Per stream id how far a run has to read: the tail now, or where the group ends."""
    rows = connection.execute(
        text(
            """SELECT gs.stream_id, coalesce(gs.end_cut, tail_cut(gs.stream_id)) AS tail
            FROM reader_group_stream gs
            JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
            WHERE g.name = :name AND s.state <> 'deleted'"""
        ),
        {"name": name},
    )
    return {row.stream_id: dict(row.tail) for row in rows}


def end_cuts(connection: Connection, group: LockedGroup) -> dict[int, dict[str, Any]]:
    """Where a group stops for good, per stream id of those in which it does; never beyond a
    tail."""
    rows = connection.execute(
        text(
            """SELECT stream_id, end_cut FROM reader_group_stream
            WHERE group_id = :g AND end_cut IS NOT NULL"""
        ),
        {"g": group.group_id},
    )
    return {row.stream_id: row.end_cut for row in rows}


def end_of_group(connection: Connection, name: str) -> str:
    """The sentence for a group that has read all that it will ever have to read; else empty."""
    streams = connection.execute(
        text(
            """SELECT string_agg(l.stream, ', ' ORDER BY l.stream) FROM lag l
            WHERE l.reader_group = :name HAVING bool_and(l.at_end)"""
        ),
        {"name": name},
    ).scalar_one_or_none()
    if not streams:
        return ""
    return f"reader group {name} is at its end: it has read {streams}, and nothing will follow."
