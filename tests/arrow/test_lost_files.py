"""A file that can't be read is told with its cause and what to do, wherever somebody reads it."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.raises import raises
from tests.terminal.conftest import Done
from tests.terminal.conftest import weir as terminal  # noqa: F401 - a fixture
from tests.world.garbage import sweep
from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.annex.recovery.recover import recover
from weir.arrow import append as appending
from weir.controller import read_plan
from weir.controller.absent_files import why_unread
from weir.controller.ownership import check_marker, read_installation
from weir.controller.seal import seal_stream
from weir.controller.transactions import begin
from weir.database.connection import Database
from weir.kernel.attempt import Staged
from weir.kernel.writer import stage_table
from weir.programs.opening import shared
from weir.settings import Settings
from weir.warehouse.marker import Marker, location, read_marker, write_marker


@pytest.fixture
def lane(database: Database, settings: Settings) -> Lane:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    return Lane.made(database, name="iot/small", segments=1)


def fill(settings: Settings, batch: str, count: int = 20) -> None:
    rows = pa.table({"key": [f"key {n}" for n in range(count)]})
    shared(settings).append("iot/small", rows, writer_id="w", batch_id=batch)


def files(lane: Lane, settings: Settings) -> list[Path]:
    rows = lane.rows(
        "SELECT path FROM data_file WHERE stream_id = :s ORDER BY segment_id, start_offset"
    )
    return [Path(settings.warehouse, row.path) for row in rows]


def readers(settings: Settings) -> list[Callable[[], Any]]:
    return [
        lambda: shared(settings).read("iot/small"),
        lambda: shared(settings).read("iot/small", order="stream"),
        lambda: shared(settings).tail("iot/small", 100),
    ]


def test_a_file_that_somebody_deleted_is_told_with_the_cut_past_it(
    lane: Lane, settings: Settings
) -> None:
    fill(settings, "one", 20)
    fill(settings, "two", 7)
    files(lane, settings)[0].unlink()
    for read in readers(settings):
        with raises("file_missing 20 iot/small did not delete") as missing:
            read()
        assert "0.0=20" in missing.value.sentence
        assert not missing.value.retryable
    lane.truncate("0.0=20")
    assert [read().num_rows for read in readers(settings)] == [7, 7, 7]
    files(lane, settings)[-1].unlink()
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    with raises("file_missing 7 sealed delete_stream"):
        shared(settings).read("iot/small")


@pytest.mark.parametrize(
    "damage", [lambda f: os.truncate(f, 10), lambda f: os.truncate(f, 0),
               lambda f: f.write_bytes(f.read_bytes() + b"more"),
               lambda f: f.write_bytes(b"x" * f.stat().st_size)]
)  # fmt: skip
def test_a_file_that_is_damaged_is_told_as_such(
    lane: Lane, settings: Settings, damage: Callable[[Path], Any]
) -> None:
    fill(settings, "one")
    damage(files(lane, settings)[0])
    for read in readers(settings):
        with raises("file_missing damaged 0.0=20"):
            read()


def test_a_file_that_is_swept_between_the_plan_and_the_read_says_so(
    lane: Lane, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(settings, "one")
    planned = read_plan.plan

    def then_swept(*given: Any) -> Any:
        found = planned(*given)
        lane.truncate("0.0=20")
        sweep(lane.database, settings.warehouse, 0.0)
        return found

    monkeypatch.setattr("weir.arrow.read.plan", then_swept)
    with raises("file_swept truncated"):
        shared(settings).read("iot/small")


def test_a_wrong_warehouse_says_the_sentence_of_an_append_when_it_is_read(
    lane: Lane, settings: Settings, tmp_path: Path
) -> None:
    fill(settings, "one")
    for name, marker in (("none", None), ("other", Marker("somebody-else"))):
        wrong = replace(settings, warehouse=str(tmp_path / name))
        (tmp_path / name).mkdir()
        if marker:
            write_marker(wrong.warehouse, marker)
        asked = readers(wrong)
        asked.append(lambda: fill(wrong, "two"))  # noqa: B023
        for read in asked:
            with raises("warehouse_not_owned"):
                read()


def test_a_copied_warehouse_takes_no_appends_and_a_move_is_accepted_on_purpose(
    lane: Lane, settings: Settings, tmp_path: Path
) -> None:
    fill(settings, "one")
    copy = replace(settings, warehouse=str(tmp_path / "copy"))
    shutil.copytree(settings.warehouse, copy.warehouse)
    with raises("warehouse_elsewhere copy moved keep second second_name setting warehouse"):
        fill(copy, "two")
    with raises("warehouse_elsewhere"):
        sweep(lane.database, copy.warehouse, 0.0)
    assert shared(copy).read("iot/small").num_rows == 20, "as far as it has the files"
    fill(settings, "two", 3)
    for read in readers(copy):
        with raises("warehouse_elsewhere copy"):
            read()
    # It is moved: the copy is right, and what is left behind is not.
    shutil.rmtree(copy.warehouse)
    shutil.copytree(settings.warehouse, copy.warehouse)
    report = recover(lane.database, copy.warehouse, request_id=unique("recover"))
    assert report["moved"]
    with raises("warehouse_elsewhere"):
        fill(copy, "three", 4)
    recover(lane.database, copy.warehouse, unknown_files="keep", request_id=unique("recover"))
    fill(copy, "three", 4)
    assert shared(copy).read("iot/small").num_rows == 27
    with raises("warehouse_elsewhere behind"):
        fill(settings, "four")
    # Nor is it when somebody has copied the right one back there.
    shutil.rmtree(settings.warehouse)
    shutil.copytree(copy.warehouse, settings.warehouse)
    with raises("warehouse_elsewhere"):
        fill(settings, "four")
    assert read_marker(copy.warehouse).locations == (location(copy.warehouse),)


def test_of_a_project_that_was_copied_with_its_database_each_uses_its_own_warehouse(
    lane: Lane, settings: Settings, tmp_path: Path
) -> None:
    fill(settings, "one")
    original = read_installation(lane.database)
    copy = replace(settings, warehouse=str(tmp_path / "copy"))
    shutil.copytree(settings.warehouse, copy.warehouse)
    recover(lane.database, copy.warehouse, unknown_files="keep", request_id=unique("recover"))
    fill(copy, "two")
    copied = read_installation(lane.database)  # this database is that of the copy from now on
    for known, own, others in ((original, settings, copy), (copied, copy, settings)):
        check_marker(own.warehouse, known, read_marker(own.warehouse))
        with raises("warehouse_elsewhere behind" if known is copied else "database_restored"):
            check_marker(others.warehouse, known, read_marker(others.warehouse))


def test_a_place_that_is_seen_to_be_the_same_folder_stays_right(
    lane: Lane, settings: Settings, tmp_path: Path
) -> None:
    fill(settings, "one")
    before = location(settings.warehouse)
    moved = tmp_path / "moved"
    Path(settings.warehouse).rename(moved)
    Path(settings.warehouse).symlink_to(moved)  # so that who has the old setting finds it
    there = replace(settings, warehouse=str(moved))
    with raises("warehouse_elsewhere"):
        fill(there, "two")
    recover(lane.database, str(moved), unknown_files="keep", request_id=unique("recover"))
    assert set(read_marker(str(moved)).locations) == {before, str(moved)}
    fill(there, "two")
    fill(settings, "three")


def test_a_second_name_of_a_warehouse_is_accepted_beside_the_first(
    lane: Lane, settings: Settings, tmp_path: Path
) -> None:
    fill(settings, "one")
    link = tmp_path / "link"
    link.symlink_to(settings.warehouse)
    fill(replace(settings, warehouse=str(link)), "two")  # a link is the same place
    # A second mount can't be told from a copy: as a marker that names another place.
    marker = Path(settings.warehouse, "_weir_installation")
    marker.write_text(marker.read_text().replace(location(settings.warehouse), "/mnt/weir"))
    with raises("warehouse_elsewhere /mnt/weir"):
        fill(settings, "three")
    begin(
        lane.database, lane.name, writer_id="w", batch_id="open", fingerprint="table", lease=60.0,
        source="test",
    )  # fmt: skip
    recover(
        lane.database, settings.warehouse, unknown_files="keep", second_name=True,
        request_id=unique("recover"),
    )  # fmt: skip
    assert lane.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 1
    assert lane.active() == ["0.0"], "nothing that runs was disturbed"
    fill(settings, "three")
    assert read_marker(settings.warehouse).locations == (
        *sorted(["/mnt/weir", location(settings.warehouse)]),
    )
    sweep(lane.database, settings.warehouse, 0.0)
    assert "/mnt/weir" in read_marker(settings.warehouse).locations


def test_a_marker_from_before_is_accepted_and_gets_its_place_with_a_sweep(
    lane: Lane, settings: Settings
) -> None:
    known = read_installation(lane.database)
    marker = Path(settings.warehouse, "_weir_installation")
    marker.write_text(f"{known.installation_id}\n{known.sweep_count}\n")
    fill(settings, "one")
    assert read_marker(settings.warehouse).locations == ()
    sweep(lane.database, settings.warehouse, 0.0)
    assert read_marker(settings.warehouse).locations == (location(settings.warehouse),)


@pytest.mark.parametrize(
    ("one", "other"),
    [("s3a://lake/w", "s3://lake/w/"), ("s3://key:secret@lake/w?region=x", "s3://lake/w"),
     ("/data/w/", "file:///data/w"), ("/a b/w", "file:///a%20b/w")],
)  # fmt: skip
def test_equal_places_are_equal_and_have_no_secrets(one: str, other: str) -> None:
    assert location(one) == location(other)
    assert "secret" not in location(one)


def test_a_link_that_is_moved_to_another_disk_and_two_containers_are_told_apart(
    tmp_path: Path,
) -> None:
    link, marker = tmp_path / "link", Marker("id", 0, (str(tmp_path / "link"), "/old/disk"))
    link.symlink_to(tmp_path)
    assert marker.is_at(str(link))
    assert not marker.is_at(str(tmp_path / "copy"))
    assert location("abfss://one@lake/w") != location("abfss://two@lake/w")


def test_a_recovery_says_which_events_are_lost_who_lacks_them_and_what_to_type(
    lane: Lane, settings: Settings
) -> None:
    ahead, behind = Group.made(lane), Group.made(lane)
    fill(settings, "one", 20)
    reader = ahead.reader()
    while (batch := reader.open(budget=100)) is not None:
        reader.commit(batch)
    lane.scale("0.0")
    fill(settings, "two", 9)
    for file in files(lane, settings)[:1]:
        file.unlink()

    def report(what: str = "report") -> Any:
        return recover(
            lane.database, settings.warehouse, unknown_files=what, request_id=unique("recover")
        )

    [lost] = report()["lost"]
    assert (lost["stream"], lost["files"], lost["events"]) == ("iot/small", 1, 20)
    assert lost["unread_by"] == [behind.name]
    assert "iot/small" in lost["then"]
    assert report("keep")["lost"] == [lost]
    with raises("file_missing 20"):
        shared(settings).read("iot/small")
    lane.truncate(lost["truncate_to"])
    assert shared(settings).read("iot/small").num_rows == 9
    assert report()["lost"] == []


def test_the_cut_past_lost_files_leaves_everything_else(lane: Lane, settings: Settings) -> None:
    lane.scale("0.0")  # 1.1 and 2.1, over half of the keys each
    fill(settings, "one", 40)
    left, right = lane.active()
    lane.scale(left)
    fill(settings, "two", 40)
    newest = files(lane, settings)[-1]
    sizes = lane.sizes()
    newest.unlink()
    [lost] = recover(lane.database, settings.warehouse, request_id=unique("recover"))["lost"]
    lane.truncate(lost["truncate_to"])
    rest = shared(settings).read("iot/small").num_rows
    assert rest == sum(sizes.values()) - sizes[left] - lost["events"], "only what precedes it"
    assert f"{right}=0" in lost["truncate_to"]


def test_a_terminal_says_why_a_file_is_not_there(
    lane: Lane,
    settings: Settings,
    terminal: Callable[..., Done],  # noqa: F811
) -> None:
    fill(settings, "one", 5)
    files(lane, settings)[0].unlink()
    for words in (["tail", "iot/small"], ["read", "iot/small"]):
        done = terminal(*words)
        assert done.status == 2
        assert "[file_missing]" in done.err
        assert "weir truncate-stream iot/small" in done.err


def test_a_storage_that_does_not_answer_is_no_lost_file(lane: Lane, settings: Settings) -> None:
    fill(settings, "one")
    error = OSError("AWS Error INTERNAL_FAILURE")
    path = str(files(lane, settings)[0].relative_to(settings.warehouse))
    there = why_unread(lane.database, settings.warehouse, path, error)
    assert (there.code, there.retryable) == ("warehouse_unreadable", True)
    assert "INTERNAL_FAILURE" in there.sentence


@pytest.mark.parametrize(
    "harm", [Path.unlink, lambda f: os.truncate(f, 9), lambda f: shutil.rmtree(f.parents[1])]
)
def test_files_that_somebody_deletes_before_the_commit_stop_it(
    lane: Lane, settings: Settings, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], Any]
) -> None:
    written = stage_table

    def harmed(*given: Any) -> Staged:
        staged = written(*given)
        harm(Path(settings.warehouse, staged.files[-1].path))
        return staged

    fill(settings, "before", 3)
    monkeypatch.setattr(appending, "stage_table", harmed)
    with raises("written_files_gone 1 iot/small"):
        fill(settings, "one")
    monkeypatch.undo()
    assert lane.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    assert shared(settings).read("iot/small").num_rows == 3
    fill(settings, "one")
    assert shared(settings).read("iot/small").num_rows == 23
    assert lane.value("SELECT sum(bytes) FROM data_file WHERE stream_id = :s") == sum(
        file.stat().st_size for file in files(lane, settings)
    )


def test_a_marker_that_can_not_be_read_ends_in_a_sentence_and_closes_the_append(
    lane: Lane, settings: Settings
) -> None:
    fill(settings, "one")
    marker = Path(settings.warehouse, "_weir_installation")
    content = marker.read_text()
    marker.unlink()
    marker.symlink_to("/proc/self/mem")  # whose first byte nobody can read
    with raises("warehouse_unreadable try again") as away:
        fill(settings, "two")
    assert away.value.retryable
    assert lane.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    with raises("warehouse_unreadable"):
        sweep(lane.database, settings.warehouse, 0.0)
    marker.unlink()
    for damaged in (b"caf\xe9", content.split("\n")[0].encode() + b"\nabc\n", b"\0" * 60):
        marker.write_bytes(damaged)
        with raises("file_missing backup"):
            fill(settings, "two")
    marker.write_text(content)
    fill(settings, "two")
    assert shared(settings).read("iot/small").num_rows == 40
