"""Batches that have ended: what they rejected, and how long people can see what each read."""

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.database.once import commit_once

REJECTED_SPAN = 86400.0  # seconds for which the rejected events of a group are counted


def rejected_of(connection: Connection, group: str) -> int:
    """Return how many events a group has rejected in the last 24 hours (`REJECTED_SPAN`), in all
    its runs."""
    return int(
        connection.execute(
            text(
                """SELECT coalesce(sum(b.rejected), 0) FROM reader_batch b
                WHERE b.group_name = :group AND b.state = 'committed'
                  AND b.committed_at > clock_timestamp() - :span * interval '1 second'"""
            ),
            {"group": group, "span": REJECTED_SPAN},
        ).scalar_one()
    )


def prune_batches(database: Database, older_than: float) -> int:
    """Delete the rows of batches that ended more than `older_than` seconds ago, but at least a day;
    return how many.

    Their outputs and the positions are recorded elsewhere. A batch that a checkpoint waits for is
    kept until the checkpoint is settled.
    """
    return commit_once(
        database,
        lambda c: int(
            c.execute(
                text(
                    """WITH pruned AS (
                        DELETE FROM reader_batch b
                        WHERE b.state <> 'open' AND b.ended_at
                            < clock_timestamp() - :age * interval '1 second'
                          AND NOT EXISTS (
                            SELECT FROM checkpoint c WHERE c.group_id = b.group_id
                            AND c.state = 'waiting' AND b.batch_id = ANY (c.waits_for))
                        RETURNING b.group_id, b.batch_id, b.bounds
                    ), inputs AS (
                        DELETE FROM batch_input n
                        USING pruned b CROSS JOIN LATERAL inputs_of(b.bounds) i
                        WHERE (n.stream_id, n.segment_id, n.size_class, n.from_offset)
                              = (i.stream_id, i.segment_id, i.size_class, i.from_offset)
                          AND (n.group_id, n.batch_id) = (b.group_id, b.batch_id)
                    ), noted AS (
                        UPDATE installation SET batches_pruned = greatest(batches_pruned,
                            clock_timestamp() - :age * interval '1 second')
                        WHERE EXISTS (SELECT FROM pruned)
                    )
                    SELECT count(*) FROM pruned"""
                ),
                {"age": max(older_than, REJECTED_SPAN)},
            ).scalar_one()
        ),
    )
