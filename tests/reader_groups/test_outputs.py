"""What a batch publishes: in one transaction with its commit, and exactly one attempt of it."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.committed_folders import committed_folders
from tests.world.groups import Group
from tests.world.streams import Lane, at_once, rows, run, staged
from weir.controller.transactions import abort
from weir.errors import Fenced
from weir.model.segment import segment_name
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.history import prune_batches
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.reader_groups.groups.readers import reader_offline
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.outputs.records import PART, record_output, write_manifest


@pytest.fixture
def out(lane: Lane) -> Lane:
    return Lane.made(lane.database)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def folder(group: Group, root: str) -> Path:
    """Make and return the folder in which the group has its manifest."""
    made = Path(root, "delays", f"group={group.name}")
    made.mkdir(parents=True)
    return made


def parquet(group: Group, batch: int, attempt: int, root: str = "/out") -> dict[str, Any]:
    folder = f"delays/group={group.name}/batch={batch}/attempt={attempt}/"
    return {"kind": "parquet", "output": "delays", "root": root, "path": folder}


def test_a_fenced_append_keeps_the_positions_where_they_are(group: Group, out: Lane) -> None:
    reader = group.reader()
    batch = reader.must_open()
    attempt = out.opened("1")
    abort(out.database, attempt)
    with pytest.raises(Fenced):
        reader.commit(batch, [staged(attempt, {"0.0": 7})], outputs=[parquet(group, 1, 1)])
    assert (out.tail(), group.cut()) == ({"0.0": 0, "1.0": 0}, {"0.0": 0, "1.0": 0})
    assert [(b.state, b.outputs) for b in group.batches()] == [("open", None)]
    # With another attempt at the append the batch is committed.
    reader.commit(batch, [staged(out.opened("1"), {"0.0": 7})])
    assert (out.tail(), group.cut()) == ({"0.0": 7, "1.0": 0}, {"0.0": 10, "1.0": 10})


def test_a_group_may_append_to_the_stream_it_reads(lane: Lane, group: Group) -> None:
    reader = group.reader()
    batch = reader.must_open()
    reader.commit(batch, [staged(lane.opened(), {"0.0": 1})])
    assert group.cut() == {"0.0": 10, "1.0": 10}
    assert reader.read_all() == [("0.0", 10, 11)]


def test_exactly_the_committed_attempt_counts_and_those_before_it_are_garbage(
    group: Group,
) -> None:
    first = group.reader("a")
    before = first.must_open(budget=10)
    record_output(group.database, before, parquet(group, 1, 1))
    second = group.reader("a")
    batch = second.must_open()
    record_output(group.database, batch, parquet(group, 1, 2))
    second.commit(batch, outputs=[parquet(group, 1, batch.attempt)])
    third = second.must_open()
    assert committed_folders(group.database, group.name, "delays") == [parquet(group, 1, 2)["path"]]
    second.commit(third, outputs=[parquet(group, 2, third.attempt)])
    assert committed_folders(group.database, group.name, "delays") == [
        parquet(group, 1, 2)["path"],
        parquet(group, 2, 1)["path"],
    ]
    dead = group.rows("SELECT root, path FROM garbage WHERE path LIKE :p", p=f"%{group.name}%")
    assert [tuple(row) for row in dead] == [("/out", parquet(group, 1, 1)["path"])]


def test_what_a_batch_wrote_that_never_counts_is_garbage(group: Group) -> None:
    def dead() -> list[str]:
        found = group.rows("SELECT path FROM garbage WHERE path LIKE :p", p=f"%{group.name}%")
        return sorted(row.path for row in found)

    wanted = []

    def begun(reader_id: str = "a") -> Batch:
        reader = group.reader(reader_id)
        batch = reader.must_open(budget=4)
        for name in ("delays", "more"):
            output = {**parquet(group, batch.batch_id, batch.attempt), "output": name}
            output["path"] = f"{name}/{output['path']}"
            record_output(group.database, batch, output)
            record_output(group.database, batch, output)  # the connection was lost at its COMMIT
            wanted.append(output["path"])
        return batch

    begun()
    assert dead() == [], "it may still count"
    split_batch(group.database, begun(), "it failed")
    assert dead() == sorted(wanted)
    place = begun().bounds[0]
    at = f"{segment_name(place.segment_id)}={place.start + 1}"
    reader_offline(group.database, group.name, "a", at, request_id="offline")
    assert dead() == sorted(wanted)
    begun()
    reset_reader_group(group.database, group.name, "tail", request_id="reset")
    assert dead() == sorted(wanted)
    group.lanes[0].append({"0.0": 1})
    begun()
    delete_reader_group(group.database, group.name, request_id="delete")
    found = rows(group.database, "SELECT path FROM garbage WHERE path = ANY(:w)", w=wanted)
    assert sorted(row.path for row in found) == sorted(wanted)


def test_the_manifest_lists_what_counts_for_readers_without_the_database(
    group: Group, root: str, folder: Path
) -> None:
    manifest = folder / "_manifest.json"
    write_manifest(group.database, group.name, "delays", root, "delays")
    assert not manifest.exists()
    reader = group.reader()
    for batch_id in (1, 2):
        batch = reader.must_open(budget=10)
        reader.commit(batch, outputs=[parquet(group, batch_id, 1, root)])
        write_manifest(group.database, group.name, "delays", root, "delays")
        folders = [parquet(group, i, 1)["path"] for i in range(1, batch_id + 1)]
        assert json.loads(manifest.read_text())["folders"] == folders


def listed(folder: Path) -> list[str]:
    """The folders of a manifest, as a reader without the database finds them."""
    manifest = json.loads((folder / "_manifest.json").read_text())
    parts = [json.loads((folder / name).read_text())["folders"] for name in manifest["older"]]
    return [path for part in [*parts, manifest["folders"]] for path in part]


def recorded(group: Group, root: str, past: int, history: str = "") -> None:
    """Record the batches up to a number as committed, unlisted."""
    run(
        group.database,
        """INSERT INTO parquet_output (group_id, group_name, output, number, batch_id, root,
                                    path, committed_at)
        SELECT :g, :name, 'delays', n, n, :root, 'delays/' || :history || n, clock_timestamp()
        FROM generate_series(coalesce((SELECT 1 + max(number) FROM parquet_output
                                       WHERE group_id = :g), 0), :past - 1) n""",
        g=group.group_id, name=group.name, root=root, history=history, past=past,
    )  # fmt: skip


def test_the_manifest_lists_thousands_of_batches_at_the_price_of_the_newest(
    group: Group, root: str, folder: Path
) -> None:
    reader = group.reader()
    write = partial(write_manifest, group.database, group.name, "delays", root, "delays")
    for before in (0, PART - 1, PART, 3 * PART + 7):  # what was committed in between, unlisted
        recorded(group, root, before)
        group.lanes[0].append({"0.0": 1})
        batch = reader.must_open()
        reader.commit(batch, outputs=[parquet(group, batch.batch_id, 1, root)])
        write()
        assert listed(folder) == committed_folders(group.database, group.name, "delays")
        assert len(listed(folder)) == before + 1
    newest = json.loads((folder / "_manifest.json").read_text())["folders"]
    assert len(newest) == 8
    times = {path: path.stat().st_mtime_ns for path in folder.glob("_manifest-*")}
    assert len(times) == 3
    [last] = folder.glob(f"_manifest-{group.group_id}-2-*.json")
    last.unlink()  # of a run that was killed before it
    write()
    assert listed(folder) == committed_folders(group.database, group.name, "delays")
    assert [path for path in times if path.stat().st_mtime_ns != times[path]] == [last]


def test_after_a_restore_the_manifest_lists_no_folder_of_the_history_that_was_lost(
    group: Group, root: str, folder: Path
) -> None:
    number = 0

    def commit(batches: int, history: str) -> None:
        nonlocal number
        number += batches
        recorded(group, root, number, history)
        write_manifest(group.database, group.name, "delays", root, "delays")
        assert listed(folder) == committed_folders(group.database, group.name, "delays")

    commit(PART + 1, "known-")
    commit(2 * PART, "lost-")
    run(
        group.database,
        "DELETE FROM parquet_output WHERE group_id = :g AND path LIKE 'delays/lost-%'",
        g=group.group_id,
    )
    number = PART + 1
    commit(1, "new-")
    commit(3 * PART, "new-")


def test_old_batches_are_pruned_and_what_they_wrote_counts_on(group: Group) -> None:
    reader = group.reader()
    for _ in range(3):
        group.lanes[0].append({"0.0": 1})
        batch = reader.must_open()
        reader.commit(batch, outputs=[parquet(group, batch.batch_id, 1)])
    group.lanes[0].append({"0.0": 1})
    still_open = reader.must_open()
    run(
        group.database,
        """UPDATE reader_batch SET committed_at = committed_at - interval '8 days',
            ended_at = ended_at - interval '8 days', opened_at = opened_at - interval '8 days'
        WHERE group_id = :g AND batch_id <> 3""",
        g=group.group_id,
    )
    before = committed_folders(group.database, group.name, "delays")
    prune_batches(group.database, 7 * 86400.0)
    assert [b.batch_id for b in group.batches()] == [3, still_open.batch_id]
    assert committed_folders(group.database, group.name, "delays") == before
    assert len(before) == 3
    prune_batches(group.database, 0.0)
    assert [b.batch_id for b in group.batches()] == [3, still_open.batch_id], "a day is kept"
    reader.commit(still_open)
    assert group.cut() == {"0.0": 14, "1.0": 10}


def test_readers_that_write_the_manifest_at_once_leave_it_whole_and_up_to_date(
    group: Group, root: str, folder: Path
) -> None:
    write = partial(write_manifest, group.database, group.name, "delays", root, "delays")
    reader = group.reader()
    for batch_id in range(1, 21):
        group.lanes[0].append({"0.0": 1})
        batch = reader.must_open(budget=1)
        commit = partial(reader.commit, batch, outputs=[parquet(group, batch_id, 1, root)])

        def committed_then_written(commit: Callable[[], object] = commit) -> None:
            commit()
            write()

        assert at_once(write, committed_then_written, write) == [None, None, None]
        found = json.loads((folder / "_manifest.json").read_text())["folders"]
        assert found == committed_folders(group.database, group.name, "delays")
    assert [path.name for path in folder.iterdir()] == ["_manifest.json"]
