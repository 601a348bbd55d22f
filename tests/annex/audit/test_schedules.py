"""Whatever happens to streams and groups, in whatever order, the audit finds nothing."""

from collections.abc import Iterator

import pytest

from tests.annex.audit.walk import Walk
from tests.chance import FULL, cases, random_for
from tests.world.streams import Lane, database_for_many
from weir.annex.audit.run import audit
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
def database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    with database_for_many(postgres_server, "audited") as opened:
        yield opened


def play(database: Database, block: int, worlds: int, schedules: int, steps: int) -> None:
    """Play schedules in worlds that go on from one to the next, and audit all worlds together: what
    is new after each, and all at the end."""
    outs = [Lane.made(database), Lane.made(database)]
    walks = [Walk(database, random_for("schedule", block, n), outs) for n in range(worlds)]

    def check(everything: bool) -> None:
        done = {str(walk.lane.name): walk.done for walk in walks}
        found = audit(database, everything=everything).counter_examples
        assert [(one.what, done.get(str(one.stream), "")) for one in found] == []

    for _ in range(schedules):
        for walk in walks:
            walk.play(steps)
        check(everything=False)
    check(everything=True)


@pytest.mark.random
@pytest.mark.parametrize("block", range(cases(16)))
def test_random_schedules_are_proven(database: Database, block: int) -> None:
    play(database, block, worlds=25 if FULL else 10, schedules=4, steps=6)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(100))
def test_ten_thousand_schedules_are_proven(database: Database, block: int) -> None:
    play(database, 1000 + block, worlds=10, schedules=10, steps=8)
