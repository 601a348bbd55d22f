"""Tables to which rows are published. Made by `make queries` from sql/queries/reader_groups/outputs/publication.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

TABLE = text(
    """SELECT missing_rights('weir_publisher', c.oid, :mode) AS missing,
    missing_rights_of_caller(c.oid, :mode) AS mine, quote_ident(asking()) AS login,
    ARRAY(SELECT k FROM unnest(CAST(:named AS text[])) k
          WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid
              AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = k))
        AS unknown,
    ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid
          AND NOT a.attnotnull AND a.attname = ANY (CAST(:named AS text[])))
        AS nullable,
    EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique
        AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
        AND i.indexprs IS NULL AND i.indnkeyatts = cardinality(CAST(:key AS text[]))
        AND NOT EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = c.oid
            AND a.attnum = ANY ((i.indkey::smallint[])[0:i.indnkeyatts - 1])
            AND NOT a.attname = ANY (CAST(:key AS text[])))) AS is_unique,
    quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS quoted,
    coalesce((SELECT jsonb_object_agg(k, quote_ident(k))
     FROM unnest(CAST(:named AS text[])) k), '{}') AS idents
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = :name"""
)


class Table(NamedTuple):
    """A row of `table`."""

    missing: list[str]
    mine: list[str]
    login: str
    unknown: list[str]
    nullable: list[str]
    is_unique: bool
    quoted: str
    idents: dict[str, str]


def table(
    connection: Connection,
    *,
    mode: str,
    named: Sequence[str],
    key: Sequence[str],
    schema: str,
    name: str,
) -> Table:
    """Return which rights are missing for a table, and what of its columns does not fit."""
    result = connection.execute(
        TABLE,
        {"mode": mode, "named": list(named), "key": list(key), "schema": schema, "name": name},
    )
    row = result.one()
    return Table._make(row)


CHECK_CALL = text("""SELECT check_call(:table, :function)""")


def check_call(connection: Connection, *, table: str, function: str) -> None:
    """Check a function that is called after rows are in a table."""
    result = connection.execute(CHECK_CALL, {"table": table, "function": function})
    result.close()
