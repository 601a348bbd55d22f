"""Writes docs/sql.md: functions, views and tables as the database's catalogue describes them, and
example queries with what they answer.

`python -m docs.generate_sql` migrates a database on a throw-away server, tells a small story in it
(sql_story.py) and asks the queries of sql_examples.sql as the login that may only read views.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, text

from docs.sql_story import tell
from weir.database import migrate
from weir.database.connection import Database
from weir.local import binaries, logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres

FOLDER = Path(__file__).parent
TARGET = FOLDER / "sql.md"
EXAMPLES = FOLDER / "sql_examples.sql"

INTRODUCTION = """\
# SQL

<!-- Made by `make docs` from the comments in sql/ and the queries in docs/sql_examples.sql. -->

All that Weir knows of its streams is in the Postgres schema `weir`, to be asked with any SQL client
(`make psql`). The login of the service `weir_reader` may read the views and call the functions; the
tables behind them are for the library.

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


def document(server: EmbeddedPostgres, name: str) -> str:
    """The page, from a migrated database without streams."""
    database = Database(server.dsn(name, "weir_app"), patience=30.0, connect_patience=10.0)
    try:
        tell(database)
        parts = [INTRODUCTION, ABOUT_EXAMPLES, *_examples(server.dsn(name, "weir_view"))]
        parts += database.transaction(lambda c: [*_functions(c), *_relations(c)])
    finally:
        database.dispose()
    return "\n".join(parts)


def _examples(dsn: str) -> Iterator[str]:
    """Paragraphs as they are, each query with its answer."""
    for block in re.split(r"\n\n+", EXAMPLES.read_text().strip()):
        if block.startswith("-- "):
            yield re.sub(r"^-- ?", "", block, flags=re.M).replace("# ", "### ", 1) + "\n"
        else:
            yield f"```sql\n{block}\n```\n"
            yield f"```text\n{_answer(dsn, block)}\n```\n"


def _answer(dsn: str, query: str) -> str:
    """What psql prints."""
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
            """SELECT proname AS name, obj_description(oid, 'pg_proc') AS said,
                pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result,
                proargnames[1] IN ('stream') AS by_name
            FROM pg_proc WHERE pronamespace = 'weir'::regnamespace
            ORDER BY proname, pg_get_function_arguments(oid)"""
        )
    ).all()
    yield "## Functions\n"
    for row in rows:
        if row.by_name:
            yield f"### `{row.name}({_short(row.arguments)})`\n"
            yield f"{_plain(row.said)}\n"
            yield f"Returns {_returned(row.result)}.\n"
    yield "## Building blocks\n\nThe views and the functions above are made of these.\n"
    yield "| function | returns | |\n|---|---|---|"
    for row in rows:
        if not row.by_name:
            call = f"`{row.name}({_short(row.arguments)})`"
            yield f"| {call} | {_returned(row.result)} | {_plain(row.said)} |"
    yield ""


def _returned(result: str) -> str:
    columns = re.fullmatch(r"TABLE\((.*)\)", result)
    return f"rows of `{_short(columns[1])}`" if columns else f"`{_short(result)}`"


def _relations(connection: Connection) -> Iterator[str]:
    rows = connection.execute(
        text(
            """SELECT c.oid, c.relname AS relation, c.relkind = 'v' AS is_view,
                obj_description(c.oid, 'pg_class') AS said, a.attname AS name,
                format_type(a.atttypid, a.atttypmod) AS type,
                col_description(c.oid, a.attnum) AS meaning
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                AND a.attnum > 0 AND NOT a.attisdropped
            WHERE c.relnamespace = 'weir'::regnamespace AND c.relkind IN ('r', 'v')
              AND c.relname <> 'alembic_version'
            ORDER BY c.relkind DESC, c.oid, a.attnum"""
        )
    ).all()
    before = None
    for row in rows:
        if before is None or before.is_view is not row.is_view:
            yield "## Views" if row.is_view else "\n## Tables\n\nThe library's own state."
        if before is None or before.oid != row.oid:
            yield f"\n### `{row.relation}`\n\n{_plain(row.said)}\n"
            yield "| column | type | |\n|---|---|---|"
        yield f"| `{row.name}` | {_short(row.type)} | {_plain(row.meaning)} |"
        before = row
    yield ""


def _short(types: str) -> str:
    types = types.replace("timestamp with time zone", "timestamptz")
    return re.sub(r"NULL::\w+", "NULL", types.replace("double precision", "float8"))


def _plain(comment: str | None) -> str:
    """A comment as Markdown: what looks like a tag or a table's column is neither."""
    return re.sub(r"([|<*])", r"\\\1", comment or "")


def main() -> None:
    with throw_away_postgres() as server:
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        TARGET.write_text(document(server, "weir"))
    print(f"{TARGET} is up to date")


if __name__ == "__main__":
    main()
