"""Lineage: which run made what, of what. Made by `make queries` from sql/queries/history/lineage.sql."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

STEPS = text(
    """SELECT step, run, reader_group, batch_id, function, function_version, committed_at, side, kind, name,
    name_segment AS segment, name_from AS from_offset, name_to AS to_offset, version
FROM lineage(CAST(:of AS text), CAST(:direction AS text), CAST(:depth AS integer), CAST(:segment AS text),
    CAST(:first AS bigint), CAST(:past AS bigint))"""
)


class Step(NamedTuple):
    """One thing that a run read or wrote in one commit. `step`: how many commits away; 0: the run that was asked about. `run`: DAG/run/task, or the name of a program. `side`: read or wrote; None for an append of which no input is known. `kind`: stream, file, store, parquet or table. `version`: of a store; of a stream that was written, the transaction."""

    step: int
    run: str
    reader_group: str | None
    batch_id: int | None
    function: str | None
    function_version: str | None
    committed_at: datetime
    side: str | None
    kind: str | None
    name: str | None
    segment: str | None
    from_offset: int | None
    to_offset: int | None
    version: int | None


def steps(
    connection: Connection,
    *,
    of: str,
    direction: str,
    depth: int | None,
    segment: str | None,
    first: int | None,
    past: int | None,
) -> list[Step]:
    """Return what a stream, a part of it or a run was made of, or what was made of it. row:"""
    result = connection.execute(
        STEPS,
        {
            "of": of,
            "direction": direction,
            "depth": depth,
            "segment": segment,
            "first": first,
            "past": past,
        },
    )
    return [Step._make(row) for row in result]
