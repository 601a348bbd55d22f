"""docs/sql.md says what the catalogue says, and what the example queries really answer."""

import re
from difflib import unified_diff

from docs.generate_sql import COOKBOOK, EXAMPLES, TARGET, cookbook, document
from tests.conftest import TestDatabase
from tests.world.streams import rows
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


def test_the_page_is_up_to_date(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    kept, made = TARGET.read_text(), document(postgres_server, test_database.name)
    changes = list(unified_diff(kept.splitlines(), made.splitlines(), "kept", "made", "", "", 0))
    assert changes == [], "run `make docs`:\n" + "\n".join(changes[:20])


def test_the_cookbook_is_up_to_date(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    kept, made = COOKBOOK.read_text(), cookbook(postgres_server, test_database.name)
    changes = list(unified_diff(kept.splitlines(), made.splitlines(), "kept", "made", "", "", 0))
    assert changes == [], "run `make docs`:\n" + "\n".join(changes[:20])
    asked = re.findall("^### (.*)$", kept, re.MULTILINE)
    assert len(asked) == len(set(asked)) >= 40
    assert "ERROR" not in kept


def test_every_function_that_people_may_call_has_an_example(database: Database) -> None:
    examples = EXAMPLES.read_text()
    functions = rows(
        database,
        """SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'weir'::regnamespace
        ORDER BY 1""",
    )
    assert len(functions) >= 12
    assert [f.proname for f in functions if f"weir.{f.proname}(" not in examples] == []
