"""The scenarios that operations on a stream answer: one test per case, the answer as data."""

import json
import re
from functools import partial
from typing import Any

import pytest

from tests.conformance.cases import BY_AN_OPERATION, CASES, NEVER, Answers, listed
from tests.conformance.world import World, cut_of, ours, theirs
from tests.raises import raises
from tests.world import questions as queries
from tests.world.streams import Lane, database_of_file, staged, unique
from weir.controller.commit import commit
from weir.controller.completeness import state_completeness
from weir.controller.expiry import expire
from weir.controller.scale import scale
from weir.controller.seal import seal_stream
from weir.controller.staged import announce
from weir.controller.transactions import abort, ping
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.errors import Fenced, NotFound
from weir.kernel.attempt import Attempt
from weir.model.clock import clock_time
from weir.model.event_time import DONE
from weir.model.key_space import KeyRange

case = ANSWERS = Answers()


database = database_of_file


@pytest.mark.parametrize(
    "case_id", [i for i in CASES if listed(i, BY_AN_OPERATION) and i not in NEVER]
)
def test_case(database: Database, case_id: str) -> None:
    setup = CASES[case_id]["setup"]
    ANSWERS[case_id](World(database, setup if isinstance(setup, dict) else {}), CASES[case_id])


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
    with raises("position_invalid offset"):
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
                    partial(ping, attempt=attempt, lease=leases * lease, longest=10 * lease)
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
    done = scale(world.database, world.name, seal=["1.0"], request_id=unique("scale"))
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
        assert world.lane.scale("1.0", request_id="r") == ["2.1", "3.1"]


@case("SW-03")
def the_same_scale_as_a_new_request(world: World, given: dict[str, Any]) -> None:
    world.lane.scale("1.0")
    for _ in range(2):
        with raises("segment_not_active"):
            world.lane.scale("1.0")
    assert len(world.lane.epochs()) == 2


@case("SW-09")
def scale_of_a_sealed_stream(world: World, given: dict[str, Any]) -> None:
    seal_stream(world.database, world.name, request_id=unique("seal"))
    with raises("stream_not_active sealed"):
        world.lane.scale("1.0")


@case("SW-11")
def another_number_of_segments(world: World, given: dict[str, Any]) -> None:
    by_rate: dict[str, Any] = {"scaling": "event_rate", "target_rate": 100}
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
            assert lane.scale(*lane.active()) == ["3.1", "4.1"]
        before = lane.value("SELECT complete_until FROM stream WHERE stream_id = :s")
        for writer, time, position in marks:
            append_to(position)
            state_completeness(world.database, lane.name, writer, clock_time(int(time)))
        if said == "w3 shut down":
            state_completeness(world.database, lane.name, "w3", DONE)
        complete_until = lane.value("SELECT complete_until FROM stream WHERE stream_id = :s")
        if isinstance(expected, str):
            assert (expected.split(";")[0], complete_until) == ("no watermark", before)
        else:
            cut = {theirs(name): offset for name, offset in lane.tail().items()}
            assert {"time": complete_until, "cut": cut} == {k: expected[k] for k in ("time", "cut")}
