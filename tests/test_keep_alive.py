"""A lease is kept while work goes on."""

import time

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.errors import Fenced


def test_a_lease_is_renewed_until_the_work_is_done(database: Database) -> None:
    renewed: list[float] = []
    with database.keep_alive(lambda c: renewed.append(time.monotonic()), every=0.05) as alive:
        time.sleep(0.5)
    assert 3 <= len(renewed) <= 10
    assert alive.lost is None
    count = len(renewed)
    time.sleep(0.2)
    assert len(renewed) == count


def test_a_lease_that_is_lost_is_told_and_what_passes_is_borne(database: Database) -> None:
    calls: list[int] = []

    def renew(connection: Connection) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("this passes")
        if len(calls) == 3:
            raise Fenced("attempt_fenced", "another has it")

    with database.keep_alive(renew, every=0.05) as alive:
        time.sleep(0.5)
    assert isinstance(alive.lost, Fenced)
    assert len(calls) == 3
