"""The life of a reader: join, renew, leave; and what becomes of one whose lease has run out.

A lease that has run out only permits others to take over; until one has, its holder goes on. Leases
that lapsed less than one lease after the server's start are spared.
"""

from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.locks import LockedGroup, lock_group
from weir.errors import Fenced
from weir.storage import Database

# `:lease` is the configured lease in seconds.
LAPSED = """greatest(r.lease_until, pg_postmaster_start_time() + :lease * interval '1 second')
    < clock_timestamp()"""


def join(database: Database, group: str, reader_id: str, lease: float) -> int:
    """Join a group, or come back to it; returns the reader's fencing token.

    Coming back (a retried task) gives a new token: the process that had the old one is fenced, its
    segments and its open batch are this reader's.
    """

    def work(connection: Connection) -> int:
        locked = lock_group(connection, group)
        connection.execute(
            text(
                """WITH counted AS (
                    UPDATE reader_group SET next_token = next_token + 1 WHERE group_id = :group_id
                )
                INSERT INTO reader (group_id, reader_id, token, lease_until, joined_at)
                VALUES (:group_id, :reader_id, :token,
                        clock_timestamp() + :lease * interval '1 second', clock_timestamp())
                ON CONFLICT (group_id, reader_id) DO UPDATE
                SET token = excluded.token, lease_until = excluded.lease_until"""
            ),
            {
                "group_id": locked.group_id,
                "reader_id": reader_id,
                "token": locked.next_token,
                "lease": lease,
            },
        )
        return locked.next_token

    return database.transaction(work)


def renew(connection: Connection, group: str, reader_id: str, token: int, lease: float) -> None:
    """Renew the lease. Raises Fenced when another has taken over."""
    renewed = connection.execute(
        text(
            """UPDATE reader r SET lease_until = clock_timestamp() + :lease * interval '1 second'
            FROM reader_group g WHERE g.name = :group AND r.group_id = g.group_id
              AND r.reader_id = :reader_id AND r.token = :token"""
        ),
        {"group": group, "reader_id": reader_id, "token": token, "lease": lease},
    )
    if renewed.rowcount == 0:
        raise Fenced(replaced(group, reader_id))


def leave(database: Database, group: str, reader_id: str, token: int, lease: float) -> None:
    """Leave: segments are free for others, and an open batch is free to be taken over at once."""

    def work(connection: Connection) -> None:
        locked = lock_group(connection, group)
        parameters = {"group_id": locked.group_id, "reader_id": reader_id, "token": token}
        connection.execute(
            text(
                """UPDATE reader SET lease_until = '-infinity'
                WHERE group_id = :group_id AND reader_id = :reader_id AND token = :token"""
            ),
            parameters,
        )
        release_lapsed(connection, locked, lease)

    database.transaction(work)


def expire(database: Database, lease: float) -> list[dict[str, Any]]:
    """Release the segments of lapsed readers that hold no open batch, in every group."""
    groups = database.transaction(
        lambda c: c.execute(
            text(
                f"""SELECT DISTINCT g.name FROM reader r JOIN reader_group g USING (group_id)
                WHERE {LAPSED}"""  # noqa: S608 - constant
            ),
            {"lease": lease},
        ).all()
    )
    released = []
    for (group,) in groups:
        gone = database.transaction(partial(_expire_one, group=group, lease=lease))
        released += [{"reader_group": group, "reader": reader} for reader in gone]
    return released


def _expire_one(connection: Connection, group: str, lease: float) -> list[str]:
    return release_lapsed(connection, lock_group(connection, group), lease=lease)


def release_lapsed(
    connection: Connection, group: LockedGroup, lease: float, alive: str | None = None
) -> list[str]:
    """In a transaction that has locked the group: free what lapsed readers own.

    One with an open batch stays, with the batch, until another takes the batch over whole. `alive`:
    who asks; it is there, however late.
    """
    rows = connection.execute(
        text(
            f"""WITH gone AS (
                SELECT reader_id FROM reader r WHERE group_id = :group_id
                AND (lease_until = '-infinity' OR {LAPSED})
                AND reader_id IS DISTINCT FROM CAST(:alive AS text)
            ), freed AS (
                UPDATE reader_group_segment SET state = 'unassigned', reader_id = NULL
                WHERE group_id = :group_id AND batch_id IS NULL
                  AND reader_id IN (SELECT reader_id FROM gone)
            )
            DELETE FROM reader r WHERE group_id = :group_id
              AND reader_id IN (SELECT reader_id FROM gone)
              AND NOT EXISTS (SELECT FROM reader_batch b WHERE b.group_id = :group_id
                              AND b.state = 'open' AND b.reader_id = r.reader_id)
            RETURNING reader_id"""  # noqa: S608 - constant
        ),
        {"group_id": group.group_id, "lease": lease, "alive": alive},
    )
    return [row.reader_id for row in rows]


def check_token(connection: Connection, group: LockedGroup, reader_id: str, token: int) -> None:
    """Raises Fenced unless the reader is still the one that joined with this token."""
    found = connection.execute(
        text("SELECT token FROM reader WHERE group_id = :g AND reader_id = :r"),
        {"g": group.group_id, "r": reader_id},
    ).scalar_one_or_none()
    if found != token:
        raise Fenced(replaced(group.name, reader_id))


def replaced(group: str, reader_id: str) -> str:
    """The sentence for a reader that was replaced."""
    return (
        f"reader {reader_id!r} of group {group} was replaced after its lease ran out; "
        "what it read since its last commit belongs to another reader now."
    )
