"""Prune metadata: delete the rows that describe only what lies below the *floor* of a stream.

The floor is the lower bound of the head, all positions, all ends of groups and all recorded cuts.
Epochs in which an open transaction began are kept as well. Pruning changes no size, because sizes
are prefix sums in the epochs that are kept (docs/retention.md).
"""

import json
from functools import partial

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.model.stream_cut import meet
from weir.queries.retention import prune as sql
from weir.reader_groups.locks import lock_stream_and_groups


def prune(database: Database, history: float) -> list[dict[str, object]]:
    """Delete the rows below the floor of each stream that are older than `history` seconds.

    Returns for each stream from which rows were deleted `stream`, and the number of rows by kind
    (the columns of `prune_below`); and for each stream that failed `stream` and `error`. A failure
    does not stop the other streams.
    """
    streams = database.transaction(partial(sql.candidates, history=history))
    reports: list[dict[str, object]] = []
    for stream_id, stream in streams:
        one = partial(_prune_one, stream_id=stream_id, history=history)
        done, failed = database.one_of_many(f"stream {stream}", partial(commit_once, database, one))
        if failed:
            reports.append({"stream": stream, "error": failed})
        elif done:
            reports.append(done)
    return reports


def _prune_one(connection: Connection, stream_id: int, history: float) -> dict[str, object]:
    stream = lock_stream_and_groups(connection, stream_id=stream_id)
    head = json.dumps(stream.head)
    sql.raise_released(connection, stream_id=stream_id, head=head)
    sql.drop_cuts(connection, stream_id=stream_id, head=head)
    cuts = [cut for cut in sql.cuts_needed(connection, stream_id=stream_id) if cut]
    floor = json.dumps(meet(load_cuts(connection, stream_id, stream.head, *cuts)).to_json())
    pruned = sql.prune_below(connection, stream_id=stream_id, floor=floor, history=history)
    counts = {name: count for name, count in pruned._asdict().items() if count}
    return {"stream": str(stream.name), **counts} if counts else {}
