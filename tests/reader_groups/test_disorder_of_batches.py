"""Lateness and holes of batches are what a model of every event says, whatever is scaled."""

import json
from collections.abc import Iterable

import pytest

from tests.chance import cases, random_for
from tests.world.groups import Group, events_of
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.reader_groups.batch import Batch

Event = tuple[int, int, int]  # stream, segment, offset


def clocks_of(lane: Lane) -> dict[Event, int]:
    """Return the clock of every event of a stream."""
    return {
        (lane.stream_id, row.segment_id, row.start_offset + i): row.clock
        for row in lane.rows(
            "SELECT segment_id, start_offset, events, clock FROM time_index WHERE stream_id = :s"
        )
        for i in range(row.events)
    }


class Model:
    """What a group has read of streams of which every event is known."""

    def __init__(self, lanes: Iterable[Lane], wanted: set[Event] | None = None) -> None:
        """`wanted`: the events before the end of the group; None: it has none."""
        self.lanes, self.wanted = tuple(lanes), wanted
        self.read: set[Event] = set()

    def committed(self, batch: Batch) -> tuple[int, int, int]:
        """Return the largest lateness, that of 99 % of the events, and the hole of a batch."""
        late: list[int] = []
        holes = [0]
        new = events_of(batch)
        for lane in self.lanes:
            clocks = clocks_of(lane)
            before = max((clocks[e] for e in self.read & clocks.keys()), default=0)
            late += [max(0, before - clocks[e]) for e in new & clocks.keys()]
            known = clocks.keys() if self.wanted is None else self.wanted & clocks.keys()
            unread = known - self.read - new
            newest = max((clocks[e] for e in (self.read | new) & clocks.keys()), default=0)
            if newest and unread:
                holes.append(newest - min(clocks[e] for e in unread))
        self.read |= new
        p99 = next(s for s in sorted(set(late)) if sum(one > s for one in late) * 100 <= len(late))
        return max(late), p99, max(holes)


def measured(group: Group, batch: Batch) -> tuple[int, int, int]:
    [row] = [one for one in group.batches() if one.batch_id == batch.batch_id]
    return row.max_lateness, row.p99_lateness, row.hole


@pytest.mark.parametrize("case", range(cases(40, least=4)))
def test_lateness_and_holes_are_those_of_the_model(shared_database: Database, case: int) -> None:
    random = random_for("disorder", case)
    lanes = [
        Lane.made(shared_database, segments=random.randint(1, 3))
        for _ in range(random.choice([1, 1, 2]))
    ]

    def grow() -> None:
        lane = random.choice(lanes)
        active = lane.active()
        if random.random() < 0.4:
            if len(active) > 1 and random.random() < 0.5:
                i = random.randrange(len(active) - 1)
                lane.scale(*active[i : i + 2], parts=random.choice([1, 2]))
            else:
                lane.scale(random.choice(active), parts=random.choice([1, 2, 3]))
        elif chosen := [name for name in active if random.random() < 0.5]:
            lane.append({name: random.choice([1, 3, 150]) for name in chosen})

    for _ in range(6):
        grow()
    wanted, more = None, {}
    if random.random() < 0.3:
        wanted = set().union(*(clocks_of(lane).keys() for lane in lanes))
        more["end"] = json.dumps({str(lane.name): lane.tail() for lane in lanes})
    group, model = Group.made(*lanes, **more), Model(lanes, wanted)
    readers = [group.reader("a"), group.reader("b")]
    held: dict[int, Batch] = {}
    batch: Batch | None
    for _ in range(30):
        number = random.randrange(2)
        reader = readers[number]
        if random.random() < 0.3:
            grow()
        elif number in held:
            batch = held.pop(number)
            reader.commit(batch)
            assert measured(group, batch) == model.committed(batch)
        elif batch := reader.open(random.choice([1, 4, 900, 900]), expected=2, lease=3600.0):
            held[number] = batch
