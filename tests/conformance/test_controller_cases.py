"""The scenarios that a stream in the database answers: one test per case, the answer as data."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from tests.conformance.cases import CASES, IN_THE_DATABASE, NEVER, Answers, listed
from tests.conformance.world import World, cut_of, ours, theirs
from tests.controller.support import Lane, database_for_many, staged, unique
from tests.raises import raises
from weir.controller import queries
from weir.controller.commit import commit
from weir.controller.expiry import expire
from weir.controller.scale import scale
from weir.controller.seal import seal_stream
from weir.controller.staged import announce
from weir.controller.transactions import Attempt, abort, ping, state_completeness
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.errors import Fenced, NotFound
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.event_time import DONE, as_datetime
from weir.model.key_space import KeyRange
from weir.model.segment import parse_segment_name

case = ANSWERS = Answers()
SHARD = 1000  # how many epochs share a chunk or a shard


@pytest.fixture(scope="module")
def database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """One database for all cases."""
    with database_for_many(postgres_server, "conformance") as opened:
        yield opened


@pytest.mark.parametrize(
    "case_id", [i for i in CASES if listed(i, IN_THE_DATABASE) and i not in NEVER]
)
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
        world.database.transaction(
            lambda c, e=int(epoch), t=at: c.execute(
                text("UPDATE epoch SET created_at = :t WHERE stream_id = :s AND epoch = :e"),
                {"s": world.lane.stream_id, "e": e, "t": t},
            )
        )
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


def truncate(world: World, given: dict[str, Any]) -> None:
    world.fill(100)
    for cut, expected in zip(
        given["action"]["truncate (and complete) at"], given["expected"], strict=True
    ):
        wanted = cut_of(cut)
        between = world.ask(queries.segments_between, None, wanted)
        world.lane.truncate(json.dumps(wanted))
        if isinstance(expected, int):
            assert world.ask(queries.size_till, wanted).events == expected
            continue
        assert {
            "to_delete": [theirs(row.segment) for row in between if row.segment not in wanted],
            "span": {theirs(n): e for n, e in world.ask(queries.span, wanted).items()},
            "head": {theirs(n): o for n, o in world.lane.head().items()},
        } == expected


for one in ("TR-01", "TR-03", "TR-07"):
    case(one)(truncate)


@case("TR-05")
def truncate_behind_the_head(world: World, given: dict[str, Any]) -> None:
    world.fill(100)
    world.lane.truncate(json.dumps(cut_of(given["setup"]["truncated_at"])))
    with raises("cut_before_head"):
        world.lane.truncate(json.dumps(cut_of(given["action"]["truncate"])))


@case("TX-01")
def transitions(world: World, given: dict[str, Any]) -> None:
    """A commit is done when called: what is COMMITTING or ABORTING there has ended here."""
    a, b = world.lane.opened("a"), world.lane.opened("b")
    unknown = Attempt(**{**a.__dict__, "transaction_number": 99})

    def committed(attempt: Attempt) -> str:
        try:
            commit(world.database, staged(attempt, {}))
        except Fenced:
            return "IllegalState"
        except NotFound:
            return "DataNotFound"
        return "COMMITTED"

    def aborted(attempt: Attempt) -> str:
        if abort(world.database, attempt):
            return "ABORTED"
        rows = world.lane.rows(
            "SELECT state FROM transaction WHERE stream_id = :s AND transaction_number = :n",
            n=attempt.transaction_number,
        )
        return {"aborted": "ABORTED", "committed": "IllegalState"}.get(
            rows[0].state if rows else "", "DataNotFound"
        )

    known = {"A": a, "B": b, "unknown": unknown}
    found: list[Any] = []
    for step in given["action"]:
        [what] = step
        words = what.replace("seal ", "").split(" ")
        if words[0] in ("status", "list"):
            rows = world.lane.rows(
                "SELECT state FROM transactions WHERE stream = :n AND transaction_number <> 99",
                n=str(world.name),
            )
            found.append("UNKNOWN" if words[0] == "status" else len(rows))
            continue
        verb, who = ("commit", "abort")["abort" in words], next(k for k in known if k in words)
        found.append((committed if verb == "commit" else aborted)(known[who]))
    ended = {"COMMITTING": "COMMITTED", "ABORTING": "ABORTED"}
    assert found == [ended.get(said, said) for said in given["expected"]]


@case("TX-03")
def time_out_and_extension(world: World, given: dict[str, Any]) -> None:
    lease = 60.0

    def open_after(*pings: tuple[float, float], wait: float) -> bool:
        """Whether it is open after so many leases; pings: when, and for how many leases."""
        attempt = world.lane.opened(lease=lease)
        now = 0.0
        for at, leases in [*pings, (wait, 0)]:
            world.lane.rows(  # time passes: the lease comes nearer to its end
                "UPDATE transaction SET lease_until = lease_until - make_interval(secs => :passed) "
                "WHERE stream_id = :s AND transaction_number = :n RETURNING 1",
                passed=(at - now) * lease,
                n=attempt.transaction_number,
            )
            now = at
            if leases:
                world.database.transaction(
                    lambda c, n=leases: ping(c, attempt, lease=n * lease, longest=10 * lease)
                )
        expire(world.database, lease=0.0)
        rows = world.lane.rows(
            "SELECT FROM transaction WHERE stream_id = :s AND transaction_number = :n "
            "AND state = 'open'",
            n=attempt.transaction_number,
        )
        return bool(rows)

    assert open_after(wait=0.7)
    assert not open_after(wait=1.3)
    assert open_after((0.75, 1), wait=1.25)
    assert not open_after((0.75, 1), wait=2.05)
    assert open_after((0.75, 2), wait=2.0)
    assert not open_after((0.75, 2), wait=2.9)


@case("RX-01")
def two_rolls_and_a_scale_by_number(world: World, given: dict[str, Any]) -> None:
    lane = world.lane
    tx01, tx02, tx03 = (lane.opened() for _ in range(3))
    lane.scale("1.0", ranges=[KeyRange(0.5, 0.75), KeyRange(0.75, 1.0)])
    commit(world.database, staged(tx01, {"1.0": 2}), staged(tx02, {"0.0": 1, "1.0": 1}))
    lane.scale("0.0", ranges=[KeyRange(0.0, 0.25), KeyRange(0.25, 0.5)])
    assert lane.commit(tx03, {"0.0": 1, "1.0": 1}).rolled
    rows = lane.rows(
        "SELECT epoch, reference_epoch AS ref, segments FROM epoch_record "
        "WHERE stream = :n AND epoch >= 2 ORDER BY epoch",
        n=str(world.name),
    )
    assert [
        {"epoch": r.epoch, "ref": r.ref, "segments": list(map(theirs, r.segments))} for r in rows
    ] == given["expected"]["epochs_after"]


@case("RX-03")
def a_manual_scale_means_the_copy(world: World, given: dict[str, Any]) -> None:
    lane = world.lane
    one, other = lane.opened(), lane.opened()
    lane.scale("0.0", ranges=[KeyRange(0.0, 0.25), KeyRange(0.25, 0.5)])
    commit(world.database, staged(one, {"0.0": 1}), staged(other, {"0.0": 1}))
    assert max(e.epoch for e in lane.epochs()) == 3
    done = scale(
        world.database, world.name, seal=["1.0"], boundaries=[0.75], request_id=unique("scale")
    )
    assert (done["sealed"], done["epoch"]) == (["1.3"], 4)


@case("RX-07")
def sealing_commits_what_waits(world: World, given: dict[str, Any]) -> None:
    lane = world.lane
    t0 = lane.opened()
    lane.scale("0.0", parts=2)
    t1 = lane.opened()
    for attempt, written in ((t0, {"0.0": 3}), (t1, {"1.1": 2})):
        world.database.transaction(
            lambda c, a=attempt, w=written: announce(c, staged(a, w))  # type: ignore[misc]  # two types of dict
        )
    sealed = seal_stream(world.database, world.name, request_id=unique("seal"))
    assert sealed["aborted"] == []
    assert lane.sizes() == {"0.0": 0, "1.1": 0, "2.1": 0, "0.2": 3, "1.3": 2, "2.3": 0}
    assert lane.commit(t0, {"0.0": 3}).repeated


@case("RX-09")
def committing_again_is_harmless(world: World, given: dict[str, Any]) -> None:
    three = [staged(world.lane.opened(), {"0.0": 1}) for _ in range(3)]
    assert [done.repeated for done in commit(world.database, *three)] == [False] * 3
    assert [done.repeated for done in commit(world.database, *three[::-1])] == [True] * 3
    assert world.lane.sizes() == {"0.0": 3}


@case("SW-01")
def the_same_request_again(world: World, given: dict[str, Any]) -> None:
    for _ in range(2):
        assert world.lane.scale("1.0", boundaries=[0.75], request_id="r") == ["2.1", "3.1"]


@case("SW-03")
def the_same_scale_as_a_new_request(world: World, given: dict[str, Any]) -> None:
    world.lane.scale("1.0", boundaries=[0.75])
    for _ in range(2):
        with raises("segment_not_active"):
            world.lane.scale("1.0", boundaries=[0.75])
    assert len(world.lane.epochs()) == 2


@case("SW-09")
def scale_of_a_sealed_stream(world: World, given: dict[str, Any]) -> None:
    seal_stream(world.database, world.name, request_id=unique("seal"))
    with raises("stream_not_active sealed"):
        world.lane.scale("1.0", boundaries=[0.75])


@case("SW-11")
def another_number_of_segments(world: World, given: dict[str, Any]) -> None:
    by_rate = {"scaling": "event_rate", "target_rate": 100}
    for changes, active in [
        ({"min_segments": 4}, 4),
        ({"min_segments": 3}, 3),
        ({**by_rate, "min_segments": 4}, 4),
        ({"min_segments": 1}, 4),
        ({"min_segments": 8}, 8),
    ]:
        update_stream(world.database, world.name, changes, request_id=unique("update"))
        found = world.ask(queries.active_segments)
        assert len(found) == active
        assert [row.key_low for row in found][1] in (1 / 3, 1 / active)


@case("SV-19")
def what_made_an_epoch(world: World, given: dict[str, Any]) -> None:
    asked = given["action"]["submit_scale"]
    expected = given["expected"]["transition"]
    world.apply({"seal": asked["seal"], "new": asked["new"]})
    [row] = world.lane.rows(
        "SELECT * FROM epoch_transition WHERE stream = :n AND epoch = 1", n=str(world.name)
    )
    assert list(map(theirs, row.sealed_segments)) == expected["segments_to_seal"]
    assert list(map(theirs, row.created_segments)) == list(expected["new_segments"])
    assert (row.epoch, row.cause) == (expected["new_epoch"], "scale")


@case("SV-21")
def a_manual_scale_goes_by_numbers(world: World, given: dict[str, Any]) -> None:
    world.lane.scale("0.0", parts=1, request_id="r")
    assert world.lane.scale("0.3", parts=1, request_id="r") == ["1.1"], "the same request"


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
    with raises("cuts_out_of_order"):
        world.ask(queries.segments_between, *reversed(cuts))
    with raises("cut_segment_unknown 7.0"):
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


@case("WM-01")
def watermarks_of_three_writers(world: World, given: dict[str, Any]) -> None:
    """A writer appends up to its position and then states the time; the cut is the tail."""
    lane = Lane.made(world.database, segments=given["setup"]["initial_segments"], event_time="at")

    def append_to(position: str) -> None:
        places = (place.split(":") for place in position.split(","))
        ends = {ours(n if "@" in n else f"{n}@0"): int(offset) for n, offset in places}
        tail = lane.tail()
        lane.append({n: ends[n] - tail[n] for n in ends if ends[n] > tail.get(n, ends[n])})

    for step, expected in zip(given["action"], given["expected"], strict=True):
        [said] = step
        marks = re.findall(r"(w\d)@(\d+) {(.*?)}", said)
        if said.startswith("scale all"):
            for _, _, position in marks[:2]:  # the positions before the scale
                append_to(position)
            assert lane.scale(*lane.active(), boundaries=[0.5]) == ["3.1", "4.1"]
        before = lane.value("SELECT complete_until FROM stream WHERE stream_id = :s")
        for writer, time, position in marks:
            append_to(position)
            state_completeness(world.database, lane.name, writer, as_datetime(int(time)))
        if said == "w3 shut down":
            state_completeness(world.database, lane.name, "w3", DONE)
        word = lane.value("SELECT complete_until FROM stream WHERE stream_id = :s")
        if isinstance(expected, str):
            assert (expected.split(";")[0], word) == ("no watermark", before)
        else:
            cut = {theirs(name): offset for name, offset in lane.tail().items()}
            assert {"time": word, "cut": cut} == {k: expected[k] for k in ("time", "cut")}
