"""The consumers that were declared for groups. Made by `make queries` from sql/queries/reader_groups/groups/consumers.sql."""

from typing import Any

from sqlalchemy import Connection, text

DECLARE = text(
    """UPDATE reader_group SET consumer = CAST(:consumer AS jsonb) WHERE group_id = :group_id"""
)


def declare(connection: Connection, *, consumer: str, group_id: int) -> None:
    """Record the arguments of the consumer of a group."""
    result = connection.execute(DECLARE, {"consumer": consumer, "group_id": group_id})
    result.close()


DECLARED = text("""SELECT consumer FROM reader_group WHERE name = :group""")


def declared(connection: Connection, *, group: str) -> dict[str, Any] | None:
    """Return the arguments of the consumer of a group."""
    result = connection.execute(DECLARED, {"group": group})
    value: dict[str, Any] | None = result.scalar_one_or_none()
    return value
