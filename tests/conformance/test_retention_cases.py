"""The scenarios of retention, run by run: a stream in the database, a millisecond as a second and a
byte as an event of ten.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conformance.cases import CASES, FILE, IN_RETENTION, listed
from tests.conformance.world import World, cut_of, ours, theirs
from tests.world.streams import BYTES_PER_EVENT, Lane, database_of_file, run, unique
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.errors import Conflict, InvalidInput, NotFound
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.retention.capture import capture
from weir.retention.release import release
from weir.retention.run import retain

# Weir's answer, with the reason from the table in semantics 17.
DIFFERENT: dict[str, tuple[str, list[Any]]] = {
    "CB-03": ("minimum and bound overlap: their meet", [{"0@0": 9, "1@0": 8}]),
    "CB-13": ("a subscriber is protected from its start cut", [None, None]),
}


database = database_of_file


def let_be_old(lane: Lane, ages: list[int], unit: str = "second") -> None:
    """Let the records of a stream be so old, the first first."""
    records = lane.rows(
        "SELECT recorded_at FROM stream_cut WHERE stream_id = :s ORDER BY recorded_at"
    )
    for record, age in zip(records, ages, strict=True):
        run(
            lane.database,
            """UPDATE stream_cut
            SET recorded_at = clock_timestamp() - :age * CAST('1 ' || :unit AS interval)
            WHERE stream_id = :s AND recorded_at = :at""",
            s=lane.stream_id, at=record.recorded_at, age=age, unit=unit,
        )  # fmt: skip


class Runs:
    """A stream at the times of a case."""

    def __init__(self, database: Database, setup: dict[str, Any]) -> None:
        stepwise = setup["history"] == "H-RS"
        history = {"initial_segments": 2} if stepwise else setup
        self.operations = list(FILE["histories"]["H-RS"]["ops"]) if stepwise else []
        self.world = World(database, history)
        self.lane, self.database = self.world.lane, database
        policy = setup["policy"]
        unit = "age" if policy["type"] == "TIME" else "bytes"
        limits: dict[str, Any] = {}
        for which in ("min", "max"):
            limit = next((policy[k] for k in (which, f"{which}_ms", f"{which}_bytes")
                          if k in policy), None)  # fmt: skip
            if isinstance(limit, int) and limit > 0:
                limits[f"retain_{which}_{unit}"] = limit * (1 if unit == "age" else BYTES_PER_EVENT)
        if unit == "age" and not limits:
            limits["retain_min_age"] = 1  # a zero is refused; the least that is not
        period = setup.get("capture_period_ms", setup.get("run_every_ms", 1_800_001) - 1)
        self.limits = {"retain_min_age": None, **limits}
        # Without subscribers a minimum says there what is left; here, with a maximum that is equal.
        least = limits.get(f"retain_min_{unit}")
        self.plain = limits | ({f"retain_max_{unit}": least} if least else {})
        self.plain["retention"] = ("age" if unit == "age" else "size") if limits else "consumed"
        update_stream(database, self.lane.name, {**self.plain, "cuts_every": period},
                      request_id=unique("policy"))  # fmt: skip
        self.times: list[int] = []  # of the records in the set
        self.groups: list[str] = []
        self.rule = ""  # of the last run

    def at(self, now: int) -> None:
        """Let the records be as old as they are in the case."""
        let_be_old(self.lane, [now - time for time in self.times])

        # What came between two records came right after the first of them.
        run(
            self.database,
            """UPDATE time_index i SET clock = coalesce(
                (SELECT time_clock(max(c.recorded_at)) + 1
                 FROM stream_cut c CROSS JOIN LATERAL front(:s, c.cut) f
                 WHERE c.stream_id = :s AND NOT has_passed(f.keys, f.owners, f.offsets,
                     g.key_low, i.segment_id, i.start_offset + i.events)),
                (SELECT time_clock(min(c.recorded_at)) FROM stream_cut c WHERE c.stream_id = :s),
                i.clock)
            FROM segment g
            WHERE i.stream_id = :s AND g.stream_id = :s AND g.segment_id = i.segment_id""",
            s=self.lane.stream_id,
        )

    def tail(self, cut: dict[str, int]) -> None:
        wanted = {ours(name): offset for name, offset in cut.items()}
        while not set(wanted) <= set(self.lane.active()):
            self.world.fill_and_apply(self.operations.pop(0))
        now = self.lane.tail()
        if more := {name: n - now[name] for name, n in wanted.items() if n > now[name]}:
            self.lane.append(more)

    def subscribers(self, cuts: list[dict[str, int] | None]) -> None:
        for name in self.groups:
            run(self.database, "UPDATE reader_group SET subscriber = false WHERE name = :n", n=name)
        self.groups = []
        policy = {"retention": "consumed", **self.limits} if cuts else self.plain
        largest = {name: None for name in self.plain if name.startswith("retain_max")}
        update_stream(
            self.database, self.lane.name, {**largest, **policy}, request_id=unique("policy")
        )
        for cut in cuts:
            name = unique("subscriber")
            create_reader_group(self.database, name, [self.lane.name], request_id=name)
            self.groups.append(name)
            if cut is not None:
                self.release(name, cut)

    def release(self, name: str, cut: dict[str, int]) -> None:
        run(
            self.database,
            """UPDATE reader_group_stream gs SET released_cut = CAST(:cut AS jsonb)
            FROM reader_group g WHERE g.group_id = gs.group_id AND g.name = :n""",
            n=name, cut=str(cut_of(cut)).replace("'", '"'),
        )  # fmt: skip

    def capture(self, now: int) -> bool:
        mine = [c for c in capture(self.database) if c["stream"] == str(self.lane.name)]
        self.times += [now] * len(mine)
        return bool(mine)

    def add(self, record: dict[str, Any]) -> None:
        run(
            self.database,
            """INSERT INTO stream_cut (stream_id, stream_name, recorded_at, clock, cut, events,
                                    bytes)
            VALUES (:s, :name, clock_timestamp(), 1, CAST(:cut AS jsonb), :n, 10 * :n)""",
            s=self.lane.stream_id, name=str(self.lane.name),
            cut=str(cut_of(record["cut"])).replace("'", '"'), n=record["size"],
        )  # fmt: skip
        self.times.append(record["time"])

    def retain(self) -> tuple[dict[str, int] | None, list[int]]:
        """The cut that was truncated at, if any, and the times of the records that are left."""
        [report] = retain(self.database, [self.lane.name])
        assert "error" not in report, report
        left = self.lane.value("SELECT count(*) FROM stream_cut WHERE stream_id = :s")
        self.times = self.times[len(self.times) - left :]
        self.rule = report["rule"]
        cut = report["cut"]
        if cut is None:
            return None, self.times
        return {theirs(name): int(offset) for name, offset in cut.items()}, self.times

    def within_minimum_size(self) -> dict[str, int]:
        """The newest record that leaves the minimum."""
        cut = self.lane.value(
            """SELECT r.cut FROM stream s CROSS JOIN LATERAL size_till(:s, tail_cut(:s)) t
            CROSS JOIN LATERAL retention_limits(:s, clock_timestamp(), t.bytes) r
            WHERE s.stream_id = :s AND r.which = 'min_bytes'"""
        )
        return {theirs(name): offset for name, offset in cut.items()}


def step_of(number: int, action: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """An action in one form, whichever way the case writes it."""
    step: dict[str, Any] = {"subscribers": action.get("subscriber_cuts", [])}
    step["now"] = next(
        (action[k] for k in ("now", "run_at", "at_ms") if k in action), 1_800_001 * number
    )
    if "tail_offset_of_0@0" in action:
        step["tail"] = {"0@0": action["tail_offset_of_0@0"]}
        step["subscribers"] = [
            None if offset is None else {"0@0": offset} for offset in action["subscriber_offsets"]
        ]
    elif "captured_record" in action:
        step["tail"] = action["captured_record"]["cut"]
    elif "current_tail" in action:
        step["tail"] = action["current_tail"]
    else:
        step["records"] = action["add_records"]
        step["tail"] = action["add_records"][-1]["cut"]
    step["by_hand"] = action.get("manual_truncation_before")
    return step


@pytest.mark.parametrize(
    "case_id",
    [i for i in CASES if listed(i, IN_RETENTION) and i != "RS-01" and not i.startswith("SU")],
)
def test_case(database: Database, case_id: str) -> None:
    case = CASES[case_id]
    runs = Runs(database, case["setup"])
    cuts = DIFFERENT[case_id][1] if case_id in DIFFERENT else None
    captured: list[int] = []
    tails: dict[int, int] = {}
    for number, (action, expected) in enumerate(zip(case["action"], case["expected"], strict=True)):
        step = step_of(number, action, case)
        runs.at(step["now"])
        runs.tail(step["tail"])
        runs.subscribers(step["subscribers"])
        if "records" in step:
            run(database, "DELETE FROM capture_queue WHERE stream_id = :s", s=runs.lane.stream_id)
            for record in step["records"]:
                runs.add(record)
                captured.append(record["time"])
        elif runs.capture(step["now"]):
            captured.append(step["now"])
            tails[step["now"]] = step["tail"].get("0@0", 0)
        if step["by_hand"]:
            written = ", ".join(f"{n}={o}" for n, o in cut_of(step["by_hand"]).items())
            runs.lane.truncate(written)
        later = 1 if case_id == "CB-05" else 0  # its minimum is 0, ours 1
        runs.at(step["now"] + later)
        cut, left = runs.retain()
        assert cut == (cuts[number] if cuts else expected["truncate_at"]), f"run {number + 1}"
        if refused := expected.get("chosen_but_refused"):
            assert runs.rule in ("behind_head", "too_little")  # beyond the head nothing exceeds it
            assert runs.within_minimum_size() == refused
        if case_id in ("CB-13",):
            continue
        # A stream that has not moved has no new record here.
        if "retention_set_times" in expected:
            assert left == [t for t in expected["retention_set_times"] if t in captured], number
        else:
            assert [tails[t] for t in left] == expected["tails_left_in_retention_set"], number


def test_rs_01(database: Database) -> None:
    case = CASES["RS-01"]
    lane = World(database, {"initial_segments": 1}).lane
    times: list[int] = []
    for time in case["setup"]["add_records_at_times"]:
        lane.append({"0.0": 1})
        # A minute for the case's millisecond: what lies in the future stays there meanwhile.
        let_be_old(lane, [time - earlier for earlier in times], "minute")
        if str(lane.name) in [made["stream"] for made in capture(database)]:
            times.append(time)
    assert times == [0, 100, 1000, 10000, 100000], "not the one that comes late"
    last = lane.value("SELECT max(recorded_at) FROM stream_cut WHERE stream_id = :s")

    def at(time: int) -> datetime:
        return datetime.fromtimestamp(last.timestamp() - 60 * (times[-1] - time), UTC)

    count = "SELECT count(*) FROM stream_cut WHERE stream_id = :s"
    answers = [lane.value(count)]
    answers += [
        lane.value(f"{count} AND recorded_at <= :at", at=at(time)) for time in (99, 9999, 10**6)
    ]
    found = lane.value(
        "SELECT recorded_at FROM recorded_cut(:n, :at)", n=str(lane.name), at=at(101)
    )
    answers.append(min(times, key=lambda time: abs(at(time) - found)))
    # Those are removed that a truncation passes; here all that are older than a minimum.
    age = 60 * (times[-1] - 9999)
    oldest = {"retention": "age", "retain_min_age": age, "retain_max_age": age}
    update_stream(database, lane.name, oldest, request_id=unique("policy"))
    [report] = retain(database, [lane.name])
    assert report["cut"] == {"0.0": 4}, "the tail when the record of 1000 was made"
    answers.append(lane.value(count))
    assert answers == case["expected"]


def test_every_case_of_retention_is_here() -> None:
    assert {i for i in CASES if listed(i, IN_RETENTION)} >= set(DIFFERENT) | {
        "RS-01",
        "SU2-01",
    }


def outcome(work: Callable[[], Any]) -> str:
    try:
        work()
    except InvalidInput as error:
        return f"STREAM_CUT_NOT_VALID ({'behind' if 'released' in str(error) else 'not valid'})"
    except NotFound as error:
        found = {"stream_not_found": "STREAM_NOT_FOUND", "group_not_found": "SUBSCRIBER_NOT_FOUND"}
        return found[error.code]
    except Conflict:
        return "GENERATION_MISMATCH"
    return "SUCCESS"


def test_su2_01(database: Database) -> None:
    case = CASES["SU2-01"]
    world = World(database, {"initial_segments": 2})
    world.fill(100)
    world.lane.scale("1.0")  # the history H-1S, with events
    names = {one: unique(one) for one in ("s1", "s2")}
    streams = [world.name]
    for name in names.values():
        create_reader_group(
            database, name, streams, start="0.0=0, 1.0=0", release="manual", request_id=name
        )
    found = []
    for step in case["action"]:
        [(who, what)] = step.items()
        generation, name, at = None, names.get(who, names["s1"]), "position"
        if who in names:
            at = ", ".join(f"{n}={o}" for n, o in cut_of(what).items())
        elif who == "unknown stream":
            at = '{"test/nowhere": {"0.0": 1}}'
        elif who in ("unknown subscriber", "reader group id differs"):
            name = "nobody"  # a group that was deleted and made anew is meant by its name
        else:
            generation = 7
        found.append(
            outcome(
                lambda n=name, a=at, g=generation: release(  # type: ignore[misc]  # the loop's
                    database, n, a, generation=g, request_id=unique("release")
                )
            )
        )
    expected = [said.split(" (")[0] for said in case["expected"]]
    # A cut of another stream is no place in this one; there is no place that names a stream.
    expected[expected.index("STREAM_NOT_FOUND")] = "STREAM_CUT_NOT_VALID"
    assert [said.split(" (")[0] for said in found] == expected
    assert found[3].endswith("(behind)")
