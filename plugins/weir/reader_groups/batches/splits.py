"""Split a failed batch: close it, and open batches with its halves in its place, one after another.

The halves are recorded before they are read, so that a reader that takes over continues with the
same. The rest of a batch belongs to its reader like the batch itself: its segments move to another
reader only together with the batch.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.model.bisection import halve
from weir.model.bounds import Bound, recorded
from weir.reader_groups.batch import Batch, held_or_split
from weir.reader_groups.batches.halves_by_rank import Ranks, halve_by_rank
from weir.reader_groups.locks import LockedGroup, lock_group
from weir.reader_groups.outputs.records import discard_outputs


def split_batch(database: Database, batch: Batch, error: str, ranks: Ranks | None = None) -> None:
    """Split a batch of two or more events that failed with `error`: open its first half, and record
    the second half as the rest. Makes garbage of what it wrote. Raises Fenced.

    `ranks`: the batch is read in write order, so the first half has what was written first; see
    `halve_by_rank`. Otherwise it has the first segments.
    """
    whole = batch.bounds
    halves = halve(whole) if ranks is None else halve_by_rank(database, whole, ranks)

    def work(connection: Connection) -> None:
        group = lock_group(connection, batch.group)
        record = held_or_split(connection, batch)
        if record.state != "open":  # an earlier try split it, and lost its connection at the COMMIT
            return
        discard_outputs(connection, group.group_id, batch.batch_id)
        connection.execute(
            text(
                """UPDATE reader_batch SET state = 'split', error = :error,
                    ended_at = clock_timestamp()
                WHERE group_id = :g AND batch_id = :b"""
            ),
            {"g": group.group_id, "b": batch.batch_id, "error": error},
        )
        open_parts(connection, group, batch, [*halves, *record.rest])

    database.transaction(work)


def open_parts(
    connection: Connection,
    group: LockedGroup,
    before: Batch,
    parts: Sequence[Sequence[Bound]],
) -> None:
    """Open the first of some parts for the reader of `before`, and record the others as its rest.

    A checkpoint that waits for `before` then waits for this one. In a transaction that has locked
    the group and ended `before`.
    """
    connection.execute(
        text(
            """WITH counted AS (
                UPDATE reader_group SET next_batch = next_batch + 1 WHERE group_id = :g
            ), awaited AS (
                UPDATE checkpoint SET waits_for = array_replace(waits_for, :before, :b)
                WHERE group_id = :g AND state = 'waiting' AND :before = ANY (waits_for)
            ), opened AS (
                INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token,
                                          attempt, state, bounds, rest, events, bytes,
                                          read_order, readers, up_to, opened_at, complete_until)
                SELECT :g, o.group_name, :b, :reader_id, :token, 0, 'open', CAST(:bounds AS jsonb),
                       CAST(:rest AS jsonb),
                       :events - holes_of(CAST(:bounds AS jsonb)),
                       sum(bytes_before(b.stream, b.segment, b."to")
                           - bytes_before(b.stream, b.segment, b."from")),
                       o.read_order, o.readers, o.up_to, o.opened_at,
                       batch_complete_until(:g, CAST(:bounds AS jsonb))
                FROM reader_batch o, jsonb_to_recordset(CAST(:bounds AS jsonb))
                    AS b (stream bigint, segment bigint, "from" bigint, "to" bigint)
                WHERE o.group_id = :g AND o.batch_id = :before
                GROUP BY o.group_id, o.batch_id
            ), pinned AS (  -- the parts are read with the same versions
                INSERT INTO adjunct_pin (group_id, batch_id, store_id, cut, clock, version, since,
                                         pinned_at)
                SELECT group_id, :b, store_id, cut, clock, version, since, pinned_at
                FROM adjunct_pin WHERE group_id = :g AND batch_id = :before
            )
            UPDATE reader_group_segment p
            SET state = 'assigned', reader_id = :reader_id
            FROM jsonb_array_elements(CAST(:bounds AS jsonb) || CAST(:later AS jsonb)) b
            WHERE p.group_id = :g AND p.stream_id = (b ->> 'stream')::bigint
              AND p.segment_id = (b ->> 'segment')::bigint AND p.state <> 'future'
              AND p.reader_id IS DISTINCT FROM :reader_id"""
        ),
        {
            "g": group.group_id,
            "b": group.next_batch,
            "before": before.batch_id,
            "reader_id": before.reader_id,
            "token": before.token,
            "bounds": recorded(parts[0]),
            "rest": "[" + ",".join(map(recorded, parts[1:])) + "]",
            "later": recorded(bound for part in parts[1:] for bound in part),
            "events": sum(bound.end - bound.start for bound in parts[0]),
        },
    )
