"""The scenarios that queries about a stream answer: one test per case, the answer as data."""

from typing import Any

import pytest

from tests.conformance.cases import BY_A_QUERY, CASES, Answers, listed
from tests.conformance.world import World, cut_of, ours, theirs
from tests.raises import raises
from tests.world import questions as queries
from tests.world.streams import database_of_file, run
from weir.database.connection import Database
from weir.model.key_space import KeyRange
from weir.model.segment import parse_segment_name

case = ANSWERS = Answers()
SHARD = 1000  # how many epochs share a chunk or a shard


database = database_of_file


@pytest.mark.parametrize("case_id", [i for i in CASES if listed(i, BY_A_QUERY)])
def test_case(database: Database, case_id: str) -> None:
    setup = CASES[case_id]["setup"]
    ANSWERS[case_id](World(database, setup if isinstance(setup, dict) else {}), CASES[case_id])


def _age(name: str) -> int:
    return parse_segment_name(ours(name))


@case("EQ-01")
def epochs_and_their_segments(world: World, given: dict[str, Any]) -> None:
    rows = world.lane.rows("SELECT * FROM epoch_record WHERE stream = :n", n=str(world.name))
    assert {
        str(row.epoch): {"ref": row.reference_epoch, "segments": list(map(theirs, row.segments))}
        for row in rows
    } == {
        epoch: {**said, "segments": sorted(said["segments"], key=_age)}
        for epoch, said in given["expected"].items()
    }


@case("EQ-03")
def epoch_at_a_time(world: World, given: dict[str, Any]) -> None:
    for at, epoch in given["expected"].items():
        assert world.lane.value("SELECT epoch_at(:s, :at)", at=int(at)) == epoch


@case("QK-02")
def epoch_at_a_time_between_two_chunks(world: World, given: dict[str, Any]) -> None:
    for _ in range(4):
        [active] = world.lane.active()
        world.apply({"seal": [active], "new": [[0.0, 1.0]]})
    for epoch, at in given["setup"]["epoch_times"].items():
        run(
            world.database,
            "UPDATE epoch SET created_at = :t WHERE stream_id = :s AND epoch = :e",
            s=world.lane.stream_id, e=int(epoch), t=at,
        )  # fmt: skip
    at = given["action"]["epoch_at_time"]
    assert world.lane.value("SELECT epoch_at(:s, :at)", at=at) == given["expected"]["recommended"]


def successors(world: World, given: dict[str, Any]) -> None:
    for segment, expected in given["expected"].items():
        found = world.ask(queries.successors, ours(segment))
        assert {theirs(n): list(map(theirs, p)) for n, p in found.items()} == expected


for one in ("SU-01", "SU-03", "SU-05", "SU-07"):
    case(one)(successors)


@case("SP-01")
def span(world: World, given: dict[str, Any]) -> None:
    found = world.ask(queries.span, cut_of(given["action"]["span"]))
    assert {theirs(name): epoch for name, epoch in found.items()} == given["expected"]


def size_till(world: World, given: dict[str, Any]) -> None:
    cuts = [cut_of(cut) for cut in given["action"]["size_till"]]
    assert [world.ask(queries.size_till, cut).events for cut in cuts] == given["expected"]


for one in ("SZ-01", "SZ-03"):
    case(one)(size_till)


@case("ID-03")
def shards_go_by_the_creation_epoch(world: World, given: dict[str, Any]) -> None:
    size = given["setup"]["shard_size"]
    ids = [parse_segment_name(ours(step["shard_of"])) for step in given["action"]]
    assert [(i >> 32) // size for i in ids] == given["expected"]


@case("ID-05")
def sealed_segments_by_shard(world: World, given: dict[str, Any]) -> None:
    rows = world.lane.rows(
        "SELECT segment, shard FROM sealed_segment_shard WHERE stream = :n", n=str(world.name)
    )
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        epoch = int(row.segment.split(".")[1])
        assert row.shard == epoch // SHARD
        shard = found.setdefault(f"shard {epoch // given['setup']['shard_size']}", {})
        shard[f"epoch {epoch}"] = shard.get(f"epoch {epoch}", 0) + 1
    assert {name: found[name] for name in given["expected"]} == given["expected"]


def next_cut(world: World, given: dict[str, Any]) -> None:
    """Every segment has 90 events, and the distance is large enough to come to their ends."""
    setup = given["setup"]
    number = {name: f"{i}.0" for i, name in enumerate(setup["cut"])}
    lane = World(world.database, {"initial_segments": len(number)}).lane
    lane.append(dict.fromkeys(number.values(), 90))
    edges = setup["successors (segment -> {successor: predecessors})"]
    new = {n: p for nexts in edges.values() for n, p in nexts.items()}
    if new:
        sealed = sorted({p for predecessors in new.values() for p in predecessors})
        created = lane.scale(*[number[s] for s in sealed], parts=len(new))
        number |= dict(zip(new, created, strict=True))
        lane.append(dict.fromkeys(created, 90))
    cut = {number[name]: offset for name, offset in setup["cut"].items()}
    found = lane.database.transaction(lambda c: queries.next_cut(c, lane.name, cut, 10_000))
    assert found == {number[name]: offset for name, offset in given["expected"].items()}


for one in ("NC-01", "NC-03", "NC-05"):
    case(one)(next_cut)


@case("NC-07")
def ranges_between_two_cuts(world: World, given: dict[str, Any]) -> None:
    world = World(world.database, {"initial_segments": 3})
    world.fill(20)
    cuts = [{f"{n}.0": o for n, o in given["setup"][end].items()} for end in ("start", "end")]
    rows = world.ask(queries.segments_between, *cuts)
    said = " ".join(f"{r.segment[0]}:[{r.from_offset},{r.to_offset})" for r in rows)
    assert given["expected"][0] == f"{said} in segment-id order"
    with raises("position_invalid earlier"):
        world.ask(queries.segments_between, *reversed(cuts))
    with raises("cut_invalid 7.0 because"):
        world.ask(queries.segments_between, cuts[0], {"7.0": 1})


@case("QK-07")
def next_cut_across_crossing_boundaries(world: World, given: dict[str, Any]) -> None:
    sizes = world.lane.sizes()
    assert {"7.2", "8.2", "9.3", "10.3"} <= set(sizes)
    world = World(world.database, {"initial_segments": 5})
    world.lane.append({"2.0": 90})
    cut = {"0.0": 0, "1.0": 0, "2.0": 90, "3.0": 5, "4.0": 0}
    world.lane.append({"3.0": 90})
    world.lane.scale("2.0", "3.0", ranges=[KeyRange(0.4, 0.5), KeyRange(0.5, 0.8)])
    # 2.0 is read; 5.1 follows it alone, 6.1 follows 3.0 as well, which is not.
    found = world.ask(queries.next_cut, cut, 50)
    assert found == {"0.0": 0, "1.0": 0, "3.0": 15, "4.0": 0, "5.1": 0, "6.1": "future"}
