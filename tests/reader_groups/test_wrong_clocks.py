"""Clocks that are wrong: of an event, of a writer that states something, and of Postgres."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.raises import raises
from tests.reader_groups.completeness_model import Stream, append, staged_times
from tests.world.streams import unique
from weir.controller.commit import commit
from weir.controller.completeness import state_completeness, state_unmapped
from weir.controller.transactions import Committed, begin
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.clock import EPOCH
from weir.model.event_time import DONE, as_datetime

HOUR = timedelta(hours=1)
AHEAD = [
    timedelta(minutes=2),
    HOUR,
    timedelta(days=1),
    timedelta(days=366),
    datetime(9998, 1, 1, tzinfo=UTC) - datetime(2027, 1, 1, tzinfo=UTC),
]
Door = Callable[[Stream, datetime], Any]


@pytest.fixture
def stream(shared_database: Database) -> Stream:
    return Stream.made(shared_database)


def micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def by_append(stream: Stream, until: datetime) -> None:
    append(stream, [10], until)


def by_append_after_such_an_event(stream: Stream, until: datetime) -> None:
    append(stream, [micros(until)])
    append(stream, [10], until)


def by_append_without_rows(stream: Stream, until: datetime) -> None:
    append(stream, [], until)


def by_statement(stream: Stream, until: datetime) -> None:
    state_completeness(stream.lane.database, stream.lane.name, "w", until)


def by_statement_of_a_writer_that_was_done(stream: Stream, until: datetime) -> None:
    append(stream, [], DONE)
    by_statement(stream, until)


DOORS = [
    by_append,
    by_append_after_such_an_event,
    by_append_without_rows,
    by_statement,
    by_statement_of_a_writer_that_was_done,
]


def complete_until(stream: Stream) -> Any:
    return stream.lane.value("SELECT complete_until FROM stream WHERE stream_id = :s")


@pytest.mark.parametrize("ahead", AHEAD, ids=str)
@pytest.mark.parametrize("door", DOORS)
def test_nobody_states_a_time_that_is_later_than_now(
    stream: Stream, door: Door, ahead: timedelta
) -> None:
    append(stream, [5], as_datetime(5), writer="x")
    with raises("argument_invalid later than now"):
        door(stream, datetime.now(UTC) + ahead)
    assert complete_until(stream) == 5


def test_a_mapped_task_states_nothing_later_than_now_for_those_it_no_longer_has(
    stream: Stream,
) -> None:
    for index in range(2):
        append(stream, [5], as_datetime(5), writer=f"dag/task/{index}")
    name, tomorrow = stream.lane.name, datetime.now(UTC) + 24 * HOUR
    assert state_unmapped(stream.lane.database, name, "dag/task", 1, tomorrow) == []
    assert complete_until(stream) == 5


def test_a_retry_of_what_is_committed_says_that_its_statement_is_not_taken(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = stream.lane.opened("batch")
    commit(stream.lane.database, staged_times(attempt, {"0.0": [[10]]}))
    again = begin(
        stream.lane.database, stream.lane.name, writer_id="writer", batch_id="batch",
        fingerprint="print", lease=60.0, source="test",
        complete_until=datetime.now(UTC) + HOUR,
    )  # fmt: skip
    assert isinstance(again, Committed)
    assert complete_until(stream) is None
    assert [one.levelname for one in caplog.records if "Postgres's clock" in one.message] == [
        "WARNING"
    ]


def test_a_stream_of_planned_events_takes_statements_as_far_ahead_as_it_says(
    stream: Stream,
) -> None:
    update_stream(
        stream.lane.database, stream.lane.name, {"event_time_ahead": 86_400},
        request_id=unique("u"),
    )  # fmt: skip
    now = datetime.now(UTC)
    with raises("argument_invalid later than now"):
        by_append(stream, now + 25 * HOUR)
    by_append(stream, now + 23 * HOUR)
    by_statement(stream, now + 23.5 * HOUR)
    assert complete_until(stream) == micros(now + 23.5 * HOUR)


def outside(stream: Stream) -> Any:
    [found] = stream.lane.rows(
        "SELECT ahead_events, behind_events FROM weir.completeness WHERE stream = :n",
        n=str(stream.lane.name),
    )
    return tuple(found)


DAY = 86_400 * 10**6


def test_events_far_from_the_others_are_appended_named_and_counted(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    now = micros(datetime.now(UTC))
    first = append(stream, [now - 400 * DAY, now - DAY], as_datetime(now - DAY // 2))
    assert (first.behind, first.ahead) == (0, 0), "nothing was stated before"
    done = append(stream, [now - 400 * DAY, now - 30 * DAY, now - 1, None, now + DAY, 10])
    assert (done.events, done.ahead, done.behind, done.late) == (6, 1, 2, 3)
    assert (done.report()["ahead"], done.report()["behind"]) == (1, 2)
    assert len([one for one in caplog.records if one.levelname == "WARNING"]) == 2
    assert append(stream, [now + 2 * DAY, now + DAY]).ahead == 2
    assert outside(stream) == (3, 2)
    assert "ahead" not in append(stream, [now - 1]).report()
    counted = "SELECT sum(ahead), sum(behind) FROM weir.transactions WHERE stream = :n"
    assert [*map(tuple, stream.lane.rows(counted, n=str(stream.lane.name)))] == [(3, 2)]


def test_the_settings_of_a_stream_say_what_is_far(stream: Stream) -> None:
    settings = {"event_time_ahead": 3600, "event_time_back": 60}
    update_stream(stream.lane.database, stream.lane.name, settings, request_id=unique("u"))
    now = micros(datetime.now(UTC))
    append(stream, [], as_datetime(now))
    done = append(stream, [now + DAY // 48, now - 59 * 10**6, now - 61 * 10**6, now + DAY // 20])
    assert (done.ahead, done.behind) == (1, 1)
    with raises("argument_invalid event_time_back"):
        update_stream(
            stream.lane.database, stream.lane.name, {"event_time_back": 0}, request_id=unique("u")
        )
