"""Give a reader its next batch, and let it wait while other readers hold what is left.

A run therefore ends only when everything up to the tail that it saw is committed, by whichever
reader. Runs that overlap share the work batch by batch, and a reader that waits takes over when
another one dies.
"""

import json
import time
from collections.abc import Callable

from sqlalchemy import Connection

from weir.controller.queries import Cut
from weir.database.connection import Database
from weir.queries.reader_groups.batches import next as sql
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
    until: dict[int, Cut],
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

    def opened(connection: Connection, until: dict[int, Cut] | None) -> Batch | None:
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
        cuts = json.dumps({str(stream_id): cut for stream_id, cut in until.items()})
        rest = sql.waits(connection, group=group, reader_id=reader_id, until=cuts)
        if rest is None or not rest.others:
            return None, False
        if not rest.aligned:
            batch = opened(connection, None)
        return batch, batch is None

    while True:
        looks()
        batch, others_have_the_rest = database.transaction(look)
        if not others_have_the_rest:
            return batch
        if not waits():
            time.sleep(PAUSE)
