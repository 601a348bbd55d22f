"""Transactions and outages, on a server that is really killed."""

import threading
from functools import partial
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Connection, text

from tests.conftest import TestDatabase
from tests.crash.jobs import wait_for
from tests.raises import raises
from tests.world.streams import Lane, at_once, rows, unique
from weir.database.connection import Database
from weir.errors import Conflict, Unavailable
from weir.local.embedded_postgres import EmbeddedPostgres


def note(connection: Connection, request: str) -> None:
    """A change that would fail if it were done twice."""
    connection.execute(
        text(
            """INSERT INTO request (request_id, operation, object, arguments, result)
            VALUES (:r, 'test', 'test', '', '{}')"""
        ),
        {"r": request},
    )


def lock(connection: Connection, lane: Lane) -> None:
    """Lock a stream to the end of the transaction."""
    connection.execute(
        text("SELECT 1 FROM stream WHERE stream_id = :s FOR UPDATE"), {"s": lane.stream_id}
    )


def noted(database: Database, request: str) -> int:
    [[count]] = rows(database, "SELECT count(*) FROM request WHERE request_id = :r", r=request)
    return int(count)


@pytest.mark.parametrize(
    "secret",
    [
        "host=127.0.0.1 port=1 dbname=weir user=weir_app password=s3cret",
        "host=127.0.0.1 port=1 dbname=weir user=weir_app password = 's3cret'",
        r"host=127.0.0.1 port=1 dbname=weir user=weir_app password='it\'s s3cret'",
        "postgresql://weir_app:s3cret@127.0.0.1:1/weir",
        "postgresql://weir_app@127.0.0.1:1/weir?password=s3cret",
        "postgresql://weir_app:%40s3cret@127.0.0.1:1/weir",
    ],
)
def test_the_password_is_not_said(secret: str) -> None:
    database = Database(secret, patience=0.0, connect_patience=0.0)
    with pytest.raises(Unavailable) as caught:
        noted(database, "none")
    assert "s3cret" not in str(caught.value)
    assert "host=127.0.0.1 port=1 dbname=weir user=weir_app" in str(caught.value)


def test_a_session_that_is_ended_in_the_middle_is_begun_anew(database: Database) -> None:
    request = unique("request")
    calls: list[int] = []

    def work(connection: Connection) -> None:
        note(connection, request)
        calls.append(len(calls))
        if len(calls) == 1:
            pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            other = Database(database._dsn, patience=60.0, connect_patience=60.0)
            rows(other, "SELECT pg_terminate_backend(:pid, 60000)", pid=pid)
            other.dispose()

    database.transaction(work)
    assert len(calls) == 2
    assert noted(database, request) == 1


def test_a_session_that_is_ended_in_the_middle_of_a_statement_is_begun_anew(
    database: Database,
) -> None:
    running = threading.Event()
    pids: list[int] = []

    def work(connection: Connection) -> int:
        pids.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        running.set()
        if len(pids) == 1:
            connection.execute(text("SELECT pg_sleep(300)"))
        return len(pids)

    def ending() -> None:
        running.wait(timeout=60)
        asked = "SELECT FROM pg_stat_activity WHERE pid = :pid AND query LIKE '%pg_sleep%'"
        wait_for("the statement to run", lambda: rows(database, asked, pid=pids[0]) != [])
        rows(database, "SELECT pg_terminate_backend(:pid)", pid=pids[0])

    done, _ = at_once(partial(database.transaction, work), ending)
    assert done == 2


def test_a_server_that_became_a_standby_is_left_for_the_one_that_took_over(
    test_database: TestDatabase,
) -> None:
    # Sessions on the old primary stay read only for ever: another try needs a new connection.
    owner = Database(test_database.owner_dsn, patience=60.0, connect_patience=60.0)
    statement = f"ALTER DATABASE {test_database.name} SET default_transaction_read_only = "

    def set_(value: str) -> None:
        owner.transaction(lambda c: c.exec_driver_sql(statement + value))

    rows(owner, "SELECT 1")
    set_("on")
    database, request = test_database.open(), unique("request")
    assert noted(database, request) == 0
    set_("off")
    database.transaction(partial(note, request=request))
    assert noted(database, request) == 1


def test_a_mistake_is_raised_at_once_and_not_tried_again(database: Database) -> None:
    calls: list[int] = []

    def wrong(connection: Connection, statement: str) -> None:
        calls.append(1)
        connection.execute(text(statement))

    for statement, error in [
        ("SELECT nonsense", sqlalchemy.exc.ProgrammingError),
        ("INSERT INTO stream_schema (stream_id, version, fields) VALUES (0, 1, '[]')",
         sqlalchemy.exc.IntegrityError),
        ("SELECT 1/0", sqlalchemy.exc.DataError),
    ]:  # fmt: skip
        del calls[:]
        with pytest.raises(error):
            database.transaction(partial(wrong, statement=statement))
        assert len(calls) == 1


def test_what_the_work_raises_undoes_it(database: Database) -> None:
    request = unique("request")

    def refused(connection: Connection) -> None:
        note(connection, request)
        raise Conflict("stream_exists", "no")

    with raises("stream_exists"):
        database.transaction(refused)
    assert noted(database, request) == 0


def test_a_deadlock_is_resolved_by_doing_one_of_the_two_again(database: Database) -> None:
    lanes = [Lane.made(database), Lane.made(database)]
    met = threading.Barrier(2)

    def locking(first: Lane, second: Lane) -> list[int]:
        calls: list[int] = []

        def work(connection: Connection) -> None:
            calls.append(1)
            for lane in (first, second):
                lock(connection, lane)
                if lane is first and len(calls) == 1:
                    met.wait(timeout=60)

        database.transaction(work)
        return calls

    outcomes = at_once(partial(locking, *lanes), partial(locking, *lanes[::-1]))
    assert sorted(len(calls) for calls in outcomes) == [1, 2]


def test_a_lock_that_is_not_to_be_had_is_waited_for(database: Database) -> None:
    lane = Lane.made(database)
    locked = threading.Event()
    calls: list[int] = []

    def holding(connection: Connection) -> None:
        lock(connection, lane)
        locked.set()
        wait_for("another try", lambda: len(calls) >= 2)

    def waiting(connection: Connection) -> None:
        calls.append(1)
        connection.execute(text("SET LOCAL lock_timeout = '100ms'"))
        lock(connection, lane)

    def afterwards() -> None:
        locked.wait(timeout=60)
        database.transaction(waiting)

    assert at_once(partial(database.transaction, holding), afterwards) == [None, None]


def test_a_lock_that_somebody_keeps_is_told_with_the_session_and_is_no_outage(
    database: Database, test_database: TestDatabase
) -> None:
    lane, hasty = Lane.made(database), test_database.open(patience=0.5)

    def waiting(connection: Connection) -> None:
        connection.execute(text("SET LOCAL lock_timeout = '100ms'"))
        lock(connection, lane)

    def holding(connection: Connection) -> int:
        lock(connection, lane)
        with raises("lock_held session") as caught:
            hasty.transaction(waiting)
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        assert f"of session {pid} (weir_app)" in str(caught.value)
        assert caught.value.retryable
        assert "can't be reached" not in str(caught.value)
        return int(pid)

    assert database.transaction(holding) > 0
    hasty.transaction(waiting)


def test_a_session_is_the_same_whatever_the_server_is_set_to(
    postgres_server: EmbeddedPostgres, database: Database
) -> None:
    [found] = rows(
        database,
        """SELECT current_setting('timezone'), current_setting('search_path'),
            current_setting('transaction_isolation'), current_setting('lock_timeout'),
            current_setting('application_name'),
            current_setting('idle_in_transaction_session_timeout'),
            current_setting('tcp_user_timeout'), current_setting('tcp_keepalives_idle'),
            current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count')""",
    )
    assert tuple(found[:5]) == ("UTC", "weir_internal, weir", "read committed", "1min", "weir")
    assert tuple(found[5:]) == ("1min", "60000", "30", "10", "3")


def test_a_process_that_freezes_with_a_lock_loses_it_and_begins_anew(database: Database) -> None:
    lane, calls = Lane.made(database), list[int]()
    frozen, freed = threading.Event(), threading.Event()

    def freezing(connection: Connection) -> int:
        calls.append(1)
        if len(calls) == 1:  # the minute of each session, shortened
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '300ms'"))
        lock(connection, lane)
        frozen.set()
        if len(calls) == 1:
            assert freed.wait(timeout=60)
        connection.execute(text("UPDATE stream SET last_clock = last_clock WHERE false"))
        return len(calls)

    def others() -> None:
        frozen.wait(timeout=60)
        database.transaction(partial(lock, lane=lane))
        freed.set()

    assert at_once(partial(database.transaction, freezing), others) == [2, None]


def test_behind_a_pooler_the_login_has_the_settings_of_a_session(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    database = Database(test_database.dsn, patience=60.0, connect_patience=60.0, pooler=True)
    asked = "SELECT name, setting FROM pg_settings WHERE source = 'client' ORDER BY name"

    def set_(name: str, value: str) -> None:
        where = f"ALTER ROLE weir_app IN DATABASE {test_database.name} SET {name} = {value}"
        postgres_server.psql(where)

    names = ("search_path", "timezone", "lock_timeout", "idle_in_transaction_session_timeout")
    for name, value in zip(names, ("weir_internal, weir", "'UTC'", "'1min'", "'60s'"), strict=True):
        if value != "'UTC'":  # the server's
            with raises(f"setting_invalid ALTER ROLE weir_app SET {name} ="):
                rows(database, "SELECT 1")
        set_(name, value)
    lane = Lane.made(database)
    lane.append({"0.0": 3})
    assert lane.sizes()["0.0"] == 3
    # What a pooler in transaction mode would refuse, or lose between two transactions.
    assert {name for name, _ in rows(database, asked)} <= {"application_name", "client_encoding"}
    database.dispose()


def test_a_process_keeps_open_as_many_connections_as_it_is_told(
    test_database: TestDatabase,
) -> None:
    database = Database(test_database.dsn, patience=60.0, connect_patience=60.0, pool_size=1)
    met = threading.Barrier(3)

    def meeting(connection: Connection) -> None:
        connection.execute(text("SELECT 1"))
        met.wait(timeout=60)

    at_once(*[partial(database.transaction, meeting)] * 3)
    sessions = """SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user"""
    # The server ends a session some time after its client has closed the connection.
    wait_for("the others to be closed", lambda: rows(database, sessions) == [(1,)])
    database.dispose()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", [1, -(2**63), None, 2**63 - 1]),
        ("boolean", [True, False, None]),
        ("double precision", [0.1, 1e300, -0.0, None]),
        ("text", ["", "a", "NULL", None, "{a,b}", '"', "\\", "\\\"'", "a b", "%s %(x)s :y", "é\n"]),
        ("text", []),
    ],
)
def test_a_list_is_given_to_postgres_as_it_is(
    database: Database, kind: str, values: list[Any]
) -> None:
    for given in (values, tuple(values)):
        [[found]] = rows(database, f"SELECT CAST(:v AS {kind}[])", v=given)
        assert found == values
