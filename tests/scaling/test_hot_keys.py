"""Hot keys are those that a model names: it knows the load of every key, and nothing of splits."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from tests.chance import cases, random_for
from tests.world.scaling import made, scaled, write
from tests.world.streams import Lane, rows
from weir.database.connection import Database
from weir.model.split_points import Found, HotSegment, Load, split_points

TARGET = 10
Keys = Mapping[float, float]  # events per second by position of the key


def drawn(random: Random, segments: int) -> Keys:
    """Return the loads of some keys in each of some equal segments."""
    found: dict[float, float] = {}
    for number in range(segments):
        for _ in range(random.randint(1, 5)):
            position = (number + random.randrange(1, 64) / 64) / segments
            found[position] = random.choice([1.0, 3.0, 9.0, 12.0, 30.0, 80.0])
    return found


def hot_by_model(keys: Keys) -> set[str]:
    """A key is hot if it alone has more than the target. Its segment then has more, too."""
    return {str(position) for position, rate in keys.items() if rate > TARGET}


def written(lane: Lane, keys: Keys) -> None:
    """Append the load of the keys to the segments that hold them, for half an hour."""
    rates = {
        row.name: sum(rate for key, rate in keys.items() if row.key_low <= key < row.key_high)
        for row in lane.rows(
            """SELECT segment_name(segment_id) AS name, key_low, key_high
            FROM segment_tail JOIN segment USING (stream_id, segment_id) WHERE stream_id = :s"""
        )
    }
    write(lane, rates)


def named(lane: Lane) -> set[str]:
    found = rows(
        lane.database, "SELECT routing_key FROM hot_keys WHERE stream = :name", name=str(lane.name)
    )
    return {row.routing_key for row in found}


def found_in(keys: Keys, hot: Sequence[HotSegment]) -> Found:
    """Return what the data of hot segments says."""
    loads = [Load(key, round(rate), str(key)) for key, rate in keys.items()]
    return Found(
        {
            (one.stream_id, one.segment.segment_id): split_points(
                one.segment.key_low,
                one.segment.key_high,
                loads,
                one.pieces,
                min(1.0, one.target_rate / one.rate),
            )
            for one in hot
        },
        {},
    )


@pytest.mark.parametrize("case", range(cases(60)))
def test_each_key_that_alone_exceeds_the_target_is_named_whatever_the_maximum(
    case: int, shared_database: Database
) -> None:
    random = random_for("hot keys", case)
    segments = random.choice([1, 2, 4])
    most = random.choice([None, segments, segments + 1, segments + 6])
    lane = made(shared_database, segments, max_segments=most)
    for _ in range(2):
        keys = drawn(random, segments)
        written(lane, keys)
        scaled(lane, lambda hot, keys=keys: found_in(keys, hot))
        assert named(lane) == hot_by_model(keys), (segments, most, keys)
