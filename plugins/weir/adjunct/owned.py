"""What a store has, which goes with it when it is deleted."""

from typing import Any

from sqlalchemy import Connection, text

from weir.errors import Conflict


def owned(connection: Connection, store_id: int) -> dict[str, Any]:
    """Return how many versions and bytes a store has, and the name of its stream."""
    row = connection.execute(
        text(
            """SELECT (SELECT count(*) FROM adjunct_version WHERE store_id = :a) AS versions,
                (SELECT coalesce(sum(bytes), 0)::bigint FROM adjunct_file WHERE store_id = :a)
                    AS bytes,
                (SELECT s.stream_name FROM adjunct_store a JOIN stream s USING (stream_id)
                    WHERE a.store_id = :a) AS stream"""
        ),
        {"a": store_id},
    ).one()
    return dict(row._mapping)


def check_unpinned(connection: Connection, store_id: int, name: str) -> None:
    """Raise Conflict if an open batch is read with a version of the store."""
    row = connection.execute(
        text(
            """SELECT b.group_name, b.batch_id FROM adjunct_pin p
            JOIN reader_batch b USING (group_id, batch_id)
            WHERE p.store_id = :a AND b.state = 'open' ORDER BY 1, 2 LIMIT 1"""
        ),
        {"a": store_id},
    ).one_or_none()
    if row is not None:
        raise Conflict(
            "adjunct_store_pinned",
            f"batch {row.batch_id} of reader group {row.group_name} is read with adjunct store "
            f"{name}; wait until it is committed.",
        )
