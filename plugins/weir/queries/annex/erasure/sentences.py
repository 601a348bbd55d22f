"""Which sentences can be changed. Made by `make queries` from sql/annex/erasure/queries/sentences.sql."""

from sqlalchemy import Connection, text

MAY_UPDATE = text(
    """SELECT coalesce(has_any_column_privilege(to_regclass('weir_internal.' || :table), 'UPDATE'), false)"""
)


def may_update(connection: Connection, *, table: str) -> bool:
    """Return whether a table is there, and this login may change it: an annex may not be there."""
    result = connection.execute(MAY_UPDATE, {"table": table})
    value: bool = result.scalar_one()
    return value
