"""What runs as weir_publisher is reached by one door, which asks what the caller may do itself."""

import io
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import exc, text

from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.sql.teams import Opened
from tests.world.groups import Group
from tests.world.streams import rows
from weir.database.connection import Database, copy_in
from weir.errors import WeirError
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.batch import Batch
from weir.reader_groups.outputs.publication import Publication
from weir.reader_groups.outputs.tables import StagedTable, make_staging, read_table

AsOwner = Callable[[str], list[tuple[Any, ...]]]
# Tables of two teams, as people who use both let weir_publisher write them.
_TABLES = """
    CREATE SCHEMA shop; CREATE TABLE shop.kinds (kind text PRIMARY KEY);
    CREATE SCHEMA bank; CREATE TABLE bank.pay (kind text PRIMARY KEY);
    INSERT INTO bank.pay VALUES ('secret');
    ALTER TABLE shop.kinds OWNER TO team_shop; ALTER SCHEMA shop OWNER TO team_shop;
    ALTER TABLE bank.pay OWNER TO team_bank; ALTER SCHEMA bank OWNER TO team_bank;
    GRANT USAGE ON SCHEMA shop, bank TO weir_publisher;
    GRANT SELECT, INSERT, UPDATE, DELETE ON shop.kinds, bank.pay TO weir_publisher"""


@pytest.fixture
def as_owner(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, opened: Opened
) -> AsOwner:
    """Make the tables, and return a function that runs statements as who may do everything."""
    opened("shop_app")

    dsn = postgres_server.dsn(test_database.name, "postgres")
    execute(dsn, _TABLES)
    return partial(execute, dsn)


@pytest.fixture
def shop(opened: Opened, as_owner: AsOwner) -> Database:
    """Return the database as a login of team_shop has it, whose group has a batch to read."""
    store = opened("shop_app")
    store.create_stream("a/b", "n", owner="team_shop")
    store.append("a/b", [{"n": 1}])
    store.create_reader_group("g", ["a/b"], owner="team_shop")
    return store.database


def staged(database: Database, table: str, how: Publication, columns: Database) -> StagedTable:
    """Stage a row for a table, whose columns somebody looks up who may."""
    batch = _open(database)
    found = columns.transaction(lambda c: read_table(c, table, how))
    name, copy = make_staging(database, batch, 0, found, how.ordered)
    line = b"forged,0,0\n" if how.ordered else b"forged\n"
    piece = database.transaction(lambda c: copy_in(c, copy, io.BytesIO(line)))
    return StagedTable(table, name, (piece,), 1, how)


def _open(database: Database) -> Batch:
    return Group(database, "g", ()).reader().must_open()


def publish(database: Database, one: StagedTable) -> None:
    """Ask the function that publishes, as SQL can."""
    given = [{"staging": one.staging, "table": one.table, "pieces": one.pieces,
              "how": one.publication.statement({})}]  # fmt: skip
    rows(database, "SELECT publish_tables(CAST(:o AS jsonb))", o=json.dumps(given))


def test_nobody_but_weirs_functions_runs_anything_as_weir_publisher(
    opened: Opened, as_owner: AsOwner
) -> None:
    allowed = as_owner(
        """SELECT DISTINCT a.grantee::regrole::text FROM pg_proc p
        CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.proowner = 'weir_publisher'::regrole AND a.grantee <> p.proowner"""
    )
    assert allowed == [("weir_owner",)]
    assert as_owner("SELECT count(*) > 0 FROM pg_proc WHERE prosecdef AND "
                    "proowner = 'weir_publisher'::regrole") == [(True,)]  # fmt: skip
    calls = (
        """publish_staging('x', 'bank.pay', '{}', '', '{"mode": "replace"}')""",
        "settle_constraints('{bank.pay}', '{pg_temp}')",
        "erase_as_publisher('pg_class', '{kind}', '{secret}', false)",
        "lend_staging('x')",
        "empty_staging('{x}')",
    )
    for login in ("shop_app", "weir_app"):
        for call in calls:
            with raises("database_failed permission denied"):
                rows(opened(login).database, f"SELECT weir_internal.{call}")


@pytest.mark.parametrize("how", [
    Publication(), Publication("replace"), Publication("upsert", ("kind",)),
    Publication("replace", ("kind",)),
])  # fmt: skip
def test_a_team_publishes_only_to_tables_that_it_may_write_itself(
    shop: Database, database: Database, as_owner: AsOwner, how: Publication
) -> None:
    with raises("right_missing shop_app bank.pay GRANT"):
        shop.transaction(lambda c: read_table(c, "bank.pay", how))
    one = staged(shop, "bank.pay", how, database)
    with raises("right_missing shop_app bank.pay GRANT USAGE ON SCHEMA bank TO shop_app"):
        publish(shop, one)
    assert as_owner("SELECT kind FROM bank.pay") == [("secret",)]
    as_owner("GRANT USAGE ON SCHEMA bank TO team_shop;"
             "GRANT SELECT, INSERT, UPDATE, DELETE ON bank.pay TO team_shop")  # fmt: skip
    publish(shop, one)
    assert ("forged",) in as_owner("SELECT kind FROM bank.pay")
    as_owner("ALTER TABLE bank.pay ENABLE ROW LEVEL SECURITY")
    with raises("right_missing shop_app GRANT team_bank TO shop_app"):
        publish(shop, one)


def test_a_team_counts_and_erases_only_in_tables_where_it_may_do_that_itself(
    shop: Database, opened: Opened, as_owner: AsOwner
) -> None:
    asked = "SELECT * FROM erase_from_table('bank.pay', '{kind}', '{secret}', :only)"
    why = (None, "the login shop_app may not delete its rows")
    assert rows(shop, asked, only=True) == [(None, why[1].replace("delete", "read"))]
    assert rows(shop, asked, only=False) == [why]
    assert as_owner("SELECT kind FROM bank.pay") == [("secret",)]
    as_owner("GRANT USAGE ON SCHEMA bank TO team_shop; GRANT SELECT ON bank.pay TO team_shop")
    assert [rows(shop, asked, only=only) for only in (True, False)] == [[(1, None)], [why]]
    assert rows(opened("bank_app").database, asked, only=False) == [(1, None)]


FOREIGN = {
    "a function of the session": (
        "CREATE FUNCTION pg_temp.evil(batch jsonb) RETURNS void LANGUAGE sql AS 'SELECT 1'",
        "pg_temp.evil", "function_not_found"),
    "one of its own that was not granted": (
        "CREATE FUNCTION shop.evil(batch jsonb) RETURNS void LANGUAGE sql AS 'SELECT 1'",
        "shop.evil", "right_missing shop.evil by name"),
    "one of Postgres": ("SELECT 1", "pg_catalog.jsonb_pretty", "right_missing jsonb_pretty"),
}  # fmt: skip


@pytest.mark.parametrize("what", FOREIGN)
def test_a_publication_calls_no_function_that_was_not_made_for_it(
    shop: Database, database: Database, as_owner: AsOwner, what: str
) -> None:
    made, called, code = FOREIGN[what]
    one = staged(shop, "shop.kinds", Publication(), database)
    given = [{"staging": one.staging, "table": one.table, "pieces": one.pieces,
              "how": {"mode": "insert", "call": called, "batch": {}}}]  # fmt: skip

    def ask(connection: Any) -> None:
        connection.execute(text(made))
        connection.execute(text("SELECT publish_tables(CAST(:o AS jsonb))"),
                           {"o": json.dumps(given)})  # fmt: skip

    with raises(code):
        shop.transaction(ask)
    assert as_owner("SELECT kind FROM shop.kinds") == []


def test_a_team_that_asks_by_sql_drops_and_keeps_nothing_of_weir_publisher(
    shop: Database, database: Database, as_owner: AsOwner
) -> None:
    as_owner("GRANT CREATE ON SCHEMA shop TO weir_publisher")
    owned = """SELECT classid, objid FROM pg_shdepend WHERE refobjid = 'weir_publisher'::regrole
        AND deptype = 'o' ORDER BY 1, 2"""
    before = as_owner(owned)
    one = staged(shop, "shop.kinds", Publication(), database)

    def with_body(body: str) -> str:
        return f"""CREATE OR REPLACE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE c CONSTANT refcursor := 'loot'; BEGIN {body} RETURN NEW; END $$;
            CREATE OR REPLACE TRIGGER t BEFORE INSERT ON shop.kinds
            FOR EACH ROW EXECUTE FUNCTION shop.f(); SELECT 1"""

    for body, code in {
        "CREATE VIEW shop.loot AS SELECT * FROM bank.pay;": "trigger_not_allowed trigger",
        "PERFORM FROM bank.pay;": "trigger_not_allowed bank.pay tables",
        "OPEN c FOR SELECT * FROM bank.pay;": "trigger_not_allowed cursor",
    }.items():
        rows(shop, with_body(body))
        with raises(code):
            publish(shop, one)
    rows(shop, with_body("DROP OWNED BY CURRENT_USER;"))
    with pytest.raises((WeirError, exc.DBAPIError), match=r"trigger_changes|does not exist"):
        publish(shop, one)
    assert as_owner(owned) == before


def test_a_team_stages_rows_of_its_own_readers_only_with_types_of_postgres(
    shop: Database, opened: Opened, as_owner: AsOwner
) -> None:
    batch = _open(shop)
    [(mine,)] = as_owner("SELECT 'g' || group_id || '_t' || token || '_7' FROM "
                         "weir_internal.reader ORDER BY token DESC LIMIT 1")  # fmt: skip
    asked = "SELECT make_staging(:n, CAST(:c AS text[]), CAST(:t AS oid[]), CAST(:m AS integer[]))"
    good: dict[str, Any] = {"c": ["kind"], "t": [25], "m": [-1]}
    assert batch.token
    rows(shop, asked, n=mine, **good)
    for name in ("mine", "g1_t1_0; DROP", "g999_t1_0", "", "pg_class", mine + "x", mine.upper()):
        with raises("right_missing own"):
            rows(shop, asked, n=name, **good)
    with raises("right_missing own"):
        rows(opened("bank_app").database, asked, n=mine.replace("_7", "_8"), **good)
    [(domain,)] = as_owner("CREATE DOMAIN shop.d AS text; SELECT 'shop.d'::regtype::oid::bigint")
    wrongs: list[dict[str, Any]] = [
        {"c": [], "t": [], "m": []},
        good | {"t": [domain]},
        good | {"t": [0]},
        good | {"t": [2278]},  # void
        good | {"t": [71]},  # the rows of pg_type
        good | {"c": ["kind", "kind"], "t": [25, 25], "m": [-1, -1]},
        good | {"c": ["kind", "more"]},
        good | {"c": [""]},
        good | {"c": ["_weir_piece"]},
        good | {"c": ["k" * 64]},
        good | {"c": [None]},
    ]
    for wrong in wrongs:
        with raises("argument_invalid Postgres"):
            rows(shop, asked, n=mine, **wrong)


def test_the_statistics_of_tables_are_not_for_the_triggers_of_others(database: Database) -> None:
    for view in ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"):
        [who] = rows(
            database,
            f"""SELECT string_agg(r, ' ' ORDER BY r) AS may FROM unnest(ARRAY['weir_jobs',
                'weir_publisher', 'weir_reader', 'weir_team', 'weir_watcher']) r
            WHERE has_table_privilege(r, 'pg_catalog.{view}', 'SELECT')""",
        )
        assert who.may == "weir_jobs weir_team"
