"""Every operation locks streams, then groups, then readers, all before its first write; and it
writes only to what belongs to rows that it has locked.
"""

import importlib
import inspect
import pkgutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

import weir.adjunct
import weir.annex.erasure
import weir.annex.publication
import weir.compaction
import weir.controller
import weir.reader_groups
import weir.retention
import weir.scaling
from tests.conftest import TestDatabase
from tests.controller.lock_order import EXCEPTIONS, OWNER, Watch, called, faults
from tests.controller.operations import equal_ranges
from tests.controller.statements import functions
from tests.crash.jobs import execute
from tests.world.adjunct import Store
from tests.world.groups import LEASE, Group, budget
from tests.world.scaling import made, write
from tests.world.streams import FIELDS, Lane, rows, run, staged
from weir.adjunct import builds, lookup, publication, stores
from weir.adjunct import expiry as version_expiry
from weir.adjunct import pins as version_pins
from weir.annex.erasure import certificate, restored
from weir.annex.erasure import find as finding
from weir.annex.erasure import outputs as erased_outputs
from weir.annex.erasure import run as erasing
from weir.annex.erasure import stores as erased_stores
from weir.annex.erasure.outputs import Written
from weir.annex.erasure.records import Asked
from weir.annex.partitions import records as partitions
from weir.annex.publication import run as publishing
from weir.annex.recovery import recover
from weir.compaction import pack as packing
from weir.compaction import records
from weir.compaction import run as compaction
from weir.controller import (
    absent_files,
    announcements,
    attempts,
    commit,
    completeness,
    expiry,
    micro_batches,
    ownership,
    queries,
    rejected,
    scale,
    seal,
    streams,
    times,
    transactions,
    update,
)
from weir.controller.staged import announce
from weir.database.connection import Database
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.compaction import Small
from weir.model.names import stream_name
from weir.model.segment import segment_name
from weir.queries.reader_groups.outputs.tables import Column
from weir.reader_groups import history, progress
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches import alignment, halves_by_rank, splits
from weir.reader_groups.batches import history as batch_history
from weir.reader_groups.batches import lifecycle as batches
from weir.reader_groups.batches import next as next_batch
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.checkpoints import lifecycle as checkpoints
from weir.reader_groups.checkpoints import periodic as periodic_checkpoints
from weir.reader_groups.groups import consumers, lag, readers, reset
from weir.reader_groups.groups import lifecycle as groups
from weir.reader_groups.groups import update as group_update
from weir.reader_groups.groups.pins import Pin
from weir.reader_groups.outputs import records as outputs
from weir.reader_groups.outputs import tables as table_outputs
from weir.retention import capture, delete_stream, garbage, manual_truncation, prune, release
from weir.retention import run as retention_run
from weir.scaling import run as scaling_run
from weir.settings import Settings


def operations() -> set[str]:
    """All that takes a database, or is given a connection by whoever renews leases or waits."""
    modules = [recover, partitions]
    packages = (
        weir.controller, weir.reader_groups, weir.adjunct, weir.compaction, weir.retention,
        weir.scaling, weir.annex.publication, weir.annex.erasure,
    )  # fmt: skip
    for package in packages:
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        modules += [importlib.import_module(one.name) for one in found]
    given = (
        transactions.ping, transactions.ping_all, readers.renew, batches.open_in,
        alignment.end_of_run, publication.renew_build, records.begin, records.renew,
        records.swap, records.abort,
    )  # fmt: skip
    return {called(one) for one in given} | {
        called(function)
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
        if "database" in inspect.signature(function).parameters
        if not hasattr(function, "__wrapped__")  # a block, which calls operations
    }


def compacting(watch: Watch, lane: Lane, folder: Path) -> None:
    """Each step of a compaction, also of those that end without one."""
    number = watch(records.begin, lane.stream_id, 60.0)
    watch(records.renew, lane.stream_id, number, 60.0)
    [file, *_] = lane.files()
    old = Small(file.segment_id, file.start_offset, file.events, 1, 1, 1, 1, file.path)
    new = records.Written("new", 1, 0, 0, 1, [old])
    watch(records.swap, lane.stream_id, number, [new])
    watch(records.abort, lane.stream_id, watch(records.begin, lane.stream_id, 60.0))
    watch(records.begin, lane.stream_id, -60.0)
    watch(records.expire)
    settings = Settings(warehouse=str(folder / "warehouse"))
    watch(compaction.compact, settings, compaction.Budget(1, 1.0), [lane.name])
    watch(records.prune_compactions, 0.0)
    watch(erasing.erase, settings, lane.name, Asked("a test", "", {}), dict)
    watch(finding.plan, lane.stream_id)
    watch(erased_outputs.erase_output, Written("g", "o", "/", (), frozenset()), ["k"], "asked")
    run(
        watch.database,
        """SELECT begin_erasure('asked', :s, 'me', 'why', '{}'),
            end_erasure('asked', '[]', '[]')""",
        s=lane.stream_id,
    )
    assert watch(certificate.sign_if_gone, "asked", [lane.stream_id], 0.0) == []
    watch(certificate.sign_waiting, 0.0)
    update.update_stream(watch.database, lane.name, {"publish": "iceberg"}, request_id="published")
    assert watch(publishing.publish, settings, [lane.name])[0]["snapshot"] == 1
    update.update_stream(watch.database, lane.name, {"publish": "none"}, request_id="not")
    assert watch(publishing.publish, settings) == [{"stream": str(lane.name), "ended": True}]
    for _ in range(4):
        lane.append({lane.active()[0]: 1})
    assert watch(packing.pack, 0.0, 9.0)


def do_everything(watch: Watch, folder: Path) -> None:
    """Each operation, in each of the ways that lock or write something else."""
    database = watch.database
    name = stream_name("test/made")
    watch(garbage.sweep, str(folder / "warehouse"), 0.0, output_roots=())
    watch(streams.create_stream, name, routing_key="key", segments=2, request_id="made")
    watch(rejected.make_rejected_stream, name)
    lane, other = (
        Lane.made(database, retention="consumed"),
        Lane.made(database, retention="consumed"),
    )
    begin = {"writer_id": "w", "fingerprint": "f", "lease": 60.0, "source": "test"}
    first = watch(transactions.begin, lane.name, batch_id="a", **begin)
    first = watch(transactions.begin, lane.name, batch_id="a", **begin)
    watch(transactions.ping, first, 60.0, 600.0)
    watch(transactions.ping_all, [first], 60.0, 600.0)
    watch(attempts.abort_all, [lane.opened()])
    late, later, aborted = lane.opened(), lane.opened(), lane.opened()
    watch(commit.commit, staged(first, {"0.0": 2, "1.0": 2}))
    watch(commit.commit_begun, staged(other.opened(), {"0.0": 1}))
    compacting(watch, lane, folder)
    watch(scale.scale, lane.name, seal=["0.0"], request_id="scale")
    watch(commit.commit, staged(late, {"0.0": 1}))
    watch(commit.commit, *[staged(one.opened(), {}) for one in (other, lane)])
    watch(transactions.abort, aborted)
    query = {"writer_id": "query", "lease": 60.0, "source": ""}
    begun = watch(micro_batches.begin_micro_batch, other.name, **query)
    written, of = [staged(begun, {"0.0": 1})], {"writer_id": "query", "query": "q", "batch": 0}
    watch(micro_batches.commit_micro_batch, written, **of)
    watch(micro_batches.begin_micro_batch, other.name, **query)
    watch(micro_batches.abort_micro_batch, other.name, "query")
    lane.opened(lease=0.0)
    watch(expiry.expire, 0.0)
    timed = Lane.made(database, event_time="at", retention="consumed")
    watch(announcements.watch, "airflow", [("hours", str(timed.name)), ("events", str(lane.name))])
    watch(completeness.state_completeness, timed.name, "w", 1)
    watch(completeness.state_completeness, timed.name, "mapped/3", 1)
    watch(completeness.state_unmapped, timed.name, "mapped", 0, 2)
    lane.append({lane.active()[0]: 1})
    [told] = [
        one
        for one in watch(announcements.to_announce, "airflow", [])
        if one.stream == str(lane.name)
    ]
    watch(announcements.announced, "airflow", [(str(lane.name), told.transactions[0])])
    [due] = watch(partitions.due_partitions, "airflow", [("hours", str(timed.name))])
    watch(partitions.announced_partitions, "airflow", [due._asdict()])
    watch(partitions.watched_partitions, "airflow")
    watch(announcements.forget, 0.0)
    watch(progress.progress_of, [("stream", str(lane.name)), ("group", "none")])
    watch(update.update_stream, timed.name, {"event_time": "other"}, request_id="time")
    columns = [*FIELDS, {**FIELDS[0], "name": "more"}]
    changes = {"min_segments": 3}
    watch(update.update_stream, other.name, changes, fields=columns, request_id="update")

    for group, more in (("one", {}), ("other", {"on_gap": "skip", "subscriber": False})):
        both = [lane.name, other.name]
        watch(groups.create_reader_group, group, both, request_id="group", **more)
    token = watch(readers.join, "one", "reader", LEASE)
    watch(readers.renew, "one", "reader", token, LEASE)
    batch = watch(batches.open_in, "one", "reader", token, Reading(budget(3)), lease=LEASE)
    Group(database, "one", (lane, other)).lapse("reader")
    heir = watch(readers.join, "one", "heir", LEASE)
    batch = watch(batches.open_in, "one", "heir", heir, Reading(budget(3)), lease=0.0)
    out = {"kind": "parquet", "root": str(folder), "path": "x/attempt=2/", "output": "x"}
    outgoing = staged(other.opened(), {other.active()[0]: 1})
    watch(outputs.record_output, batch, out)
    watch(splits.split_batch, batch, "it failed")
    watch(halves_by_rank.halve_by_rank, batch.bounds, lambda slices: [1 for _ in slices])
    batch = watch(batches.open_in, "one", "heir", heir, Reading(budget(3)), lease=0.0)
    rows = publish_rows(watch, batch)
    watch(batches.commit_batch, batch, lease=LEASE, staged=[outgoing], outputs=[out], tables=[rows])
    batch = watch(batches.open_in, "one", "heir", heir, Reading(budget(3)), lease=0.0)
    watch(batches.commit_batch, batch, lease=LEASE)
    watch(table_outputs.sweep_staging)
    (folder / "x/group=one").mkdir(parents=True)
    watch(outputs.write_manifest, "one", "x", str(folder), "x")
    watch(outputs.sweep_manifests)
    watch(checkpoints.checkpoint, "one", name="by hand", request_id="checkpoint")
    watch(periodic_checkpoints.checkpoint_all)
    watch(lag.read_lag, ["one"])
    watch(release.read_alerts, [str(lane.name)])
    watch(capture.capture)
    watch(queries.count_between, lane.name, None, datetime.now(UTC))
    watch(times.close_span, [lane.name], times.Span(None, datetime.now(UTC)))
    watch(times.close_now, [lane.name])
    write(made(database, 2), {"0.0": 90.0, "1.0": 8.0})
    watch(scaling_run.scale_by_load, equal_ranges, request_id="run")
    watch(scaling_run.scale_by_load, equal_ranges, request_id="again")
    watch(retention_run.retain)
    watch(retention_run.retain, [])
    tail = ", ".join(f"{s}={n}" for s, n in lane.tail().items())
    at = f"time {datetime.now(UTC).isoformat()}"
    watch(manual_truncation.truncate_before, lane.name, at, dry_run=True, request_id="dry run")
    watch(
        manual_truncation.truncate_before,
        lane.name,
        "position",
        "one",
        dry_run=False,
        request_id="hand",
    )
    watch(manual_truncation.truncate, lane.name, tail, request_id="truncate")
    skipping = watch(readers.join, "other", "reader", LEASE)
    watch(batches.open_in, "other", "reader", skipping, Reading(budget(3)), lease=LEASE)
    watch(
        next_batch.next_batch,
        "other",
        "reader",
        skipping,
        Reading(budget(3)),
        until={},
        lease=LEASE,
    )
    Group(database, "other", (lane,)).lapse("reader")
    watch(readers.expire, 0.0)
    watch(readers.leave, "one", "heir", heir, LEASE)
    change_groups(watch, lane, other)
    keep_stores(watch, other)

    watch(prune.prune, 0.0)
    lane.scale("1.3")
    database.transaction(lambda c: announce(c, staged(later, {"0.0": 1})))
    watch(seal.seal_stream, lane.name, request_id="seal")
    watch(delete_stream.delete_stream, lane.name, unread_too=True, request_id="delete")
    watch(ownership.read_installation)
    watch(ownership.check_warehouse_ownership, str(folder / "warehouse"))
    watch(absent_files.why_unread, str(folder / "warehouse"), "1/no.parquet", OSError("gone"))
    for what in ("report", "keep", "delete"):
        warehouse = str(folder / "warehouse")
        watch(recover.recover, warehouse, unknown_files=what, request_id=what)
    watch(restored.erased_since, warehouse, [])
    watch(garbage.sweep, str(folder / "warehouse"), 0.0, output_roots=())


def publish_rows(watch: Watch, batch: Batch) -> table_outputs.StagedTable:
    column = Column("n", "int8", "bigint", None, 20, -1, False, False, False)
    staging, _ = watch(table_outputs.make_staging, batch, 0, [column])
    watch(table_outputs.drop_staging, staging)
    staging, _ = watch(table_outputs.make_staging, batch, 0, [column])
    return table_outputs.StagedTable("public.numbers", staging, (), 0)


def keep_stores(watch: Watch, lane: Lane) -> None:
    settings = AdjunctConfiguration(keep_versions=1, history=1)
    for name in ("test/one", "test/other"):
        watch(stores.define_store, name, lane.name, settings, AdjunctDefinition(), request_id=name)
    searched = erased_stores.Store("test/one", 1, lane.stream_id, None)
    watch(erased_stores.rows_with, Settings(), searched, ["k"])
    watch(erased_stores.erase_rows, Settings(), searched, ["k"], "asked")
    store = Store(watch.database, "test/one", lane)
    for _ in range(2):
        lane.append({lane.active()[0]: 5})
        begin = {"builder": "builder", "lease": LEASE}
        watch(builds.begin_build, "test/one", **begin)
        build = watch(builds.begin_build, "test/one", **begin)  # another attempt
        watch(publication.renew_build, build, LEASE)
        watch(publication.fail_build, "test/one", build, "it failed")
        build = watch(builds.begin_build, "test/one", **begin)
        watch(publication.publish_build, build, store.built(build))
    assert watch(lookup.look_up, "/nowhere", "test/one", "k0") is None  # beyond its files' hashes
    lane.scale(lane.active()[0])
    watch(builds.begin_build, "test/one", builder="builder", lease=LEASE)
    watch(stores.update_store, "test/one", {"patience": 9}, {"value": "n"}, request_id="update")
    watch(builds.begin_build, "test/one", builder="builder", lease=LEASE)
    run(watch.database, "UPDATE adjunct_version SET superseded_at = '-infinity', clock = 1 "
        "WHERE version = 1")  # fmt: skip
    watch(version_expiry.expire_versions)
    run(watch.database, "UPDATE adjunct_version SET ended_at = '-infinity', history_from = NULL "
        "WHERE state = 'expired'")  # fmt: skip
    watch(version_expiry.prune_versions, 0.0)
    watch(groups.create_reader_group, "joins", [lane.name], start="tail", request_id="joins")
    lane.append({lane.active()[0]: 5})
    token = watch(readers.join, "joins", "reader", LEASE)
    batch = watch(batches.open_in, "joins", "reader", token, Reading(budget(9)), lease=LEASE)
    bound = watch.database.transaction(lambda c: version_pins.bind_stores(c, ["test/other"]))
    watch(version_pins.record_targets, batch, bound, [])
    watch(version_pins.pin_version, batch, bound["test/other"], None)
    watch(splits.split_batch, batch, "it failed")
    batch = watch(batches.open_in, "joins", "reader", token, Reading(budget(9)), lease=LEASE)
    watch(batches.commit_batch, batch, lease=LEASE)
    Group(watch.database, "joins", (lane,)).lapse("reader")
    watch(version_pins.pass_over, "joins", [bound["test/other"].stream_id])
    watch(stores.delete_store, "test/one", request_id="delete store")


def change_groups(watch: Watch, lane: Lane, other: Lane) -> None:
    watch(groups.create_reader_group, "third", [lane.name], start="tail", request_id="third")
    token = watch(readers.join, "third", "slow", LEASE)
    lane.append({lane.active()[0]: 5})
    batch = watch(batches.open_in, "third", "slow", token, Reading(budget(9)), lease=LEASE)
    waits = {"barrier": True, "request_id": "barrier"}
    watch(checkpoints.checkpoint, "third", name="waits", **waits)
    watch(checkpoints.checkpoint, "third", name="waits too", **{**waits, "request_id": "b2"})
    watch(checkpoints.cancel_checkpoint, "third", "waits too", request_id="cancel")
    watch(batches.commit_batch, batch, lease=LEASE)
    watch(
        checkpoints.checkpoint, "third", name="late", patience=0.0, **{**waits, "request_id": "l"}
    )
    watch(checkpoints.settle_group, "third")
    watch(periodic_checkpoints.settle_all)
    watch(periodic_checkpoints.prune_checkpoints, 0.0)
    watch(batch_history.prune_batches, 0.0)
    watch(history.record_groups, ["one"])
    watch(history.keep_history)
    both = [lane.name, other.name]
    pins = [Pin.parse(f"{lane.name} 0..0.5 big")]
    changed = {"streams": both, "subscriber": False, "pins": pins}
    watch(group_update.update_reader_group, "third", **changed, request_id="u")
    watch(
        group_update.update_reader_group,
        "third",
        streams=[lane.name],
        subscriber=True,
        request_id="v",
    )
    watch(group_update.update_reader_group, "third", aligned=True, request_id="aligned")
    watch(alignment.end_of_run, "third")
    watch(group_update.update_reader_group, "third", aligned=False, request_id="not aligned")
    lane.append({lane.active()[0]: 5})
    token = watch(readers.join, "third", "gone", LEASE)
    watch(readers.reader_offline, "third", "slow", request_id="offline")
    taken = watch(batches.open_in, "third", "gone", token, Reading(budget(9)), lease=LEASE)
    bound = taken.bounds[0]
    place = f"{segment_name(bound.segment_id)}={bound.end}"
    watch(readers.reader_offline, "third", "gone", place, request_id="offline at")
    by_hand = {"release": "manual", "request_id": "w"}
    watch(group_update.update_reader_group, "third", **by_hand)
    watch(release.release, "third", "position", request_id="release")
    watch(reset.reset_reader_group, "third", "tail", request_id="reset")
    watch(consumers.declare_consumer, "third", {"function": "a:b"}, request_id="declare")
    watch(groups.fork_reader_group, "third", "fourth", at="checkpoint waits", request_id="fork")
    watch(groups.delete_reader_group, "fourth", request_id="delete")


def test_every_operation_locks_in_order_before_it_writes_and_what_it_writes_to(
    database: Database, test_database: TestDatabase, tmp_path: Path
) -> None:
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.numbers (n bigint);
        GRANT SELECT, INSERT ON public.numbers TO weir_jobs, weir_publisher""",
    )
    watch = Watch(database)
    do_everything(watch, tmp_path)
    assert watch.seen.keys() == operations()
    assert watch.faults() == []
    # They are excused for a reason, which is still there.
    for operation in EXCEPTIONS:
        assert any(faults(one) for one in watch.seen[operation]), operation


def test_every_table_has_an_owner(database: Database) -> None:
    tables = rows(database, "SELECT tablename FROM pg_tables WHERE schemaname = 'weir_internal'")
    assert {row.tablename for row in tables} == OWNER.keys()


STREAMS = "SELECT * FROM stream WHERE stream_id = ANY(%(ids)s) ORDER BY stream_id FOR NO KEY UPDATE"
GROUP = "SELECT * FROM reader_group WHERE name = %(name)s FOR NO KEY UPDATE"
READER = "SELECT FROM reader WHERE group_id = %(g)s FOR NO KEY UPDATE"
COMMITTED = "WITH a AS (UPDATE stream SET last_clock = 1) INSERT INTO data_file SELECT * FROM a"


@pytest.mark.parametrize(
    ("statements", "fault"),
    [
        ([GROUP, STREAMS], "locks stream after reader_group"),
        ([STREAMS, READER, GROUP], "locks reader_group after reader"),
        ([STREAMS, STREAMS], "locks stream after stream"),
        ([STREAMS, COMMITTED, GROUP], "locks reader_group after it has written"),
        ([STREAMS.replace("ORDER BY stream_id ", "")], "locks many rows of stream in no order"),
        ([STREAMS.replace("NO KEY ", "")], "locks stream FOR UPDATE"),
        ([GROUP, COMMITTED], "writes data_file without a lock on its stream"),
        ([STREAMS, "DELETE FROM\n reader"], "writes reader without a lock on its reader_group"),
        (["SELECT 1", "UPDATE reader_batch b SET attempt = 2"], "writes reader_batch without"),
    ],
)
def test_a_fault_is_found(statements: list[str], fault: str) -> None:
    assert any(one.startswith(fault) for one in faults(statements)), faults(statements)


def test_functions_that_lock_or_write_are_seen() -> None:
    locks = {"lock_streams", "lock_streams_and_groups", "lock_for_commit", "begin_append"}
    writes = {"announced", "prune_below", "swap_files", "pack_commits", "forget_publication"}
    calls = {"commit_append", "state_completeness", "close_stream", "end_batch"}
    assert functions().keys() >= locks | writes | calls
    assert functions().keys().isdisjoint({"size_till", "group_cut", "held_segments"})


def test_what_is_in_order_has_no_fault() -> None:
    upsert = "INSERT INTO request VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.b"
    assert faults([STREAMS, GROUP, READER, "SELECT 1", COMMITTED, upsert]) == []
