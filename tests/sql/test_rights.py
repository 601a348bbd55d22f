"""What a login may do by SQL of its own, beside Weir's functions."""

import psycopg2

from tests.conftest import TestDatabase
from tests.sql.teams import Opened, dsn_of
from weir.local.embedded_postgres import EmbeddedPostgres


def test_nobody_lets_a_trigger_of_weir_run_for_a_table_of_their_own(
    opened: Opened, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    opened("bank_app")
    assert _attached(dsn_of(postgres_server, test_database, "bank_app")) == set()
    assert _attached(dsn_of(postgres_server, test_database, "weir_app")) == set()


def _attached(dsn: str) -> set[str]:
    """The functions of Weir that a login could let run for a table that it made."""
    attached = set()
    connection = psycopg2.connect(dsn)
    cursor = connection.cursor()
    cursor.execute("CREATE TEMPORARY TABLE mine (scope text, name text, owner text)")
    cursor.execute(
        """SELECT oid::regproc::text FROM pg_proc
        WHERE pronamespace = 'weir_internal'::regnamespace AND prorettype = 'trigger'::regtype"""
    )
    found = cursor.fetchall()
    assert len(found) > 3
    for (function,) in found:
        cursor.execute("SAVEPOINT one")
        try:
            cursor.execute(
                f"CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION {function}()"
            )
            attached.add(function)
        except psycopg2.errors.InsufficientPrivilege:
            pass
        cursor.execute("ROLLBACK TO one")
    connection.close()
    return attached


def test_no_login_changes_what_was_erased_or_the_key_that_signs_it(
    opened: Opened, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    opened("bank_app")
    assert _changeable(dsn_of(postgres_server, test_database, "bank_app")) == set()
    assert _changeable(dsn_of(postgres_server, test_database, "weir_app")) == set()


def _changeable(dsn: str) -> set[str]:
    """What a login could do to the evidence of erasures."""
    changeable = set()
    connection = psycopg2.connect(dsn)
    cursor = connection.cursor()
    cursor.execute("SET search_path = weir_internal")
    for statement in (
        "UPDATE erasure SET reason = 'other'",
        "DELETE FROM erasure",
        "TRUNCATE erasure",
        "INSERT INTO erasure DEFAULT VALUES",
        "UPDATE erasure_request SET certificate = NULL",
        "DELETE FROM erasure_request",
        "TRUNCATE erasure_request",
        "INSERT INTO erasure_request DEFAULT VALUES",
        "UPDATE signing_key SET public_key = public_key",
        "DELETE FROM signing_key",
        "TRUNCATE signing_key",
    ):
        cursor.execute("SAVEPOINT one")
        try:
            cursor.execute(statement)
            changeable.add(statement)
        except psycopg2.errors.InsufficientPrivilege:
            pass
        except psycopg2.IntegrityError:
            changeable.add(statement)
        cursor.execute("ROLLBACK TO one")
    connection.close()
    return changeable
