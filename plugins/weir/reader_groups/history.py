"""How far groups were over time, and what the streams of owners kept: rows by five minutes, hours
and days, of which the function `history_grains` says how long each is kept. The rows of streams are
written with the cuts of the retention set (`weir.retention.capture`)."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.database.once import commit_once
from weir.queries.reader_groups import history as sql


def record_groups(database: Database, groups: Sequence[str]) -> None:
    """Record how far groups are now. One statement, and none without groups."""
    if groups:
        commit_once(database, partial(sql.record_groups, groups=list(groups)))


def keep_history(database: Database) -> int:
    """Delete what is too old to be kept, once a day, and record what the streams of each owner
    keep, by which that day is done; return how many rows were deleted. Two statements."""

    def work(connection: Connection) -> int:
        pruned = sql.prune(connection)
        sql.record_owners(connection)
        return pruned

    return commit_once(database, work)
