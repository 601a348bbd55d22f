"""The scenarios of reader groups: who reads what. One test per case, the answer as data."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.cases import BY_A_GROUP, CASES, Answers, listed
from tests.conformance.groups import (
    Different,
    acquired,
    expected,
    grouped,
    position,
    read_to,
    released,
)
from tests.conformance.world import ours
from tests.world.groups import Group, Reader
from tests.world.streams import Lane, database_of_file, run, unique
from weir.database.connection import Database
from weir.errors import Conflict, Fenced, InvalidInput, NotFound
from weir.reader_groups.batch import Batch
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.reader_groups.groups.readers import reader_offline
from weir.reader_groups.groups.update import update_reader_group

case = ANSWERS = Answers()

DIFFERENT: Different = {
    "RG-05": {7: (0, "fair comes first: at least one would leave 4, 2, 2, 2")},
    "RG-15": {0: ("the first is fenced", "leases and fencing: who comes back replaces itself")},
    "CF-01": {
        0: (None, "nothing to refresh: the state is in Postgres"),
        1: (None, "automatic ones are made by a periodic DAG, for all groups"),
        2: (None, "automatic ones are made by a periodic DAG, for all groups"),
    },
    "SU2-03": {
        1: (None, "a group is named, and its generation; nobody gives its id"),
        2: (None, "one transaction per operation: it is never in progress"),
    },
}


database = database_of_file


@pytest.mark.parametrize(
    "case_id", [i for i in CASES if listed(i, BY_A_GROUP) and i[:2] not in ("CP", "UB")]
)
def test_case(database: Database, case_id: str) -> None:
    assert ANSWERS[case_id](database, CASES[case_id]) == expected(case_id, DIFFERENT)


@case("RG-01")
def readers_join_one_after_another(database: Database, given: dict[str, Any]) -> Any:
    _, group = grouped(database, list(given["setup"]["segments"].values()))
    r1 = group.reader("r1")
    said: list[Any] = [["r1 acquires", acquired(group, r1)]]
    r2 = group.reader("r2")
    said += [["r1 releases, one per window, in total", released(group, r1)]]
    said += [["r2 acquires", acquired(group, r2)]]
    r3 = group.reader("r3")
    said += [["r1 and r2 release in total", released(group, r1, r2)]]
    said += [["another release wanted by r1 or r2", released(group, r1, r2) > 0]]
    said += [["r3 acquires", acquired(group, r3)]]
    said += [["final", {r: len(group.owned(r)) for r in ("r1", "r2", "r3")}]]
    return [*said, ["anyone wants to release", released(group, r1, r2, r3) > 0]]


@case("RG-03")
def two_readers_share_four_segments(database: Database, given: dict[str, Any]) -> Any:
    _, group = grouped(database, [0] * given["setup"]["segments"])
    r1, r2 = group.reader("r1"), group.reader("r2")
    said = [acquired(group, r1), acquired(group, r1), acquired(group, r2)]
    return [*said, "somebody" if released(group, r1, r2) else "nobody"]


@case("RG-05")
def how_many_a_reader_acquires(database: Database, given: dict[str, Any]) -> Any:
    said = []
    for segments, readers, own, free in given["action"]:
        _, group = grouped(database, [0] * segments)
        joined = [group.reader(f"r{i}") for i in range(readers)]
        others = [reader.reader_id for reader in joined[1:]]
        owners = ["r0"] * own
        owners += [others[i % len(others)] for i in range(segments - own - free)]
        run(
            database,
            """UPDATE reader_group_segment SET state = 'assigned',
                reader_id = (CAST(:owners AS text[]))[segment_id + 1]
            WHERE group_id = :g AND segment_id < :owned""",
            g=group.group_id, owners=owners, owned=len(owners),
        )  # fmt: skip
        said.append(acquired(group, joined[0]))
    return said


@case("RG-07")
def who_has_more_to_read_releases(database: Database, given: dict[str, Any]) -> Any:
    """A lag of 60 s beside one of 10 s, which counts as 30 s there, is twice as much to read."""
    lane, group = grouped(database, [0] * 4)
    a, b = group.reader("a"), group.reader("b")
    acquired(group, a, b)
    lane.append(dict.fromkeys(group.owned("a"), 20) | dict.fromkeys(group.owned("b"), 10))
    group.reader("c")
    reads = group.rows(
        """SELECT r.reader_id, coalesce(sum(t.tail_offset - p.next_offset), 0) AS events
        FROM reader r LEFT JOIN reader_group_segment p USING (group_id, reader_id)
        LEFT JOIN segment_tail t USING (stream_id, segment_id)
        WHERE r.group_id = :g GROUP BY r.reader_id ORDER BY events DESC"""
    )
    sizes = {row.reader_id: float(row.events / 20) for row in reads}
    return [sizes, released(group, a) > 0, released(group, b) > 0, list(sizes)]


@case("RG-09")
def both_halves_of_a_split_are_there(database: Database, given: dict[str, Any]) -> Any:
    lane, group = grouped(database, [1])
    reader = group.reader()
    reader.open()
    said: list[Any] = [position(group)]
    lane.scale("0.0", parts=2)
    reader.open()
    said.append(position(group))
    assert len(group.owned("reader")) == 2
    before = position(group)
    reader.open()
    return [*said, {s: o for s, o in position(group).items() if s not in before}]


@case("RG-11")
def a_completed_segment_gives_way_to_its_successor(
    database: Database, given: dict[str, Any]
) -> Any:
    one, other = Lane.made(database, segments=1), Lane.made(database, segments=1)
    for lane in (one, other):
        lane.append({"0.0": 1})
    start = {str(lane.name): {"0.0": 1} for lane in (one, other)}
    group = Group.made(one, other, start=json.dumps(start))
    one.scale("0.0", parts=1)
    group.reader().open()
    return {"last_read of S1": position(group, one), "last_read of S2": position(group, other)}


@case("RG-13")
def what_a_reader_had_is_free_where_it_was(database: Database, given: dict[str, Any]) -> Any:
    starts = given["setup"]["segments"]
    _, group = grouped(database, list(starts.values()), events=1000)
    r1 = group.reader("r1")
    said: list[Any] = [acquired(group, r1)]
    r2 = group.reader("r2")
    said.append(acquired(group, r2))
    reader_offline(database, group.name, "r1", request_id=unique("offline"))
    batch = r2.must_open()
    assert {str(b.segment_id): b.start for b in batch.bounds} == starts
    return [*said, f"{len(batch.bounds)} segments (offsets 123 and 456 by the code)"]


@case("RG-15")
def a_stranger_completes_nothing(database: Database, given: dict[str, Any]) -> Any:
    lane = Lane.made(database, segments=1)
    lane.append({"0.0": 150})
    group = Group.made(lane, start="0.0=1", end="0.0=100")
    said = []

    def completes(reader: Reader, batch: Batch) -> str:
        try:
            reader.commit(batch)
        except Fenced:
            return "ReaderNotInReaderGroup"
        return "true"

    first = group.reader("r")
    r = group.reader("r")
    with pytest.raises(Fenced):
        first.open()
    said.append("the first is fenced")
    batch = r.must_open()
    lane.scale("0.0", parts=1)
    reader_offline(database, group.name, "r", "0.0=1", request_id=unique("offline"))
    said.append(completes(r, batch))
    r = group.reader("r")
    said.append(completes(r, batch))
    said.append(completes(r, r.must_open()))
    if group.cut() == {"0.0": 100} and r.open() is None:
        said[-1] += "; no successors are requested because 0 is an end segment"
    return said


@case("CF-01")
def defaults_of_a_group(database: Database, given: dict[str, Any]) -> Any:
    _, group = grouped(database, [0])
    [[most]] = group.rows("SELECT max_outstanding FROM reader_group WHERE group_id = :g")
    said: list[Any] = [None, None, None, most]
    refused: list[Callable[[], object]] = [
        lambda: update_reader_group(
            database, group.name, max_outstanding=-1, request_id=unique("update")
        ),
        lambda: create_reader_group(database, unique("group"), [], request_id=unique("create")),
    ]
    for wrong in refused:
        with pytest.raises(InvalidInput):
            wrong()
        said.append("IllegalArgument")
    return said


@case("SU2-03")
def only_the_newest_generation_is_updated(database: Database, given: dict[str, Any]) -> Any:
    _, group = grouped(database, [0])
    for _ in range(given["setup"]["group"]["generation"]):
        update_reader_group(database, group.name, request_id=unique("update"))

    def updated(name: str, generation: int) -> str:
        try:
            done = update_reader_group(
                database, name, generation=generation, on_gap="skip", request_id=unique("update")
            )
        except Conflict:
            return "INVALID_CONFIG"
        except NotFound:
            return "RG_NOT_FOUND"
        return f"SUCCESS, generation {done['generation']}"

    stale = updated(group.name, 2)
    return [stale, None, None, updated(group.name, 3), updated(unique("group"), 3)]


@case("OR-01")
def segments_get_equal_shares_of_a_batch(database: Database, given: dict[str, Any]) -> Any:
    segments = given["setup"]["segments"]
    lane, group = grouped(database, [0] * segments)
    for _ in range(10):
        lane.append({f"{i}.0": 100 for i in range(segments)})
    read_to(group.reader(), given["action"]["picks"])
    [each] = set(group.cut().values())
    return {"each": each}


@case("OR-03")
def shares_stay_equal_when_others_had_their_turn(database: Database, given: dict[str, Any]) -> Any:
    many, other = Lane.made(database, segments=10), Lane.made(database, segments=1)
    group = Group.made(many, other)
    reader = group.reader()
    for lanes in (many, other, many):
        lanes.append(dict.fromkeys(lanes.active(), 10))
        read_to(reader, 100)
    assert group.cut(other) == {"0.0": 10}
    [each] = set(group.cut(many).values())
    return {"each of the 10": each}


@case("QK-03")
def predecessors_are_those_of_the_same_stream(database: Database, given: dict[str, Any]) -> Any:
    lanes = [Lane.made(database), Lane.made(database)]
    for lane in lanes:
        lane.append({"0.0": 5, "1.0": 5})
    group = Group.made(*lanes)
    first, second = group.reader("first"), group.reader("second")
    for lane, mine in zip(lanes, (0, 1), strict=True):
        for i in (0, 1):
            run(
                database,
                """UPDATE reader_group_segment SET state = 'assigned', reader_id = :r
                WHERE group_id = :g AND stream_id = :s AND segment_id = :i""",
                g=group.group_id, s=lane.stream_id, i=i, r="first" if i == mine else "second",
            )  # fmt: skip
        assert lane.scale("0.0", "1.0", parts=1) == [ours("2@1")]
    first.commit(first.must_open())
    assert second.must_open().bounds, "what second holds is unfinished"
    assert [group.cut(lane) for lane in lanes] == [
        {"1.0": 0, "2.1": "future"},
        {"0.0": 0, "2.1": "future"},
    ]
    return "nothing becomes readable"
