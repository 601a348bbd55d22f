"""What several share of an opened installation, and who may not use it any more."""

import os
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Connection, text

from tests.crash.jobs import wait_for
from tests.raises import raises
from weir.database.connection import Database
from weir.installation.opened import MOST_KEPT, Installation, close_shared, shared_database
from weir.settings import Settings


def number(connection: Connection) -> int:
    """The process of the server that serves this connection."""
    return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def sessions(database: Database) -> int:
    counted = """SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend'"""
    return int(database.transaction(lambda c: c.execute(text(counted)).scalar_one()))


def in_a_fork(work: Callable[[], object]) -> None:
    """Do something in a forked process, and fail if it fails there."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture(autouse=True)
def nothing_shared() -> None:
    close_shared()


def test_a_closed_installation_says_so(settings: Settings) -> None:
    opened = Installation(settings, Database.of(settings))
    opened.database.transaction(number)
    opened.close()
    opened.close()
    with raises("not_open closed"):
        opened.database.transaction(number)
    with raises("not_open closed"):
        opened.database.for_one_run().transaction(number)


def test_a_fork_is_refused_the_connections_of_its_parent_which_goes_on(settings: Settings) -> None:
    opened = Installation(settings, Database.of(settings))
    session = opened.database.transaction(number)

    def use() -> None:
        with raises("not_open connections"):
            opened.database.transaction(number)
        with raises("not_open connections"):
            opened.database.snapshot(number)
        opened.close()  # and ends no session of the parent's

    in_a_fork(use)
    assert opened.database.transaction(number) == session
    opened.close()


def test_whoever_names_the_same_settings_shares_connections_and_a_fork_gets_its_own(
    settings: Settings,
) -> None:
    _, database = shared_database(settings)
    assert shared_database(replace(settings))[1] is database
    assert shared_database(replace(settings, pool_size=2))[1] is not database
    session = database.transaction(number)

    def use() -> None:
        assert shared_database(settings)[1].transaction(number) != session

    in_a_fork(use)
    assert database.transaction(number) == session


def test_a_process_keeps_few_databases_open_and_takes_none_from_who_uses_it(
    settings: Settings,
) -> None:
    _, first = shared_database(settings)
    others = [shared_database(replace(settings, pool_size=n))[1] for n in range(10, 10 + MOST_KEPT)]
    assert shared_database(settings)[1] is not first
    assert len({id(one) for one in others}) == MOST_KEPT
    first.transaction(number)
    first.dispose()


def test_threads_share_a_database_and_its_sessions_survive_their_end(settings: Settings) -> None:
    _, database = shared_database(settings)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: database.transaction(number), range(200)))
        # More were open while more threads were at work. Postgres sees their end a moment later.
        wait_for("the sessions that are kept", lambda: sessions(database) <= settings.pool_size)
        database.transaction(
            lambda c: c.execute(
                text(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
                )
            ).all()
        )
        again = list(pool.map(lambda _: database.transaction(number), range(50)))
    assert len(again) == 50


def test_without_a_way_to_spark_one_is_told_so(settings: Settings) -> None:
    with raises("spark_not_given"):
        _ = Installation(settings, Database.of(settings)).spark
