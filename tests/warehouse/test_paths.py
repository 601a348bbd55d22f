"""Where data lies, and which paths are refused."""

import os
from pathlib import Path

import pytest

from tests.raises import raises
from weir.errors import InvalidInput
from weir.settings import load
from weir.warehouse.paths import attempt_folder, below_root, spark_path
from weir.warehouse.room import rooms


def test_an_attempt_has_a_folder_of_its_own() -> None:
    assert attempt_folder(7, 12, 3) == "7/_weir_tx=12/_weir_attempt=3/"


def test_spark_is_given_addresses() -> None:
    assert spark_path("/data/warehouse", "7/x") == "file:///data/warehouse/7/x"
    assert spark_path("/data/warehouse/") == "file:///data/warehouse/"
    assert spark_path("s3a://bucket/weir/", "7/x") == "s3a://bucket/weir/7/x"


@pytest.fixture
def roots(tmp_path: Path) -> list[str]:
    for name in ("first", "second", "first-beside", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "first" / "a.csv").write_text("")
    return [str(tmp_path / "first"), str(tmp_path / "second")]


def test_relative_paths_are_below_the_first_root(roots: list[str]) -> None:
    assert below_root("a.csv", roots, "input") == (roots[0], "a.csv")
    assert below_root("x/../y/z", roots, "input") == (roots[0], "y/z")


def test_absolute_paths_may_be_below_any_root(roots: list[str]) -> None:
    assert below_root(f"{roots[1]}/x/y", roots, "output") == (roots[1], "x/y")


@pytest.mark.parametrize(
    "given",
    [
        "", "..", "../outside/x", "x/../../outside", "/etc/passwd", "{outside}/x",
        "{first}-beside/x",
        "{first}", "{first}/..", ".", "a\0b", "s3://bucket/x", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_what_lies_outside_the_roots_is_refused(
    given: str, roots: list[str], tmp_path: Path
) -> None:
    path = given.format(outside=tmp_path / "outside", first=roots[0])
    with raises("path_not_allowed input"):
        below_root(path, roots, "input")


def test_a_link_may_not_lead_out_of_its_root(roots: list[str], tmp_path: Path) -> None:
    os.symlink(tmp_path / "outside", Path(roots[0]) / "out")
    os.symlink(roots[1], Path(roots[0]) / "other")
    with raises("path_not_allowed"):
        below_root("out/x", roots, "input")
    assert below_root("other/x", roots, "input") == (roots[1], "x")


def test_a_root_that_is_a_link_itself_is_followed(roots: list[str], tmp_path: Path) -> None:
    os.symlink(roots[0], tmp_path / "link")
    assert below_root("a.csv", [str(tmp_path / "link")], "input") == (roots[0], "a.csv")


def test_relative_paths_are_below_the_first_address_where_no_root_is_a_folder() -> None:
    roots = ["viewfs://box/in", "s3a://bucket/in"]
    assert below_root("x/../y.csv", roots, "input") == ("viewfs://box/in", "y.csv")
    for given in ("../y.csv", "..", ".", "/y.csv", "../in-beside/y.csv"):
        with raises("path_not_allowed"):
            below_root(given, roots, "input")


def test_addresses_are_below_roots_that_are_addresses() -> None:
    roots = ["s3a://bucket/in", "/data"]
    assert below_root("s3a://bucket/in/x/y", roots, "input") == ("s3a://bucket/in", "x/y")
    assert below_root("S3A://bucket/in//x/./y/", roots, "input") == ("s3a://bucket/in", "x/y")
    for given in ("s3a://bucket/in/../x", "s3a://bucket/inside/x", "s3a://other/in/x"):
        with pytest.raises(InvalidInput):
            below_root(given, roots, "input")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("viewfs://Box/weir", "viewfs://Box/weir"),  # mount tables have capitals
        ("HDFS://Cluster-A:8020//weir/./a/../b//", "hdfs://Cluster-A:8020/weir/b"),
        ("hdfs:/weir/", "hdfs:///weir"),
        ("hdfs:///weir", "hdfs:///weir"),
        ("s3a://bucket/", "s3a://bucket"),
        ("s3a://bucket", "s3a://bucket"),
        ("abfss://box@account/weir", "abfss://box@account/weir"),
    ],
)
def test_addresses_in_the_settings_have_one_spelling(given: str, meant: str) -> None:
    settings = load({"WEIR_WAREHOUSE": given, "WEIR_OUTPUT_ROOTS": f"out, {given}"})
    assert settings.warehouse == meant
    assert settings.output_roots == (str(Path("out").absolute()), meant)


def test_without_roots_nothing_is_allowed() -> None:
    with raises("path_not_allowed"):
        below_root("x", [], "input")


def test_a_folder_that_can_not_be_looked_at_has_no_room(tmp_path: Path) -> None:
    [room] = rooms(str(tmp_path / ("x" * 300)), "s3://bucket/x", str(tmp_path), str(tmp_path))
    assert room["root"] == str(tmp_path)
    assert 0 <= room["free"] <= room["size"]
