"""Batches: what one reader reads at once. Opened with recorded bounds, committed with its output.

A batch belongs to its group, not to its reader: whoever takes it over reads the same bounds, under
a new token and a new attempt. Its commit and the appends of its output are one transaction.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.commit import Staged, commit_in
from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedGroup, lock_group, lock_streams
from weir.controller.transactions import Committed
from weir.errors import Fenced, Truncated
from weir.reader_groups.assignment import assign
from weir.reader_groups.plan import Bound, SegmentState, bounds_of_stream, share_budget
from weir.reader_groups.positions import Position, enter_successors, read_graph, read_positions
from weir.reader_groups.readers import LAPSED, check_token, release_lapsed
from weir.segment import Segment
from weir.storage import Database
from weir.stream_cut import at_or_before, join


@dataclass(frozen=True)
class Batch:
    """An open batch, held under a token."""

    group: str
    batch_id: int
    reader_id: str
    token: int
    attempt: int
    bounds: tuple[Bound, ...]
    events: int


def open_batch(
    database: Database,
    group: str,
    reader_id: str,
    token: int,
    *,
    lease: float,
    budget: int,
    until: dict[int, dict[str, Any]] | None = None,
    expected_readers: int = 1,
) -> Batch | None:
    """The reader's next batch of at most about `budget` events; None when there is nothing to read.

    In this order: its own open batch again (a retried task), that of a reader whose lease has run
    out, else a new one over its fair share of the group. `until`: per stream id the cut to stop at.
    Raises Fenced, and Truncated when positions lie below the head and the group's on_gap is fail.
    """

    def work(connection: Connection) -> Batch | None:
        locked = lock_group(connection, group)
        check_token(connection, locked, reader_id, token)
        resumed = _resume(connection, locked, reader_id, token, lease)
        if resumed is not None:
            return resumed
        release_lapsed(connection, locked, lease)
        _skip_gaps(connection, locked)
        return _open_new(connection, locked, reader_id, token, budget, until, expected_readers)

    return database.transaction(work)


def _resume(
    connection: Connection, group: LockedGroup, reader_id: str, token: int, lease: float
) -> Batch | None:
    row = connection.execute(
        text(
            f"""WITH taken AS (
                SELECT b.batch_id, b.reader_id FROM reader_batch b
                LEFT JOIN reader r USING (group_id, reader_id)
                WHERE b.group_id = :group_id AND b.state = 'open'
                  AND (b.reader_id = :reader_id OR r.lease_until = '-infinity' OR {LAPSED})
                ORDER BY b.reader_id <> :reader_id, b.batch_id LIMIT 1
            ), moved AS (
                UPDATE reader_group_segment SET reader_id = :reader_id
                WHERE group_id = :group_id AND batch_id = (SELECT batch_id FROM taken)
            )
            UPDATE reader_batch b SET reader_id = :reader_id, token = :token,
                attempt = attempt + 1
            FROM taken WHERE b.group_id = :group_id AND b.batch_id = taken.batch_id
            RETURNING b.batch_id, b.attempt, b.bounds, b.events"""  # noqa: S608 - constant
        ),
        {
            "group_id": group.group_id,
            "reader_id": reader_id,
            "token": token,
            "lease": lease,
        },
    ).one_or_none()
    if row is None:
        return None
    bounds = tuple(Bound.of(value) for value in row.bounds)
    return Batch(group.name, row.batch_id, reader_id, token, row.attempt, bounds, row.events)


def _skip_gaps(connection: Connection, group: LockedGroup) -> None:
    """Positions below the head: refuse, or move them to the head and count what was lost."""
    rows = connection.execute(
        text(
            """SELECT gs.stream_id, s.scope || '/' || s.name AS stream, s.head,
                      group_cut(gs.group_id, gs.stream_id) AS cut
            FROM reader_group_stream gs JOIN stream s USING (stream_id)
            WHERE gs.group_id = :g AND NOT EXISTS (
                SELECT FROM reader_group_segment p WHERE p.group_id = gs.group_id
                AND p.stream_id = gs.stream_id AND p.batch_id IS NOT NULL)"""
        ),
        {"g": group.group_id},
    ).all()
    for row in rows:
        head, cut = load_cuts(connection, row.stream_id, row.head, row.cut)
        if at_or_before(head, cut):
            continue
        beyond = join(cut, head)
        lost = connection.execute(
            text(
                """SELECT n.events - o.events FROM size_till(:s, CAST(:new AS jsonb)) n,
                size_till(:s, CAST(:old AS jsonb)) o"""
            ),
            {"s": row.stream_id, "new": json.dumps(beyond.to_json()), "old": json.dumps(row.cut)},
        ).scalar_one()
        if group.on_gap == "fail":
            raise Truncated(
                f"{lost} events of stream {row.stream} were truncated before group {group.name} "
                f"read them (it stands at {cut.to_text()}, the head is {head.to_text()}); create "
                "the group with on_gap=skip to go on at the head, or another group from the head."
            )
        connection.execute(
            text(
                """WITH counted AS (
                    UPDATE reader_group_stream SET lost_events = lost_events + :lost
                    WHERE group_id = :g AND stream_id = :s
                ), entries AS (
                    SELECT * FROM cut_entries(CAST(:cut AS jsonb))
                ), passed AS (
                    DELETE FROM reader_group_segment WHERE group_id = :g AND stream_id = :s
                    AND segment_id NOT IN (SELECT segment_id FROM entries)
                )
                INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state,
                                                  next_offset)
                SELECT :g, :s, segment_id,
                       CASE WHEN event_offset IS NULL THEN 'future' ELSE 'unassigned' END,
                       event_offset FROM entries
                ON CONFLICT (group_id, stream_id, segment_id) DO UPDATE SET
                    state = CASE WHEN excluded.state = 'unassigned'
                                 AND reader_group_segment.state = 'assigned'
                            THEN 'assigned' ELSE excluded.state END,
                    next_offset = excluded.next_offset"""
            ),
            {
                "lost": lost,
                "g": group.group_id,
                "s": row.stream_id,
                "cut": json.dumps(beyond.to_json()),
            },
        )


def _open_new(
    connection: Connection,
    group: LockedGroup,
    reader_id: str,
    token: int,
    budget: int,
    until: dict[int, dict[str, Any]] | None,
    expected_readers: int,
) -> Batch | None:
    positions = read_positions(connection, group)
    graph = read_graph(connection, group)
    mine = _share(connection, group, positions, graph, reader_id, expected_readers)
    bounds = _plan(connection, positions, graph, mine, budget, until)
    if not bounds:
        return None
    events = sum(bound.end - bound.start for bound in bounds)
    if events == 0:  # only ends of sealed segments were passed: no work, but the positions move
        _advance(connection, group, positions, bounds, reader_id)
        return _open_new(connection, group, reader_id, token, budget, until, expected_readers)
    batch = Batch(group.name, group.next_batch, reader_id, token, 1, tuple(bounds), events)
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
    until: dict[int, dict[str, Any]] | None,
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
        if until is not None and stream_id in until:
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


def commit_batch(
    database: Database,
    batch: Batch,
    *,
    lease: float,
    staged: Sequence[Staged] = (),
    outputs: Sequence[dict[str, Any]] = (),
) -> list[Committed]:
    """Move the positions to the batch's bounds and publish its outputs, in one transaction.

    `staged`: appends to Weir streams; `outputs`: what else counts (Parquet attempts). The same
    again is harmless. Raises Fenced when the batch was taken over: nothing of it is published.
    """

    def work(connection: Connection) -> list[Committed]:
        locked = lock_streams(connection, ids=[s.attempt.stream_id for s in staged])
        group = lock_group(connection, batch.group)
        row = connection.execute(
            text(
                """SELECT state, token FROM reader_batch
                WHERE group_id = :g AND batch_id = :b"""
            ),
            {"g": group.group_id, "b": batch.batch_id},
        ).one()
        if row.token != batch.token:
            raise Fenced(
                f"batch {batch.batch_id} of group {batch.group} was taken over from reader "
                f"{batch.reader_id!r}; what this attempt wrote will be deleted."
            )
        committed = commit_in(connection, locked, staged)
        if row.state == "open":
            connection.execute(
                text(
                    """WITH ended AS (
                        UPDATE reader_batch SET state = 'committed', outputs = CAST(:out AS jsonb),
                            committed_at = clock_timestamp()
                        WHERE group_id = :g AND batch_id = :b
                    ), renewed AS (
                        UPDATE reader SET lease_until =
                            clock_timestamp() + :lease * interval '1 second'
                        WHERE group_id = :g AND reader_id = :reader_id AND token = :token
                    ), fenced AS (
                        INSERT INTO garbage (root, path, reason)
                        SELECT o ->> 'root', regexp_replace(o ->> 'path',
                               'attempt=[0-9]+/$', 'attempt=' || n || '/'), 'fenced'
                        FROM jsonb_array_elements(CAST(:out AS jsonb)) o,
                             generate_series(1, :attempt - 1) n
                        WHERE o ->> 'kind' = 'parquet'
                        ON CONFLICT (root, path) DO NOTHING
                    )
                    UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :g"""
                ),
                {
                    "g": group.group_id,
                    "b": batch.batch_id,
                    "out": json.dumps(list(outputs)),
                    "lease": lease,
                    "reader_id": batch.reader_id,
                    "token": batch.token,
                    "attempt": batch.attempt,
                },
            )
            positions = read_positions(connection, group)
            _advance(connection, group, positions, batch.bounds, batch.reader_id)
        return committed

    return database.transaction(work)


def _advance(
    connection: Connection,
    group: LockedGroup,
    positions: Sequence[Position],
    bounds: Sequence[Bound],
    reader_id: str,
) -> None:
    enter_successors(connection, group, positions, bounds, read_graph(connection, group), reader_id)
