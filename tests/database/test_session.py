"""Statements mean the same whatever a login, a database or a server is set to."""

import pytest

from tests.conftest import TestDatabase
from tests.world.groups import Group
from tests.world.streams import Lane, rows
from weir.database import migrate, session
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.retention.capture import capture
from weir.retention.run import retain

HOSTILE = {
    "search_path": "public",
    "timezone": "'Asia/Kathmandu'",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "intervalstyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
}


def test_every_setting_that_changes_a_meaning_is_tried() -> None:
    assert HOSTILE.keys() == session.MEANING.keys()


@pytest.mark.parametrize("name", ["standard_conforming_strings", "all"])
def test_a_stream_lives_whatever_a_login_is_set_to(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, name: str
) -> None:
    for one, value in HOSTILE.items():
        if name in (one, "all"):
            postgres_server.psql(
                f"ALTER ROLE weir_app IN DATABASE {test_database.name} SET {one} = {value};"
                f"ALTER ROLE weir_owner IN DATABASE {test_database.name} SET {one} = {value}"
            )
    migrate.upgrade(test_database.owner_dsn)
    database = test_database.open()
    lane = Lane.made(database, retention="consumed", retain_min_age=None)
    lane.append({"0.0": [5, 5], "1.0": [5, 5]})
    group = Group.made(lane)
    reader = group.reader()
    batch = reader.must_open()
    reader.commit(batch)
    assert [one["events"] for one in capture(database)] == [20]
    retain(database)
    for asked in ("weir.streams", "weir.lag", "weir.why_kept(:s)"):
        assert rows(database, f"SELECT * FROM {asked}", s=str(lane.name)) is not None
    assert [row[0] for row in rows(database, "SELECT unread_events FROM weir.lag")] == [0]
    database.dispose()
