"""Batches that have ended: what they rejected, and how long people can see what each read."""

from functools import partial

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.database.once import commit_once
from weir.queries.reader_groups.batches import history as sql

REJECTED_SPAN = 86400.0  # seconds for which the rejected events of a group are counted


def rejected_of(connection: Connection, group: str) -> int:
    """Return how many events a group has rejected in the last 24 hours (`REJECTED_SPAN`), in all
    its runs."""
    return sql.rejected(connection, group=group, span=REJECTED_SPAN)


def prune_batches(database: Database, older_than: float) -> int:
    """Delete the rows of batches that ended more than `older_than` seconds ago, but at least a day;
    return how many.

    Their outputs and the positions are recorded elsewhere. A batch that a checkpoint waits for is
    kept until the checkpoint is settled.
    """
    return commit_once(database, partial(sql.prune, age=max(older_than, REJECTED_SPAN)))
