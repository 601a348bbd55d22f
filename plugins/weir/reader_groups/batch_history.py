"""Prune batches that have ended; until then people can see what each of them read."""

from sqlalchemy import text

from weir.database.connection import Database

LEAST = 86400.0  # seconds for which the rejected events of a group are counted


def prune_batches(database: Database, older_than: float) -> int:
    """Delete the rows of batches that ended more than `older_than` seconds ago, but at least a day;
    return how many.

    Their outputs and the positions are recorded elsewhere. A batch that a checkpoint waits for is
    kept until the checkpoint is settled.
    """
    return database.transaction(
        lambda c: (
            c.execute(
                text(
                    """DELETE FROM reader_batch b
                    WHERE b.state <> 'open' AND b.ended_at
                        < clock_timestamp() - :age * interval '1 second'
                      AND NOT EXISTS (
                        SELECT FROM checkpoint c WHERE c.group_id = b.group_id
                        AND c.state = 'waiting' AND b.batch_id = ANY (c.waits_for))"""
                ),
                {"age": max(older_than, LEAST)},
            ).rowcount
        )
    )
