"""Whatever happens to streams and groups, in whatever order, the audit finds nothing."""

from collections.abc import Iterator

import pytest

from tests.audit.walk import Walk
from tests.chance import random_for
from tests.world.streams import Lane, database_for_many
from weir.audit.run import audit
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
def database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    with database_for_many(postgres_server, "schedules") as opened:
        yield opened


def play(database: Database, block: int, schedules: int, steps: int) -> None:
    """Play schedules one after another, and audit them together: first what is new, then all."""
    outs = [Lane.made(database), Lane.made(database)]
    walks = {}
    for number in range(schedules):
        walk = Walk(database, random_for("schedule", block, number), outs)
        walk.play(steps)
        walks[str(walk.lane.name)] = walk
    for everything in (False, True):
        found = audit(database, everything=everything).counter_examples
        said = [(one.what, walks[one.stream].done if one.stream in walks else "") for one in found]
        assert said == []


@pytest.mark.parametrize("block", range(3))
def test_three_hundred_schedules_are_proven(database: Database, block: int) -> None:
    play(database, block, 100, 8)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(100))
def test_ten_thousand_schedules_are_proven(database: Database, block: int) -> None:
    play(database, 1000 + block, 100, 40)
