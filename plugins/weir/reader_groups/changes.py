"""What becomes of a group: its configuration changes, it goes back or forth, it ends, it is forked.

Each is one transaction under the locks of its streams and its own. A change of configuration makes
a new generation; whoever names an older one is refused (semantics 11.8).
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedGroup, LockedStream, lock_streams_and_group
from weir.controller.retention_queue import mark_retention_due
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, InvalidInput
from weir.model.names import StreamName, reader_group_name
from weir.model.stream_cut import at_or_before, join, meet
from weir.reader_groups.groups import check_settings, create_in, end_cuts, enter_streams
from weir.reader_groups.outputs import discard_outputs
from weir.reader_groups.pins import Pin, check_disjoint, replace_pins
from weir.reader_groups.starting_points import Cuts, check_not_below_the_head, find_place


def update_reader_group(
    database: Database,
    name: str,
    *,
    generation: int | None = None,
    subscriber: bool | None = None,
    on_gap: str | None = None,
    release: str | None = None,
    time_out: int | None = -1,
    max_outstanding: int | None = None,
    streams: Sequence[StreamName] | None = None,
    start: str = "head",
    pins: Sequence[Pin] | None = None,
    request_id: str,
) -> dict[str, Any]:
    """Change what is named; `streams`: all that it reads from now on, new ones from `start`;
    `pins`: all there are from now on.

    `time_out`: -1 leaves it as it is. A group that becomes a subscriber is protected from where it
    stands. Raises Conflict for a `generation` that is not the group's, or for a stream to leave
    that has an open batch; InvalidInput for pins that overlap or are of another stream.
    """
    check_disjoint(pins or ())
    request = Request(
        request_id, "update_reader_group", name,
        {"generation": generation, "subscriber": subscriber, "on_gap": on_gap,
         "release": release, "time_out": time_out,
         "max_outstanding": max_outstanding, "start": start,
         "streams": streams and sorted(map(str, streams)),
         "pins": pins and sorted(map(str, pins))},
    )  # fmt: skip

    def work(connection: Connection) -> dict[str, Any]:
        named = list(dict.fromkeys(streams or ()))
        locked, group = lock_group_and_streams(connection, name, named)
        if (before := request.result(connection)) is not None:
            return before
        group.must_be_of(generation)
        settings: dict[str, Any] = {
            "subscriber": group.subscriber if subscriber is None else subscriber,
            "on_gap": on_gap or group.on_gap,
            "release": release or group.release,
            "time_out": group.time_out if time_out == -1 else time_out,
        }
        check_settings(settings["on_gap"], settings["release"], settings["time_out"])
        if max_outstanding is not None and max_outstanding < 1:
            raise InvalidInput(
                "argument_invalid", f"max_outstanding is {max_outstanding}; it must be 1 or more."
            )
        connection.execute(
            text(
                """UPDATE reader_group SET generation = generation + 1, subscriber = :subscriber,
                    on_gap = :on_gap, release = :release, time_out = :time_out,
                    moved_at = CASE WHEN :subscriber AND NOT subscriber THEN clock_timestamp()
                               ELSE moved_at END,
                    -- What it has read it releases at the next run, though it moves no more.
                    checkpointed_at = CASE
                        WHEN :release <> release OR :subscriber <> subscriber THEN '-infinity'
                        ELSE checkpointed_at END,
                    max_outstanding = coalesce(:most, max_outstanding)
                WHERE group_id = :g"""
            ),
            {**settings, "most": max_outstanding, "g": group.group_id},
        )
        if streams is not None:
            _change_streams(connection, group, locked, named, bool(settings["subscriber"]), start)
        _protect(
            connection, group, locked, bool(settings["subscriber"]),
            anew=settings["release"] != group.release,
        )  # fmt: skip
        mark_retention_due(connection, [stream.stream_id for stream in locked])
        if pins is not None:
            known = {stream_id for stream_id, _ in _streams_of(connection, group.name)}
            here = {s.name: s.stream_id for s in locked if s.stream_id in known}
            replace_pins(connection, group, here, pins)
        return request.done(
            connection, {"reader_group": name, "generation": group.generation + 1, **settings}
        )

    return database.transaction(work)


def reset_reader_group(
    database: Database, name: str, to: str, *, allow_repeat: bool = False, request_id: str
) -> dict[str, Any]:
    """Let a group stand at another place, for all of its streams: `start` (where it began), or one
    of `weir.reader_groups.starting_points`. Open batches are abandoned, and readers must join
    again.

    Raises Truncated for a place below the head, and Conflict when events that were read and
    committed would be read again (unless `allow_repeat`).
    """
    request = Request(
        request_id, "reset_reader_group", name, {"to": to, "allow_repeat": allow_repeat}
    )

    def work(connection: Connection) -> dict[str, Any]:
        locked, group = lock_group_and_streams(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        rows = connection.execute(
            text(
                """SELECT stream_id, start_cut, end_cut, group_cut(group_id, stream_id) AS cut
                FROM reader_group_stream WHERE group_id = :g"""
            ),
            {"g": group.group_id},
        ).all()
        now: Cuts = {}
        starts: Cuts = {}
        back_to_start = to.strip() == "start"
        for row in rows:
            if any(stream.stream_id == row.stream_id for stream in locked):
                (now[row.stream_id],) = load_cuts(connection, row.stream_id, row.cut)
                if back_to_start:
                    (starts[row.stream_id],) = load_cuts(connection, row.stream_id, row.start_cut)
        cuts = starts if back_to_start else find_place(connection, locked, to, group.group_id)
        check_not_below_the_head(connection, locked, cuts, end_cuts(connection, group))
        back = [
            str(s.name) for s in locked if not at_or_before(now[s.stream_id], cuts[s.stream_id])
        ]
        if back and not allow_repeat:
            raise Conflict(
                "events_would_repeat",
                f"group {name} has read further than that in {', '.join(back)}: going back would "
                "repeat what was committed; set allow_repeat if that is wanted.",
            )
        _move(connection, group, cuts)
        mark_retention_due(connection, cuts)
        return request.done(
            connection,
            {
                "reader_group": name,
                "generation": group.generation + 1,
                "position": {str(s.name): cuts[s.stream_id].to_json() for s in locked},
            },
        )

    return database.transaction(work)


def fork_reader_group(
    database: Database,
    name: str,
    new_name: str,
    *,
    at: str = "",
    subscriber: bool = False,
    request_id: str,
) -> dict[str, Any]:
    """Create a group that stands where another does, or at one of its checkpoints or any other
    place, to replay or to debug without touching the first; it stops where that stops. Raises as
    creating does."""
    reader_group_name(new_name)
    request = Request(
        request_id, "fork_reader_group", new_name,
        {"of": name, "at": at, "subscriber": subscriber},
    )  # fmt: skip

    def work(connection: Connection) -> dict[str, Any]:
        locked, group = lock_group_and_streams(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        if at.strip():
            cuts = find_place(connection, locked, at, group.group_id)
        else:
            cuts = positions_of(connection, group, locked)
        ends = {
            stream_id: load_cuts(connection, stream_id, end)[0]
            for stream_id, end in end_cuts(connection, group).items()
            if stream_id in cuts
        }
        if not at.strip():  # the head may have taken it beyond its end
            ends = {stream_id: join(cuts[stream_id], end) for stream_id, end in ends.items()}
        made = create_in(
            connection, new_name, locked, cuts, ends, subscriber=subscriber, on_gap=group.on_gap,
            release=group.release, time_out=group.time_out,
        )  # fmt: skip
        return request.done(connection, made)

    return database.transaction(work)


def delete_reader_group(database: Database, name: str, *, request_id: str) -> dict[str, Any]:
    """Delete a group with its positions, batches and checkpoints; it holds nothing back any more.

    Its outputs stay; what its unfinished batches wrote becomes garbage.
    Raises NotFound.
    """
    request = Request(request_id, "delete_reader_group", name, {})

    def work(connection: Connection) -> dict[str, Any]:
        if (before := request.result(connection)) is not None:  # there is nothing to lock any more
            return before
        locked, group = lock_group_and_streams(connection, name)
        mark_retention_due(connection, [stream.stream_id for stream in locked])
        discard_outputs(connection, group.group_id)
        connection.execute(
            text(
                """WITH positions AS (DELETE FROM reader_group_segment WHERE group_id = :g),
                batches AS (DELETE FROM reader_batch WHERE group_id = :g),
                readers AS (DELETE FROM reader WHERE group_id = :g),
                checkpoints AS (DELETE FROM checkpoint WHERE group_id = :g),
                streams AS (DELETE FROM reader_group_stream WHERE group_id = :g)
                DELETE FROM reader_group WHERE group_id = :g"""
            ),
            {"g": group.group_id},
        )
        return request.done(connection, {"reader_group": name})

    return database.transaction(work)


def lock_group_and_streams(
    connection: Connection, name: str, more: Sequence[StreamName] = ()
) -> tuple[list[LockedStream], LockedGroup]:
    """Lock a group and before it the streams that it reads, and others. Raises NotFound."""
    before = _streams_of(connection, name)
    locked, group = lock_streams_and_group(
        connection, name, names=more, ids=[s for s, alive in before if alive]
    )
    if _streams_of(connection, name) != before:
        raise Conflict("group_changed", f"group {name} was changed at this moment; try again.")
    return locked, group


def _streams_of(connection: Connection, name: str) -> list[tuple[int, bool]]:
    """The streams of a group, and whether they still exist; read again once they are locked."""
    rows = connection.execute(
        text(
            """SELECT gs.stream_id, s.state <> 'deleted' FROM reader_group_stream gs
            JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
            WHERE g.name = :name ORDER BY gs.stream_id"""
        ),
        {"name": name},
    )
    return [(row[0], row[1]) for row in rows]


def positions_of(
    connection: Connection, group: LockedGroup, streams: Sequence[LockedStream]
) -> Cuts:
    """Where a group stands in each of the streams."""
    rows = connection.execute(
        text(
            """SELECT stream_id, group_cut(group_id, stream_id) FROM reader_group_stream
            WHERE group_id = :g AND stream_id = ANY(:ids)"""
        ),
        {"g": group.group_id, "ids": [stream.stream_id for stream in streams]},
    ).all()
    return {row[0]: load_cuts(connection, row[0], row[1])[0] for row in rows}


def _change_streams(
    connection: Connection,
    group: LockedGroup,
    locked: Sequence[LockedStream],
    named: Sequence[StreamName],
    subscriber: bool,
    start: str,
) -> None:
    if not named:
        raise InvalidInput(
            "group_without_streams",
            f"reader group {group.name} would have no stream to read; delete it.",
        )
    known = {s for s, _ in _streams_of(connection, group.name)}
    wanted = {stream.stream_id for stream in locked if stream.name in named}
    held = connection.execute(
        text(
            """WITH gone AS (
                DELETE FROM reader_group_segment
                WHERE group_id = :g AND NOT stream_id = ANY(:wanted)
            ), forgotten AS (  -- should it read them again, that begins elsewhere
                UPDATE checkpoint SET cuts = coalesce((
                    SELECT jsonb_object_agg(key, value) FROM jsonb_each(cuts)
                    WHERE key::bigint = ANY(:wanted)), '{}')
                WHERE group_id = :g AND state = 'waiting'
            )
            SELECT count(*) FROM held_segments(:g) WHERE NOT stream_id = ANY(:wanted)"""
        ),
        {"g": group.group_id, "wanted": sorted(wanted)},
    ).scalar_one()
    if held:
        raise Conflict(
            "batch_open",
            f"an open batch of group {group.name} reads a stream that it should leave; let it be "
            "committed first.",
        )
    connection.execute(
        text("DELETE FROM reader_group_stream WHERE group_id = :g AND NOT stream_id = ANY(:ids)"),
        {"g": group.group_id, "ids": sorted(wanted)},
    )
    new = [stream for stream in locked if stream.stream_id in wanted - known]
    if new:
        cuts = find_place(connection, new, start)
        check_not_below_the_head(connection, new, cuts, {})
        enter_streams(connection, group.group_id, subscriber, cuts, {})
        connection.execute(  # its time-out begins anew: what it has to read here may be old
            text("UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :g"),
            {"g": group.group_id},
        )


def _protect(
    connection: Connection, group: LockedGroup, locked: Sequence[LockedStream], subscriber: bool,
    *, anew: bool,
) -> None:  # fmt: skip
    """A group that becomes a subscriber holds back what it has not read, from here on. `anew`: its
    time-out begins now."""
    if subscriber and not group.subscriber:
        known = {stream_id for stream_id, _ in _streams_of(connection, group.name)}
        here = [stream for stream in locked if stream.stream_id in known]
        at = positions_of(connection, group, here)
        check_not_below_the_head(connection, here, at, end_cuts(connection, group))
    connection.execute(
        text(
            """UPDATE reader_group_stream SET
                published_cut = CASE WHEN :subscriber THEN
                    coalesce(published_cut, group_cut(group_id, stream_id)) END,
                published_at = CASE WHEN :subscriber THEN
                    CASE WHEN :anew THEN clock_timestamp()
                    ELSE coalesce(published_at, clock_timestamp()) END END
            WHERE group_id = :g"""
        ),
        {"g": group.group_id, "subscriber": subscriber, "anew": anew},
    )


def _move(connection: Connection, group: LockedGroup, cuts: Cuts) -> None:
    """Stand at other cuts: nobody holds a segment or a batch any more. What is released goes along;
    by hand no more is released than somebody said."""
    streams = sorted(cuts)
    discard_outputs(connection, group.group_id)
    released = _released(connection, group, cuts) if group.release == "manual" else {}
    connection.execute(
        text(
            """WITH positions AS (
                DELETE FROM reader_group_segment WHERE group_id = :g AND stream_id = ANY(:ids)
            ), freed AS (
                UPDATE reader_group_segment SET state = 'unassigned', reader_id = NULL
                WHERE group_id = :g AND reader_id IS NOT NULL AND NOT stream_id = ANY(:ids)
            ), abandoned AS (
                UPDATE reader_batch SET state = 'abandoned' WHERE group_id = :g AND state = 'open'
            ), cancelled AS (  -- what they would release is to be read again
                UPDATE checkpoint SET state = 'cancelled', ended_at = clock_timestamp(),
                    expires_at = NULL
                WHERE group_id = :g AND state = 'waiting'
            )
            UPDATE reader_group SET generation = generation + 1, moved_at = clock_timestamp()
            WHERE group_id = :g"""
        ),
        {"g": group.group_id, "ids": streams},
    )
    connection.execute(text("DELETE FROM reader WHERE group_id = :g"), {"g": group.group_id})
    connection.execute(
        text(
            """WITH cuts AS (
                SELECT stream, cut, released FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
                    AS c (stream bigint, cut jsonb, released jsonb)
            ), published AS (
                UPDATE reader_group_stream gs SET head_seen = NULL,
                    published_cut = CASE WHEN gs.published_cut IS NOT NULL THEN c.released END,
                    published_at = CASE WHEN gs.published_cut IS NOT NULL THEN clock_timestamp() END
                FROM cuts c WHERE gs.group_id = :g AND gs.stream_id = c.stream
            )
            INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
            SELECT :g, c.stream, e.segment_id,
                   CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END,
                   e.event_offset
            FROM cuts c CROSS JOIN LATERAL cut_entries(c.cut) e"""
        ),
        {
            "g": group.group_id,
            "cuts": json.dumps(
                [
                    {"stream": s, "cut": c.to_json(), "released": released.get(s, c).to_json()}
                    for s, c in cuts.items()
                ]
            ),
        },
    )


def _released(connection: Connection, group: LockedGroup, cuts: Cuts) -> Cuts:
    """What a group that releases by hand has released of what lies before these cuts."""
    rows = connection.execute(
        text(
            """SELECT stream_id, published_cut FROM reader_group_stream
            WHERE group_id = :g AND published_cut IS NOT NULL AND stream_id = ANY(:ids)"""
        ),
        {"g": group.group_id, "ids": sorted(cuts)},
    ).all()
    return {
        row.stream_id: meet(
            [cuts[row.stream_id], *load_cuts(connection, row.stream_id, row.published_cut)]
        )
        for row in rows
    }
