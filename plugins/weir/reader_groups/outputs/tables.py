"""Tables of Weir's database as outputs of batches.

Executors first copy the rows into a staging table of the reader, each copy in a transaction of its
own. The commit of the batch moves them into their table, so that they become visible together with
the positions. A table of another database cannot be part of that transaction.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection, exc

from weir.database.connection import WAIT_FOR_DISK, Database
from weir.database.session import lend
from weir.errors import Conflict, InvalidInput, NotFound, Unavailable
from weir.queries.reader_groups.outputs import tables as sql
from weir.queries.reader_groups.outputs.tables import Column
from weir.reader_groups.batch import Batch, check_held
from weir.reader_groups.locks import lock_group
from weir.reader_groups.outputs.publication import INSERT, Publication, check_publication
from weir.reader_groups.outputs.refused_rows import refused

_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,62})\.([A-Za-z_][A-Za-z0-9_]{0,62})")
ORDER = ("_weir_clock", "_weir_place")  # columns of a staging table whose rows are ordered
_BIGINT = 20  # the number of the type
_OURS = re.compile(r"weir|weir_internal|weir_staging|information_schema|pg_.*")


def table_name(given: str) -> str:
    """Check a name, `schema.table` or `schema.function`, and return it. Raises InvalidInput for
    another form, and for a schema of Weir or of Postgres."""
    match = _NAME.fullmatch(given)
    if match is None:
        raise InvalidInput(
            "name_invalid",
            f"{given!r} is not the name of a table; write schema.table in letters, digits and "
            "_, in the case that Postgres shows.",
        )
    if _OURS.fullmatch(match[1]):
        raise InvalidInput(
            "table_refused",
            f"results can't go to table {given!r}, because its schema belongs to Weir or "
            "Postgres; create a table in another schema.",
        )
    return given


def read_table(
    connection: Connection, name: str, publication: Publication = INSERT
) -> list[Column]:
    """Return the columns of a table to which rows can be published in this way.

    Raises NotFound; and InvalidInput if it is not a table, and as `check_publication`.
    """
    schema, _, table = table_name(name).partition(".")
    found = sql.table(connection, schema=schema, table=table)
    if found is None:
        raise NotFound(
            "table_not_found",
            f"there is no table {name} in Weir's database; create it first, or check its name.",
        )
    if not found.is_table:
        raise InvalidInput(
            "table_refused",
            f"{name} is not a table, and results can go only to tables; name a table.",
        )
    check_publication(connection, name, publication)
    return sql.columns(connection, table=found.oid)


@dataclass(frozen=True)
class StagedTable:
    """Rows that are staged for a table, ready to be committed."""

    table: str
    staging: str
    pieces: tuple[str, ...]  # the copies that were committed, by their transactions
    rows: int
    publication: Publication = INSERT
    # What the table did otherwise than it was told, because its owner wants it; of the last try.
    told: list[str] = field(default_factory=list, compare=False)

    def output(self) -> dict[str, object]:
        """Return `kind`, `output` (the table) and `rows`, as the batch records them."""
        return {"kind": "table", "output": self.table, "rows": self.rows}

    def report(self) -> dict[str, object]:
        """Return `table`, `rows` and, if it did something else with them, `told`."""
        return {
            "table": self.table,
            "rows": self.rows,
            **({"told": self.told} if self.told else {}),
        }

    def done(self, found: int, told: str | None) -> None:
        """Note what the table did otherwise in `told`. `found`: how many rows were staged. Raises
        Unavailable if Postgres has lost some."""
        self.told[:] = filter(None, [told])
        if found != self.rows:
            raise Unavailable(
                "output_not_writable",
                f"Postgres has only {found} of {self.rows} rows that were staged for table "
                f"{self.table}, because it crashed in the meantime; the next try reads the batch "
                "again.",
            )


_CALM = f"SET LOCAL search_path TO pg_catalog, pg_temp; {WAIT_FOR_DISK}"


def publish_tables(
    connection: Connection, tables: Sequence[StagedTable], batch: dict[str, object]
) -> None:
    """Put staged rows into their tables, call the functions that follow, and check the constraints
    that are deferred.

    These are the last statements of the transaction and of its session, because triggers of other
    people may leave settings and temporary tables behind: nothing after them is looked up by the
    search path, and the session forgets them before it is used again.

    Raises BadRows for rows that a table refuses, InvalidInput for a missing right, BatchFailed if a
    column was changed meanwhile, Unavailable if Postgres has lost rows, and other errors of
    Postgres as they are.
    """
    if not tables:
        return
    given = [
        {
            "staging": one.staging,
            "table": one.table,
            "pieces": one.pieces,
            "how": one.publication.statement(batch),
        }
        for one in tables
    ]
    try:
        lend(connection)
        done = sql.publish(connection, outputs=json.dumps(given))
        connection.exec_driver_sql(_CALM)
    except exc.DBAPIError as error:
        diagnosis = getattr(error.orig, "diag", None)
        missing = getattr(diagnosis, "message_primary", None) or ""  # not what called it
        if getattr(error.orig, "pgcode", "") == "42883" and "weir_internal." in missing:
            raise Conflict(
                "trigger_not_allowed",
                f"a trigger or function of table {_named(tables, error)} dropped the functions by "
                "which Weir publishes rows, so nothing was committed; remove that from it.",
            ) from error
        if (meant := refused(_named(tables, error), error)) is None:
            raise
        raise meant from error
    for one, each in zip(tables, done, strict=True):
        one.done(each["staged"], each["told"])


def _named(tables: Sequence[StagedTable], error: exc.DBAPIError) -> str:
    """Return the table whose rows an error is about, or all of them."""
    context = getattr(getattr(error.orig, "diag", None), "context", None) or ""
    found = re.findall(r"^SQL statement \"SELECT weir_internal\.publish_staging\(\$1, '([^']+)'",
                       context, re.MULTILINE)  # fmt: skip
    return str(found[-1]) if found else ", ".join(one.table for one in tables)


def make_staging(
    database: Database, batch: Batch, number: int, columns: Sequence[Column], ordered: bool = False
) -> tuple[str, str]:
    """Create a staging table with these columns, for the `number`th output of a batch's reader and
    for its later batches; if its rows are ordered, with two more for their order. Returns its name
    and the COPY that fills it. Raises Fenced if the batch was taken over."""
    order = [(name, _BIGINT, -1) for name in ORDER] if ordered else []

    def work(connection: Connection) -> tuple[str, str]:
        group = lock_group(connection, batch.group)
        check_held(connection, batch)
        name = f"g{group.group_id}_t{batch.token}_{number}"
        copy = sql.make_staging(
            connection,
            name=name,
            columns=[*(column.name for column in columns), *(o[0] for o in order)],
            types=[*(column.staged_type for column in columns), *(o[1] for o in order)],
            modifiers=[
                *(-1 if column.is_enum else column.modifier for column in columns),
                *(o[2] for o in order),
            ],
        )
        return name, copy

    return database.transaction(work)


def sweep_staging(database: Database) -> list[str]:
    """Drop the staging tables of readers that can no longer commit; return their names."""
    names = database.transaction(sql.abandoned_staging)
    for name in names:
        drop_staging(database, name)
    return names


def drop_staging(database: Database, name: str) -> None:
    """Drop a staging table, if it exists."""
    database.transaction(partial(sql.drop_staging, name=name))
