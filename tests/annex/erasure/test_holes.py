"""Events are erased, and no reader sees anything else of it."""

from typing import Any

import pytest

from tests.annex.erasure.world import Erasing
from tests.chance import cases, random_for
from tests.raises import raises
from weir.annex.erasure import run
from weir.annex.verification.verify import by_pyarrow, verify
from weir.compaction.pack import pack
from weir.compaction.records import abort, begin
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.settings import Settings


@pytest.mark.random
@pytest.mark.filterwarnings("ignore::weir.TruncatedWarning")
@pytest.mark.parametrize("case", range(cases(40, least=2)))
def test_readers_get_every_other_event_as_before_at_its_place(
    database: Database, settings: Settings, case: int
) -> None:
    world = Erasing.made(database, settings, random_for("erasure", case))
    for _ in range(8):
        for _ in range(world.random.randint(1, 6)):
            world.change()
        if world.random.random() < 0.5:
            world.compact()
        if world.random.random() < 0.3:
            pack(world.lane.database, 0.0, 1e9, world.random.choice([4, 9, 100]))
        asked = {what: ask for what, ask in world.questions().items() if "last" not in what}
        before = {what: ask() for what, ask in asked.items()}
        places = world.numbered()
        world.erase(*(f"k{world.random.randrange(14)}" for _ in range(world.random.randint(1, 3))))
        assert world.numbered() == {n: at for n, at in places.items() if n not in world.gone}
        for what, ask in asked.items():
            assert world.without_gone(ask()) == world.without_gone(before[what]), what
        check_counts(world)
        if world.random.random() < 0.3:
            world.check_write_order()
    app = Installation(world.settings, world.lane.database)
    verify(app, contents=by_pyarrow(app, contents=True), repair=False)
    assert world.lane.rows("SELECT kind, path, what FROM weir.damage") == []


def check_counts(world: Erasing) -> None:
    """What is counted anywhere is the events that are there."""
    there = len(world.numbered())
    (stream,) = world.lane.rows("SELECT * FROM weir.streams WHERE stream = :name",
                                name=str(world.lane.name))  # fmt: skip
    assert stream.events_retained == there
    (files,) = world.lane.rows(
        "SELECT coalesce(sum(events), 0) AS events FROM weir.data_files WHERE stream = :name",
        name=str(world.lane.name),
    )
    assert files.events >= there  # a file may straddle the head
    tail: Any = world._tail(there + 5)
    assert len(tail) == there


def test_an_erasure_waits_for_a_compaction_and_then_gives_up(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "WAIT", 0.1)
    world = Erasing.made(database, settings, random_for("waits"))
    world.append()
    number = database.transaction(lambda c: begin(c, world.lane.stream_id, 60.0))
    with raises("erasure_waits"):
        world.erase("k0")
    database.transaction(lambda c: abort(c, world.lane.stream_id, number))
    assert world.erase("k0").number is not None
    assert world.erase("k0").number is None  # nothing is left to erase


def test_all_events_of_a_file_can_go_and_compaction_takes_what_is_left(
    database: Database, settings: Settings
) -> None:
    world = Erasing.made(database, settings, random_for("whole files"))
    for _ in range(6):
        world.append(5)
    left = [f"k{n}" for n in range(13)]
    world.erase(*left[:12])
    world.compact(thorough=True)
    world.append()
    assert {row["key"] for row in world._read({})} <= {*left}
    world.erase(*left)
    assert world._read({}) == []
    world.append()
    world.compact(thorough=True)
    check_counts(world)
