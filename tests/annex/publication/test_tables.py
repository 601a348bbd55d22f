"""A published stream is a table with the rows that `weir.read` reads at the same cut, in every
engine, whatever happens to the stream."""

import pytest

from tests.annex.erasure.world import Erasing
from tests.annex.publication.tables import check, published
from tests.chance import cases, random_for
from tests.world.garbage import sweep
from weir.annex.verification.verify import by_pyarrow, verify
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.settings import Settings


@pytest.mark.random
@pytest.mark.filterwarnings("ignore::weir.TruncatedWarning")
@pytest.mark.parametrize("case", range(cases(12)))
def test_the_table_has_the_rows_of_the_stream_whatever_happens_to_it(
    database: Database, settings: Settings, case: int
) -> None:
    random = random_for("publication", case)
    world = Erasing.made(database, settings, random, publish="iceberg")
    world.append()
    for _ in range(6):
        for _ in range(random.randint(1, 8)):
            world.change()
            if random.random() < 0.3:
                world.compact()
            if random.random() < 0.2:
                world.erase(f"k{random.randrange(13)}")
        check(world, published(world))
        sweep(database, settings.warehouse, 0.0)
        check(world, published(world))
    app = Installation(settings, database)
    verify(app, contents=by_pyarrow(app, contents=True), repair=False)
    assert world.lane.rows("SELECT kind, path, what FROM weir.damage") == []
