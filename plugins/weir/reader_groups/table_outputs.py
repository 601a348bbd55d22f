"""Tables of the same database as outputs of batches.

The rows are copied into a staging table per attempt beforehand, by executors, each copy a
transaction of its own. The batch's commit puts them into the table that they are for: they become
visible exactly with the positions. Another database could not be part of that one transaction.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exc, text

from weir.controller.locks import lock_group
from weir.database.connection import Database, wait_for_disk
from weir.errors import Conflict, InvalidInput, NotFound, Unavailable
from weir.reader_groups.batch_ownership import check_held
from weir.reader_groups.new_batch import Batch
from weir.reader_groups.refused_rows import refused

_NAME = re.compile(r"([a-z_][a-z0-9_]{0,62})\.([a-z_][a-z0-9_]{0,62})")
_OURS = re.compile(r"weir|weir_internal|weir_staging|information_schema|pg_.*")


def table_name(given: str) -> str:
    """`schema.table`, unchanged. Raises InvalidInput for another form, and for schemas of Weir or
    of Postgres itself."""
    match = _NAME.fullmatch(given)
    if match is None:
        raise InvalidInput(
            "table_name_invalid",
            f"{given!r} is not the name of a table; write schema.table in lower-case letters, "
            "digits and _.",
        )
    if _OURS.fullmatch(match[1]):
        raise InvalidInput(
            "table_not_allowed",
            f"results can't go to table {given!r}, because its schema belongs to Weir or "
            "Postgres; create a table in another schema.",
        )
    return given


@dataclass(frozen=True)
class Column:
    """A column of a table: `kind` is its type's name in Postgres, a domain's that below it."""

    name: str
    kind: str
    shown: str  # the type as a person writes it
    scale: int | None  # of a numeric: digits after the point; None: any number of them
    staged_type: int  # the type's number in the staging table
    modifier: int
    is_enum: bool
    required: bool  # neither nullable nor filled in by a default
    generated: bool


def read_table(connection: Connection, name: str) -> list[Column]:
    """The columns of a table that results can go to.

    Raises NotFound, and InvalidInput when it is no table or nobody granted the right to insert.
    """
    schema, _, table = table_name(name).partition(".")
    found = connection.execute(
        text(
            """SELECT c.oid, c.relkind IN ('r', 'p') AS is_table,
                has_schema_privilege('weir_publisher', n.oid, 'USAGE')
                    AND has_table_privilege('weir_publisher', c.oid, 'INSERT') AS allowed
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = :schema AND c.relname = :table"""
        ),
        {"schema": schema, "table": table},
    ).one_or_none()
    if found is None:
        raise NotFound(
            "table_not_found",
            f"there is no table {name} in Weir's database; create it first, or check its name.",
        )
    if not found.is_table:
        raise InvalidInput(
            "table_not_allowed",
            f"{name} is not a table, and results can go only to tables; name a table.",
        )
    if not found.allowed:
        raise InvalidInput(
            "right_missing",
            f"the role weir_publisher may not insert into table {name}; run GRANT USAGE ON SCHEMA "
            f"{schema} TO weir_publisher; GRANT INSERT ON {name} TO weir_publisher.",
        )
    rows = connection.execute(
        text(
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
        ),
        {"table": found.oid},
    )
    return [Column(**row) for row in rows.mappings()]


@dataclass(frozen=True)
class StagedTable:
    """Rows that are staged for a table, ready to be committed."""

    table: str
    staging: str
    pieces: tuple[str, ...]  # the copies that were committed, by their transactions
    rows: int

    def output(self) -> dict[str, Any]:
        """As the batch records it."""
        return {"kind": "table", "output": self.table, "rows": self.rows}

    def publish(self, connection: Connection, path: str) -> None:
        """Put the rows into the table, whose triggers find things by this search path."""
        found = connection.execute(
            text("SELECT weir_internal.publish_staging(:staging, :table, :pieces, :path)"),
            {"staging": self.staging, "table": self.table, "pieces": list(self.pieces),
             "path": path},
        ).scalar_one()  # fmt: skip
        if found != self.rows:
            raise Unavailable(
                "staged_rows_lost",
                f"Postgres has only {found} of {self.rows} rows that were staged for table "
                f"{self.table}, because it crashed in the meantime; the next try reads the batch "
                "again.",
            )


def publish_tables(connection: Connection, tables: Sequence[StagedTable]) -> None:
    """Put staged rows into their tables, and check what their constraints put off until the commit.

    The last statements of a transaction and of its session, as triggers of others may leave things
    behind in both (settings, temporary tables): what follows looks nothing up by the search path,
    and the session is not used again. What is raised is about these tables: BadRows for rows that
    they refuse, InvalidInput for a missing right, BatchFailed when a column was changed meanwhile,
    Unavailable when Postgres has lost rows, and whatever else Postgres says.
    """
    if not tables:
        return
    table, named = "", [one.table for one in tables]
    try:
        found = connection.execute(
            text(
                """SELECT coalesce(owner_path(t), '') FROM
                unnest(CAST(:tables AS text[])) WITH ORDINALITY AS g (t, i) ORDER BY i"""
            ),
            {"tables": named},
        )
        paths = list(found.scalars())
        connection.detach()
        for one, path in zip(tables, paths, strict=True):
            table = one.table
            one.publish(connection, path)
        table = ", ".join(named)
        connection.execute(
            text("SELECT weir_internal.settle_constraints(:tables, :paths)"),
            {"tables": named, "paths": paths},
        )
        for one in tables:
            connection.execute(
                text("SELECT weir_internal.drop_staging(:name)"), {"name": one.staging}
            )
        _check_publisher(connection, table)
        wait_for_disk(connection)  # whatever a trigger has set
    except exc.DBAPIError as error:
        if (meant := refused(table, error)) is None:
            raise
        raise meant from error


def _check_publisher(connection: Connection, tables: str) -> None:
    """Raise Conflict if a trigger dropped what the role owns with whose rights it ran."""
    left = connection.execute(
        text(
            """SELECT count(*) FROM pg_catalog.pg_proc p
            JOIN pg_catalog.pg_roles r ON r.oid = p.proowner
            WHERE r.rolname = 'weir_publisher' AND p.prosecdef
              AND p.pronamespace = 'weir_internal'::pg_catalog.regnamespace"""
        )
    ).scalar_one()
    if left < 2:
        raise Conflict(
            "trigger_dropped_functions",
            f"a trigger of table {tables} dropped the functions by which Weir publishes rows, so "
            "nothing was committed; remove the DROP from the trigger.",
        )


def make_staging(
    database: Database, batch: Batch, number: int, columns: Sequence[Column]
) -> tuple[str, str]:
    """A table for the rows of an attempt's `number`th table, with these columns; returns its name
    and the COPY that fills it. Raises Fenced when the batch was taken over."""

    def work(connection: Connection) -> tuple[str, str]:
        group = lock_group(connection, batch.group)
        check_held(connection, batch)
        name = f"g{group.group_id}_b{batch.batch_id}_a{batch.attempt}_{number}"
        copy = connection.execute(
            text(
                """SELECT make_staging(:name, CAST(:columns AS text[]), CAST(:types AS oid[]),
                    CAST(:modifiers AS integer[]))"""
            ),
            {
                "name": name,
                "columns": [column.name for column in columns],
                "types": [column.staged_type for column in columns],
                "modifiers": [-1 if column.is_enum else column.modifier for column in columns],
            },
        ).scalar_one()
        return name, copy

    return database.transaction(work)


def sweep_staging(database: Database) -> list[str]:
    """Drop what attempts staged that can't commit any more; returns the tables' names."""
    dead = database.transaction(lambda c: c.execute(text("SELECT dead_staging()")).scalars().all())
    for name in dead:
        drop_staging(database, name)
    return list(dead)


def drop_staging(database: Database, name: str) -> None:
    """Drop one; harmless when it is gone."""
    database.transaction(lambda c: c.execute(text("SELECT drop_staging(:name)"), {"name": name}))
