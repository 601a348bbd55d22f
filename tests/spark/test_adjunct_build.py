"""What a version has is what a brute-force oracle says, however it was built."""

import pytest

from tests.chance import random_for
from tests.spark.adjunct_world import WAYS, World
from tests.spark.installation import Installation


@pytest.mark.drawn(1)
@pytest.mark.parametrize("way", WAYS)
def test_versions_of_random_histories_are_those_of_the_oracle_and_of_a_rebuild(
    weir: Installation, way: str
) -> None:
    random = random_for(way)
    world = World.made(weir)
    store = world.store(WAYS[way], history=86400)
    for _ in range(3):
        world.grow(random)
        if random.random() < 0.5:
            world.change_segments(random)
            world.grow(random)
        version = store.build()
        assert store.found(version) == store.expected()
    rebuilt = world.store(WAYS[way])
    assert rebuilt.found(rebuilt.build()) == store.expected()
    for clock in sorted({event.clock for event in world.events}):
        past = [event for event in world.events if event.clock <= clock]
        assert store.found_at(version, clock, clock) == store.expected(past)
        assert store.found_at(version, 0, clock) == store.expected(past)
