"""Which streams retention must look at: those whose decision may be another than the last."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, text

from weir.names import StreamName


def soon(connection: Connection, stream_ids: Iterable[int]) -> None:
    """Something that decisions about these streams rest on has changed in this transaction."""
    connection.execute(
        text(
            """INSERT INTO retention_due (stream_id, due_at)
            SELECT stream_id, clock_timestamp() FROM stream
            WHERE stream_id = ANY(:ids) AND state = 'active'"""
        ),
        {"ids": sorted(set(stream_ids))},
    )


def due(connection: Connection, names: Sequence[StreamName] | None) -> list[tuple[int, str]]:
    """The id and the name of each active stream of which something may have to be decided now; or
    of `names`, or of all if that is empty."""
    if names is None:
        chosen = """s.stream_id IN (SELECT stream_id FROM retention_due
                                    WHERE due_at <= clock_timestamp())
            AND (s.retained_at IS NULL OR s.retention_every IS NULL
                 OR s.retained_at + s.retention_every * interval '1 second' <= clock_timestamp())"""
    else:
        chosen = "(s.scope || '/' || s.name = ANY(CAST(:names AS text[])) OR NOT :named)"
    rows = connection.execute(
        text(
            f"""SELECT s.stream_id, s.scope || '/' || s.name FROM stream s
            WHERE s.state = 'active' AND {chosen} ORDER BY s.stream_id"""  # noqa: S608 - constants
        ),
        {} if names is None else {"names": [str(n) for n in names], "named": bool(names)},
    )
    return [(row[0], row[1]) for row in rows]


def looked_at(connection: Connection, stream_id: int) -> bool:
    """Forget what was due of a locked stream, before it is decided; whether anything was."""
    return bool(
        connection.execute(
            text("DELETE FROM retention_due WHERE stream_id = :s"), {"s": stream_id}
        ).rowcount
    )
