"""What people usually ask of a view reads as much of a long history as of a short one."""

from typing import Any

import pytest

from tests.conftest import TestDatabase
from tests.sql.history import lived_through, scaled_again_and_again
from tests.sql.test_cost import analyze, costs_of, dearer
from tests.world.groups import Group
from tests.world.streams import Lane, rows, unique
from weir.reader_groups.checkpoints.lifecycle import checkpoint

EPOCHS = 4000
FEW = 40

_STREAM = "stream = :stream"
_EPOCH = f"{_STREAM} AND epoch = :epoch"
_LAST_EPOCHS = f"{_STREAM} ORDER BY epoch DESC LIMIT 10"
_CREATED = f"{_STREAM} AND created_at BETWEEN :at AND :soon"
_LAST_CREATED = f"{_STREAM} AND created_at <= :at ORDER BY created_at DESC LIMIT 1"
_SEGMENT = f"{_STREAM} AND segment = :segment"
_APPEND = f"{_STREAM} AND transaction_number = :epoch"
_APPENDS = (
    _APPEND,
    f"{_STREAM} ORDER BY transaction_number DESC LIMIT 10",
    f"{_STREAM} AND clock BETWEEN :at AND :soon",
    f"{_STREAM} ORDER BY clock DESC LIMIT 10",
)
_RECORDS = (
    f"{_STREAM} AND recorded_at BETWEEN :at AND :soon",
    f"{_STREAM} ORDER BY recorded_at DESC LIMIT 10",
)
_GROUP = "reader_group = :group"
_AGO = "interval '2 hours'"

# Per view, which is all that follows its name and WHERE.
USUAL: dict[str, tuple[str, ...]] = {
    "streams": (_STREAM,),
    "stream_columns": (_STREAM, f"{_STREAM} AND newest", f"{_STREAM} AND version = 1"),
    "column_history": (_STREAM,),
    "deleted_streams": (_STREAM,),
    "epochs": (_EPOCH, _LAST_EPOCHS, _CREATED, _LAST_CREATED),
    "segments": (
        _SEGMENT,
        f"{_STREAM} AND active",
        f"{_STREAM} AND creation_epoch = :epoch",
        f"{_STREAM} AND sealed_epoch = :epoch",
        f"{_STREAM} AND segment_id = CAST(:epoch AS bigint) << 32 | :epoch + 1",
        f"{_STREAM} ORDER BY segment_id DESC LIMIT 10",
    ),
    "transactions": (
        *_APPENDS,
        f"{_STREAM} AND state = 'open'",
        f"{_STREAM} AND writer_id = 'writer' AND batch_id = CAST(:epoch AS text)",
        f"{_STREAM} AND writer_id = 'writer' ORDER BY transaction_number DESC LIMIT 10",
    ),
    "completeness": (_STREAM,),
    "group_completeness": (_STREAM, _GROUP),
    "input_files": (
        f"{_STREAM} AND path = CAST(:epoch AS text) || '.csv'",
        _APPEND,
        f"{_STREAM} ORDER BY transaction_number DESC LIMIT 10",
    ),
    "data_files": (
        _SEGMENT,
        f"{_SEGMENT} AND start_offset <= 7 ORDER BY start_offset DESC LIMIT 1",
        _APPEND,
        f"{_STREAM} ORDER BY transaction_number DESC LIMIT 10",
    ),
    "time_indexes": (
        _SEGMENT,
        f"{_STREAM} AND clock BETWEEN :at AND :soon",
        f"{_STREAM} AND clock <= :at ORDER BY clock DESC LIMIT 1",
        f"{_STREAM} ORDER BY clock DESC LIMIT 10",
        f"{_SEGMENT} AND start_offset <= 7 ORDER BY start_offset DESC LIMIT 1",
    ),
    "retention_set": _RECORDS,
    "retention_decisions": (
        f"{_STREAM} AND decided_at BETWEEN :at - interval '8 days' AND :soon - interval '8 days'",
        f"{_STREAM} ORDER BY decided_at DESC LIMIT 10",
    ),
    "retention_status": (_STREAM,),
    "truncations": (
        f"{_STREAM} AND truncated_at BETWEEN :at AND :soon",
        f"{_STREAM} ORDER BY truncated_at DESC LIMIT 10",
    ),
    "audits": ("true",),
    "counter_examples": (_STREAM,),
    "receipts": (f"{_STREAM} AND number = CAST(:epoch AS bigint)",),
    "scale_decisions": (
        f"{_STREAM} AND decided_at BETWEEN :at AND :soon",
        f"{_STREAM} ORDER BY decided_at DESC LIMIT 10",
    ),
    "segment_rates": (_STREAM,),
    "hot_keys": (_STREAM,),
    "disk": ("true ORDER BY bytes DESC LIMIT 10", f"{_STREAM} AND kind = 'events'"),
    "cost": (_GROUP,),
    "metrics": ("metric = 'weir_damaged_files'",),
    "small_files": (_STREAM, "true ORDER BY small_files DESC LIMIT 10"),
    "compactions": (f"{_STREAM} ORDER BY number DESC LIMIT 10",),
    "publications": (_STREAM,),
    "erasures": (f"{_STREAM} ORDER BY erasure_number DESC LIMIT 10",),
    "certificates": (f"{_STREAM} ORDER BY asked_at DESC LIMIT 10", "state = 'waits'"),
    "signing_keys": ("true",),
    "iceberg_tables": ("catalog_name = 'weir' AND table_namespace = 's' AND table_name = :stream",),
    "iceberg_namespace_properties": ("catalog_name = 'weir' AND namespace = 's'",),
    "garbage_files": ("root = '' AND path = 'p'", "true ORDER BY garbage_since LIMIT 10"),
    "job_runs": (
        "dag_id = 'dag' AND run_id = :stream || CAST(:epoch AS text)",
        "true ORDER BY started_at DESC LIMIT 10",
        "started_at BETWEEN :at AND :soon",
    ),
    "requests": (
        "request_id = 'r' || CAST(:epoch AS text)",
        "object = :stream ORDER BY ended_at DESC LIMIT 10",
        "object = :stream AND ended_at BETWEEN :at AND :soon",
    ),
    "positions": (_GROUP, _STREAM),
    "assignment": (_GROUP,),
    "readers": (_GROUP,),
    "lag": (_GROUP, _STREAM),
    "unread": (_GROUP, _STREAM),
    "catch_up": (_GROUP,),
    "disorder": (_GROUP,),
    "waiting_readers": (_GROUP,),
    "reader_groups": (_GROUP,),
    "batches": (
        f"{_GROUP} AND batch_id = :epoch",
        f"{_GROUP} ORDER BY batch_id DESC LIMIT 10",
        f"{_GROUP} AND committed_at BETWEEN :at - {_AGO} AND :soon - {_AGO}",
        f"{_GROUP} AND state = 'committed' ORDER BY committed_at DESC LIMIT 10",
        f"{_GROUP} ORDER BY committed_at DESC LIMIT 10",
        f"{_GROUP} AND state = 'open'",
    ),
    "open_batches": (_GROUP,),
    "parquet_outputs": (
        f"{_GROUP} AND batch_id = :epoch",
        f"{_GROUP} ORDER BY batch_id DESC LIMIT 10",
        f"{_GROUP} AND committed_at BETWEEN :at AND :soon",
        f"{_GROUP} ORDER BY committed_at DESC LIMIT 10",
    ),
    "checkpoints": (f"{_GROUP} AND checkpoint = 'c'", f"{_GROUP} AND state = 'waiting'"),
    "checkpoint_blockers": (_GROUP,),
    "subscribers": (_STREAM, _GROUP),
    "retention_alerts": (_STREAM,),
    "next_retention": (_STREAM,),
    "pins": (_GROUP,),
    "adjunct_stores": ("adjunct_store = 'nyc/planes'", _STREAM),
    "adjunct_versions": ("adjunct_store = 'nyc/planes' ORDER BY version DESC LIMIT 10",),
    "adjunct_pins": (f"{_GROUP} AND batch_id = :epoch",),
    "scopes": ("scope = 'test'",),
    "stream_configuration": (_STREAM,),
    "stream_state": (_STREAM,),
    "epoch_record": (_EPOCH, _LAST_EPOCHS, _CREATED, _LAST_CREATED),
    "current_epoch_record": (_STREAM,),
    "epoch_transition": (_EPOCH, _LAST_EPOCHS, _CREATED, _LAST_CREATED),
    "history_time_series": (_EPOCH, _LAST_EPOCHS, f"{_STREAM} AND chunk = 7", _LAST_CREATED),
    "history_time_index": (
        f"{_STREAM} AND chunk = 2",
        f"{_STREAM} AND begins_at <= :at ORDER BY begins_at DESC LIMIT 1",
    ),
    "segment_sealed_record": (
        _SEGMENT,
        f"{_STREAM} AND sealed_epoch = :epoch",
        f"{_STREAM} AND sealed_at BETWEEN :at AND :soon",
        f"{_STREAM} ORDER BY sealed_at DESC LIMIT 10",
        f"{_STREAM} ORDER BY sealed_epoch DESC LIMIT 10",
    ),
    "sealed_segment_shard": (_SEGMENT, f"{_STREAM} AND shard = 7"),
    "stream_cut_record": _RECORDS,
    "truncation_record": (_STREAM,),
    "active_transaction": (_STREAM,),
    "committing_transactions": (_STREAM,),
    "completed_transaction": _APPENDS,
    "stream_subscriber": (_STREAM, _GROUP),
    "damage": (_STREAM,),
    "troubles": (_STREAM, f"stream IS NULL AND {_GROUP}", "true LIMIT 100"),
    "documents": (f"{_STREAM} ORDER BY asked_at DESC LIMIT 10",),
    "verified": (_STREAM,),
    "announcements": (_STREAM, "true"),
    "clocks_ahead": ("true",),
    "waiting_versions": ("true",),
}

# The views that show the rows of a table as they are.
OF_ROWS = {
    "epochs", "transactions", "data_files", "time_indexes", "segment_sealed_record",
    "retention_set", "retention_decisions", "scale_decisions", "stream_cut_record",
    "batches", "parquet_outputs",
}  # fmt: skip


@pytest.fixture
def lives(test_database: TestDatabase) -> tuple[tuple[Lane, Group], tuple[Lane, Group]]:
    """A stream with a long history and one with a short one, among many without any."""
    database = test_database.open()
    made = []
    for epochs in (EPOCHS, FEW):
        lane = Lane.made(database, event_time="at", retention="consumed")
        group = Group.made(lane)
        scaled_again_and_again(lane, epochs)
        lived_through(lane, group, epochs)
        checkpoint(database, group.name, name="c", request_id=unique("c"))
        made.append((lane, group))
    for _ in range(60):
        Group.made(Lane.made(database, retention="consumed"))
    analyze(test_database)
    return made[0], made[1]


def costs(lane: Lane, group: Group, epochs: int, before: int) -> dict[str, int]:
    """The pages that each question reads, about the middle of a history."""
    epoch = epochs // 2
    [[at]] = lane.rows(
        "SELECT clock_time(created_at) FROM epoch WHERE stream_id = :s AND epoch = :e", e=epoch
    )
    [[soon]] = lane.rows(
        "SELECT clock_time(created_at) FROM epoch WHERE stream_id = :s AND epoch = :e", e=epoch + 5
    )
    given = {
        "stream": str(lane.name), "group": group.name, "epoch": epoch, "at": at, "soon": soon,
        "segment": f"{epoch + 1}.{epoch}",
    }  # fmt: skip
    questions = [f"SELECT * FROM {view} WHERE {one}" for view in USUAL for one in USUAL[view]]
    return costs_of(lane.database, questions, given, before)


def test_every_view_says_what_it_is_usually_asked(test_database: TestDatabase) -> None:
    views: list[Any] = rows(
        test_database.open(), "SELECT viewname FROM pg_views WHERE schemaname = 'weir'"
    )
    assert {view for (view,) in views} == USUAL.keys()
    assert all(USUAL.values())


@pytest.mark.parametrize("before", [0, 9], ids=["for the first time", "again"])
def test_a_usual_question_reads_as_much_of_a_long_history_as_of_a_short_one(
    lives: tuple[tuple[Lane, Group], tuple[Lane, Group]], before: int
) -> None:
    (long, long_group), (short, short_group) = lives
    than = costs(short, short_group, FEW, before)
    pages = costs(long, long_group, EPOCHS, before)
    found = dearer(pages, than=than)
    # It looks 30 times into an index, which may have a level more, and into the table, where the
    # entries of a long history lie far apart; and it reads those of the last 20 minutes, which here
    # are all.
    rates = {question: read for question, read in found.items() if "segment_rates" in question}
    # One counts all files, and one adds up the batches that are not pruned.
    counts = {question for question in found if question.split()[3] in ("small_files", "cost")}
    assert found.keys() - rates.keys() - counts == set(), found
    assert all(read <= 2 * of_few + 30 + 80 for read, of_few in rates.values()), rates
    # A table that has little but one long history is read whole for a short one, too.
    of_rows = {question: read for question, read in pages.items() if question.split()[3] in OF_ROWS}
    assert {question: read for question, read in of_rows.items() if read > 30} == {}


def test_a_vacuum_makes_no_usual_question_dearer(
    lives: tuple[tuple[Lane, Group], tuple[Lane, Group]], test_database: TestDatabase
) -> None:
    # All pages are visible afterwards, so that Postgres prefers indexes to tables.
    (long, group), _ = lives
    before = costs(long, group, EPOCHS, 0)
    analyze(test_database, "VACUUM ANALYZE")
    assert dearer(costs(long, group, EPOCHS, 0), than=before) == {}
