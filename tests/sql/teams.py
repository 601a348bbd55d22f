"""The logins of two teams, with which tests open an installation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg2

import weir
from tests.conftest import TestDatabase
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.logins import scram_verifier
from weir.programs.store import StreamStore
from weir.settings import Settings

LOGINS = {"shop_app": "team_shop", "bank_app": "team_bank"}  # of the tests, and their teams
Opened = Callable[[str], StreamStore]


@contextmanager
def opened_by_logins(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, settings: Settings
) -> Iterator[Opened]:
    """Yield `opened(login)`, which opens the installation with a login of a team or of jobs."""
    with psycopg2.connect(postgres_server.dsn("postgres", "postgres")) as connection:
        cursor = connection.cursor()
        for login, team in LOGINS.items():
            cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [login])
            if not cursor.rowcount:
                verifier = scram_verifier(postgres_server.state.secret(login))
                cursor.execute(f"CREATE ROLE {team}; CREATE ROLE {login} LOGIN PASSWORD %s",
                               [verifier])  # fmt: skip
                cursor.execute(f"GRANT weir_team, {team} TO {login}")
            cursor.execute(
                f"GRANT CONNECT, TEMPORARY ON DATABASE {test_database.name} TO {login}, {team}"
            )
            cursor.execute("GRANT weir_reader TO weir_view")
    connection.close()
    stores: dict[str, StreamStore] = {}

    def open_as(login: str) -> StreamStore:
        if login not in stores:
            dsn = dsn_of(postgres_server, test_database, login)
            stores[login] = weir.open(settings=replace(settings, database=dsn))
        return stores[login]

    try:
        yield open_as
    finally:
        for store in stores.values():
            store.close()


def dsn_of(server: EmbeddedPostgres, database: TestDatabase, login: str) -> str:
    return f"{server.dsn(database.name, login)} password={server.state.secret(login)}"
