"""Batches: what a reader is given to read, and how positions move when it is committed."""

import pytest

from tests.world.groups import Group, spans
from tests.world.streams import Lane


def test_committing_twice_is_harmless_also_when_the_next_batch_is_open(
    lane: Lane, group: Group
) -> None:
    reader = group.reader()
    batch = reader.must_open(budget=10)
    reader.commit(batch)
    following = reader.must_open()
    before = group.states()
    reader.commit(batch)
    assert group.states() == before
    reader.commit(following)
    assert group.cut() == {"0.0": 10, "1.0": 10}


@pytest.mark.parametrize("most", [1, 3])
def test_what_lies_beyond_the_part_of_the_graph_that_one_batch_looks_at_is_not_lost(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("weir.reader_groups.positions.MOST_SEGMENTS_AHEAD", most)
    group = Group.made(lane)
    lane.append({"0.0": 1, "1.0": 1})
    names = ["1.0"]
    for _ in range(6):  # 0.0 is left behind while the other half is scaled again and again
        names = lane.scale(*names, parts=3 - len(names))
        lane.append(dict.fromkeys(names, 1))
    lane.append({"0.0": 1})
    [low] = lane.scale("0.0", parts=1)
    lane.append({low: 1})
    a, b = group.reader("a"), group.reader("b")
    read: list[tuple[str, int, int]] = []
    for _ in range(20):
        for reader in (a, b):
            if (batch := reader.open()) is not None:
                read += spans(batch)
                reader.commit(batch)
            group.check_positions()
    assert sum(end - start for _, start, end in read) == sum(lane.sizes().values())
    assert group.cut() == lane.tail()
