"""Lineage: which run made what, of what, with which version of which function.

The rule is the SQL function weir.lineage (sql/functions/lineage.sql); this asks it.
A unit is what one commit published: which row became which is known to the function alone.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text


class Step(NamedTuple):
    """One thing that a run read or wrote in one commit."""

    step: int  # how many commits away; 0: the run that was asked about
    run: str  # DAG/run/task, or the name of a program
    reader_group: str | None
    batch_id: int | None
    function: str | None
    function_version: str | None
    committed_at: datetime
    side: str | None  # read or wrote; null for an append of which no input is known
    kind: str | None  # stream, file, store, parquet or table
    name: str | None
    segment: str | None
    from_offset: int | None
    to_offset: int | None
    version: int | None  # of a store; of a stream that was written, the transaction


def lineage_of(
    connection: Connection,
    of: str,
    direction: str = "up",
    depth: int | None = None,
    segment: str | None = None,
    from_offset: int | None = None,
    to_offset: int | None = None,
) -> list[Step]:
    """Return what a stream, or a part of it, was made of; or with direction "down" what was made of
    it.

    `of`: a stream (`scope/stream`), or a run (`DAG/run/task`). `segment`, `from_offset`,
    `to_offset`: only these events of a stream. `depth`: how many commits to follow; None: all.
    Raises NotFound for a stream or segment that does not exist, InvalidInput for another direction.
    """
    rows = connection.execute(
        text(
            """SELECT * FROM lineage(CAST(:of AS text), CAST(:direction AS text), :depth,
                CAST(:segment AS text), CAST(:first AS bigint), CAST(:past AS bigint))"""
        ),
        {
            "of": of, "direction": direction, "depth": depth, "segment": segment,
            "first": from_offset, "past": to_offset,
        },
    )  # fmt: skip
    return [Step(*row) for row in rows]
