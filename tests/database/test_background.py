"""A lease is kept while work goes on."""

import threading
import time
from collections.abc import Callable

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.errors import Fenced

EVERY = 0.05
SELDOM = 3600.0


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end
        time.sleep(0.01)


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
        until(lambda: len(often) >= 5)
        assert len(at_work()) == 2
    until(lambda: at_work() == [])
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
        until(lambda: alive.lost is not None)
        until(lambda: at_work() == [])
    assert isinstance(alive.lost, Fenced)
    assert len(calls) == 3
