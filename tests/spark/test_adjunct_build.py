"""What a version has is what a brute-force oracle says, however it was built."""

from dataclasses import replace

import pytest

from tests.chance import FULL, random_for, some
from tests.raises import raises
from tests.released import only
from tests.spark.adjunct_world import WAYS, Way, World
from tests.spark.installation import Installation
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.spark.adjuncts import writer
from weir.spark.adjuncts.files import write_rows


@pytest.mark.random
@pytest.mark.parametrize("way", only("struct", of=WAYS))
def test_versions_of_random_histories_are_those_of_the_oracle_and_of_a_rebuild(
    weir: Installation, way: str
) -> None:
    random = random_for(way)
    world = World.made(weir)
    store = world.store(WAYS[way], history=86400)
    for _ in range(3 if FULL else 2):
        world.grow(random)
        if random.random() < 0.5:
            world.change_segments(random)
            world.grow(random)
        version = store.build()
        assert store.found(version) == store.expected()
    rebuilt = world.store(WAYS[way])
    assert rebuilt.found(rebuilt.build()) == store.expected()
    clocks = sorted({event.clock for event in world.events})
    for clock in some(clocks, way, least=1):
        past = [event for event in world.events if event.clock <= clock]
        assert store.found_at(version, clock, clock) == store.expected(past)
        assert store.found_at(version, 0, clock) == store.expected(past)


def test_a_version_that_is_refused_quarantines_nothing(weir: Installation) -> None:
    weir.settings = replace(weir.settings, rejected_events=1)
    world = World.made(weir, segments=1)
    store = world.store(WAYS["whole"], on_error="quarantine")
    world.append([("a", 1, "x")])
    store.build()
    world.append([("b", 2, "y")])
    failing = AdjunctDefinition(value="cast(op as int)")  # for a row of the base and a new event
    store.redefine(Way(failing, lambda e: e.k, lambda e: None))
    with raises("bad_rows 2 2 1 raise"):
        store.build()
    past = AdjunctDefinition(value="n * 2")  # from when it was understood
    store.redefine(replace(store.way, definition=past))
    with raises("adjunct_definition_invalid n * 2 update_adjunct_store"):
        store.build()
    assert not weir.query("SELECT FROM streams WHERE stream = :s", s=f"{world.stream}.rejected")


def test_a_version_of_which_a_file_is_missing_is_not_published(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.made(weir, segments=1)
    store = world.store(WAYS["whole"])
    world.append([("a", 1, "x"), ("b", 2, "y")])
    with monkeypatch.context() as lost:
        lost.setattr(writer, "write_rows", lambda *given: write_rows(*given)[:-1])
        with raises("invariant_violated 2 0 try again"):
            store.build()
    assert store.found(store.build()) == store.expected()
