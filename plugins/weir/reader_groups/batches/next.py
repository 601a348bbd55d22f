"""Give a reader its next batch, and let it wait while other readers hold what is left.

A run therefore ends only when everything up to the tail that it saw is committed, by whichever
reader. Runs that overlap share the work batch by batch, and a reader that waits takes over when
another one dies.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.lifecycle import open_in
from weir.reader_groups.batches.reading import Reading

PAUSE = 1.0  # seconds between two attempts to get a batch


def next_batch(
    database: Database,
    group: str,
    reader_id: str,
    token: int,
    reading: Reading,
    *,
    lease: float,
    until: dict[int, dict[str, Any]],
    closed: int | None = None,
    first: bool = False,
    looks: Callable[[], object] = lambda: None,
    waits: Callable[[], bool] = lambda: False,
) -> Batch | None:
    """Return the reader's next batch, as `open_in` does; wait while other readers hold what is
    left. `looks` is called before each attempt to get one, and `waits` before each
    pause; if that has changed something, there is no pause.

    While it waits, a reader that stands at `until` reads what came later: otherwise it would keep
    from others what it owns, for as long as it waits. An aligned group has nothing that others
    could read meanwhile.

    Returns None if the group has committed everything up to `until`, or if no other reader is there
    that could. Raises as `open_in` does.
    """

    def opened(connection: Connection, until: dict[int, dict[str, Any]] | None) -> Batch | None:
        return open_in(
            connection, group, reader_id, token, reading, lease=lease, until=until, closed=closed,
            first=first,
        )  # fmt: skip

    def look(connection: Connection) -> tuple[Batch | None, bool]:
        # In one transaction, with the group locked: between two, the reader that holds the rest
        # could commit a part of it and leave, and nobody would read the other part.
        batch = opened(connection, until)
        if batch is not None:
            return batch, False
        others_have_the_rest, aligned = _waits(connection, group, reader_id, until)
        if others_have_the_rest and not aligned:
            batch = opened(connection, None)
        return batch, others_have_the_rest and batch is None

    while True:
        looks()
        batch, others_have_the_rest = database.transaction(look)
        if not others_have_the_rest:
            return batch
        if not waits():
            time.sleep(PAUSE)


def _waits(
    connection: Connection, group: str, reader_id: str, until: dict[int, dict[str, Any]]
) -> tuple[bool, bool]:
    """Return whether other readers have what is left up to `until`, and whether the group is
    aligned."""
    found = connection.execute(
        text(
            """SELECT EXISTS (
                SELECT FROM reader r WHERE r.group_id = g.group_id AND r.reader_id <> :reader_id
            ) AND EXISTS (
                SELECT FROM jsonb_each(CAST(:until AS jsonb)) u
                JOIN reader_group_stream gs
                    ON gs.group_id = g.group_id AND gs.stream_id = u.key::bigint
                JOIN stream s USING (stream_id)
                CROSS JOIN LATERAL unread_from(
                    gs.stream_id, group_cut(gs.group_id, gs.stream_id), s.head, u.value) n
                WHERE n.events > 0), g.aligned
            FROM reader_group g WHERE g.name = :group"""
        ),
        {
            "group": group,
            "reader_id": reader_id,
            "until": json.dumps({str(stream_id): cut for stream_id, cut in until.items()}),
        },
    ).one_or_none()
    return (False, False) if found is None else (bool(found[0]), bool(found[1]))
