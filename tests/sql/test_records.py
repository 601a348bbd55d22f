"""The records of PDP-32 and PDP-47: views under the names that the papers give them."""

from itertools import pairwise
from typing import Any

import pytest

from tests.controller.model import GRID, as_json
from tests.sql.history import History, scaled_again_and_again
from tests.world.groups import Group
from tests.world.streams import Lane, rows, run, staged, unique
from weir.controller.seal import seal_stream
from weir.controller.staged import announce
from weir.controller.transactions import abort
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.segment import segment_name
from weir.retention.capture import capture
from weir.retention.delete_stream import delete_stream

CHUNK = 1000


def names(segments: Any) -> list[str]:
    return [segment_name(s) for s in sorted(segments)]


def told(database: Database, view: str, **where: object) -> list[dict[str, Any]]:
    """The rows of a view."""
    wanted = " AND ".join(f"{column} = :{column}" for column in where) or "true"
    found = rows(database, f"SELECT * FROM {view} WHERE {wanted}", **where)
    return [dict(row._mapping) for row in found]


def about(lane: Lane, view: str) -> dict[str, Any]:
    """The one row of a view for a stream."""
    [row] = told(lane.database, view, stream=str(lane.name))
    return row


# On random histories.


def test_an_epoch_record_has_all_segments_of_its_epoch(history: History) -> None:
    model = history.model
    found = history.view(
        "epoch_record", "epoch, reference_epoch, created_at, splits, merges, segments", "epoch"
    )
    assert found == [
        (epoch, model.references[epoch], created_at, *changes, names(model.epochs[epoch]))
        for epoch, (created_at, changes) in enumerate(
            zip(history.epoch_times(), model.splits_and_merges(), strict=True)
        )
    ]
    assert history.view("current_epoch_record", "epoch, segments", "epoch") == [
        (len(model.epochs) - 1, names(model.epochs[-1]))
    ]


def test_the_segments_of_an_epoch_are_found_however_old_they_are(histories: Database) -> None:
    lane = Lane.made(histories)
    scaled_again_and_again(lane, 300)  # 0.0 in each epoch; 1.0 is as old as the stream
    found = rows(
        histories, "SELECT epoch, segments FROM epoch_record WHERE stream = :stream ORDER BY epoch",
        stream=str(lane.name),
    )  # fmt: skip
    assert [tuple(row) for row in found] == [
        (0, ["0.0", "1.0"]), *((e, ["1.0", f"{e + 1}.{e}"]) for e in range(1, 301)),
    ]  # fmt: skip


def test_the_history_time_series_leads_from_each_epoch_record_to_the_next(
    history: History,
) -> None:
    records = history.view("epoch_record", "segments", "epoch")
    series = history.view(
        "history_time_series", "epoch, sealed_segments, created_segments, chunk", "epoch"
    )
    assert series[0] == (0, [], *records[0], 0)
    for (before,), (after,), (epoch, gone, made, chunk) in zip(
        *zip(*pairwise(records), strict=True), series[1:], strict=True
    ):
        assert (set(before) - set(gone)) | set(made) == set(after)
        assert gone == names(s for s, x in history.model.segments.items() if x.sealed == epoch)
        assert made == names(s for s in history.model.segments if s >> 32 == epoch)
        assert chunk == 0


def test_sealed_segments_have_the_epoch_that_sealed_them_and_their_final_size(
    history: History,
) -> None:
    sealed = [s for _, s in sorted(history.model.segments.items()) if s.sealed is not None]
    times = history.epoch_times()
    assert history.view(
        "segment_sealed_record", "segment, sealed_epoch, sealed_at", "segment_id(segment)"
    ) == [(s.name, s.sealed, times[s.sealed or 0]) for s in sealed]
    assert history.view(
        "sealed_segment_shard", "segment, events, bytes, shard", "segment_id(segment)"
    ) == [(s.name, len(s.events), sum(e.bytes for e in s.events), 0) for s in sealed]


def test_an_epoch_transition_says_what_it_sealed_and_created_and_why(history: History) -> None:
    model, lane = history.model, history.lane
    asked = "epoch, sealed_segments, created_segments"
    transitions = history.view("epoch_transition", asked, "epoch")
    assert transitions == history.view("history_time_series", asked, "epoch")
    causes = history.view("epoch_transition", "cause, reason <> ''", "epoch")
    assert causes[0] == ("create", True)
    assert [cause == "roll" for cause, _ in causes] == [
        epoch != reference for epoch, reference in enumerate(model.references)
    ]
    asked_for = history.view("epoch_transition", "request_id", "epoch")
    assert [row[0] for row in asked_for] == [e.request_id for e in lane.epochs()]


def test_the_truncation_record_is_the_head_with_its_span_and_what_was_truncated(
    history: History,
) -> None:
    model = history.model
    [(cut, span, *size)] = history.view(
        "truncation_record", "cut, span, events_till, size_till", "stream"
    )
    assert cut == as_json(model.head)
    assert span == {segment_name(s): epoch for s, epoch in model.span(model.head).items()}
    assert tuple(size) == model.size_till(model.head)


def test_segments_have_the_key_ranges_and_sizes_of_the_model(history: History) -> None:
    found = history.view(
        "segments",
        "segment, key_low, key_high, creation_epoch, sealed_epoch, events, bytes, active",
        "segment_id",
    )
    assert found == [
        (s.name, s.low / GRID, s.high / GRID, s.segment_id >> 32, s.sealed, len(s.events),
         sum(e.bytes for e in s.events), s.sealed is None)
        for _, s in sorted(history.model.segments.items())
    ]  # fmt: skip


# On streams of which the answer is known.


def test_chunks_and_shards_have_a_thousand_epochs(histories: Database) -> None:
    lane = Lane.made(histories, segments=2)
    last = 2 * CHUNK + 500
    scaled_again_and_again(lane, last)
    stream = {"stream": str(lane.name)}
    index = told(histories, "history_time_index", **stream)
    assert [(row["chunk"], row["first_epoch"]) for row in index] == [
        (0, 0), (1, CHUNK), (2, 2 * CHUNK),
    ]  # fmt: skip
    for chunk in index:
        [record] = told(histories, "epoch_record", epoch=chunk["first_epoch"], **stream)
        assert record["created_at"] == chunk["begins_at"]
    counted = rows(
        histories,
        """SELECT chunk, min(epoch) AS first, count(*) AS epochs FROM history_time_series
        WHERE stream = :stream GROUP BY chunk ORDER BY chunk""",
        **stream,
    )
    assert [tuple(row) for row in counted] == [(0, 0, 1000), (1, 1000, 1000), (2, 2000, 501)]
    shards = rows(
        histories,
        """SELECT DISTINCT shard, segment_id(segment) >> 32 AS epoch FROM sealed_segment_shard
        WHERE stream = :stream AND (segment_id(segment) >> 32) % 1000 IN (0, 999)""",
        **stream,
    )
    assert {(row.epoch, row.shard) for row in shards} == {
        (0, 0), (999, 0), (1000, 1), (1999, 1), (2000, 2),
    }  # fmt: skip
    [current] = told(histories, "current_epoch_record", **stream)
    assert (current["epoch"], current["segments"]) == (last, ["1.0", f"{last + 1}.{last}"])


def test_a_scope_is_there_as_long_as_it_has_streams(database: Database) -> None:
    lanes = [Lane.made(database, name=n) for n in ("nyc/flights", "sea/tides", "sea/waves")]
    assert {s["scope"]: s["streams"] for s in told(database, "scopes")} == {"nyc": 1, "sea": 2}
    for lane in lanes[1:]:
        seal_stream(database, lane.name, request_id=unique("seal"))
        assert {s["scope"] for s in told(database, "scopes")} == {"nyc", "sea"}
        delete_stream(database, lane.name, request_id=unique("delete"))
    assert {s["scope"]: s["streams"] for s in told(database, "scopes")} == {"nyc": 1}


def test_the_configuration_is_what_was_asked_for_last(histories: Database) -> None:
    lane = Lane.made(histories, tags=("daily",), on_missing_key="spread")
    first = about(lane, "stream_configuration")
    assert (first["routing_key"], first["scaling"], first["min_segments"]) == ("key", "fixed", 1)
    assert (first["target_rate"], first["scale_factor"]) == (None, None)
    assert (first["on_missing_key"], first["on_bad_rows"]) == ("spread", "fail")
    assert (first["tags"], first["retention"]) == (["daily"], "keep")
    assert (first["schema_version"], first["schema"]) == (0, None)
    lane.append({"0.0": 1})
    changes = {"scaling": "event_rate", "target_rate": 500, "tags": ("daily", "big")}
    update_stream(histories, lane.name, changes, request_id=unique("update"))
    second = about(lane, "stream_configuration")
    assert (second["scaling"], second["target_rate"], second["scale_factor"]) == (
        "event_rate", 500, 2,
    )  # fmt: skip
    assert second["tags"] == ["daily", "big"]
    assert second["schema_version"] == 1
    assert [field["name"] for field in second["schema"]] == ["key"]


def test_the_state_has_the_time_that_a_commit_would_get(histories: Database) -> None:
    lane = Lane.made(histories)
    before = about(lane, "stream_state")
    assert (before["state"], before["sealed_at"], before["current_epoch"]) == ("active", None, 0)
    lane.append({"0.0": 1})
    lane.scale("0.0", parts=2)
    [transaction] = told(histories, "completed_transaction", stream=str(lane.name))
    assert before["created_at"] < before["next_clock"] <= transaction["clock"]
    # A stream that is ahead of the server's time stays ahead.
    run(histories, "UPDATE stream SET last_clock = last_clock + 10^12 WHERE stream_id = :s",
        s=lane.stream_id)  # fmt: skip
    ahead = lane.value("SELECT clock_time(last_clock + 1) FROM stream WHERE stream_id = :s")
    assert about(lane, "stream_state")["next_clock"] == ahead
    seal_stream(histories, lane.name, request_id=unique("seal"))
    after = about(lane, "stream_state")
    assert (after["state"], after["sealed_at"], after["current_epoch"]) == ("sealed", ahead, 1)


def test_cuts_of_the_retention_set_have_their_records(histories: Database) -> None:
    lane = Lane.made(histories)
    lane.append({"0.0": 3, "1.0": 2})
    capture(histories)
    capture(histories)
    lane.append({"1.0": 1})
    capture(histories)
    found = told(histories, "stream_cut_record", stream=str(lane.name))
    assert [(r["cut"], r["events"], r["bytes"]) for r in found] == [
        ({"0.0": 3, "1.0": 2}, 5, 50),
        ({"0.0": 3, "1.0": 3}, 6, 60),
    ]
    assert found[0]["recorded_at"] < found[1]["recorded_at"]
    for record in found:
        here = {"stream": str(lane.name), "recorded_at": record["recorded_at"]}
        shown = told(histories, "retention_set", **here)
        assert shown[0]["cut"] == record["cut"]


def test_each_append_is_active_committing_or_completed(histories: Database) -> None:
    lane = Lane.made(histories)
    writing, waiting, given_up = lane.opened("a"), lane.opened("b"), lane.opened("c")
    lane.append({"0.0": 4}, batch="d", source="dag/run/append")
    lane.scale("0.0", parts=2)
    histories.transaction(lambda c: announce(c, staged(waiting, {"0.0": 1})))
    assert abort(histories, given_up)
    stream = {"stream": str(lane.name)}
    active = told(histories, "active_transaction", **stream)
    assert {(t["batch_id"], t["epoch"], t["ended_at"]) for t in active} == {
        ("a", 0, None), ("b", 0, None),
    }  # fmt: skip
    [committing] = told(histories, "committing_transactions", **stream)
    assert committing["transaction_number"] == waiting.transaction_number
    completed = {t["batch_id"]: t for t in told(histories, "completed_transaction", **stream)}
    assert {batch: t["state"] for batch, t in completed.items()} == {
        "c": "aborted", "d": "committed",
    }  # fmt: skip
    assert (completed["d"]["events"], completed["d"]["source"]) == (4, "dag/run/append")
    lane.commit(writing, {"0.0": 2})
    assert told(histories, "active_transaction", **stream) == []
    assert told(histories, "committing_transactions", **stream) == []
    assert len(told(histories, "completed_transaction", **stream)) == 4


def test_a_subscriber_holds_what_it_has_not_released(histories: Database) -> None:
    lane = Lane.made(histories)
    lane.append({"0.0": 4, "1.0": 4})
    lane.truncate("0.0=1, 1.0=0")
    group, _ = Group.made(lane), Group.made(lane, subscriber=False)
    first = about(lane, "stream_subscriber")
    assert (first["reader_group"], first["generation"]) == (group.name, 0)
    assert first["truncation_cut"] == {"0.0": 1, "1.0": 0}
    reader = group.reader()
    reader.commit(reader.must_open())
    assert about(lane, "stream_subscriber") == first, "positions release nothing, checkpoints do"
    group.checkpoint("noon")
    second = about(lane, "stream_subscriber")
    assert second["truncation_cut"] == {"0.0": 4, "1.0": 4}
    assert second["released_at"] > first["released_at"]


# Of all of them.


def views_of_streams(database: Database) -> list[str]:
    found = rows(
        database,
        """SELECT v.viewname FROM pg_views v JOIN information_schema.columns c
            ON c.table_schema = v.schemaname AND c.table_name = v.viewname
        WHERE v.schemaname = 'weir' AND c.column_name = 'stream' ORDER BY 1""",
    )
    return [row.viewname for row in found]


def test_no_view_shows_a_stream_that_was_deleted(database: Database) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 4}, inputs=["a.csv"])
    lane.opened()
    group = Group.made(lane)
    capture(database)
    lane.scale("0.0", parts=2)
    lane.truncate("2.1=0, 3.1=0, 1.0=0")
    views = views_of_streams(database)
    assert len(views) > 25
    shown = {view for view in views if told(database, view, stream=str(lane.name))}
    assert shown >= {"streams", "lag", "stream_subscriber", "truncation_record", "epoch_transition"}
    seal_stream(database, lane.name, request_id=unique("seal"))
    delete_stream(database, lane.name, unread_too=True, request_id=unique("delete"))
    left = {view for view in views if told(database, view, stream=str(lane.name))}
    swept_later = {"garbage_files", "disk"}
    assert left == {"deleted_streams", *swept_later}, "that it was, and its files"
    assert told(database, "reader_groups", reader_group=group.name)
    again = Lane.made(database, name=str(lane.name))
    assert about(again, "current_epoch_record")["segments"] == again.active()
    assert about(again, "epoch_transition")["cause"] == "create"


def calls(plan: dict[str, Any]) -> int:
    """How often Weir's functions were called that a plan reads from."""
    weirs = plan.get("Schema") in ("weir", "weir_internal") and "Function Name" in plan
    called = plan["Actual Loops"] if weirs else 0
    return int(called) + sum(calls(part) for part in plan.get("Plans", []))


def test_a_view_that_is_asked_for_one_stream_computes_nothing_for_the_others(
    database: Database,
) -> None:
    lanes = [Lane.made(database) for _ in range(12)]
    groups = [Group.made(*lanes) for _ in range(3)]
    for view in views_of_streams(database):
        for where in ("stream = :stream", "stream = :stream AND reader_group = :group"):
            columns = {"stream": str(lanes[5].name), "group": groups[1].name}
            of_groups = ("lag", "unread", "positions", "stream_subscriber")
            if "reader_group" in where and view not in of_groups:
                continue
            [[[plan]]] = rows(
                database,
                f"EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT * FROM {view} WHERE {where}",
                **{name: value for name, value in columns.items() if f":{name}" in where},
            )
            calls_per_group = {"lag": 1, "unread": 1, "subscribers": 1, "retention_alerts": 2}
            many = calls_per_group.get(view, 0) * len(groups) if "group" not in where else 0
            most = 3 * (many or 1)
            assert calls(plan["Plan"]) <= most, view


@pytest.mark.parametrize(
    "view", ["streams", "lag", "epoch_record", "truncation_record", "current_epoch_record"]
)
def test_the_count_of_calls_would_show_what_is_computed_for_others(
    database: Database, view: str
) -> None:
    lanes = [Lane.made(database) for _ in range(12)]
    Group.made(*lanes)
    [[[plan]]] = rows(database, f"EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT * FROM {view}")
    assert calls(plan["Plan"]) >= len(lanes)
