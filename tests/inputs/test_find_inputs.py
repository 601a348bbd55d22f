"""Which files an append takes: below the roots, each once, in a certain order; what they are."""

import os
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.raises import raises
from tests.warehouse.object_store import BUCKET, object_store
from weir.errors import InvalidInput
from weir.inputs import files as inputs
from weir.inputs.files import Inputs, find_inputs
from weir.inputs.unchanged import check_unchanged
from weir.kernel.text_options import TextOptions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An input root with a few files, and a secret beside it."""
    root = tmp_path / "input"
    for name in ("b.csv", "a.csv", "days/2.csv", "days/10.csv", "days/1.csv", "days/_SUCCESS",
                 "days/.2.csv.crc"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"k\n{name}\n")
    (tmp_path / "secret.csv").write_text("k\nsecret\n")
    return root


def find(root: Path, *paths: str, format_: str = "csv", **options: Any) -> Inputs:
    """With one root."""
    return find_inputs(paths, [str(root)], format_, TextOptions(**options))


def names(inputs: Inputs) -> list[str]:
    """The paths, in their order."""
    return [file.path for file in inputs.files]


def test_files_keep_the_order_in_which_they_are_given(root: Path) -> None:
    assert names(find(root, "b.csv", "a.csv")) == ["b.csv", "a.csv"]
    found = find(root, str(root / "b.csv"), "days/../a.csv")
    assert names(found) == ["b.csv", "a.csv"]
    assert [file.bytes for file in found.files] == [8, 8]


def test_folder_stands_for_its_files_by_name_without_hidden_ones(root: Path) -> None:
    assert names(find(root, "b.csv", "days", "a.csv")) == [
        "b.csv", "days/1.csv", "days/10.csv", "days/2.csv", "a.csv",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path", ["../secret.csv", "days/../../secret.csv", "{tmp}/secret.csv", "/etc/passwd", "~/x",
             "{tmp}/input-2/x.csv", "a.csv\0", ""],
)  # fmt: skip
def test_path_outside_the_roots_is_refused(root: Path, path: str) -> None:
    (root.parent / "input-2").mkdir()
    (root.parent / "input-2/x.csv").write_text("k\n")
    with pytest.raises(InvalidInput, match=r"root|does not exist|NUL"):
        find(root, path.format(tmp=root.parent))


def test_as_many_files_as_their_ranks_can_tell_apart(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "FILE_BITS", 2)
    assert len(find(root, "days", "a.csv").files) == 4
    with raises("argument_invalid 5 4 several"):
        find(root, "days", "a.csv", "b.csv")


def test_link_that_leads_out_of_the_root_is_refused(root: Path) -> None:
    (root / "link.csv").symlink_to(root.parent / "secret.csv")
    (root / "folder").symlink_to(root.parent)
    for path in ("link.csv", "folder/secret.csv", "folder"):
        with raises("path_not_allowed"):
            find(root, path)


def test_link_in_a_folder_that_leads_out_of_the_root_is_refused(root: Path) -> None:
    (root / "days/3.csv").symlink_to(root.parent / "secret.csv")
    with raises("path_not_allowed days/3.csv"):
        find(root, "days")


def test_link_within_the_root_is_the_file_it_leads_to(root: Path) -> None:
    (root / "link.csv").symlink_to(root / "days/1.csv")
    assert names(find(root, "link.csv")) == ["days/1.csv"]
    with raises("argument_invalid input"):
        find(root, "link.csv", "days")


def test_second_root_is_found_by_its_whole_path(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.csv").write_text("k\nx\n")
    roots = [str(root), str(tmp_path / "other")]
    one = find_inputs(["a.csv"], roots, "csv")
    other = find_inputs([str(tmp_path / "other/a.csv")], roots, "csv")
    assert one.batch_id != other.batch_id, "they are different files"
    assert [file.path for file in one.named] == ["a.csv"]
    assert [file.path for file in other.named] == [str(tmp_path / "other/a.csv")]
    with raises("file_invalid roots"):
        find_inputs(["a.csv", str(tmp_path / "other/a.csv")], roots, "csv")


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (["missing.csv"], "file_not_found 'missing.csv'"),
        (["empty"], "folder_empty 'empty'"),
        (["nested"], "file_invalid 'inner' order"),
        (["a.csv", "days", "./a.csv"], "argument_invalid input"),
        (["days", "days/2.csv"], "argument_invalid input"),
        (["days/_SUCCESS"], "file_invalid input '_SUCCESS'"),
        (["days/.2.csv.crc"], "file_invalid input '.2.csv.crc'"),
        (["copy._COPYING_"], "file_invalid input 'copy._COPYING_'"),
        ([], "argument_missing input"),
    ],
)
def test_what_cannot_be_read_is_refused_and_named(root: Path, paths: list[str], says: str) -> None:
    (root / "empty").mkdir()
    (root / "nested/inner").mkdir(parents=True)
    for name in ("nested/x.csv", "copy._COPYING_"):
        (root / name).write_text("k\n")
    with raises(says):
        find(root, *paths)


def test_format_must_be_one_of_three_or_what_the_endings_say(root: Path) -> None:
    with raises("argument_invalid 'orc' auto, parquet, csv json"):
        find(root, "a.csv", format_="orc")
    chosen, found = find(root, "a.csv", "days"), find(root, "a.csv", "days", format_="auto")
    assert found == chosen, "the same append, however its format was said"


def test_identity_is_the_ordered_paths_and_the_fingerprint_what_is_in_them(root: Path) -> None:
    first = find(root, "a.csv", "b.csv")
    assert first.batch_id == find(root, str(root / "a.csv"), "./b.csv").batch_id
    assert first.fingerprint == find(root, "a.csv", "b.csv").fingerprint
    assert first.batch_id != find(root, "b.csv", "a.csv").batch_id, "another order is another input"
    assert first.batch_id != find(root, "a.csv").batch_id
    assert first.fingerprint != find(root, "a.csv", "b.csv", separator=";").fingerprint
    assert first.fingerprint != find(root, "a.csv", "b.csv", format_="json").fingerprint

    status = (root / "a.csv").stat()
    (root / "a.csv").write_text("k\nx.csv\n")  # as long as before
    os.utime(root / "a.csv", ns=(status.st_atime_ns, status.st_mtime_ns + 1000))
    changed = find(root, "a.csv", "b.csv")
    assert (changed.batch_id, changed.fingerprint != first.fingerprint) == (first.batch_id, True)


def test_row_is_found_again_by_its_rank(root: Path) -> None:
    inputs = find(root, "b.csv", "a.csv")
    assert inputs.origin(0) == ("b.csv", 0)
    assert inputs.origin((1 << 47) + 12) == ("a.csv", 12)


CHANGES: dict[str, Callable[[Path], object]] = {
    "grows": lambda root: (root / "days/1.csv").open("a").write("more\n"),
    "shrinks": lambda root: (root / "days/1.csv").write_text("k\n"),
    "is written again in the same size": lambda root: os.utime(root / "days/1.csv", ns=(1, 1)),
    "is gone": lambda root: (root / "days/1.csv").unlink(),
    "is new": lambda root: (root / "days/3.csv").write_text("k\nnew\n"),
    "is replaced by another": lambda root: (root / "days/3.csv").rename(root / "days/1.csv"),
    "has another name": lambda root: (root / "days/1.csv").rename(root / "days/0.csv"),
    "grows beside the folder": lambda root: (root / "a.csv").open("a").write("more\n"),
    "is gone beside the folder": lambda root: (root / "a.csv").unlink(),
    "the folder is gone": lambda root: (root / "days").rename(root / "others"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_files_that_change_while_they_are_read_are_not_appended(root: Path, what: str) -> None:
    if "replaced" in what:
        (root / "days/3.csv").write_text("k\n3\n")
    found = find(root, "days", "a.csv")
    check_unchanged(found)
    (root / "days/.hidden").touch()
    (root / "other.csv").touch()
    check_unchanged(found)
    CHANGES[what](root)
    with raises("file_unreadable csv append"):
        check_unchanged(found)


def test_a_file_that_is_named_alone_may_have_new_neighbours(root: Path) -> None:
    found = find(root, "days/1.csv")
    (root / "days/3.csv").write_text("k\n")
    check_unchanged(found)


def test_a_file_that_is_overwritten_within_its_second_by_as_many_bytes_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        store.written = int(time.time())
        names = ("days/1.csv", "days/2.csv", "alone.csv")
        store.objects |= dict.fromkeys(names, b"k\none\n")
        found = find_inputs(["days", "alone.csv"], [f"s3://{BUCKET}"], "csv")
        check_unchanged(found)
        for name in ("days/2.csv", "alone.csv"):
            store.objects[name] = b"k\ntwo\n"
            with raises(f"file_unreadable 1 {name} written again"):
                check_unchanged(found)
            store.objects[name] = b"k\none\n"
        assert found.fingerprint == replace(found, tags=()).fingerprint, (
            "later it is the same input"
        )
        store.written -= (
            3600  # what is written over this gets another time, so nobody asks for ETags
        )
        assert find_inputs(["days"], [f"s3://{BUCKET}"], "csv").tags == ()


# Another value of each option than the default.
OTHER: dict[str, Any] = {
    "separator": ";", "null_value": "NULL", "quote": "none", "escape": "\\", "comment": "#",
    "skip_lines": 1, "header": False, "encoding": "cp1252", "decimal": ",", "thousands": "'",
    "date_format": "dd.MM.yyyy", "timestamp_format": "dd.MM.yyyy HH:mm",
    "time_zone": "Europe/Berlin",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "how", "option"),
    [
        *(("rows.parquet", {option.name: OTHER[option.name]}, option.name)
          for option in fields(TextOptions)),
        *(("rows.json", {option.name: OTHER[option.name]}, option.name)
          for option in fields(TextOptions)
          if option.name not in ("date_format", "timestamp_format", "time_zone")),
        ("rows.tsv", {"separator": ";"}, "separator"),
    ],
)  # fmt: skip
def test_an_option_that_changes_nothing_in_these_files_is_refused(
    tmp_path: Path, name: str, how: dict[str, Any], option: str
) -> None:
    (tmp_path / name).write_text("")
    with raises(f"arguments_conflict {option}"):
        find_inputs([str(tmp_path / name)], [str(tmp_path)], "auto", TextOptions(**how))


@pytest.mark.parametrize("name", ["rows.parquet", "rows.json"])
def test_types_of_text_for_other_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with raises("arguments_conflict infer"):
        find_inputs([str(tmp_path / name)], [str(tmp_path)], "auto", infer="strings")
