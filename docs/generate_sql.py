"""Writes docs/sql.md: functions, views and tables as the database's catalogue describes them, and
example queries with their answers; and docs/cookbook.md: what people ask, and the queries.

`python -m docs.generate_sql` migrates a database on a throw-away server, tells a small story in it
(sql_story.py) and asks the queries of sql_examples.sql and cookbook.sql as the login that may only
read views.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, text

from docs.sql_story import record_jobs, tell
from weir.database import migrate
from weir.database.connection import Database
from weir.local import binaries, logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres

FOLDER = Path(__file__).parent
TARGET = FOLDER / "sql.md"
EXAMPLES = FOLDER / "sql_examples.sql"
COOKBOOK, RECIPES = FOLDER / "cookbook.md", FOLDER / "cookbook.sql"

INTRODUCTION = """\
# SQL

<!-- Made by `make docs` from the comments in sql/ and the queries in docs/sql_examples.sql. -->

Weir keeps all metadata of its streams in Postgres. The schema `weir` has the views
and functions for people and dashboards: ask them with any SQL client (`make psql`), as the login of
the service `weir_reader`. The schema `weir_internal` has the tables, and the functions behind the
views; only Weir's jobs and pages use it, and it may change with every version.

A stream is named `scope/stream`, a segment `number.epoch` (`5.1`). A stream cut is a JSON
object: per segment the next offset to read, or `"future"` for a segment that waits for one
before it, as in `{"0.0": 12, "5.1": "future"}`. Offsets count events; bytes are those of the
files as first committed. Times are `timestamptz`; what is called a clock elsewhere is a time in
the views.

The functions raise SQLSTATE `WEIR1` for what is not there, `WEIR2` for an argument that is
wrong and `WEIR4` for what was truncated, with a sentence that says what to do, and as DETAIL the
code of the error, such as `stream_not_found`.
"""

ABOUT_EXAMPLES = """\
## Examples

The stream `nyc/flights` has flights of some months, by carrier. February came late: its append
began before a segment was split and was committed after it. Then a group has read some of it,
two segments were merged, and retention has truncated what all subscribers had released. The
answers are real.
"""

ABOUT_TABLES = """\
## Tables

The tables of `weir_internal`, each with its constraints and then its other indexes. `sql/schema/`
has them by topic."""


ABOUT_COOKBOOK = """\
# Questions and queries

<!-- Made by `make docs` from docs/cookbook.sql. -->

What people ask about streams, each with a query and its real answer. Ask in any SQL client:
`make psql`, or `weir psql`. [sql.md](sql.md) has all views and functions; `weir why`, `weir lag`
and `weir lineage` answer some of these in a terminal. The story behind the answers is that of
[sql.md](sql.md#examples).
"""


def cookbook(server: EmbeddedPostgres, name: str) -> str:
    """Return the page of questions, asked of a migrated database that had no streams."""
    database = Database(server.dsn(name, "weir_app"), patience=30.0, connect_patience=10.0)
    try:
        tell(database)
        record_jobs(database)
    finally:
        database.dispose()
    subjects = re.findall(r"^-- ## (.*)$", RECIPES.read_text(), re.M)
    listed = [f"- [{subject}](#{_anchor(subject)})" for subject in subjects]
    parts = _examples(server.dsn(name, "weir_view"), RECIPES)
    return "\n".join([ABOUT_COOKBOOK, *listed, "", *parts])


def _anchor(heading: str) -> str:
    """Return the name that a heading has in links."""
    return re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-")


def document(server: EmbeddedPostgres, name: str) -> str:
    """Return the page of the database, made from a migrated one that had no streams."""
    database = Database(server.dsn(name, "weir_app"), patience=30.0, connect_patience=10.0)
    try:
        tell(database)
        parts = [INTRODUCTION, ABOUT_EXAMPLES, *_examples(server.dsn(name, "weir_view"))]
        parts += database.transaction(_from_catalogue)
    finally:
        database.dispose()
    return "\n".join(parts)


def _from_catalogue(connection: Connection) -> list[str]:
    views, tables = (_relations(connection, schema) for schema in ("weir", "weir_internal"))
    return [*_functions(connection), "## Views", *views, ABOUT_TABLES, *tables]


def _examples(dsn: str, file: Path = EXAMPLES) -> Iterator[str]:
    """Yield paragraphs as they are, and each query with its answer."""
    for block in re.split(r"\n\n+", file.read_text().strip()):
        if block.startswith("-- "):
            paragraph = re.sub(r"^-- ?", "", block, flags=re.M)
            yield re.sub(r"\A# ", "### ", paragraph) + "\n"
        else:
            yield f"```sql\n{block}\n```\n"
            yield f"```text\n{_answer(dsn, block)}\n```\n"


def _answer(dsn: str, query: str) -> str:
    """Return what psql prints for a query."""
    settings = ["-P", "footer=off", "-P", "null=(null)", "-v", "VERBOSITY=terse"]
    done = subprocess.run(
        [str(binaries.wheel() / "bin" / "psql"), "-Xq", *settings, "-c", query, dsn],
        capture_output=True,
        text=True,
    )
    return "\n".join(line.rstrip() for line in (done.stdout or done.stderr).strip("\n").split("\n"))


def _functions(connection: Connection) -> Iterator[str]:
    rows = connection.execute(
        text(
            """SELECT proname AS name, obj_description(oid, 'pg_proc') AS comment,
                pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result
            FROM pg_proc WHERE pronamespace = 'weir'::regnamespace
            ORDER BY proname, pg_get_function_arguments(oid)"""
        )
    )
    yield "## Functions\n"
    for row in rows:
        yield f"### `{row.name}({_short(row.arguments)})`\n"
        yield f"{_plain(row.comment)}\n"
        yield f"Returns {_returned(row.result)}.\n"


def _returned(result: str) -> str:
    columns = re.fullmatch(r"TABLE\((.*)\)", result)
    return f"rows of `{_short(columns[1])}`" if columns else f"`{_short(result)}`"


def _relations(connection: Connection, schema: str) -> Iterator[str]:
    """Yield each view or table of a schema with its columns, its constraints and its indexes."""
    relations = connection.execute(
        text(
            """SELECT c.oid, c.relname AS name, obj_description(c.oid, 'pg_class') AS comment,
                array(SELECT pg_get_constraintdef(o.oid) FROM pg_constraint o
                      WHERE o.conrelid = c.oid AND o.contype <> 'n'
                      ORDER BY position(o.contype::text IN 'pufc'), o.conname)
                    AS constraints,
                array(SELECT pg_get_indexdef(x.indexrelid) FROM pg_index x
                      JOIN pg_class i ON i.oid = x.indexrelid
                      WHERE x.indrelid = c.oid AND NOT EXISTS (
                          SELECT FROM pg_constraint o WHERE o.conindid = x.indexrelid
                          AND o.conrelid = c.oid)
                      ORDER BY i.relname) AS indexes
            FROM pg_class c
            WHERE c.relnamespace = CAST(:schema AS regnamespace) AND c.relkind IN ('r', 'v')
            ORDER BY c.relname"""
        ),
        {"schema": schema},
    ).all()
    for relation in relations:
        yield f"\n### `{relation.name}`\n\n{_plain(relation.comment)}\n"
        yield "| column | type | |\n|---|---|---|"
        for column in connection.execute(_COLUMNS, {"relation": relation.oid}):
            type_ = _short(column.type) + (", may be null" if column.may_be_null else "")
            yield f"| `{column.name}` | {type_} | {_plain(column.comment)} |"
        rules = [*relation.constraints, *relation.indexes]
        if rules:
            yield "\n```sql"
            yield from (_plainly(rule) for rule in rules)
            yield "```"
    yield ""


_COLUMNS = text(
    """SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
        c.relkind = 'r' AND NOT a.attnotnull AS may_be_null,
        coalesce(col_description(a.attrelid, a.attnum), (
            SELECT 'See ' || string_agg(DISTINCT f.confrelid::regclass::text, ', ') || '.'
            FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f'
              AND a.attnum = ANY (f.conkey))) AS comment
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE a.attrelid = :relation AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
)


def _plainly(rule: str) -> str:
    """Return a constraint or index without what Postgres adds to it."""
    rule = re.sub(r"::(text|bigint|double precision)(\[\])?", "", rule)
    return (
        rule.replace(" USING btree", "").replace("weir_internal.", "").replace(" ON ONLY ", " ON ")
    )


def _short(types: str) -> str:
    types = types.replace("timestamp with time zone", "timestamptz")
    return re.sub(r"NULL::\w+", "NULL", types.replace("double precision", "float8"))


def _plain(comment: str | None) -> str:
    """Return a comment as Markdown in which nothing becomes a tag, emphasis or a column's end."""
    return re.sub(r"([|<*])", r"\\\1", comment or "")


def main() -> None:
    with throw_away_postgres() as server:
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        server.psql("CREATE DATABASE cookbook TEMPLATE weir OWNER weir_owner")
        server.psql(
            "UPDATE weir_internal.installation SET incarnation = weir_internal.incarnation()",
            database="cookbook",
        )
        TARGET.write_text(document(server, "weir"))
        COOKBOOK.write_text(cookbook(server, "cookbook"))
    print(f"{TARGET} and {COOKBOOK} are up to date")


if __name__ == "__main__":
    main()
