"""Batches that are over: kept for a while for those who ask what was read."""

from sqlalchemy import text

from weir.database.connection import Database

LEAST = 86400.0  # seconds for which the rejected events of a group are counted


def prune_batches(database: Database, older_than: float) -> int:
    """Delete batches that ended more than so many seconds ago, a day at least; returns how many.

    What they wrote and where the groups stand is recorded elsewhere. One that a checkpoint waits
    for is kept until that is settled.
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
