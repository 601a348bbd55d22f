"""A block that writes an append: what becomes of its attempts when it ends."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.jobs import wait_for
from tests.world.streams import Lane
from weir.controller.attempts import writing
from weir.database.connection import Database
from weir.errors import InvariantViolation, Unavailable
from weir.kernel.attempt import Attempt
from weir.settings import Settings, load


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(load({}), warehouse=str(tmp_path))


def states(lane: Lane) -> list[str]:
    found = lane.rows(
        "SELECT state FROM transaction WHERE stream_id = :s ORDER BY transaction_number"
    )
    return [row.state for row in found]


def test_a_block_that_raises_aborts_all_that_was_opened_in_it(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database)
    opened: list[Attempt] = [lane.opened("one")]

    def fail() -> None:
        opened.append(lane.opened("two"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), writing(database, settings, opened):
        fail()
    assert states(lane) == ["aborted", "aborted"]


def test_after_an_outage_nothing_is_aborted_because_it_may_be_committed(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database)
    with pytest.raises(Unavailable), writing(database, settings, [lane.opened("one")]):
        raise Unavailable("database_unavailable", "it was away")
    assert states(lane) == ["open"]


def test_nothing_is_written_to_the_warehouse_of_another_database(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    lane = Lane.made(database)
    (tmp_path / "_weir_installation").write_text("another\n0\n")
    written: list[str] = []
    with pytest.raises(InvariantViolation), writing(database, settings, [lane.opened("one")]):
        written.append("a file")
    assert (written, states(lane)) == ([], ["aborted"])


def test_leases_are_renewed_while_the_block_runs(database: Database, settings: Settings) -> None:
    lane = Lane.made(database)
    short = replace(settings, transaction_lease=1.0)
    fenced, held = lane.opened("one", lease=1.0), lane.opened("two", lease=1.0)
    lane.opened("one")  # takes it over: its renewal fails, and that of the other goes on
    lease = "SELECT lease_until FROM transaction WHERE stream_id = :s AND transaction_number = 2"
    before = lane.value(lease)
    with writing(database, short, [fenced, held]):
        wait_for("a renewal", lambda: lane.value(lease) != before)
