"""The names of streams, reader groups and adjunct stores that forms suggest.

They are read while DAG files are parsed, because Airflow keeps a form with its DAG. So the
parser waits for nobody: without an answer in a moment there are none. They are few and mostly the
same, because a changed form is a new version of its DAG. A list with suggestions takes nothing
else in Airflow's page, so lists have none.
"""

import contextlib
import threading

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.database.time_limit import limit_statements
from weir.settings import hasty, load

PATIENCE = 0.5  # seconds
MOST = 50  # of each kind
# If there are more, those that were written or read lately: by week, so that the same ones are
# chosen most of the time. What an installation with few names has changes with its names alone.
_NAMES = text("""
    (SELECT 'stream' AS kind, stream_name AS name FROM weir_internal.stream
        WHERE state <> 'deleted' AND name NOT LIKE '%.rejected'
        ORDER BY last_clock / 604800000000 DESC, stream_name LIMIT :most)
    UNION ALL
    (SELECT 'reader_group', name FROM weir_internal.reader_group WHERE name NOT LIKE '%/%'
        ORDER BY extract(epoch FROM moved_at)::bigint / 604800 DESC, name LIMIT :most)
    UNION ALL
    (SELECT 'adjunct_store', name FROM weir_internal.adjunct_store ORDER BY name LIMIT :most)
    ORDER BY kind, name""")


def suggested_names() -> dict[str, list[str]]:
    """Return the names by what they are names of: `stream`, `reader_group`, `adjunct_store`. None
    if Postgres does not answer within a moment."""
    found: dict[str, list[str]] = {}

    def ask() -> None:
        with contextlib.suppress(Exception), Database.of(hasty(load())) as database:
            rows = database.transaction(_read)
            for kind, name in rows:
                found.setdefault(kind, []).append(name)

    asking = threading.Thread(target=ask, daemon=True)  # connecting has no shorter time-out
    asking.start()
    asking.join(PATIENCE)
    return {} if asking.is_alive() else found


def _read(connection: Connection) -> list[tuple[str, str]]:
    limit_statements(connection, PATIENCE)
    return [(kind, name) for kind, name in connection.execute(_NAMES, {"most": MOST})]
