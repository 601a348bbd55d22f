"""A writer that has stated `done` and commits another append counts again, and is told."""

from typing import Any

import pytest

from tests.reader_groups.completeness_model import Stream, staged_times
from tests.world.groups import Group
from tests.world.streams import unique
from weir.controller.commit import commit
from weir.controller.completeness import state_completeness
from weir.controller.staged import announce
from weir.controller.transactions import Committed, begin
from weir.database.connection import Database
from weir.model.event_time import DONE, as_datetime
from weir.reader_groups.batches.lifecycle import commit_batch

Fact = tuple[str, str, Any]  # how it was said (append, state, retry), by whom, and what


def say(stream: Stream, fact: Fact) -> int | None:
    """Do what a fact says; return what the stream is complete to."""
    how, writer, what = fact
    lane = stream.lane
    until = as_datetime(what) if isinstance(what, int) else what
    if how == "append":
        [done] = commit(lane.database, staged_times(stream.begin(writer, until), {}))
        assert done.events == 0
    elif how == "state":
        assert until is not None
        state_completeness(lane.database, lane.name, writer, until)
    else:
        again = begin(
            lane.database, lane.name, writer_id=writer, batch_id="first", fingerprint="",
            lease=60.0, source="test", complete_until=until,
        )  # fmt: skip
        assert isinstance(again, Committed)
        assert again.repeated
        assert again.returned_writer is None
    found: int | None = lane.value("SELECT complete_until FROM stream WHERE stream_id = :s")
    return found


def opened(database: Database) -> Stream:
    """Return a stream to which both writers have appended once, without a word."""
    stream = Stream.made(database)
    for writer in ("a", "b"):
        first = begin(
            database, stream.lane.name, writer_id=writer, batch_id="first", fingerprint="",
            lease=60.0, source="test",
        )  # fmt: skip
        assert not isinstance(first, Committed)
        commit(database, staged_times(first, {}))
    return stream


@pytest.mark.parametrize("how", ["append", "state", "retry"])
@pytest.mark.parametrize("what", [None, 5, 25, DONE])
def test_only_a_new_append_without_done_takes_it_back(
    shared_database: Database, how: str, what: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stream = opened(shared_database)
    say(stream, ("append", "a", 10))
    say(stream, ("append", "b", 20))
    assert say(stream, ("state", "a", DONE)) == 20
    caplog.clear()
    if what is not None or how == "append":
        say(stream, (how, "a", what))
    back = how == "append" and what != DONE
    assert ("writer a had stated that it was done" in caplog.text) == back
    assert ("writer a has stated that it is done" in caplog.text) == (
        how != "append" and what in (5, 25)
    )
    assert say(stream, ("append", "b", 40)) == (max(20, what or 0) if back else 40)
    assert say(stream, ("append", "a", 35)) == 35 if back else True


def test_every_append_of_a_commit_says_so(shared_database: Database) -> None:
    one, two = Stream.made(shared_database), Stream.made(shared_database)
    say(one, ("append", "w", DONE))
    say(two, ("append", "w", 10))
    both = [staged_times(stream.begin("w"), {"0.0": [[30]]}) for stream in (one, two)]
    first, second = commit(shared_database, *both)
    assert (first.returned_writer, second.returned_writer) == ("w", None)
    assert first.report()["returned_writer"] == "w"
    assert "returned_writer" not in second.report()
    assert commit(shared_database, *both)[0].repeated


def test_the_output_of_a_consumer_says_so(shared_database: Database) -> None:
    source, target = Stream.made(shared_database), Stream.made(shared_database)
    commit(shared_database, staged_times(source.begin("w"), {"0.0": [[1]]}))
    say(target, ("append", "group", 10))
    say(target, ("state", "group", DONE))
    batch = Group.made(source.lane).reader().must_open()
    output = staged_times(target.begin("group"), {"0.0": [[20]]})
    [done] = commit_batch(shared_database, batch, lease=60.0, staged=[output])
    assert (done.returned_writer, done.complete_until) == ("group", 10)


def test_appends_that_began_before_done_come_back_with_a_roll(
    shared_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    stream = Stream.made(shared_database)
    say(stream, ("append", "c", 20))
    early, waits = stream.begin("a", as_datetime(15)), stream.begin("b")
    say(stream, ("append", "a", DONE))
    say(stream, ("append", "b", DONE))
    stream.lane.scale("0.0")
    written = staged_times(waits, {"0.0": [[17]]})
    shared_database.transaction(lambda c: announce(c, written))
    [done] = commit(shared_database, staged_times(early, {"0.0": [[16]]}))
    assert (done.rolled, done.returned_writer, done.complete_until) == (True, "a", 20)
    assert "writer b had stated that it was done" in caplog.text, "its append was taken along"
    assert say(stream, ("append", "c", 50)) == 20
    assert say(stream, ("append", "a", 40)) == 20
    assert say(stream, ("append", "b", 30)) == 30


def test_another_event_time_forgets_who_was_done(shared_database: Database) -> None:
    from weir.controller.update import update_stream

    stream = Stream.made(shared_database)
    say(stream, ("append", "a", DONE))
    before, last = stream.begin("a"), stream.begin("a", DONE)
    update_stream(
        shared_database, stream.lane.name, {"event_time": "other"}, request_id=unique("u")
    )
    [done] = commit(shared_database, staged_times(stream.begin("a"), {}))
    assert done.returned_writer is None
    state_completeness(shared_database, stream.lane.name, "a", DONE)
    [done] = commit(shared_database, staged_times(last, {}))
    assert done.returned_writer is None, "it said that it is done, whatever the times mean"
    [done] = commit(shared_database, staged_times(before, {}))
    assert done.returned_writer == "a"
