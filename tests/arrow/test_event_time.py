"""Event times of tables of pyarrow, with their range in the time index, and what is late."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.streams import Lane, unique
from weir.arrow import read as arrow_read
from weir.controller.read_plan import FileSlice
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.errors import TruncatedWarning
from weir.kernel import event_time as kernel
from weir.kernel.schema import from_arrow
from weir.kernel.writer import stage_table
from weir.programs.opening import shared
from weir.settings import Settings

JUNE = 1_370_044_800_000_000  # 2013-06-01 00:00 UTC
HOUR = 3_600_000_000


@pytest.fixture
def lane(database: Database) -> Lane:
    """A stream of two segments with an event time."""
    return Lane.made(database, event_time="at")


def append(lane: Lane, settings: Settings, at: Any, **how: Any) -> Any:
    """Append a row per value of `at`, each with a key of its own."""
    column = at if isinstance(at, pa.Array) else pa.array(at)
    table = pa.table({"key": [f"k{i}" for i in range(len(column))], "at": column})
    batch = how.pop("batch", str(lane.value("SELECT count(*) FROM transaction")))
    return shared(settings).append(
        str(lane.name), table, writer_id=how.pop("writer", "w"), batch_id=batch,
        **how,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("at", "low", "high", "untimed"),
    [
        (pa.array([JUNE + HOUR, None, JUNE], pa.timestamp("us", "UTC")), 0, HOUR, 1),
        (pa.array([JUNE + HOUR, JUNE], pa.timestamp("us", "America/New_York")), 0, HOUR, 0),
        (pa.array([JUNE // 1000], pa.timestamp("ms")), 0, 0, 0),
        (pa.array([date(2013, 6, 2), date(2013, 6, 1)]), 0, 24 * HOUR, 0),
        (pa.array([JUNE // 10**6, None]), 0, 0, 1),
        (pa.array([JUNE, JUNE // 10**6]), 0, 0, 1),  # microseconds: no year has such a second
        (pa.array([JUNE / 1e6 + 0.5, float("nan")]), 500_000, 500_000, 1),
        (pa.array([Decimal("1370044800.000001")]), 1, 1, 0),
        (
            pa.array(["2013-06-01T02:00:00+02:00", "2013-06-01 01:00", "2013-02-30", "today", ""]),
            0, HOUR, 3,
        ),
    ],
)  # fmt: skip
def test_the_range_of_event_times_is_recorded_whatever_they_are(
    lane: Lane, settings: Settings, at: pa.Array, low: int, high: int, untimed: int
) -> None:
    done = append(lane, settings, at)
    assert (done.min_event_time, done.max_event_time) == (JUNE + low, JUNE + high)
    assert done.untimed == untimed
    [[smallest, largest]] = lane.rows(
        "SELECT min(min_event_time), max(max_event_time) FROM time_index WHERE stream_id = :s"
    )
    assert (smallest, largest) == (JUNE + low, JUNE + high)
    assert "_weir_event_time" not in shared(settings).read(str(lane.name)).column_names


def test_an_append_without_any_event_time_has_no_range(lane: Lane, settings: Settings) -> None:
    done = append(lane, settings, pa.array([None, None], pa.timestamp("us", "UTC")))
    assert (done.min_event_time, done.max_event_time, done.untimed, done.late) == (None, None, 2, 0)
    assert set(lane.rows("SELECT max_event_time FROM time_index WHERE stream_id = :s")) == {(None,)}


def test_late_events_are_counted_and_appended(lane: Lane, settings: Settings) -> None:
    until = datetime(2013, 6, 1, 10, tzinfo=UTC)
    on_time = append(lane, settings, ["2013-06-01 09:00", "2013-06-01 10:00"], complete_until=until)
    assert (on_time.late, on_time.complete_until) == (0, JUNE + 10 * HOUR)
    late = append(lane, settings, ["2013-06-01 09:59:59.999999", "2013-06-01 10:00", None])
    assert (late.late, late.untimed) == (1, 1)
    assert append(lane, settings, ["2013-01-01", "2013-01-02"]).late == 2, "all are late"
    [[total]] = lane.rows("SELECT late_events FROM weir.completeness WHERE stream_id = :s")
    assert total == 3
    assert lane.rows("SELECT late FROM weir.transactions WHERE stream = :n ORDER BY clock",
                     n=str(lane.name)) == [(0,), (1,), (2,)]  # fmt: skip
    assert shared(settings).read(str(lane.name)).num_rows == 7
    assert late.report()["late"] == 1
    assert late.report()["complete_until"] == "2013-06-01T10:00:00Z"


def test_rows_that_are_rejected_are_neither_late_nor_in_the_range(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, event_time="at", on_missing_key="quarantine")
    append(lane, settings, ["2013-06-01 10:00"], complete_until="2013-06-01 10:00")
    rows = [{"key": None, "at": "1999-01-01"}, {"key": "a", "at": "2013-06-01 09:00"}]
    done = shared(settings).append(str(lane.name), rows)
    assert (done.rejected, done.late, done.min_event_time) == (1, 1, JUNE + 9 * HOUR)


def test_events_are_late_by_what_was_stated_while_they_were_written(
    lane: Lane, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weir.arrow import append as module

    stage = stage_table

    def meanwhile(*given: Any) -> Any:
        found = stage(*given)
        monkeypatch.setattr(module, "stage_table", stage)
        append(lane, settings, ["2013-06-02"], batch="other", complete_until="2013-06-01T10:00")
        return found

    monkeypatch.setattr(module, "stage_table", meanwhile)
    done = append(lane, settings, ["2013-06-01 09:00", "2013-06-01 10:00", None], batch="one")
    assert (done.late, done.untimed) == (1, 1), "what happens at the moment itself is not late"


def test_a_writer_that_was_done_and_appends_again_is_told(lane: Lane, settings: Settings) -> None:
    append(lane, settings, ["2013-06-02"], complete_until="2013-06-01", writer="other")
    append(lane, settings, ["2013-06-02"], complete_until="done")
    empty = pa.array([], pa.string())
    back = append(lane, settings, empty, complete_until="2013-05-31")
    assert back.report()["returned_writer"] == "w"
    assert back.complete_until == JUNE, "never to less"
    held = lane.rows("SELECT writers, held_by FROM weir.completeness WHERE stream_id = :s")
    assert held == [(2, "w")]
    assert append(lane, settings, ["2013-06-02"]).returned_writer is None, "only once"


def test_what_is_no_statement_is_refused(lane: Lane, settings: Settings) -> None:
    with raises("time_invalid noon"):
        append(lane, settings, ["2013-06-01"], complete_until="noon")
    with raises("argument_invalid 2199-01-01T00:00:00Z"):
        append(lane, settings, ["2013-06-01"], complete_until="2199-01-01")
    with raises("argument_invalid 2199-01-01T00:00:00Z"):  # an event's clock may be wrong
        append(lane, settings, ["2199-01-01"], complete_until="2199-01-01")
    ahead = {"event_time_ahead": 1_000 * 366 * 86_400}
    update_stream(lane.database, lane.name, ahead, request_id=unique("u"))
    planned = append(lane, settings, ["2199-01-01"], complete_until="2199-01-01")
    assert planned.complete_until == planned.max_event_time
    plain = Lane.made(lane.database)
    with raises("argument_invalid complete_until"):
        append(plain, settings, ["2013-06-01"], complete_until="2013-06-01")
    assert plain.value("SELECT count(*) FROM transaction WHERE stream_id = :s") == 0


@pytest.mark.parametrize(
    ("event_time", "wrong"),
    [
        ("lower(when)", "column_missing 'when' key, at add"),
        ("when", "column_missing 'when' key, at add"),
        ("yes", "column_type_unsupported 'yes' boolean seconds"),
    ],
)
def test_rows_without_the_event_time_are_refused(
    database: Database, settings: Settings, event_time: str, wrong: str
) -> None:
    lane = Lane.made(database, event_time=event_time)
    rows = pa.table({"key": ["a"], "at": ["2013-06-01"], "yes": [True]})
    rows = rows if event_time == "yes" else rows.drop_columns(["yes"])
    with raises(wrong):
        shared(settings).append(str(lane.name), rows, writer_id="w", batch_id="x")
    assert lane.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0


@pytest.mark.random
def test_texts_that_are_looked_at_together_mean_what_each_means_alone() -> None:
    random = random_for("texts")
    for _ in range(cases(400)):
        texts = [_text(random) for _ in range(random.choice([1, 3, 8]))]
        alone = [kernel._of_text(text) for text in texts]
        together = kernel.times_of_texts(pa.chunked_array([pa.array(texts, pa.string())]))
        assert together.to_pylist() == alone, texts


def _text(random: Random) -> str | None:
    day = random.choice([28, 28, 28, 28, 28, 28, 31, 0])
    date = f"{random.choice([0, 1, 1969, 2013, 9999]):04}-{random.randint(1, 12):02}-{day:02}"
    time = random.choice(["", "T10:00", " 23:59:59", " 00:00:00.1", "T12:30:15.123456", " 24:00",
                          " 10:00:60", "T1:00"])  # fmt: skip
    zone = random.choice(["", "", "Z", "+02:00", "-17:59", "+18:00", "+0200"])
    around = random.choice(["", "  "]), random.choice(["", " ", "\n"])
    return random.choice([None, "", "x", *[around[0] + date + time + zone + around[1]] * 9])


# By the event time: what says that an event happened on a day of June 2013.
DAYS: dict[str, Callable[[int], Any]] = {
    "at": lambda day: datetime(2013, 6, day, 12, tzinfo=UTC),
    "to_timestamp(at, 'dd.MM.yyyy HH:mm')": lambda day: f"{day:02}.06.2013 12:00",
    "timestamp_millis(at)": lambda day: (JUNE + (24 * day - 12) * HOUR) // 1000,
}  # fmt: skip


@pytest.mark.parametrize("event_time", DAYS)
def test_a_read_by_event_time_gives_exactly_the_events_of_the_span(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch, event_time: str
) -> None:
    day = DAYS[event_time]
    kind = pa.array([day(1)]).type
    fields = from_arrow(pa.schema([("key", pa.string()), ("at", kind)]))
    lane, store = Lane.made(database, fields=fields, event_time=event_time), shared(settings)
    for days in ([1, 2], [9, None, 3], [20, 21], [4, 28]):  # the third has none of the span
        append(lane, settings, pa.array([None if d is None else day(d) for d in days], kind))
    opened: list[str] = []
    reads = arrow_read.read_rows

    def noted(of: Settings, part: FileSlice, *how: Any) -> pa.Table:
        opened.append(part.path)
        return reads(of, part, *how)

    monkeypatch.setattr(arrow_read, "read_rows", noted)

    def seen(**asked: Any) -> list[Any]:
        opened.clear()
        found = store.read(str(lane.name), order="stream", **asked)
        assert "key" in found.column_names
        return [row.get("at") for row in found.to_pylist()]

    june = "2013-06-{:02}T12:00:00Z".format
    span = {"event_time_since": june(2), "event_time_until": june(9)}
    assert seen(**span) == [day(2), day(3), day(4)], "from the first on, and before the second"
    whole = len(opened)
    assert len(seen()) == 9
    assert whole < len(opened), "a file without such an event is not opened"
    assert seen(event_time_since=june(21)) == [day(21), day(28)]
    assert seen(event_time_until=june(2)) == [day(1)]
    assert seen(event_time_since=june(29)) == []
    assert seen(columns=["key"], **span) == [None] * 3
    assert seen(since=datetime.now(UTC), **span) == []
    with raises("arguments_conflict schema_version"):
        seen(schema_version=1, **span)
    with raises("time_invalid since"):
        seen(event_time_since=june(9), event_time_until=june(2))


def test_event_times_from_before_the_setting_are_looked_for_and_without_one_refused(
    lane: Lane, settings: Settings
) -> None:
    append(lane, settings, [datetime(2013, 6, 1, tzinfo=UTC), datetime(2013, 7, 1, tzinfo=UTC)])
    update_stream(lane.database, lane.name, {"event_time": None}, request_id=unique("u"))
    with raises("argument_invalid event time"):
        shared(settings).read(str(lane.name), event_time_since="2013-06-15")
    update_stream(lane.database, lane.name, {"event_time": "at"}, request_id=unique("u"))
    found = shared(settings).read(str(lane.name), event_time_since="2013-06-15")
    assert found["at"].to_pylist() == [datetime(2013, 7, 1, tzinfo=UTC)]
    head = lane.tail()
    append(lane, settings, [datetime(2013, 8, 1, tzinfo=UTC)])
    lane.truncate(", ".join(f"{name}={end}" for name, end in head.items()))
    with pytest.warns(TruncatedWarning):  # one of these may have happened then
        found = shared(settings).read(str(lane.name), event_time_since="2013-06-15")
    assert found.num_rows == 1
