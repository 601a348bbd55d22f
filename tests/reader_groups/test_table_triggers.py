"""Triggers of a table run when its rows are published, and get no rights and change no settings."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Connection, exc, text

from tests.raises import raises
from tests.world.groups import Execute, Group, numbers, publish, stage_numbers
from tests.world.streams import rows, unique
from weir.errors import WeirError
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.outputs.publication import Publication
from weir.reader_groups.outputs.tables import publish_tables


def trigger(table: str, body: str, timing: str = "BEFORE INSERT") -> list[str]:
    """What gives a table a trigger with this body, in the table's schema."""
    schema = table.partition(".")[0]
    constraint = "CONSTRAINT " if "DEFER" in timing else ""
    first, _, rest = timing.partition(" DEFER")
    return [
        f"""CREATE FUNCTION {schema}.f() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {body} RETURN NEW; END $$""",
        f"CREATE {constraint}TRIGGER t {first} ON {table} {'DEFER' + rest if rest else ''} "
        f"FOR EACH ROW EXECUTE FUNCTION {schema}.f()",
    ]


def test_a_trigger_finds_what_its_tables_owner_finds(
    group: Group, table: str, as_owner: Execute
) -> None:
    schema = table.partition(".")[0]
    as_owner(
        f"CREATE TABLE {schema}.log (n bigint)",
        f"GRANT INSERT ON {schema}.log TO weir_publisher",
        f"GRANT SELECT ON {schema}.log TO weir_jobs",
        *trigger(table, "INSERT INTO log VALUES (NEW.n);"),
        f"ALTER ROLE weir_owner IN DATABASE reader_groups SET search_path = {schema}, public",
    )
    try:
        publish(group, table)
    finally:
        as_owner("ALTER ROLE weir_owner IN DATABASE reader_groups RESET search_path")
    found = rows(group.database, f"SELECT n FROM {schema}.log ORDER BY n")
    assert [tuple(row) for row in found] == [(1,), (2,)]


@pytest.fixture
def stranger(postgres_server: EmbeddedPostgres, as_owner: Execute, table: str) -> Iterator[str]:
    """Makes the table that of a role without any right in Weir."""
    name = unique("stranger").replace("-", "_")
    schema = table.partition(".")[0]
    as_owner(
        f"CREATE ROLE {name}",
        f"GRANT {name} TO weir_owner",
        f"GRANT ALL ON SCHEMA {schema} TO {name}",
        f"ALTER TABLE {table} OWNER TO {name}",
        f"SET ROLE {name}",
    )
    yield name
    as_owner(f"DROP SCHEMA {schema} CASCADE", f"DROP ROLE {name}")


HOSTILE = {
    "acting": ("DELETE FROM weir_internal.request;", "BEFORE INSERT"),
    "asking for the role": (
        "SET ROLE weir_app; DELETE FROM weir_internal.request;", "BEFORE INSERT"),
    "going back": ("RESET ROLE; DELETE FROM weir_internal.request;", "AFTER INSERT"),
    "put off": (
        "DELETE FROM weir_internal.request;", "AFTER INSERT DEFERRABLE INITIALLY DEFERRED"),
    "put off again": (
        "IF NEW.said = 'one' THEN SET CONSTRAINTS ALL DEFERRED; "
        "UPDATE {t} SET said = 'again' WHERE n = NEW.n; "
        "ELSIF NEW.said = 'again' THEN DELETE FROM weir_internal.request; END IF;",
        "AFTER INSERT OR UPDATE DEFERRABLE INITIALLY DEFERRED"),
}  # fmt: skip


@pytest.mark.parametrize("how", HOSTILE)
def test_a_tables_owner_gets_no_rights_of_the_jobs_by_a_trigger(
    group: Group, table: str, as_owner: Execute, stranger: str, how: str
) -> None:
    body, timing = HOSTILE[how]
    as_owner(
        f"SET ROLE {stranger}",
        *trigger(table, body.replace("{t}", table), timing),
        f"GRANT SELECT, UPDATE ON {table} TO weir_publisher",
    )
    before = rows(group.database, "SELECT count(*) FROM request")
    says = "permission denied for schema weir|cannot set parameter|table_refused"
    with pytest.raises((WeirError, exc.DBAPIError), match=says):
        publish(group, table)
    assert rows(group.database, "SELECT count(*) FROM request") == before
    assert (numbers(group, table), group.cut()) == ([], {"0.0": 0, "1.0": 0})


MEDDLING = {
    "at once": ("DROP OWNED BY weir_publisher;", "AFTER INSERT"),
    "put off": ("DROP OWNED BY weir_publisher;", "AFTER INSERT DEFERRABLE INITIALLY DEFERRED"),
    "taking rights": (
        "REVOKE EXECUTE ON FUNCTION weir_internal.publish_staging FROM weir_jobs;", "AFTER INSERT"),
    "taking settings": (
        "ALTER FUNCTION weir_internal.settle_constraints RESET ALL;", "AFTER INSERT"),
    "taking by name": ("DROP FUNCTION weir_internal.settle_constraints;", "AFTER INSERT"),
    "keeping a view": (
        "CREATE OR REPLACE VIEW {s}.loot AS SELECT 1; GRANT SELECT ON {s}.loot TO PUBLIC;",
        "AFTER INSERT"),
    "keeping a function": (
        "CREATE OR REPLACE FUNCTION {s}.f2() RETURNS int SECURITY DEFINER LANGUAGE sql "
        "AS 'SELECT 1';",
        "BEFORE INSERT"),
    "keeping a function for the session": (
        "CREATE OR REPLACE FUNCTION pg_temp.f2() RETURNS int SECURITY DEFINER LANGUAGE sql "
        "AS 'SELECT 1';",
        "AFTER INSERT"),
    "keeping what comes": (
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC;", "AFTER INSERT"),
    "passing a right on": ("GRANT SELECT ON {s}.numbers TO PUBLIC;", "AFTER INSERT"),
    "setting something for the role": (
        "ALTER ROLE weir_publisher SET search_path = {s};", "AFTER INSERT"),
    "and undone": (
        "BEGIN DROP OWNED BY weir_publisher; RAISE 'undone'; EXCEPTION WHEN OTHERS THEN NULL; END;"
        "DROP OWNED BY weir_publisher;", "BEFORE INSERT"),
    "out of a function that goes on": (
        "EXECUTE 'DROP OWNED BY weir_publisher'; PERFORM 1;", "AFTER INSERT"),
}  # fmt: skip


@pytest.mark.parametrize("how", MEDDLING)
def test_a_trigger_can_not_change_what_other_groups_publish_with(
    group: Group, table: str, as_owner: Execute, how: str
) -> None:
    schema = table.partition(".")[0]
    body, timing = MEDDLING[how]
    as_owner(
        f"GRANT CREATE ON SCHEMA {schema} TO weir_publisher",
        f"GRANT SELECT ON {table} TO weir_publisher WITH GRANT OPTION",
        "GRANT TEMPORARY ON DATABASE reader_groups TO weir_publisher",
        *trigger(table, body.replace("{s}", schema), timing),
    )
    before = rows(group.database, _CATALOGUE)
    # A right that is gone is met by the statement itself, if its session has heard of it by then.
    with pytest.raises(WeirError) as told:
        publish(group, table)
    codes = {"right_missing"} if "taking" in how else {"right_missing", "trigger_not_allowed"}
    assert told.value.code in codes
    assert rows(group.database, _CATALOGUE) == before
    as_owner(f"DROP TRIGGER t ON {table}")
    publish(group, table)
    assert numbers(group, table) == [(1, "one"), (2, None)]


# What depends on weir_publisher, and what is granted on the tables that it may use.
_CATALOGUE = """SELECT d.classid, d.objid, d.deptype, c.relacl::text
    FROM pg_shdepend d LEFT JOIN pg_class c ON c.oid = d.objid
    WHERE d.refobjid = 'weir_publisher'::regrole AND c.relnamespace IS DISTINCT FROM
        (SELECT oid FROM pg_namespace WHERE nspname = 'weir_staging')
    ORDER BY 1, 2, 3"""


def test_a_trigger_leaves_no_cursor_behind(group: Group, table: str, as_owner: Execute) -> None:
    as_owner(
        f"GRANT SELECT ON {table} TO weir_publisher",
        *trigger(table, f"IF NEW.n = 1 THEN EXECUTE 'DECLARE c CURSOR FOR TABLE {table}'; END IF;"),
    )
    with raises("trigger_not_allowed cursor"):
        publish(group, table)
    assert numbers(group, table) == []


def test_what_a_trigger_sets_rules_no_later_statement_nor_the_commit(
    group: Group, table: str, as_owner: Execute
) -> None:
    left = "SET synchronous_commit = local; SET search_path = public, pg_catalog;"
    as_owner(*trigger(table, left, "AFTER INSERT"))
    reader = group.reader()
    batch = reader.must_open()
    ready = stage_numbers(group, batch, table)

    def work(connection: Connection) -> tuple[str, str, str]:
        def setting(name: str) -> str:
            return str(connection.execute(text(f"SHOW {name}")).scalar_one())

        before = setting("synchronous_commit")
        publish_tables(connection, [ready], {})
        return before, setting("synchronous_commit"), setting("search_path")

    before, after, path = group.database.transaction(work)
    assert before == after  # a server of tests is set to off
    assert path == "pg_catalog, pg_temp"


def test_what_a_trigger_leaves_in_its_session_meets_no_later_statement(
    group: Group, table: str, as_owner: Execute, stranger: str
) -> None:
    as_owner(
        f"SET ROLE {stranger}",
        *trigger(
            table, f"PERFORM set_config('search_path', '{stranger}, weir_internal, weir', false);"
        ),
    )
    publish(group, table)
    assert numbers(group, table) == [(1, "one"), (2, None)]
    assert {row[0] for row in (rows(group.database, "SHOW search_path")[0] for _ in range(8))} == {
        "weir_internal, weir"
    }


def test_a_session_forgets_whatever_a_trigger_has_left_in_it(
    group: Group, table: str, as_owner: Execute
) -> None:
    left = """PERFORM pg_advisory_lock(815); PERFORM set_config('weir.told', 'secret', false);
        PERFORM set_config('datestyle', 'German', false); LISTEN told;
        PERFORM set_config('search_path', 'pg_temp, weir_internal, weir', false);"""
    as_owner(*trigger(table, left))
    reader = group.reader()
    batch = reader.must_open()
    before = rows(group.database, "SELECT pg_backend_pid() AS pid")
    reader.commit(batch, tables=[stage_numbers(group, batch, table)])
    [found] = rows(
        group.database,
        """SELECT pg_backend_pid() AS pid, current_setting('weir.told', true) AS told,
            current_setting('datestyle') AS dates, current_setting('search_path') AS path,
            (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 815) AS locks,
            (SELECT count(*) FROM pg_listening_channels()) AS channels""",
    )
    assert (found.told or "", found.path) == ("", "weir_internal, weir")
    assert found.dates.startswith("ISO")
    assert (found.locks, found.channels) == (0, 0)
    assert found.pid == before[0].pid, "the session is used on"


@pytest.fixture
def theirs(as_owner: Execute, table: str) -> Iterator[str]:
    """Makes a table of another role, to which its consumer may write everything, and returns its
    name."""
    name = unique("others").replace("-", "_")
    as_owner(
        f"CREATE ROLE {name}",
        f"GRANT {name} TO weir_owner",
        f"CREATE SCHEMA {name} AUTHORIZATION {name}",
        f"SET ROLE {name}; CREATE TABLE {name}.kept (n bigint PRIMARY KEY, said text);"
        f"INSERT INTO {name}.kept VALUES (1, 'mine');"
        f"GRANT USAGE ON SCHEMA {name} TO weir_publisher, weir_jobs;"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.kept TO weir_publisher, weir_jobs",
    )
    yield f"{name}.kept"
    as_owner(f"DROP SCHEMA {name} CASCADE", f"DROP ROLE {name}")


REACHING = {
    "insert": "INSERT INTO {o} VALUES (2, 'theirs') ON CONFLICT DO NOTHING;",
    "update": "UPDATE {o} SET said = 'theirs';",
    "delete": "DELETE FROM {o};",
    "read": "SELECT said INTO NEW.said FROM {o} LIMIT 1;",
    "swallow": "BEGIN DELETE FROM {o}; RAISE 'undone'; EXCEPTION WHEN OTHERS THEN NULL; END;",
    "look by an index": "PERFORM FROM {o} WHERE n = 1;",
    "look at a place": "SELECT said INTO NEW.said FROM {o} WHERE ctid = '(0,1)';",
    "take a sample": "SELECT said INTO NEW.said FROM {o} TABLESAMPLE SYSTEM (100) LIMIT 1;",
    "look at a place and swallow": "BEGIN SELECT said INTO NEW.said FROM {o} WHERE ctid = '(0,1)';"
    "RAISE 'undone'; EXCEPTION WHEN OTHERS THEN NULL; END;",
}


@pytest.mark.parametrize("how", REACHING)
@pytest.mark.parametrize("when", ["BEFORE INSERT", "AFTER INSERT DEFERRABLE INITIALLY DEFERRED"])
def test_a_trigger_reaches_no_table_of_another_owner(
    group: Group, table: str, theirs: str, as_owner: Execute, how: str, when: str
) -> None:
    as_owner(
        *trigger(table, REACHING[how].replace("{o}", theirs), when),
        f"COMMENT ON TABLE {table} IS 'weir: may change rows'",
    )
    with raises(f"trigger_not_allowed {theirs} tables"):
        publish(group, table)
    kept = rows(group.database, f"SELECT n, said FROM {theirs}")
    assert ([tuple(row) for row in kept], numbers(group, table)) == ([(1, "mine")], [])


def test_only_a_function_of_the_tables_owner_is_called(
    group: Group, table: str, theirs: str, as_owner: Execute
) -> None:
    schema, owner = table.partition(".")[0], theirs.partition(".")[0]
    as_owner(
        f"""CREATE FUNCTION {schema}.note(batch jsonb) RETURNS void LANGUAGE sql
        AS $$ INSERT INTO {theirs} SELECT max(n) + 1, 'noted' FROM {theirs} $$""",
        f"GRANT EXECUTE ON FUNCTION {schema}.note TO weir_publisher",
    )
    reader = group.reader()
    batch = reader.must_open()
    staged = stage_numbers(group, batch, table)
    calling = replace(staged, publication=Publication(call=f"{schema}.note"))
    with raises(f"trigger_not_allowed {theirs} tables"):
        reader.commit(batch, tables=[calling])
    as_owner(
        f"GRANT CREATE ON SCHEMA {schema} TO {owner}",
        f"ALTER FUNCTION {schema}.note OWNER TO {owner}",
    )
    with raises(f"function_not_allowed function {owner} {schema}.note weir_owner"):
        reader.commit(batch, tables=[calling])
    assert numbers(group, table) == []
    as_owner(f"DROP FUNCTION {schema}.note", f"REVOKE CREATE ON SCHEMA {schema} FROM {owner}")


def test_a_foreign_key_may_lead_to_a_table_of_another_owner(
    group: Group, table: str, theirs: str, as_owner: Execute
) -> None:
    as_owner(
        f"GRANT REFERENCES ON {theirs} TO weir_owner",
        f"INSERT INTO {theirs} VALUES (2, 'mine')",
        f"ALTER TABLE {table} ADD FOREIGN KEY (n) REFERENCES {theirs}",
    )
    publish(group, table)
    assert numbers(group, table) == [(1, "one"), (2, None)]


def test_a_trigger_sees_no_staged_rows_of_another_batch(
    group: Group, table: str, as_owner: Execute
) -> None:
    other = Group.made(group.lanes[0])
    other_batch = other.reader().must_open()
    secret = stage_numbers(other, other_batch, table)
    as_owner(*trigger(table, f"SELECT said INTO NEW.said FROM weir_staging.{secret.staging};"))
    with raises("right_missing nobody's triggers"):
        publish(group, table)
    assert numbers(group, table) == []
