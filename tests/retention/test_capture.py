"""The retention set: when a cut is recorded, and which of the records stand for the limits."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.chance import cases, random_for
from tests.conftest import TestDatabase
from tests.controller.interleave import COMMIT, Stepper
from tests.watching import count_statements
from tests.world.streams import Lane, at_once, rows, run
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.retention.capture import capture


@pytest.fixture
def lane(database: Database) -> Lane:
    """A stream in a database of its own: one run serves all streams."""
    return Lane.made(database, retention="consumed")


def recorded(lane: Lane) -> list[dict[str, int]]:
    return [
        row.cut
        for row in lane.rows("SELECT cut FROM stream_cut WHERE stream_id = :s ORDER BY recorded_at")
    ]


def test_the_tail_is_captured_only_when_it_moved(lane: Lane) -> None:
    assert len(capture(lane.database)) == 1
    assert capture(lane.database) == []
    lane.append({"0.0": 3})
    (captured,) = capture(lane.database)
    assert (captured["cut"], captured["events"]) == ({"0.0": 3, "1.0": 0}, 3)
    assert rows(lane.database, "SELECT * FROM capture_queue") == []


def test_what_is_not_later_than_the_last_record_waits_until_it_is(lane: Lane) -> None:
    # The clock of this server was an hour ahead when it recorded last.
    capture(lane.database)
    run(lane.database, "UPDATE stream_cut SET recorded_at = recorded_at + interval '1 hour'")
    lane.append({"0.0": 3})
    tables = ("stream_cut", "retention_queue", "capture_queue")
    known = [f"SELECT * FROM {table}" for table in tables]
    before = [rows(lane.database, one) for one in known]
    for _ in range(2):
        assert capture(lane.database) == []
        assert [rows(lane.database, one) for one in known] == before
    assert {row.stream_id for row in before[2]} == {lane.stream_id}
    # So much time passes.
    run(lane.database, "UPDATE stream_cut SET recorded_at = recorded_at - interval '1 hour'")
    assert [c["cut"] for c in capture(lane.database)] == [lane.tail()]
    assert recorded(lane) == [{"0.0": 0, "1.0": 0}, lane.tail()], "strictly later"
    assert capture(lane.database) == []
    assert rows(lane.database, known[2]) == []


def test_a_tail_that_is_where_it_was_is_not_recorded_again(lane: Lane) -> None:
    capture(lane.database)
    lane.append({})
    assert rows(lane.database, "SELECT * FROM capture_queue") != [], "a commit, of no events"
    due = rows(lane.database, "SELECT * FROM retention_queue")
    assert capture(lane.database) == []
    assert recorded(lane) == [lane.tail()]
    assert rows(lane.database, "SELECT * FROM retention_queue") == due
    assert rows(lane.database, "SELECT * FROM capture_queue") == []


def test_what_is_committed_while_a_run_goes_on_is_recorded_by_it_or_the_next(
    database: Database, test_database: TestDatabase
) -> None:
    stepper = Stepper(test_database.open())
    stepper.arm(None)
    capture(stepper.database)
    sent = list(stepper.statements)
    assert sent[-1] == COMMIT
    found = []
    for number in range(len(sent)):
        lane = Lane.made(database, retention="consumed")
        lane.append({"0.0": 1})
        stepper.arm(number)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(capture, stepper.database)
            assert stepper.stopped.wait(120), "it never came to this statement"
            lane.append({"0.0": 2})
            stepper.go_on.set()
            first = [c["cut"] for c in running.result(120)]
        second = [c["cut"] for c in capture(database)]
        assert first + second == recorded(lane)
        assert (first + second)[-1] == {"0.0": 3, "1.0": 0}, f"stopped before {sent[number]}"
        found.append(len(second))
    # What comes after its statement is left for the next: it asks for its number, and commits.
    assert found == [0] * (len(sent) - 2) + [1, 1]
    stepper.database.dispose()


def test_of_two_runs_at_once_one_records(lane: Lane) -> None:
    lane.append({"0.0": 3})
    found = at_once(lambda: capture(lane.database), lambda: capture(lane.database))
    assert sorted(map(len, found)) == [0, 1]
    assert len(recorded(lane)) == 1


def test_cuts_are_not_captured_more_often_than_the_stream_wants(database: Database) -> None:
    lane = Lane.made(database, cuts_every=600, retention="consumed")
    assert len(capture(database)) == 1
    lane.append({"0.0": 3})
    assert capture(database) == []
    run(database, "UPDATE stream_cut SET recorded_at = recorded_at - interval '601 seconds'")
    assert [c["cut"] for c in capture(database)] == [lane.tail()]


def test_a_sealed_stream_has_its_last_record_and_no_other(lane: Lane) -> None:
    capture(lane.database)
    lane.append({"0.0": 3})
    seal_stream(lane.database, lane.name, request_id="seal")
    assert capture(lane.database) == []
    assert rows(lane.database, "SELECT * FROM capture_queue") == []


def test_a_run_sends_as_many_statements_for_many_streams_as_for_none(lane: Lane) -> None:
    for _ in range(5):
        Lane.made(lane.database, retention="consumed").append({"0.0": 1})
    sent = count_statements(lane.database)
    assert len(capture(lane.database)) == 6
    many = len(sent)
    assert capture(lane.database) == []
    assert len(sent) == 2 * many <= 6


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(8)))
def test_the_records_that_stand_for_the_limits_are_those_of_a_search_through_all(
    database: Database, case: int
) -> None:
    random = random_for(case)
    ages = sorted(random.sample(range(1, 60), 2))
    sizes = sorted(random.sample(range(1, 60), 2))
    given: dict[str, Any] = {
        "retain_min_age": ages[0], "retain_max_age": ages[1],
        "retain_min_bytes": sizes[0], "retain_max_bytes": sizes[1],
    }  # fmt: skip
    limits = {name: limit for name, limit in given.items() if random.random() < 0.7}
    lane = Lane.made(database, **limits, retention="consumed")
    size, before = 0, 80
    records: list[tuple[int, int]] = []
    came: list[tuple[float, int]] = []
    for age in sorted(random.sample(range(80), random.randint(0, 12)), reverse=True):
        if more := random.choice([0, random.randint(1, 20)]):
            came.append((random.choice([age, before - 1]) + 0.5, size))
        before = age
        size += more
        records.append((age, size))
        run(
            database,
            """INSERT INTO stream_cut (stream_id, stream_name, recorded_at, clock, cut, events,
                                    bytes)
            VALUES (:s, :name, CAST(:now AS timestamptz) - :age * interval '1 second', 1,
                    jsonb_build_object('0.0', CAST(:size AS bigint), '1.0', 0), 0, :size)""",
            s=lane.stream_id, name=str(lane.name), now="2026-01-01T00:00:00Z", age=age, size=size,
        )  # fmt: skip
    for came_age, offset in came:
        run(
            database,
            """INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events,
                start_byte, bytes, clock, transaction_number)
            VALUES (:s, :name, 0, :offset, 1, :offset, 1, time_clock(
                CAST(:now AS timestamptz) - :age * interval '1 second'), :offset)""",
            s=lane.stream_id, name=str(lane.name), now="2026-01-01T00:00:00Z", age=came_age,
            offset=offset,
        )  # fmt: skip
    tail = size + random.randint(0, 20)
    found = lane.rows(
        "SELECT * FROM retention_limits(:s, CAST(:now AS timestamptz), :tail)",
        now="2026-01-01T00:00:00Z", tail=tail,
    )  # fmt: skip
    at = {row.which: (row.recorded_at, row.bytes) for row in found}
    old, big = limits.get("retain_min_age", 0), limits.get("retain_min_bytes", 0)
    expected: dict[str, tuple[int, int] | None] = {}
    by_age = [r for r in records if r[0] >= old]
    # Ties in size go to the first.
    by_size = sorted((r for r in records if tail - r[1] >= big), key=lambda r: (r[1], -r[0]))
    smallest = [r for r in by_size if r[1] == by_size[-1][1]][:1]
    if "retain_min_age" in limits:
        expected["min_age"] = by_age[-1] if by_age else None
    if "retain_min_bytes" in limits:
        expected["min_bytes"] = smallest[0] if smallest else None
    if (most := limits.get("retain_max_age")) is not None:
        past = [r for r in records if r[0] >= most]
        within = [r for r in by_age if r[0] <= most]
        # Nothing came between the newest that is too old and then: it is the tail of then.
        if past and all(age < most for age, offset in came if offset >= past[-1][1]):
            within = past[-1:]
        expected["past_max_age"] = past[-1] if past else None
        expected["within_max_age"] = within[0] if within else by_age[-1] if by_age else None
    if (most := limits.get("retain_max_bytes")) is not None:
        fits = [r for r in by_size if tail - r[1] <= most]
        first = fits[0] if fits else smallest[0] if smallest else None
        expected["within_max_bytes"] = first
    now = next(iter(lane.rows("SELECT CAST('2026-01-01T00:00:00Z' AS timestamptz) AS at"))).at
    assert at == {
        which: (now - timedelta(seconds=r[0]), r[1]) for which, r in expected.items() if r
    }
