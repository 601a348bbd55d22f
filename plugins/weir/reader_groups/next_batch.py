"""Give a reader its next batch, and let it wait while other readers hold what is left.

A run therefore ends only when everything up to the tail that it saw is committed, by whichever
reader. Runs that overlap share the work batch by batch, and a reader that waits takes over when
another one dies.
"""

import json
import logging
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.reader_groups.batches import open_in
from weir.reader_groups.new_batch import Batch

log = logging.getLogger("weir.reader_groups")

PAUSE = 1.0  # seconds between two attempts to get a batch


def next_batch(
    database: Database,
    group: str,
    reader_id: str,
    token: int,
    *,
    until: dict[int, dict[str, Any]],
    looks: Callable[[], object] = lambda: None,
    **options: Any,
) -> Batch | None:
    """Return the reader's next batch, as `open_in` does; wait while other readers hold what is
    left. `looks` is called before each attempt to get one.

    A reader that stands at `until` reads on while another one waits for it because of `max_ahead`:
    otherwise each could wait for the other, if their runs began at different times.

    Returns None if the group has committed everything up to `until`, or if no other reader is there
    that could. Raises as `open_in` does.
    """

    def look(connection: Connection) -> tuple[Batch | None, bool]:
        # In one transaction, with the group locked: between two, the reader that holds the rest
        # could commit a part of it and leave, and nobody would read the other part.
        batch = open_in(connection, group, reader_id, token, until=until, **options)
        if batch is not None or not _others_have_the_rest(connection, group, reader_id, until):
            return batch, False
        if _is_waited_for(connection, group, reader_id):
            batch = open_in(connection, group, reader_id, token, **options)
        return batch, batch is None

    waits = False
    while True:
        looks()
        batch, others_have_the_rest = database.transaction(look)
        if not others_have_the_rest:
            return batch
        if not waits:
            log.info("the rest is being read by other readers of group %s: waiting", group)
            waits = True
        time.sleep(PAUSE)


def _others_have_the_rest(
    connection: Connection, group: str, reader_id: str, until: dict[int, dict[str, Any]]
) -> bool:
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
                WHERE n.events > 0)
            FROM reader_group g WHERE g.name = :group"""
        ),
        {
            "group": group,
            "reader_id": reader_id,
            "until": json.dumps({str(stream_id): cut for stream_id, cut in until.items()}),
        },
    ).scalar_one_or_none()
    return bool(found)


def _is_waited_for(connection: Connection, group: str, reader_id: str) -> bool:
    found = connection.execute(
        text(
            """SELECT EXISTS (
                SELECT FROM waiting_readers WHERE reader_group = :group AND waits_for = :reader_id
                AND reason = 'max_ahead')"""
        ),
        {"group": group, "reader_id": reader_id},
    ).scalar_one()
    return bool(found)
