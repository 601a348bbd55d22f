"""Compactions beside each other, and beside all else that happens to a stream."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import weir
from tests.chance import random_for
from tests.compaction.world import EVER, World
from tests.raises import raises
from tests.world.columns import column, update
from tests.world.garbage import sweep
from tests.world.groups import Group
from tests.world.streams import at_once, run
from weir.annex.recovery.recover import recover
from weir.annex.verification.new_files import checking
from weir.arrow.read import concatenated, read_rows
from weir.compaction import records, rewrite
from weir.compaction.records import Written
from weir.compaction.run import compact
from weir.controller.read_plan import plan_of_stream
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.kernel.schema import to_arrow
from weir.model.compaction import Small, groups_of
from weir.programs.opening import shared
from weir.retention.delete_stream import delete_stream
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem
from weir.warehouse.footer import read_footer


@pytest.fixture
def world(database: Database, settings: Settings) -> World:
    """A stream of two segments with twelve commits."""
    made = World.made(database, settings, random_for("beside"))
    for _ in range(12):
        made.append()
    return made


def read(world: World) -> list[dict[str, Any]]:
    table = shared(world.settings).read(str(world.lane.name), order="stream")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def groups(world: World) -> list[list[Small]]:
    size = world.settings.file_bytes
    [found] = world.lane.database.snapshot(
        lambda c: records.find_small_files(c, [world.lane.name], size, thorough=True)
    )
    return groups_of(found.files, size, thorough=True)


def written(world: World, number: int, some: Sequence[Sequence[Small]]) -> list[Written]:
    """Write what a compaction with a number writes."""
    system, base = filesystem(world.settings.warehouse)
    folder = records.folder_of(world.lane.stream_id, number)
    tasks = iter(range(1000))
    return [one for group in some for one in rewrite.rewrite(system, base, folder, tasks, group)]


def begun(world: World, lease: float = 60.0) -> int:
    number = world.lane.database.transaction(
        lambda c: records.begin(c, world.lane.stream_id, lease)
    )
    assert number is not None
    return number


def swap(world: World, number: int, new: Sequence[Written]) -> records.Swapped | None:
    return world.lane.database.transaction(
        lambda c: records.swap(c, world.lane.stream_id, number, new)
    )


def garbage(world: World) -> dict[str, str]:
    rows = world.lane.rows("SELECT path, reason FROM garbage WHERE stream_id = :s")
    return {row.path: row.reason for row in rows}


def on_disk(world: World) -> set[str]:
    root = Path(world.settings.warehouse)
    return {str(one.relative_to(root)) for one in root.glob("[0-9]*/**/*.parquet")}


def clean(world: World) -> None:
    """All that is not swept is what the database records."""
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert on_disk(world) == {file.path for file in world.lane.files()}


def test_the_commit_of_a_swap_may_be_asked_for_again(world: World) -> None:
    before = read(world)
    chosen, number = groups(world), begun(world)
    new = written(world, number, chosen)
    done = swap(world, number, new)
    assert done is not None
    assert (done.files_after, done.events) == (2, len(before))
    assert swap(world, number, new) == done, "the answer of the first one was lost"
    assert read(world) == before
    clean(world)
    assert read(world) == before


def truncated(world: World) -> None:
    tail = world.lane.tail()
    world.lane.truncate(", ".join(f"{name}={end // 2}" for name, end in tail.items()))


def truncated_whole(world: World) -> None:
    world.lane.truncate(", ".join(f"{name}={end}" for name, end in world.lane.tail().items()))


def scaled(world: World) -> None:
    world.lane.scale("0.0")
    world.append()


def sealed(world: World) -> None:
    seal_stream(world.lane.database, world.lane.name, request_id="seal")


def renamed(world: World) -> None:
    """Its columns swap their names, and get a new one with a default."""
    changes = {"rename": {"n": "v0", "v0": "n"}, "add": [column("gate", "integer", "7")]}
    update(world.lane, **changes)


def compacted(world: World) -> None:
    """Another one, which believed that the lease of this one had expired."""
    run(world.lane.database, "UPDATE compaction SET lease_until = '-infinity'")
    compact(world.lane.database, world.settings, EVER, thorough=True)


def recovered(world: World) -> None:
    recover(
        world.lane.database, world.settings.warehouse, unknown_files="delete", request_id="recover"
    )


@pytest.mark.parametrize("refused", ["truncated", "truncated_whole", "scaled", "sealed", "renamed"])
def test_what_happens_while_files_are_written_is_as_if_nobody_wrote_them(
    world: World, refused: str
) -> None:
    chosen, number = groups(world), begun(world)
    new = written(world, number, chosen)
    globals()[refused](world)
    before = read(world)
    swap(world, number, new)
    assert read(world) == before
    clean(world)
    compact(world.lane.database, world.settings, EVER, [world.lane.name], thorough=True)
    assert read(world) == before


@pytest.mark.parametrize("ended", [compacted, recovered], ids=["compacted", "recovered"])
def test_a_compaction_that_somebody_ended_replaces_nothing(
    world: World, ended: Callable[[World], None]
) -> None:
    before = read(world)
    chosen, number = groups(world), begun(world)
    new = written(world, number, chosen)
    ended(world)
    with raises("attempt_fenced compaction"):
        swap(world, number, new)
    assert read(world) == before
    clean(world)
    assert read(world) == before


def test_a_stream_that_is_deleted_meanwhile_stays_deleted(world: World) -> None:
    chosen, number = groups(world), begun(world)
    new = written(world, number, chosen)
    sealed(world)
    delete_stream(world.lane.database, world.lane.name, request_id="delete")
    assert swap(world, number, new) is None
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert on_disk(world) == set()


def test_what_was_put_together_goes_with_its_stream(world: World) -> None:
    compact(world.lane.database, world.settings, EVER, thorough=True)
    every = sum((Path(world.settings.warehouse) / path).stat().st_size for path in on_disk(world))
    sealed(world)
    delete_stream(world.lane.database, world.lane.name, request_id="delete")
    [(reason, size)] = world.lane.rows("SELECT reason, bytes FROM garbage")
    assert (reason, size) == ("deleted", every)
    grace = world.settings.compacted_grace
    sweep(world.lane.database, world.settings.warehouse, 0.0, compacted_grace=grace)
    assert on_disk(world) == set()


def test_two_at_once_write_each_file_once(world: World) -> None:
    before = read(world)
    one = partial(compact, world.lane.database, world.settings, EVER, thorough=True)
    first, second = at_once(one, one)
    done = [*first, *second]
    assert [report["files_after"] for report in done] == [2], done
    assert read(world) == before
    clean(world)


def test_what_an_open_batch_and_a_plan_read_stays_until_they_end(world: World) -> None:
    before = read(world)
    reader = Group.made(world.lane, subscriber=False).reader()
    batch = reader.must_open()
    slices, fields = world.lane.database.snapshot(lambda c: plan_of_stream(c, world.lane.name))[1:]
    schema = to_arrow(fields)

    def planned() -> pa.Table:
        settings = world.settings
        parts = [read_rows(settings, one, schema, ["n"]) for one in slices]
        return concatenated(parts, schema, ["n"])

    rows = planned()
    compact(world.lane.database, world.settings, EVER, thorough=True)
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    assert planned() == rows, "the batch keeps its files, and so all that are as old"
    reader.commit(batch)
    sweep(world.lane.database, world.settings.warehouse, 3600.0)
    assert planned() == rows, "a program has the grace period"
    sweep(world.lane.database, world.settings.warehouse, 0.0)
    with raises("file_swept read again"):
        planned()
    assert read(world) == before


def test_a_database_that_is_restored_finds_its_files_for_a_week(world: World) -> None:
    backup = {file.path for file in world.lane.files()}
    compact(world.lane.database, world.settings, EVER, thorough=True)
    assert set(garbage(world)) == backup
    grace = world.settings.compacted_grace
    sweep(world.lane.database, world.settings.warehouse, 0.0, compacted_grace=grace)
    assert backup <= on_disk(world)
    world.lane.rows(
        "UPDATE garbage SET garbage_since = garbage_since - interval '8 days' RETURNING path"
    )
    sweep(world.lane.database, world.settings.warehouse, 0.0, compacted_grace=grace)
    assert not backup & on_disk(world)


def test_a_damaged_file_is_told_and_the_others_are_put_together(
    world: World, settings: Settings
) -> None:
    other = World.made(world.lane.database, settings, random_for("other"))
    for _ in range(9):
        other.append()
    Path(settings.warehouse, world.lane.files()[0].path).unlink()
    reports = compact(world.lane.database, settings, EVER, thorough=True)
    failed, done = sorted(reports, key=lambda one: "error" not in one)
    assert (failed["stream"], done["stream"]) == (str(world.lane.name), str(other.lane.name))
    assert "is missing in the warehouse" in failed["error"]
    assert [row.state for row in world.lane.rows("SELECT state FROM compaction ORDER BY 1")] == [
        "aborted", "done",
    ]  # fmt: skip
    assert "aborted" in garbage(world).values()


def test_a_budget_of_bytes_or_time_leaves_the_rest_to_the_next_run(world: World) -> None:
    settings = replace(world.settings, file_bytes=8_000)
    before, count = read(world), len(world.lane.files())
    first = compact(world.lane.database, settings, replace(EVER, bytes=1), thorough=True)
    assert first[0]["files_after"] == 1, "the first group may exceed it"
    assert compact(world.lane.database, settings, replace(EVER, seconds=-1), thorough=True) == []
    rest = compact(world.lane.database, settings, EVER, thorough=True)
    saved = sum(one["files_before"] - one["files_after"] for one in [*first, *rest])
    assert len(world.lane.files()) == count - saved
    assert read(world) == before


def test_an_action_compacts_and_the_views_say_what_it_saved(world: World) -> None:
    before, count, name = read(world), len(world.lane.files()), str(world.lane.name)
    [(small,)] = world.lane.rows(
        "SELECT small_files FROM weir.small_files WHERE stream = :n", n=name
    )
    assert small == count
    with weir.open(settings=world.settings) as store:
        [done] = store.compact(streams=[name])["compacted"]
        assert (done["files_before"], done["files_after"]) == (count, 2)
        assert store.compact(streams=[name])["compacted"] == []
        with raises("stream_not_found"):
            store.compact(streams=["no/such"])
        assert store.upkeep()["compacted"] == []
    [(before_, after, small, last)] = world.lane.rows(
        """SELECT c.files_before, c.files_after, f.small_files, f.last_compacted = c.ended_at
        FROM weir.compactions c JOIN weir.small_files f USING (stream) WHERE stream = :n""",
        n=name,
    )
    assert (before_, after, small, last) == (count, 2, 2, True)
    assert read(world) == before


def test_what_differs_from_what_was_committed_takes_no_file_s_place(world: World) -> None:
    path = Path(world.settings.warehouse, world.lane.files()[0].path)
    rows = pq.read_table(path)
    n = rows.schema.get_field_index("n")
    pq.write_table(rows.set_column(n, "n", pc.add(rows["n"], 1)), path)
    files = world.lane.files()
    with weir.open(settings=world.settings) as store, raises("some_failed"):
        store.compact()
    app = Installation(world.settings, world.lane.database)
    chosen, number = groups(world), begun(world)
    with raises("invariant_violated whether"):
        checking(app)(world.lane.stream_id, written(world, number, chosen))
    assert world.lane.files() == files


def test_where_no_digest_is_recorded_new_files_are_compared_with_the_old_ones(
    world: World,
) -> None:
    run(world.lane.database, "UPDATE time_index SET digest = NULL")
    check = checking(Installation(world.settings, world.lane.database))
    chosen = groups(world)
    new = written(world, begun(world), chosen)
    check(world.lane.stream_id, new)
    path = Path(world.settings.warehouse, new[0].path)
    rows = pq.read_table(path)
    n = rows.schema.get_field_index("n")
    pq.write_table(rows.set_column(n, "n", pc.add(rows["n"], 1)), path)
    with pa.OSFile(str(path)) as source:
        _, end_hash = read_footer(source, source.size())
    other = new[0]._replace(bytes=path.stat().st_size, end_hash=end_hash)
    with raises("invariant_violated another digest than the old files"):
        check(world.lane.stream_id, [other])
