"""Lineage: which run made what, of what, with which version of which function.

The rule is the SQL function weir.lineage (sql/functions/lineage.sql); this asks it.
A unit is what one commit published: which row became which is known to the function alone.
"""

from sqlalchemy import Connection

from weir.queries.history import lineage as sql
from weir.queries.history.lineage import Step as Step


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
    return sql.steps(
        connection, of=of, direction=direction, depth=depth, segment=segment, first=from_offset,
        past=to_offset,
    )  # fmt: skip
