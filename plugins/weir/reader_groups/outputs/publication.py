"""How the rows of a batch get into a table at its commit: inserted, upserted by key, or replacing.

A function of the table's owner may follow, in the same transaction. Everything runs with the rights
of the role `weir_publisher`, which has none but those that people granted to it.
An upsert is in order only if the events of a key are, that is, if they have one routing key or the
row says itself which is newer. MERGE does not exclude concurrent inserts of one key.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.errors import InvalidInput, either
from weir.queries.reader_groups.outputs import publication as sql

MODES = ("insert", "upsert", "replace")


@dataclass(frozen=True)
class Publication:
    """How the commit of a batch publishes its rows in a table.

    `mode` `insert`: the rows are added. `upsert`: each row replaces the one that has the same
    values in the columns of `key`, or is added; of several rows of a key, the last one counts.
    `replace`: the rows replace all rows of the table, or those with the same `key`.

    `newest`: columns that say which row of a key is newer, for an upsert; a row replaces another
    only if its values there are not smaller. `call`: a function, `schema.name(jsonb)`, that is
    called after the rows are in the table, with the batch as a JSON object.
    """

    mode: str = "insert"
    key: tuple[str, ...] = ()
    newest: tuple[str, ...] = ()
    call: str = ""

    def check(self, table: str) -> None:
        """Check that the settings fit together. Raises InvalidInput."""
        wrong = ""
        if self.mode not in MODES:
            wrong = f"mode is {self.mode!r}; it must be {either(MODES)}"
        elif self.mode == "upsert" and not self.key:
            wrong = "mode=upsert needs the columns of a key; add key=COLUMN,COLUMN"
        elif self.mode == "insert" and self.key:
            wrong = "a key needs mode=upsert or mode=replace; add one of them"
        elif self.newest and self.mode != "upsert":
            wrong = "newest needs mode=upsert; add it, or leave newest out"
        elif len(set(self.key)) < len(self.key) or len(set(self.newest)) < len(self.newest):
            wrong = "key or newest names a column twice; name each once"
        if wrong:
            raise InvalidInput("output_invalid", f"of output table:{table}, {wrong}.")

    @property
    def ordered(self) -> bool:
        """Whether the order of the rows decides which of them count."""
        return self.mode == "upsert"

    def statement(self, batch: dict[str, object]) -> dict[str, object]:
        """Return the settings as the argument `in_how` of the SQL function `publish_staging`.
        `batch`: what the function `call` is told."""
        return {"mode": self.mode, "key": self.key, "newest": self.newest,
                "call": self.call or None, "batch": batch}  # fmt: skip


INSERT = Publication()


def check_publication(connection: Connection, table: str, publication: Publication) -> None:
    """Check that `weir_publisher` and this login can publish rows in this way in a table that
    exists.

    Raises InvalidInput for a missing right, key or column, saying what to grant or to create, and
    NotFound for a function that does not exist.
    """
    publication.check(table)
    schema, _, name = table.partition(".")
    found = sql.table(
        connection,
        mode=publication.mode,
        key=list(publication.key),
        named=[*publication.key, *publication.newest],
        schema=schema,
        name=name,
    )
    for role, missing in (("weir_publisher", found.missing), (found.login, found.mine)):
        if missing:
            statements = "; ".join(f"GRANT {grant} TO {role}" for grant in missing)
            raise InvalidInput(
                "right_missing",
                f"the role {role} may not {publication.mode} rows of table {table}; run "
                f"{statements}.",
            )
    if found.unknown:
        raise InvalidInput(
            "column_unknown",
            f"table {table} has no column {found.unknown[0]!r}, which key or newest of its output "
            "names; correct the name.",
        )
    if found.nullable:
        raise InvalidInput(
            "table_refused",
            f"column {found.nullable[0]!r} of table {table} may be null, so it can't be part of "
            f"key or newest; run ALTER TABLE {found.quoted} ALTER COLUMN "
            f"{found.idents[found.nullable[0]]} SET NOT NULL.",
        )
    if publication.mode == "upsert" and not found.is_unique:
        columns = ", ".join(found.idents[one] for one in publication.key)
        raise InvalidInput(
            "table_refused",
            f"table {table} has no unique index on just {columns}, by which an upsert finds the "
            f"row of a key; run CREATE UNIQUE INDEX ON {found.quoted} ({columns}).",
        )
    if publication.call:
        sql.check_call(connection, table=table, function=publication.call)


def columns_of(output: str, name: str, written: str) -> tuple[str, ...]:
    """Return the names in an option of an output, `a,b`. Raises InvalidInput for an empty one."""
    names: Sequence[str] = written.split(",") if written else ()
    if not all(names):
        raise InvalidInput(
            "output_invalid",
            f"{name} of output {output} is {written!r}; write names of columns with commas between "
            "them, without blanks.",
        )
    return tuple(names)
