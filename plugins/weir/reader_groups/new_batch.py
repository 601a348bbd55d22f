"""A new batch: the reader takes its fair share of the group and fixes what it reads next."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedGroup
from weir.reader_groups.assignment import assign
from weir.reader_groups.plan import Bound, SegmentState, bounds_of_stream, share_budget
from weir.reader_groups.positions import Position, advance, read_graph, read_positions
from weir.segment import Segment


@dataclass(frozen=True)
class Batch:
    """An open batch, held under a token."""

    group_id: int
    group: str
    batch_id: int
    reader_id: str
    token: int
    attempt: int
    bounds: tuple[Bound, ...]
    events: int
    on_gap: str

    @property
    def identity(self) -> str:
        """Names its results; a group that is made anew under the same name has other batches."""
        return f"{self.group_id}.{self.batch_id}"


def open_new(
    connection: Connection,
    group: LockedGroup,
    reader_id: str,
    token: int,
    budget: int,
    until: dict[int, dict[str, Any]],
    expected_readers: int,
) -> Batch | None:
    positions = read_positions(connection, group)
    graph = read_graph(connection, group)
    mine = _share(connection, group, positions, graph, reader_id, expected_readers)
    bounds = _plan(connection, positions, graph, mine, budget, until)
    if not bounds:
        if expected_readers == 0:
            return None
        # Readers that are expected but have not come leave events unread: take their share, too.
        return open_new(connection, group, reader_id, token, budget, until, expected_readers=0)
    events = sum(bound.end - bound.start for bound in bounds)
    if events == 0:  # only ends of sealed segments were passed: no work, but the positions move
        advance(connection, group, bounds, reader_id)
        return open_new(connection, group, reader_id, token, budget, until, expected_readers)
    batch = Batch(
        group.group_id, group.name, group.next_batch, reader_id, token, 1, tuple(bounds), events,
        group.on_gap,
    )  # fmt: skip
    connection.execute(
        text(
            """WITH counted AS (
                UPDATE reader_group SET next_batch = next_batch + 1 WHERE group_id = :group_id
            ), opened AS (
                INSERT INTO reader_batch (group_id, batch_id, reader_id, token, state, bounds,
                                          events, bytes, opened_at)
                SELECT :group_id, :batch_id, :reader_id, :token, 'open', CAST(:bounds AS jsonb),
                       :events, coalesce(sum(bytes_till(b.stream, b.segment, b."to")
                                             - bytes_till(b.stream, b.segment, b."from")), 0),
                       clock_timestamp()
                FROM jsonb_to_recordset(CAST(:bounds AS jsonb))
                    AS b (stream bigint, segment bigint, "from" bigint, "to" bigint)
                RETURNING batch_id
            )
            UPDATE reader_group_segment p SET batch_id = opened.batch_id
            FROM opened, jsonb_to_recordset(CAST(:bounds AS jsonb))
                AS b (stream bigint, segment bigint)
            WHERE p.group_id = :group_id AND p.stream_id = b.stream AND p.segment_id = b.segment
              AND p.state = 'assigned'"""
        ),
        {
            "group_id": group.group_id,
            "batch_id": batch.batch_id,
            "reader_id": reader_id,
            "token": token,
            "bounds": json.dumps([bound.json() for bound in bounds]),
            "events": events,
        },
    )
    return batch


def _share(
    connection: Connection,
    group: LockedGroup,
    positions: Sequence[Position],
    graph: dict[int, list[SegmentState]],
    reader_id: str,
    expected_readers: int,
) -> set[tuple[int, Segment]]:
    """Take this reader's fair share of the free segments, and release what is others'."""
    ends = {(s, state.segment): state.end for s, states in graph.items() for state in states}
    loads = {p.key: ends[p.key] - p.next_offset for p in positions if p.next_offset is not None}
    owners = {p.key: p.reader_id for p in positions if p.reader_id is not None}
    pinned = frozenset(p.key for p in positions if p.batch_id is not None)
    readers = [
        row.reader_id
        for row in connection.execute(
            text("SELECT reader_id FROM reader WHERE group_id = :g ORDER BY reader_id"),
            {"g": group.group_id},
        )
    ]
    # Readers that are expected but have not joined keep their share free ("~" sorts last).
    readers += [f"~{i}" for i in range(len(readers), expected_readers)]
    wanted = assign(loads, owners, readers, pinned)
    mine = {key for key, owner in wanted.items() if owner == reader_id}
    free = {p.key for p in positions if p.reader_id is None}
    take = [key for key in mine if key in free]
    drop = [
        key
        for key, owner in owners.items()
        if owner == reader_id and key not in mine and key not in pinned
    ]
    if take or drop:
        connection.execute(
            text(
                """UPDATE reader_group_segment p SET reader_id = m.reader_id,
                    state = CASE WHEN m.reader_id IS NULL THEN 'unassigned' ELSE 'assigned' END
                FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
                            CAST(:readers AS text[])) AS m (stream_id, segment_id, reader_id)
                WHERE p.group_id = :g AND p.stream_id = m.stream_id
                  AND p.segment_id = m.segment_id"""
            ),
            {
                "g": group.group_id,
                "streams": [key[0] for key in [*take, *drop]],
                "segments": [key[1].segment_id for key in [*take, *drop]],
                "readers": [reader_id] * len(take) + [None] * len(drop),
            },
        )
    return {key for key in mine if key in free or owners.get(key) == reader_id} - pinned


def _plan(
    connection: Connection,
    positions: Sequence[Position],
    graph: dict[int, list[SegmentState]],
    mine: set[tuple[int, Segment]],
    budget: int,
    until: dict[int, dict[str, Any]],
) -> list[Bound]:
    ends = {(s, state.segment): state.end for s, states in graph.items() for state in states}
    starts = {
        p.key: p.next_offset for p in positions if p.key in mine and p.next_offset is not None
    }
    wants = {key: ends[key] - start for key, start in starts.items()}
    left = budget
    caps: dict[tuple[int, Segment], int] = {}
    if sum(wants.values()) > budget:
        shares = share_budget({k: w for k, w in wants.items() if w}, budget)
        caps = _to_file_ends(connection, {k: starts[k] + share for k, share in shares.items()})
    bounds: list[Bound] = []
    for stream_id, states in graph.items():
        stop = None
        if stream_id in until:
            (stop,) = load_cuts(connection, stream_id, until[stream_id])

        def cap(segment: Segment, start: int, end: int, stream_id: int = stream_id) -> int:
            nonlocal left
            limit = caps.get((stream_id, segment), start + max(left, 0))
            taken = min(end, limit)
            left -= taken - start
            return taken

        bounds += bounds_of_stream(
            stream_id,
            {segment: starts[s, segment] for s, segment in starts if s == stream_id},
            [p.segment for p in positions if p.stream_id == stream_id and p.key not in starts],
            states,
            stop,
            cap,
        )
    return bounds


def _to_file_ends(
    connection: Connection, caps: dict[tuple[int, Segment], int]
) -> dict[tuple[int, Segment], int]:
    """Soft bounds fall on file ends, so that no file is read twice for a part of it."""
    rows = connection.execute(
        text(
            """SELECT c.i, coalesce((SELECT f.start_offset + f.events FROM data_file f
                WHERE f.stream_id = c.stream_id AND f.segment_id = c.segment_id
                  AND f.start_offset < c.cap ORDER BY f.start_offset DESC LIMIT 1), c.cap) AS cap
            FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
                        CAST(:caps AS bigint[])) WITH ORDINALITY
                AS c (stream_id, segment_id, cap, i)"""
        ),
        {
            "streams": [key[0] for key in caps],
            "segments": [key[1].segment_id for key in caps],
            "caps": list(caps.values()),
        },
    )
    keys = list(caps)
    return {keys[row.i - 1]: row.cap for row in rows}
