"""Read how far reader groups are: the events that they have not read yet, and up to which event
time they have read everything."""

from collections.abc import Sequence

from weir.database.connection import Database
from weir.queries.reader_groups.groups import lag as sql


def read_lag(database: Database, groups: Sequence[str]) -> list[sql.Lag]:
    """Return a row for each of the groups and each stream that it reads, from the view lag.

    It has the unread events and bytes; by how many `seconds` the oldest unread event is older than
    the newest event; for how many seconds it has been `waiting`; and the lost events.
    """
    if not groups:
        return []
    return database.transaction(lambda c: sql.lag(c, groups=list(groups)))
