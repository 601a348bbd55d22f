"""What a publication promises of its files, whoever kills it, and whatever else happens."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyarrow import fs
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import StaticTable

import weir
from tests.annex.publication.engines import by_pyiceberg, catalog, metadata_of
from tests.annex.publication.tables import check, expected, published
from tests.chance import random_for
from tests.compaction.world import World
from tests.raises import raises
from tests.warehouse.object_store import ObjectStore
from tests.world.columns import column, values_of
from tests.world.garbage import sweep
from tests.world.streams import Lane, at_once, rows, run, unique
from weir.annex.publication import place, records, table
from weir.annex.publication.columns import columns_of
from weir.annex.publication.plan import plan
from weir.annex.publication.run import publish
from weir.annex.recovery.recover import recover
from weir.controller.seal import seal_stream
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.kernel.schema import to_arrow
from weir.model.column_changes import ColumnChanges
from weir.model.schema import new_field
from weir.retention.delete_stream import delete_stream
from weir.settings import Settings


@pytest.fixture
def world(database: Database, settings: Settings) -> World:
    return World.made(database, settings, random_for("publication"), publish="iceberg")


def problem(world: World) -> Any:
    return world.lane.value("SELECT problem FROM weir_internal.publication WHERE stream_id = :s")


def update(world: World, **changes: Any) -> None:
    update_stream(
        world.lane.database, world.lane.name, changes, request_id=unique("update")
    )  # fmt: skip


def change_columns(world: World, **changes: Any) -> None:
    update_stream(
        world.lane.database, world.lane.name, {}, column_changes=ColumnChanges(**changes),
        request_id=unique("update"),
    )  # fmt: skip


def metadata_files(world: World) -> set[str]:
    """The files of all tables that lie in the warehouse."""
    selector = fs.FileSelector(world.settings.warehouse, recursive=True)
    found = fs.LocalFileSystem().get_file_info(selector)
    start = len(world.settings.warehouse) + 1
    files = {one.path[start:] for one in found if one.type == fs.FileType.File}
    return {path for path in files if "/_weir_iceberg/" in path}


def named(world: World) -> set[str]:
    """The files of tables that the database knows."""
    return {
        row.path
        for row in rows(
            world.lane.database,
            "SELECT path FROM weir_internal.published_file WHERE manifest IS NULL",
        )
    }


def tables(world: World) -> list[Any]:
    """What the catalogue names."""
    return rows(world.lane.database, "SELECT table_name FROM weir.iceberg_tables")


class Killed(BaseException):
    """The process ends here."""


STEPS: list[Callable[[], Any]] = [
    lambda: patch.object(table._Snapshot, "manifest", side_effect=Killed),
    lambda: patch.object(table, "_add_snapshot", side_effect=Killed),
    lambda: patch.object(place.Place, "file", side_effect=Killed),
    lambda: patch.object(ToOutputFile, "table_metadata", side_effect=Killed),
    lambda: patch.object(records, "commit", side_effect=Killed),
]


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_publication_that_is_killed_changes_nothing_and_leaves_nothing(
    world: World, step: int
) -> None:
    world.append()
    before = by_pyiceberg(published(world))
    world.append()
    with STEPS[step](), pytest.raises(Killed):
        publish(world.lane.database, world.settings)
    stream = (world.lane.name.scope, world.lane.name.name)
    assert by_pyiceberg(catalog(world.settings.database).load_table(stream)) == before
    [busy] = publish(world.lane.database, world.settings)
    assert busy.get("busy"), "its lease is not over"
    run(
        world.lane.database,
        "UPDATE weir_internal.publication SET lease_until = '2000-01-01'",
    )
    check(world, published(world))
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert metadata_files(world) == named(world)


def test_a_commit_whose_answer_was_lost_is_not_made_twice(world: World) -> None:
    world.append()
    commit = records.commit

    def twice(*given: Any) -> None:
        commit(*given)
        commit(*given)

    with patch.object(records, "commit", twice):
        check(world, published(world))
    assert publish(world.lane.database, world.settings) == []


def test_who_lost_its_lease_commits_nothing(world: World) -> None:
    world.append()
    commit = records.commit

    def late(connection: Any, stream_id: int, number: int, *more: Any) -> None:
        connection.exec_driver_sql("UPDATE weir_internal.publication SET number = number + 1")
        with raises("attempt_fenced publication"):
            commit(connection, stream_id, number, *more)
        commit(connection, stream_id, number, *more)

    with patch.object(records, "commit", late):
        [failed] = publish(world.lane.database, world.settings)
    assert "is over" in failed["error"]
    assert problem(world) is not None


def test_what_is_truncated_while_it_is_published_is_not_published(world: World) -> None:
    world.append()
    cut = world.lane.tail()
    write, commit = table.write, records.commit

    def slow(*given: Any) -> Any:
        written = write(*given)
        world.lane.truncate(", ".join(f"{segment}={at}" for segment, at in cut.items()))
        return written

    def late(*given: Any) -> None:
        with raises("attempt_fenced truncated"):
            commit(*given)
        commit(*given)

    with patch.object(table, "write", slow), patch.object(records, "commit", late):
        [failed] = publish(world.lane.database, world.settings)
    assert "truncated or compacted while" in failed["error"]
    assert problem(world) == failed["error"].removeprefix(f"stream {world.lane.name}: ")
    check(world, published(world))
    assert problem(world) is None


def test_two_publications_at_once_make_one_table(world: World) -> None:
    world.append()
    done = at_once(*[lambda: publish(world.lane.database, world.settings)] * 4)
    assert not [one for reports in done for one in reports if "error" in one]
    assert sum("snapshot" in one for reports in done for one in reports) >= 1
    check(world, published(world))


def test_a_sweep_waits_until_no_snapshot_names_a_file(world: World) -> None:
    world.append()
    cut = world.lane.tail()
    world.append()
    before = published(world)
    seen = by_pyiceberg(before)
    world.lane.truncate(", ".join(f"{k}={v}" for k, v in cut.items()))
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert by_pyiceberg(before) == seen, "the table still names the files"
    after = published(world)
    assert len(after.snapshots()) == 1, "the snapshot that names them is expired"
    assert by_pyiceberg(before) == seen, "whoever began to read has the grace period"
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    check(world, published(world))
    with pytest.raises(FileNotFoundError):
        by_pyiceberg(before)
    assert metadata_files(world) == named(world), "what no snapshot needs is gone, too"


def test_snapshots_from_before_a_compaction_stay_until_its_old_files_go(world: World) -> None:
    for _ in range(3):
        world.append()
    before = by_pyiceberg(published(world))
    while not world.compact():
        world.append()
    after = published(world)
    check(world, after)
    first = after.snapshots()[0].snapshot_id
    assert by_pyiceberg(after, first) == before
    run(
        world.lane.database,
        "UPDATE weir_internal.garbage SET garbage_since = '2000-01-01' WHERE reason = 'compacted'",
    )
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert by_pyiceberg(after, first) == before
    last = published(world)
    assert [one.snapshot_id for one in last.snapshots()] == [after.snapshots()[-1].snapshot_id]


def test_many_small_publications_have_few_manifests_and_few_snapshots(world: World) -> None:
    with patch.object(table, "MERGED", 4), patch.object(table, "MOST_SNAPSHOTS", 3):
        for _ in range(10):
            world.append(3)
            last = published(world)
    check(world, last)
    snapshot = last.snapshots()[-1]
    assert len(snapshot.manifests(last.io)) <= 5
    assert len(last.snapshots()) == 3
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert metadata_files(world) == named(world)
    assert len(metadata_files(world)) < 20


def test_what_is_not_published_any_more_is_gone_from_the_catalogue_and_stays_a_stream(
    world: World,
) -> None:
    world.append()
    published(world)
    before = expected(world)
    update(world, publish="none")
    stream = (world.lane.name.scope, world.lane.name.name)
    with pytest.raises(NoSuchTableError):
        catalog(world.settings.database).load_table(stream)
    assert publish(world.lane.database, world.settings) == [
        {"stream": str(world.lane.name), "ended": True}
    ]
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert metadata_files(world) == set()
    assert expected(world) == before
    with raises("not_publishable published"):
        publish(world.lane.database, world.settings, [world.lane.name])
    update(world, publish="iceberg")
    check(world, published(world))


def test_a_deleted_stream_is_no_table(world: World) -> None:
    world.append()
    published(world)
    seal_stream(world.lane.database, world.lane.name, request_id="seal")
    check(world, published(world))
    delete_stream(world.lane.database, world.lane.name, request_id="delete")
    assert tables(world) == []
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert metadata_files(world) == set()


def test_after_a_recovery_the_table_is_made_anew(world: World) -> None:
    world.append()
    published(world)
    recover(
        world.lane.database, world.settings.warehouse, unknown_files="delete", request_id="recover"
    )
    assert tables(world) == []
    check(world, published(world))


def test_columns_are_known_by_their_names_in_files(world: World) -> None:
    world.append()
    check(world, published(world))
    world.columns = 3
    world.append()
    change_columns(world, rename={"v0": "first", "v1": "v0"}, drop=["v2"])
    check(world, published(world))
    change_columns(world, add=[new_field("v2", "string")])
    last = published(world)
    check(world, last)
    assert [field.name for field in last.schema().fields] == ["key", "n", "first", "v0", "v2"]
    assert {value for row in by_pyiceberg(last) for name, value in row if name == "v2"} == {None}


def test_types_come_out_as_they_are(database: Database, settings: Settings) -> None:
    from datetime import UTC, date, datetime
    from decimal import Decimal

    store = weir.open(settings=settings)
    store.create_stream("test/types", "k", publish="iceberg")
    given = {
        "k": [1, 2, 3], "Big": [2**40, None, -1],
        "b": pa.array([1, None, -128], pa.int8()), "s": pa.array([1, None, 2], pa.int16()),
        "f": pa.array([0.5, None, -1.5], pa.float32()), "d": [0.1, None, 2.0],
        "m": pa.array([Decimal("1.10"), None, Decimal("-99.99")], pa.decimal128(10, 2)),
        "w": pa.array([Decimal("1.0000000001"), None, Decimal(10)], pa.decimal128(38, 10)),
        "t": ["a", None, "ü"], "x": [b"\0", None, b"1"], "o": [True, None, False],
        "day": [date(2026, 1, 2), None, date(1900, 1, 1)],
        "at": [datetime(2026, 1, 2, tzinfo=UTC), None, datetime(1969, 1, 1, tzinfo=UTC)],
        "local": [datetime(2026, 1, 2, 3, 4, 5, 6), None, datetime(1969, 1, 1)],
        "list": [[1, None], None, []], "of": [{"a": 1, "c": ["x"]}, None, {"a": None, "c": []}],
        "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "with space": ["1", "2", None],
    }  # fmt: skip
    store.append("test/types", pa.table(given))
    world = World(_lane(database), settings, random_for("types"))
    check(world, published(world))


def test_widened_columns_are_read_in_old_and_new_files(
    database: Database, settings: Settings
) -> None:
    wider = {"byte": "short", "integer": "long", "float": "double", "decimal(5,2)": "decimal(12,2)"}
    kinds: list[dict[str, str]] = [{"key": "string"}, {"key": "string"}]
    for both in wider.items():
        for outer in ("", "array", "struct"):  # Polars reads no map that was widened
            for some, one in zip(kinds, both, strict=True):
                some[f"{outer} {both[0]}"] = f"{outer}<{one}>" if outer else one
    old, new = ([column(*one) for one in some.items()] for some in kinds)
    lane = Lane.made(database, 1, fields=old, publish="iceberg", name="test/wide")
    world, store = World(lane, settings, random_for("wide")), weir.open(settings=settings)
    for fields, some in zip((old, new), kinds, strict=True):
        given = {name: values_of(kind)[:2] for name, kind in some.items()}
        change_columns(world, widen=fields)
        store.append("test/wide", pa.table(given, to_arrow(fields)))
        check(world, published(world))


def _lane(database: Database) -> Any:
    from weir.model.names import stream_name

    [[number]] = rows(database, "SELECT stream_id FROM weir_internal.stream")
    return Lane(database, stream_name("test/types"), number)


def test_a_stream_without_columns_is_published_once_it_has_some(world: World) -> None:
    assert publish(world.lane.database, world.settings) == []
    world.append()
    check(world, published(world))


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ({"type": "string", "default": "'x'"}, "not_publishable stream d default"),
        ({"type": "variant"}, "not_publishable d variant publish"),
    ],
)
def test_what_the_format_lacks_is_said_and_the_table_stays(
    world: World, column: dict[str, Any], code: str
) -> None:
    world.append()
    before = by_pyiceberg(published(world))
    change_columns(world, add=[{"name": "d", "nullable": True, "metadata": {}, **column}])
    [failed] = publish(world.lane.database, world.settings)
    assert "'d'" in failed["error"]
    assert "'d'" in problem(world)
    stream = (world.lane.name.scope, world.lane.name.name)
    assert by_pyiceberg(catalog(world.settings.database).load_table(stream)) == before
    with raises(code):
        found = world.lane.database.snapshot(lambda c: plan(c, world.lane.stream_id, (0.0, 0.0)))
        columns_of(found.versions[-1])


def test_how_far_a_stream_is_published_is_shown(world: World) -> None:
    def shown() -> Any:
        [row] = rows(
            world.lane.database,
            """SELECT behind_events, behind_for IS NOT NULL AS late, snapshot, files, problem
            FROM weir.publications""",
        )
        return tuple(row)

    world.append()
    events = world.lane.value("SELECT sum(events)::int FROM weir_internal.data_file")
    assert shown()[:3] == (events, True, None)
    published(world)
    assert shown()[:3] == (0, False, 1)
    dry = publish(world.lane.database, world.settings, dry_run=True)
    assert dry == []
    world.append()
    [tried] = publish(world.lane.database, world.settings, dry_run=True)
    assert tried["added"] > 0
    assert shown()[:3] != (0, False, 1), "a dry run changes nothing"


def test_a_table_lies_in_an_object_store_beside_the_events(
    database: Database, settings: Settings, lake: ObjectStore
) -> None:
    here = replace(settings, warehouse="s3a://lake/weir")
    world = World.made(database, here, random_for("s3"), publish="iceberg")
    world.append()
    address = metadata_of(database, str(world.lane.name)) if published_there(world) else ""
    assert address.startswith("s3://lake/weir/")
    assert not [name for name in lake.objects if name.endswith("/")]
    table = StaticTable.from_metadata(address, {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"]})
    assert by_pyiceberg(table) == expected(world)


def published_there(world: World) -> bool:
    """Publish what is new."""
    [done] = publish(world.lane.database, world.settings)
    return "snapshot" in done
