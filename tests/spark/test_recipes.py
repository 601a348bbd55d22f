"""docs/recipes.md is run, block after block, as somebody types it."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.terminal.conftest import Done
from tests.terminal.conftest import weir as weir  # instead of the fixture of this folder
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres

Weir = Callable[..., Done]
PAGE = Path(__file__).parents[2] / "docs/recipes.md"
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ORDERS = "order_id,customer,amount\n1,ann,10.0\n2,bob,3.0\n3,ann,7.5\n4,eve,1.25\n"


def recipe(heading: str) -> list[str]:
    """The blocks of a recipe."""
    text = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [block for _, block in BLOCK.findall(text)]


def type_in(weir: Weir, block: str) -> list[Done]:
    """Type the lines of a block; all must succeed."""
    done = []
    for line in block.splitlines():
        done.append(weir(*shlex.split(line.removeprefix("weir "))))
        assert done[-1].status == 0, f"{line}: {done[-1].err}"
    return done


def now() -> str:
    time.sleep(0.01)
    return datetime.now(UTC).isoformat()


@pytest.fixture
def shop(spark: SparkSession, weir: Weir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of somebody with two streams, and the module of the page."""
    module = BLOCK.findall(PAGE.read_text())[0][1].replace("/data/", f"{tmp_path}/")
    (tmp_path / "recipes.py").write_text(module)
    monkeypatch.delitem(sys.modules, "recipes", raising=False)
    (tmp_path / "orders.csv").write_text(ORDERS)
    (tmp_path / "payments.csv").write_text("order_id,paid\n3,true\n9,true\n")
    table = pa.table({"customer": ["ann", "bob"], "region": ["north", "south"]})
    pq.write_table(table, tmp_path / "regions.parquet")
    for stream, key in (("orders", "customer"), ("payments", "order_id")):
        typed = ["ingest", f"{stream}.csv", "--stream", f"shop/{stream}", "--key", key]
        assert weir(*typed).status == 0
    return tmp_path


def output(database: Database, group: str) -> list[dict[str, Any]]:
    """The rows of a group's Parquet folders that count."""
    found = database.transaction(
        lambda c: c.exec_driver_sql(
            f"SELECT path FROM parquet_outputs WHERE reader_group = '{group}'"
        ).scalars().all()
    )  # fmt: skip
    rows = [row for path in found for row in pq.read_table(path).to_pylist()]
    return sorted(rows, key=lambda row: sorted(map(str, row.items())))


@pytest.mark.release
def test_streams_are_replayed_backfilled_joined_and_read(
    weir: Weir,
    shop: Path,
    database: Database,
    test_database: TestDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEIR_GRACE_PERIOD", "0")
    begun = now()
    (shop / "more.csv").write_text("order_id,customer,amount\n5,bob,4.0\n")
    assert weir("ingest", "more.csv", "--stream", "shop/orders").status == 0
    ended = now()
    [block] = recipe("Replay yesterday")
    lines = block.replace("2026-06-01T00:00:00Z", begun).replace("2026-06-02T00:00:00Z", ended)
    *before, last = lines.splitlines(keepends=True)
    type_in(weir, "".join(before))
    assert output(database, "replay") == [{"customer": "bob", "amount": 4.0}]
    type_in(weir, last)

    type_in(weir, recipe("Backfill a column")[0])
    taxed = weir("read", "shop/orders-with-tax", "--json").lines
    assert {row["order_id"]: row["tax"] for row in taxed} == {1: 2, 2: 0.6, 3: 1.5, 4: 0.25, 5: 0.8}

    type_in(weir, recipe("Join a stream with a table")[0])
    places = {row["order_id"]: row["region"] for row in output(database, "regions")}
    assert places == {1: "north", 2: "south", 3: "north", 4: None, 5: "south"}
    type_in(weir, recipe("Join two streams")[0])
    paid = {row["order_id"]: row["amount"] for row in output(database, "paid")}
    assert paid == {3: 7.5, 9: None}

    known: dict[str, Any] = {}
    exec(compile(recipe("DuckDB, pandas, Polars")[0], str(PAGE), "exec"), known)  # noqa: S102
    assert known["best"] == [("ann", 17.5), ("bob", 7.0), ("eve", 1.25)]
    assert known["mean"]["ann"] == 8.75
    assert dict(known["most"].rows()) == {"ann": 10.0, "bob": 4.0, "eve": 1.25}
    assert list(known["last"]["order_id"])[-1] == 5

    tables, reload, newest = recipe("Reload yesterday")
    execute(test_database.owner_dsn, tables)
    (shop / "corrected.csv").write_text("order_id,customer,amount\n5,bob,4.5\n2,zoe,3.0\n")
    type_in(weir, reload)
    table = dict(execute(test_database.owner_dsn, "SELECT order_id, amount FROM reports.orders"))
    assert table == {1: 10.0, 2: 3.0, 3: 7.5, 4: 1.25, 5: 4.5}
    exec(compile(newest, str(PAGE), "exec"), known)  # noqa: S102
    assert dict(known["now"]) == table


@pytest.mark.release
def test_a_backup_is_restored_and_used_again_after_it_was_compared(
    weir: Weir,
    shop: Path,
    test_database: TestDatabase,
    postgres_server: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restored = f"{test_database.name}_restored"
    owner = postgres_server.dsn(restored, "postgres")
    back_up, restore = recipe("Back up and restore")
    monkeypatch.setenv("WEIR_DATABASE_OWNER", postgres_server.dsn(test_database.name, "postgres"))
    type_in(weir, back_up)
    (shop / "late.csv").write_text("order_id,customer,amount\n7,zoe,1.0\n")
    assert weir("ingest", "late.csv", "--stream", "shop/orders").status == 0
    postgres_server.psql(f"CREATE DATABASE {restored} OWNER weir_owner")
    try:
        monkeypatch.setenv("WEIR_DATABASE_OWNER", owner)
        monkeypatch.setenv("WEIR_DATABASE", owner)
        monkeypatch.setenv("WEIR_WAREHOUSE", str(shop / "elsewhere"))
        first, *others = restore.splitlines()
        type_in(weir, first)
        refused = weir("ingest", "late.csv", "--stream", "shop/orders", "--json")
        assert refused.status == 2
        type_in(weir, "\n".join(others))
        assert weir("ingest", "late.csv", "--stream", "shop/orders").status == 0
        rows = weir("read", "shop/orders", "--json").lines
        assert sorted(row["order_id"] for row in rows) == [1, 2, 3, 4, 7]
    finally:
        postgres_server.psql(f"DROP DATABASE IF EXISTS {restored} WITH (FORCE)")


def test_migrating_again_changes_nothing(
    weir: Weir, test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate, doctor = recipe("Upgrade")[0].splitlines()
    environ = os.environ | {"WEIR_DATABASE_OWNER": test_database.owner_dsn}
    done = subprocess.run(
        [sys.executable, *migrate.split()[1:]], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "up to date" in done.stdout
    assert f"layout {'0.1.0'}" in weir(*doctor.split()[1:]).out
