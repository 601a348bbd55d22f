"""A Postgres of a test's own, which it may stop and kill."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.failures import log_kept
from weir.database import migrate
from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres


@contextmanager
def weir_server(*, keeps: bool = False) -> Iterator[EmbeddedPostgres]:
    """Yield a server with Weir's database and logins. `keeps`: what it said was committed is there
    after it was killed (not after a crash of the machine)."""
    with throw_away_postgres() as server, log_kept(server):
        if keeps:
            server.psql("ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();")
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        yield server
