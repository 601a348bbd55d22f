"""An option that would change nothing is refused, and what is to be done instead is said."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terminal.conftest import Done
from tests.world.streams import rows
from weir.database.connection import Database

Weir = Callable[..., Done]
CREATED = ["create", "shop/orders", "--key", "k", "--segments", "2", "--on-bad-rows", "quarantine"]


@pytest.fixture
def stream(weir: Weir, tmp_path: Path) -> str:
    """Create a stream that is there when files come, and a file for it."""
    (tmp_path / "rows.csv").write_text("k,n\na,1\n")
    assert weir(*CREATED).status == 0
    return "shop/orders"


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("--on-bad-rows fail", "update-stream shop/orders --on-bad-rows fail"),
        ("--on-missing-key spread", "update-stream shop/orders --on-missing-key spread"),
        ("--on-new-column refuse", "update-stream shop/orders --on-new-column refuse"),
        ("--segments 4", "has 2 of them"),
        ("--schema k_STRING", "--more-columns"),
        ("--key other", "leave --key out"),
    ],
)
def test_what_counts_for_a_new_stream_is_refused_where_there_is_one(
    weir: Weir, stream: str, words: str, instead: str
) -> None:
    name, value = words.split()
    done = weir("ingest", "rows.csv", "--stream", stream, name, value.replace("_", " "), "--json")
    assert done.status == 2
    said = done.json["error"]
    wanted = "change_impossible" if name == "--key" else "arguments_conflict"
    assert said["code"] == wanted, said
    assert name in said["sentence"]
    assert instead in said["sentence"]
    assert weir("streams", "--json").json[0]["events"] == 0


def test_a_new_stream_treats_rows_without_a_key_like_those_that_do_not_fit(
    weir: Weir, stream: str, database: Database
) -> None:
    assert weir("create", "shop/plain", "--key", "k").status == 0
    more = ["--on-bad-rows", "quarantine", "--on-missing-key", "spread"]
    assert weir("create", "shop/own", "--key", "k", *more).status == 0
    assert weir("create", "shop/later", "--key", "k").status == 0
    assert weir("update-stream", "shop/later", "--on-bad-rows", "quarantine").status == 0
    found = rows(database, "SELECT stream_name, on_bad_rows, on_missing_key FROM stream")
    assert sorted(map(tuple, found)) == [
        ("shop/later", "quarantine", "fail"),
        ("shop/orders", "quarantine", "quarantine"),
        ("shop/own", "quarantine", "spread"),
        ("shop/plain", "fail", "fail"),
    ]
