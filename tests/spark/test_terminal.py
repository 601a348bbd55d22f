"""The commands that append and consume, as people type them in the folder of an installation."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.terminal.conftest import Done
from tests.terminal.conftest import weir as weir  # instead of the fixture of this folder

Weir = Callable[..., Done]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A person's own file, in the folder in which they are."""
    path = tmp_path / "orders.csv"
    path.write_text("order_id,customer,amount\n1,ann,10.5\n2,bob,3\n3,ann,7.25\n")
    return path


def test_a_csv_becomes_a_stream_and_reaches_a_consumer(
    spark: SparkSession, weir: Weir, orders: Path, tmp_path: Path
) -> None:
    first = weir("ingest", "orders.csv", "--stream", "shop/orders", "--key", "customer")
    assert first.status == 0, first.err
    assert "shop/orders: 3 events appended (transaction 1)" in first.out
    assert "columns: order_id long, customer string, amount double" in first.out
    assert "created stream shop/orders" in first.err
    again = weir("ingest", str(orders), "--stream", "shop/orders", "--json").json
    assert (again["repeated"], again["created"], again["events"]) == (True, False, 3)
    assert again["columns"][1] == {"name": "customer", "type": "string"}

    (tmp_path / "terminal_shop.py").write_text(
        "from pyspark.sql import functions as F\n"
        "def totals(orders):\n"
        "    return orders.groupBy('customer').agg(F.count('*').alias('orders'))\n"
    )
    typed = ["process", "totals", "terminal_shop:totals", "--stream", "shop/orders"]
    done = weir(*typed, "--output", "parquet:totals")
    assert done.status == 0, done.err
    said, place = done.out.splitlines()
    assert said == "totals: 3 events in 1 batch"
    rows = pq.read_table(place.partition(": ")[2]).to_pylist()
    assert sorted((row["customer"], row["orders"]) for row in rows) == [("ann", 2), ("bob", 1)]
    assert weir("lag", "totals", "--json").json[0]["unread_events"] == 0
    made = weir("lineage", "shop/orders", "--down", "--json").json
    assert {one["function"] for one in made} == {"terminal_shop:totals"}
    assert all(re.fullmatch("[0-9a-f]{16}", one["function_version"]) for one in made)
    assert {one["side"]: one["name"].rstrip("/") for one in made} == {
        "read": "shop/orders", "wrote": place.partition(": ")[2].rstrip("/"),
    }  # fmt: skip
    [read, wrote] = weir("lineage", "shop/orders", "--json").json
    assert (read["kind"], read["name"]) == ("file", str(orders))
    assert (wrote["from_offset"], wrote["to_offset"]) == (0, 3)
    nothing = weir(*typed, "--output", "parquet:totals", "--json").json
    assert (nothing["events"], nothing["batches"]) == (0, [])


@pytest.mark.release
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("orders.csv --stream shop/new", "stream_not_found"),
        ("none.csv --stream shop/new --key customer", "file_not_found"),
        ("orders.csv --stream shop/new --key nobody", "column_missing"),
        ("orders.csv --stream shop/new --key now()", "expression_invalid"),
        ("orders.csv --stream shop/new --key customer --format xml", "argument_invalid"),
        ("orders.csv --stream shop/new --key customer --segments 0", "argument_invalid"),
        ("orders.csv --stream new --key customer", "argument_invalid"),
        ("orders.csv --key customer", "argument_missing"),
    ],
)
def test_a_file_that_cannot_be_appended_leaves_no_stream(
    spark: SparkSession, weir: Weir, orders: Path, words: str, code: str
) -> None:
    refused = weir("ingest", *words.split(), "--json")
    assert refused.status == 2
    assert refused.json["error"]["code"] == code, refused.out
    assert weir("streams", "--json").json == []


@pytest.mark.release
def test_what_differs_from_what_there_is_is_refused(
    spark: SparkSession, weir: Weir, orders: Path
) -> None:
    assert weir("create", "shop/orders", "--key", "customer", "--segments", "2").status == 0
    assert weir("create", "shop/orders", "--key", "customer").status == 2
    other = weir("ingest", "orders.csv", "--stream", "shop/orders", "--key", "amount", "--json")
    assert other.json["error"]["code"] == "change_impossible"
    assert weir("create-reader-group", "totals", "--streams", "shop/orders").status == 0
    assert weir("create", "shop/others", "--key", "customer").status == 0
    typed = ["process", "totals", "shop:totals", "--output", "parquet:totals"]
    other = weir(*typed, "--stream", "shop/others", "--json")
    assert other.json["error"]["code"] == "group_exists"
    missing = weir(*typed, "--json")
    assert missing.json["error"]["code"] == "function_not_loadable"
    fresh = weir("process", "fresh", *typed[2:], "--stream", "shop/others")
    assert "deleted reader group fresh again, because nothing was read" in fresh.err
    nobody = weir("process", "nobody", *typed[2:])
    assert "add --stream STREAM to create it" in nobody.err
    assert {one["reader_group"] for one in weir("lag", "--json").json} == {"totals"}


def test_the_function_of_this_folder_runs_and_is_named_and_none_that_is_in_two_places(
    weir: Weir, tmp_path: Path
) -> None:
    """No batch is opened, so no JVM starts: the function is looked for first."""
    assert weir("create", "shop/orders", "--key", "customer", "--schema", "customer STRING")
    assert weir("create-reader-group", "totals", "--streams", "shop/orders").status == 0
    packages = tmp_path / "packages"
    (packages / "folder_shop").mkdir(parents=True)
    (packages / "folder_shop" / "__init__.py").write_text("def totals(orders): return orders\n")
    with (tmp_path / "weir.toml").open("a") as settings:
        settings.write("function_packages = ['folder_shop']\nfunction_path = ['packages']\n")
    (tmp_path / "folder_shop.py").write_text("def totals(orders): return orders\n")
    typed = ["process", "totals", "folder_shop:totals", "--output", "parquet:totals"]
    refused = weir(*typed, "--json").json["error"]
    assert refused["code"] == "function_invalid"
    for path in (tmp_path / "folder_shop.py", packages / "folder_shop" / "__init__.py"):
        assert str(path) in refused["sentence"]
    (packages / "folder_shop" / "__init__.py").rename(packages / "another.py")
    done = weir(*typed)
    assert done.status == 0, done.err
    assert f"function folder_shop:totals of {tmp_path / 'folder_shop.py'}, version " in done.err
    report = weir(*typed, "--json").json
    assert report["functions"][0]["file"] == str(tmp_path / "folder_shop.py")
    missing = weir("process", "totals", "folder_shop:total", *typed[3:])
    assert f"{tmp_path / 'folder_shop.py'} has no 'total'; did you mean 'totals'" in missing.err
