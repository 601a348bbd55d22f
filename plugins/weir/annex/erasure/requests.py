"""Who asked for an erasure: a row that outlives the run, so that another try continues it, and the
certificate is signed later if files are still in use."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TypedDict

from sqlalchemy import Connection

from weir.annex.erasure.copies import Remaining
from weir.queries.annex.erasure import requests as sql
from weir.queries.annex.erasure.requests import Request
from weir.warehouse.paths import ADJUNCT


class SearchedStream(TypedDict):
    """A stream that was searched, and by what."""

    stream: str
    stream_id: int
    by: str
    columns: Sequence[str]


def end(
    connection: Connection, request_id: str, searched: Sequence[SearchedStream],
    remains: Sequence[Remaining], keys: Sequence[str], before: Request | None = None,
) -> None:  # fmt: skip
    """Record that the events are out of the files of all streams, and let all that is garbage of
    these go without a grace period, even if nothing was found: it may have them. So may attempts at
    outputs of their groups, and what is left of deleted streams and stores. Forget the keys among
    the hot ones. Of a request that found none, and no garbage that may have some and is newer than
    a request for the same `before`, nothing stays."""
    streams = [one["stream_id"] for one in searched]
    since = before and before.done_at
    waiting = sql.garbage_waits(connection, streams=streams, since=since)
    sql.let_garbage_go(connection, streams=streams, adjunct=ADJUNCT)
    sql.forget_hot_keys(connection, streams=streams, keys=[*keys])
    has_erased = sql.has_erased(connection, request_id=request_id)
    if not has_erased and not waiting and sql.forget(connection, request_id=request_id):
        return
    reading = [
        Remaining(
            "what reader group", row.name,
            f"wrote with batch {row.batches}, which was open when this ran, and may have read them",
            "until that is erased, too",
        )
        for row in sql.reading(connection, streams=streams, request_id=request_id)
    ]  # fmt: skip
    sql.end(
        connection, request_id=request_id, searched=json.dumps(searched),
        remains=json.dumps([asdict(one) for one in (*reading, *remains)]),
    )  # fmt: skip
