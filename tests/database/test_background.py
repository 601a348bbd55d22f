"""A lease is kept while work goes on."""

import threading

import pytest
from sqlalchemy import Connection, text

from tests.crash.jobs import wait_for
from weir.database.connection import Database
from weir.database.progress import Progress, sessions
from weir.errors import Fenced

EVERY = 0.05
SELDOM = 3600.0


def at_work() -> list[threading.Thread]:
    """The threads that renew leases."""
    return [one for one in threading.enumerate() if one.name == "weir-lease"]


def test_a_lease_is_renewed_until_the_work_is_done(database: Database) -> None:
    often: list[int] = []
    seldom: list[int] = []
    with (
        database.keep_alive(lambda c: seldom.append(1), every=SELDOM) as other,
        database.keep_alive(lambda c: often.append(1), every=EVERY) as alive,
    ):
        wait_for("renewals", lambda: len(often) >= 5)
        assert len(at_work()) == 2
    wait_for("their ends", lambda: at_work() == [])
    assert (alive.lost, other.lost, seldom) == (None, None, [])


def test_a_lease_that_is_lost_is_told_and_what_passes_is_borne(database: Database) -> None:
    calls: list[int] = []

    def renew(connection: Connection) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("this passes")
        if len(calls) == 3:
            raise Fenced("attempt_fenced", "another has it")

    with database.keep_alive(renew, every=EVERY) as alive:
        wait_for("the loss", lambda: alive.lost is not None)
        wait_for("their ends", lambda: at_work() == [])
    assert isinstance(alive.lost, Fenced)
    assert len(calls) == 3


def test_a_lease_is_not_renewed_while_the_work_stands_still_and_the_log_says_where(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    renewed: list[int] = []
    progress = Progress("the reader stands still", 4 * SELDOM)
    # Its thread does not run: the steps are the clock, and the test moves it.
    alive = database.keep_alive(lambda c: renewed.append(1), SELDOM, progress)
    with caplog.at_level("ERROR"):
        for _ in range(12):
            assert alive.step() == SELDOM
        assert len(renewed) == 4, "others may take over"
        assert len(caplog.records) == 2, "said once"
        progress.begins("it goes on", 0)
        for _ in range(12):
            alive.step()
        assert len(renewed) == 16
    where, sessions = [record.getMessage() for record in caplog.records]
    assert where.startswith(
        "the reader stands still for more than 14400 s: the lease is not renewed"
    )
    assert "thread MainThread" in where
    assert "test_a_lease_is_not_renewed_while_the_work_stands_still" in where
    assert "connections of this process" in sessions


def test_the_log_has_the_locks_of_other_sessions(database: Database) -> None:
    with database.engine.begin() as holder:
        pid = holder.execute(text("SELECT pg_backend_pid() FROM stream FOR UPDATE")).scalar()
        pid = pid or holder.execute(text("SELECT pg_backend_pid()")).scalar()
        [line] = [
            one for one in sessions(database.engine).splitlines() if one.startswith(f"pid {pid},")
        ]
    assert "RowShareLock" in line
    assert "idle in transaction" in line


def test_a_frozen_process_or_an_outage_does_not_count_as_time_without_progress() -> None:
    progress = Progress("reads", 10.0)
    assert all(progress.goes_on(waited=4.0) for _ in range(2))  # however long ago that was
    assert not progress.goes_on(waited=4.0)
    progress.begins("reads on", 10.0)
    assert [progress.goes_on(waited=4.0) for _ in range(4)] == [True, True, True, False]
