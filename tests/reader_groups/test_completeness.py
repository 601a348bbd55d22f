"""What streams and groups are complete to, and what is late, is what the model says."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from tests.reader_groups.completeness_model import Stream, World, append, staged_times
from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.controller.commit import commit, commit_in
from weir.controller.completeness import state_completeness
from weir.controller.locks import lock_streams
from weir.controller.seal import seal_stream
from weir.controller.staged import announce
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.kernel.attempt import Staged
from weir.model.event_time import DONE, as_datetime
from weir.model.names import stream_name


@pytest.mark.parametrize("case", range(cases(30, least=3)))
def test_completeness_and_late_events_are_those_of_the_model(
    shared_database: Database, case: int
) -> None:
    world = World.made(shared_database, random_for(case))
    streams = world.streams
    for _ in range(20):
        world.step()
    assert [commit for stream in streams for commit in stream.completed]
    for stream in streams:
        known = [until for _, until in stream.completed if until is not None]
        assert all(a <= b for a, b in pairwise(known)), "a stream is never complete to less"


def test_a_writer_that_is_done_holds_nothing_back(shared_database: Database) -> None:
    stream = Stream.made(shared_database)
    assert append(stream, [10], as_datetime(10), "a").complete_until == 10
    assert append(stream, [30], as_datetime(30), "b").complete_until == 10
    [found] = stream.lane.rows("SELECT held_by, writers FROM completeness WHERE stream_id = :s")
    assert (found.held_by, found.writers) == ("a", 2)
    assert append(stream, [], DONE, "a").complete_until == 30
    assert append(stream, [40], as_datetime(20), "a").complete_until == 30, "never to less"


@pytest.mark.parametrize("locked", [False, True])
def test_a_commit_that_is_asked_for_the_same_again_ends_in_an_error(
    shared_database: Database, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    stream = Stream.made(shared_database)
    waiting = staged_times(stream.begin("b"), {"0.0": [[5]]})
    append(stream, [30], as_datetime(30), "a")
    monkeypatch.setattr(Staged, "recounted", lambda staged, until: staged)
    with raises("invariant_violated late defect"):
        if locked:
            shared_database.transaction(
                lambda c: commit_in(c, lock_streams(c, names=[stream.lane.name]), [waiting])
            )
        else:
            commit(shared_database, waiting)


def test_an_append_that_a_roll_takes_along_is_counted_where_its_range_decides(
    shared_database: Database,
) -> None:
    stream = Stream.made(shared_database)
    late, on_time, rolling = (stream.begin(writer) for writer in "abc")
    stream.lane.scale("0.0")
    for attempt, times in ((late, [15, 25]), (on_time, [20, 25])):
        waits = staged_times(attempt, {"0.0": [times]})
        shared_database.transaction(partial(announce, staged=waits))
    attempt = stream.begin("d", as_datetime(20))
    commit(shared_database, staged_times(attempt, {"1.0": [[30]]}))
    [rolled] = commit(shared_database, staged_times(rolling, {"0.0": [[15, 16]]}))
    assert (rolled.rolled, rolled.late) == (True, 2)
    found = stream.lane.rows(
        """SELECT late, min_event_time FROM transaction WHERE stream_id = :s
        AND transaction_number = ANY(:n) ORDER BY transaction_number""",
        n=[late.transaction_number, on_time.transaction_number],
    )
    assert found == [(None, 15), (0, 20)], "the session that rolls does not read their files"
    [[total]] = stream.lane.rows("SELECT late_events FROM weir.completeness WHERE stream_id = :s")
    assert total == 2


def test_what_cannot_be_stated_without_an_append_is_refused(shared_database: Database) -> None:
    stream, untimed = Stream.made(shared_database), Lane.made(shared_database)
    append(stream, [10])

    def state(lane: Lane, until: Any) -> None:
        state_completeness(shared_database, lane.name, "w", until)

    with raises(f"argument_invalid 2199-01-01T00:00:00Z {stream.lane.name}"):
        state(stream.lane, "2199-01-01")
    with raises(f"argument_invalid {untimed.name}"):
        state(untimed, as_datetime(10))
    with raises("stream_not_found test/none"):
        state(replace(stream.lane, name=stream_name("test/none")), as_datetime(10))
    state(stream.lane, as_datetime(10))
    seal_stream(shared_database, stream.lane.name, request_id=unique("seal"))
    with raises(f"stream_not_active {stream.lane.name}"):
        state(stream.lane, as_datetime(20))
    assert stream.lane.value("SELECT complete_until FROM stream WHERE stream_id = :s") == 10


def test_another_event_time_begins_anew_and_changes_nothing_of_before(
    shared_database: Database,
) -> None:
    stream = Stream.made(shared_database)
    lane = stream.lane
    group = Group.made(lane)
    append(stream, [10, 20], as_datetime(20))
    before, between = lane.opened(), lane.rows("SELECT * FROM time_index WHERE stream_id = :s")
    update_stream(shared_database, lane.name, {"event_time": "other"}, request_id=unique("u"))
    [done] = commit(shared_database, staged_times(before, {"1.0": [[5, 6]]}))
    assert (done.late, done.min_event_time, done.complete_until) == (None, None, None)
    found = lane.rows("SELECT * FROM time_index WHERE stream_id = :s ORDER BY clock")
    assert found[0] == between[0], "what is recorded stays"
    assert found[1].min_event_time is None, "it was computed with the expression of before"
    [view] = lane.rows("SELECT * FROM weir.completeness WHERE stream_id = :s")
    assert (view.complete_until, view.newest_event_time, view.late_events) == (None, None, 0)
    batch = group.reader().must_open()
    assert batch.complete_until is None
    update_stream(shared_database, lane.name, {"event_time": None}, request_id=unique("u"))
    assert lane.rows("SELECT * FROM weir.completeness WHERE stream_id = :s") == []
