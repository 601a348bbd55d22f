"""Files are put together, commits are packed, and no reader sees it."""

import pytest

from tests.chance import cases, random_for
from tests.compaction.world import World
from weir.annex.verification.verify import by_pyarrow, verify
from weir.compaction.pack import pack
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.settings import Settings


def play(world: World, compactions: int) -> int:
    """Change a stream, and compact it again and again, and pack its commits; return how many files
    that saved."""
    saved = 0
    for _ in range(compactions):
        for _ in range(world.random.randint(1, 6)):
            world.change()
        asked = world.questions()
        before = {what: ask() for what, ask in asked.items()}
        for done in world.compact():
            if "why" not in done:  # of small files that can't be put together
                saved += done["files_before"] - done["files_after"]
        if world.random.random() < 0.5:
            pack(world.lane.database, 0.0, 1e9, world.random.choice([4, 9, 100]))
        for what, ask in asked.items():
            assert ask() == before[what], what
        if world.random.random() < 0.1:
            world.check_write_order()
    app = Installation(world.settings, world.lane.database)
    verify(app, contents=by_pyarrow(app, contents=True), repair=False)
    assert world.lane.rows("SELECT kind, path, what FROM weir.damage") == []
    return saved


@pytest.mark.random
@pytest.mark.filterwarnings("ignore::weir.TruncatedWarning")
@pytest.mark.parametrize("case", range(cases(40, least=2)))
def test_every_answer_is_the_same_before_and_after_compactions(
    database: Database, settings: Settings, case: int
) -> None:
    world = World.made(database, settings, random_for("compaction", case))
    play(world, 10)


@pytest.mark.soak
@pytest.mark.random
@pytest.mark.filterwarnings("ignore::weir.TruncatedWarning")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("case", range(20))
def test_every_answer_is_the_same_after_a_thousand_compactions(
    database: Database, settings: Settings, case: int
) -> None:
    world = World.made(database, settings, random_for("long compaction", case))
    assert play(world, 50) > 0
