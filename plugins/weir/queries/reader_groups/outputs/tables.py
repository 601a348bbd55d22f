"""Tables of this database as outputs. Made by `make queries` from sql/queries/reader_groups/outputs/tables.sql."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

TABLE = text(
    """SELECT c.oid, c.relkind IN ('r', 'p') AS is_table
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = :table"""
)


class Table(NamedTuple):
    """A row of `table`."""

    oid: int
    is_table: bool


def table(connection: Connection, *, schema: str, table: str) -> Table | None:
    """Return a relation by its name."""
    result = connection.execute(TABLE, {"schema": schema, "table": table})
    row = result.one_or_none()
    return None if row is None else Table._make(row)


COLUMNS = text(
    """SELECT a.attname AS name, b.typname AS kind,
    format_type(a.atttypid, a.atttypmod) AS shown,
    CASE WHEN b.typname = 'numeric' AND m.modifier >= 0
         THEN (((m.modifier - 4) & 2047) # 1024) - 1024 END AS scale,
    CASE WHEN b.typtype = 'e' THEN 'text'::regtype ELSE b.oid END::bigint
        AS staged_type,
    m.modifier, b.typtype = 'e' AS is_enum,
    a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required,
    a.attgenerated <> '' OR a.attidentity = 'a' AS generated
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
CROSS JOIN LATERAL (SELECT CASE WHEN t.typtype = 'd' THEN t.typtypmod
                           ELSE a.atttypmod END AS modifier) m
WHERE a.attrelid = :table AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
)


class Column(NamedTuple):
    """A row of `columns`."""

    name: str
    kind: str
    shown: str
    scale: int | None
    staged_type: int
    modifier: int
    is_enum: bool
    required: bool
    generated: bool


def columns(connection: Connection, *, table: int) -> list[Column]:
    """Return the columns of a table. `kind`: the name of its type; for a domain, of the type that it is based on. `shown`: the type as a person writes it. `scale`: of a numeric, digits after the point; None: any number of them. `staged_type`: the number of the type in the staging table. `required`: neither nullable nor filled in by a default."""
    result = connection.execute(COLUMNS, {"table": table})
    return [Column._make(row) for row in result]


PUBLISH = text("""SELECT weir_internal.publish_tables(CAST(:outputs AS jsonb))""")


def publish(connection: Connection, *, outputs: str) -> list[dict[str, Any]]:
    """Put staged rows into their tables."""
    result = connection.execute(PUBLISH, {"outputs": outputs})
    value: list[dict[str, Any]] = result.scalar_one()
    return value


MAKE_STAGING = text(
    """SELECT make_staging(:name, CAST(:columns AS text[]), CAST(:types AS oid[]),
CAST(:modifiers AS integer[]))"""
)


def make_staging(
    connection: Connection,
    *,
    name: str,
    columns: Sequence[str],
    types: Sequence[int],
    modifiers: Sequence[int],
) -> str:
    """Create a staging table, and return the COPY that fills it."""
    result = connection.execute(
        MAKE_STAGING,
        {
            "name": name,
            "columns": list(columns),
            "types": list(types),
            "modifiers": list(modifiers),
        },
    )
    value: str = result.scalar_one()
    return value


ABANDONED_STAGING = text("""SELECT abandoned_staging()""")


def abandoned_staging(connection: Connection) -> list[str]:
    """Return the staging tables of readers that can no longer commit."""
    result = connection.execute(ABANDONED_STAGING)
    return [row[0] for row in result]


DROP_STAGING = text("""SELECT drop_staging(:name)""")


def drop_staging(connection: Connection, *, name: str) -> None:
    """Drop a staging table, if it exists."""
    result = connection.execute(DROP_STAGING, {"name": name})
    result.close()
