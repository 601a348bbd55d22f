"""The typed statements of `weir.queries` are those of sql/queries, as the catalogue has them."""

import re
from pathlib import Path

import pytest
from sqlalchemy import Connection

from docs import generate_queries
from docs.generate_queries import TARGET, Wrong, modules
from tests.conftest import TestDatabase
from tests.rooms import JOBS, LIBRARY
from weir.database.connection import Database
from weir.queries.adjunct.builds import to_build
from weir.queries.controller.scale import known


def test_each_module_is_what_the_catalogue_says(test_database: TestDatabase) -> None:
    made = modules(test_database.dsn)
    assert set(TARGET.rglob("*.py")) == set(made)
    assert [path.name for path, text in made.items() if path.read_text() != text] == [], (
        "run `make queries`"
    )


def test_a_file_takes_the_fragments_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate_queries, "SOURCES", tmp_path)
    (tmp_path / "a.sql").write_text("-- A.\n\n-- fragment: low\n-- Said here.\nx < 3\n")
    asking = tmp_path / "b.sql"
    asking.write_text("-- B.\n-- fragments: a.sql\n\n-- name: b -> many\nSELECT 1 WHERE {low}\n")
    found = generate_queries.read(asking)
    assert (found.about, [one.text for one in found.statements]) == ("B.", ["SELECT 1 WHERE x < 3"])


def test_a_sequence_may_be_a_tuple_or_null(database: Database) -> None:
    def asked(connection: Connection) -> tuple[list[int], list[object]]:
        some = known(connection, stream_id=0, ids=(1, 2))
        return some, [*to_build(connection, names=None)]

    assert database.transaction(asked) == ([], [])


def test_each_statement_is_used() -> None:
    code = [*LIBRARY.rglob("*.py"), *JOBS.glob("*.py")]
    texts = [path.read_text() for path in code if TARGET not in path.parents]
    named = set(re.findall(r"\b[a-z]\w*\.(\w+)\b", "\n".join(texts)))
    statements = {
        name
        for path in TARGET.rglob("*.py")
        for name in re.findall(r"^def (\w+)", path.read_text(), re.M)
    }
    assert sorted(one for one in statements if not named & {one, one.upper()}) == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("-- name: a -> many\nSELECT nothing FROM stream", "nothing"),
        ("-- name: a -> many\n-- null: b\nSELECT name FROM stream", "has no b"),
        ("-- name: a -> many\nSELECT 1 AS x, 2 AS x", "two columns"),
        ("-- name: a -> some\nSELECT 1", "is not"),
        ("-- name: a -> many X\nSELECT 1 AS x, 2 AS y\n-- name: b -> one X\nSELECT 1 AS x, 2 AS z",
         "not those of the class X"),
        ("-- import: from weir.model.segment import Segment\n-- name: a -> many Segment\n"
         "SELECT key_low, segment_id, key_high FROM segment", "not those of the class Segment"),
    ],
)  # fmt: skip
def test_a_statement_that_fits_nothing_is_refused(
    statement: str, said: str, test_database: TestDatabase, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    sources = tmp_path / "sql" / "queries"
    sources.mkdir(parents=True)
    (sources / "a.sql").write_text(f"-- About.\n\n{statement}\n")
    monkeypatch.setattr(generate_queries, "REPOSITORY", tmp_path)
    monkeypatch.setattr(generate_queries, "SOURCES", sources)
    monkeypatch.setattr(generate_queries, "ANNEXES", tmp_path / "annex")
    with pytest.raises(Wrong, match=said):
        modules(test_database.dsn)
