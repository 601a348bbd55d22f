"""A lease is kept while work goes on."""

import time
from collections.abc import Callable
from itertools import pairwise

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.errors import Fenced

EVERY = 0.05


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_lease_is_renewed_until_the_work_is_done(database: Database) -> None:
    renewed: list[float] = []
    with database.keep_alive(lambda c: renewed.append(time.monotonic()), every=EVERY) as alive:
        until(lambda: len(renewed) >= 5)
    assert alive.lost is None
    assert all(later - earlier > EVERY / 2 for earlier, later in pairwise(renewed))
    count = len(renewed)
    time.sleep(4 * EVERY)
    assert len(renewed) == count


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
        time.sleep(4 * EVERY)
    assert isinstance(alive.lost, Fenced)
    assert len(calls) == 3
