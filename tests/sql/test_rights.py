"""What a login may do by SQL of its own, beside Weir's functions."""

import psycopg2
import pytest

from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.sql.teams import Opened, dsn_of
from tests.world.streams import rows, run
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


def test_nobody_lets_a_trigger_of_weir_run_for_a_table_of_their_own(
    opened: Opened, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    opened("bank_app")
    assert _attached(dsn_of(postgres_server, test_database, "bank_app")) == set()
    assert _attached(dsn_of(postgres_server, test_database, "weir_app")) == set()


def _attached(dsn: str) -> set[str]:
    """The functions of Weir that a login could let run for a table that it made."""
    attached = set()
    connection = psycopg2.connect(dsn)
    cursor = connection.cursor()
    cursor.execute("CREATE TEMPORARY TABLE mine (scope text, name text, owner text)")
    cursor.execute(
        """SELECT oid::regproc::text FROM pg_proc
        WHERE pronamespace = 'weir_internal'::regnamespace AND prorettype = 'trigger'::regtype"""
    )
    found = cursor.fetchall()
    assert len(found) > 3
    for (function,) in found:
        cursor.execute("SAVEPOINT one")
        try:
            cursor.execute(
                f"CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION {function}()"
            )
            attached.add(function)
        except psycopg2.errors.InsufficientPrivilege:
            pass
        cursor.execute("ROLLBACK TO one")
    connection.close()
    return attached


# What each role may do to the rows of a table: insert, update (with columns: only these), delete.
_ALL = "insert, update, delete"
_OF_JOBS = {
    "alembic_version": "",
    "installation": "update(batches_pruned incarnation sweep_count swept_at warehouse)",
    "signing_key": "insert", "erasure": "", "erasure_request": "", "erased_keys": "delete",
    "truncation": "insert, delete", "truncated_range": "insert, delete",
    "delivered_range": "insert, update(events last_at last_batch lost to_offset), delete",
    "job_run": "insert(approved arguments begun dag_id error item job map_index progress report "
    "retryable run_id started_at started_by state task_id try_number updated_at), "
    "update(approved arguments begun error item progress report retryable started_at state "
    "updated_at), delete",
    "request": "insert(arguments ended_at object operation request_id result), update(result)",
}  # fmt: skip
_OF_TEAMS = _OF_JOBS | {
    "installation": "", "signing_key": "", "watch": "", "announcement": "delete", "audit": "",
    "audited_stream": "", "counter_example": "", "watched_partition": "",
    "job_run": _OF_JOBS["job_run"].removesuffix(", delete"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("role", "but"), [("weir_jobs", _OF_JOBS), ("weir_team", _OF_TEAMS), ("weir_reader", None),
                      ("weir_watcher", None), ("weir_publisher", None)]
)  # fmt: skip
def test_each_role_changes_the_rows_that_it_needs_to_change(
    database: Database, role: str, but: dict[str, str] | None
) -> None:
    found = rows(
        database,
        """SELECT c.relname, c.relkind, string_agg(CASE WHEN p.whole THEN p.kind
               ELSE p.kind || '(' || p.columns || ')' END, ', ' ORDER BY p.i) AS may
        FROM pg_class c
        LEFT JOIN LATERAL (
            SELECT k.i, lower(k.kind) AS kind, has_table_privilege(:role, c.oid, k.kind) AS whole,
                   (SELECT string_agg(a.attname, ' ' ORDER BY a.attname) FROM pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                      AND has_column_privilege(:role, c.oid, a.attnum, k.kind)) AS columns
            FROM (VALUES (1, 'INSERT'), (2, 'UPDATE')) k (i, kind)
            UNION ALL
            SELECT k.i, lower(k.kind), has_table_privilege(:role, c.oid, k.kind), NULL
            FROM (VALUES (3, 'DELETE'), (4, 'TRUNCATE'), (5, 'TRIGGER'), (6, 'REFERENCES'))
                 k (i, kind)
            ) p ON p.whole OR p.columns IS NOT NULL
        WHERE c.relnamespace::regnamespace::text LIKE 'weir%' AND c.relkind IN ('r', 'v')
          AND c.relname NOT LIKE 'ducklake_inlined%'
        GROUP BY c.oid, c.relname, c.relkind ORDER BY c.relname""",
        role=role,
    )
    assert len(found) > 150
    wrong = [
        f"{role} may {may or 'nothing'} of {name}" for name, kind, may in found
        if (may or "") != ("" if but is None or kind == "v" else but.get(name, _ALL))
    ]  # fmt: skip
    assert wrong == []


# What a login could make of what is evidence of others, or of itself: refused, or no row of it.
_EVIDENCE = [f"DELETE FROM {one}" for one in (
    "truncation", "truncated_range", "delivered_range", "placement",
)]  # fmt: skip
_OF_A_TEAM_ONLY = [  # jobs may: upkeep prunes, and what erases forgets keys
    "UPDATE job_run SET report = '{}' WHERE login = 'weir_app'",
    "UPDATE job_run SET error = 'no' WHERE login = 'shop_app'",
    "UPDATE request SET result = '{}' WHERE login <> current_user",
]


def test_no_login_changes_receipts_or_who_did_what(
    opened: Opened, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    shop, jobs = opened("shop_app"), opened("weir_app")
    jobs.create_stream("a/b", "n")
    jobs.append("a/b", [{"n": n} for n in range(4)])
    jobs.create_reader_group("g", ["a/b"])
    with shop.reader("g") as reader:
        for batch in reader:
            batch.commit()
    jobs.truncate_stream("a/b", "tail", dry_run=False)
    shop.update_stream("a/b", tags=["t"])
    opened("bank_app").update_stream("a/b", tags=["u"])
    for login, more in (("weir_app", []), ("bank_app", _OF_A_TEAM_ONLY)):
        dsn = dsn_of(postgres_server, test_database, login)
        assert {one for one in [*_EVIDENCE, *more] if _does(dsn, one)} == set(), login
    assert _does(
        dsn_of(postgres_server, test_database, "bank_app"), "UPDATE job_run SET error = 'no'"
    )


_WRITTEN = (  # by a team, about an hour from now
    """'{}', 'failed', '{"disks": {}}'""",
    """'[]', 'succeeded', '{"disks": [{"free": "x"}]}'""",
)


@pytest.mark.parametrize("written", _WRITTEN)
def test_no_run_that_a_team_writes_down_keeps_jobs_from_their_work_or_people_from_what_is_wrong(
    opened: Opened,
    postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
    database: Database,
    written: str,
) -> None:
    opened("shop_app")
    run(
        database,
        """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
            state) VALUES ('d', 'r', 'scale', 1, 1, 'scale', '{}', 'succeeded')""",
    )
    execute(
        dsn_of(postgres_server, test_database, "shop_app"),
        f"""INSERT INTO weir_internal.job_run (dag_id, run_id, task_id, map_index, try_number, job,
            started_at, arguments, state, report)
        SELECT 'd', 'r', job, 2, 1, job, clock_timestamp() + interval '1 hour', {written}
        FROM (VALUES ('scale'), ('upkeep')) AS every (job)""",
    )
    asked = "SELECT job FROM work(ARRAY['scale', 'upkeep'], '{}')"
    assert {one.job for one in rows(database, asked)} == {"upkeep"}
    assert rows(database, "SELECT FROM weir.troubles WHERE kind <> 'run failed'") == []


def test_no_run_that_a_team_writes_down_hides_one_of_jobs_that_failed(
    opened: Opened,
    postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
    database: Database,
) -> None:
    opened("shop_app")
    written = """INSERT INTO weir_internal.job_run (dag_id, run_id, task_id, map_index, try_number,
        job, arguments, state) VALUES ('d', '{}', 't', 1, {}, 'upkeep', '{{}}', '{}')"""
    run(database, written.format("r", 1, "failed"))
    shop = dsn_of(postgres_server, test_database, "shop_app")
    for one in (("r", 2, "succeeded"), ("other", 1, "succeeded"), ("newest", 1, "failed")):
        execute(shop, written.format(*one))
    told = "SELECT query ->> 'run_id' AS run FROM weir.troubles"
    assert [one.run for one in rows(database, told)] == ["r"]
    run(database, written.format("another", 1, "succeeded"))
    assert rows(database, told) == []


def _does(dsn: str, statement: str) -> bool:
    """Whether a login changes rows by a statement, or only something else stands against it."""
    connection = psycopg2.connect(dsn, options="-c search_path=weir_internal")
    cursor = connection.cursor()
    try:
        cursor.execute(statement)
        return bool(cursor.rowcount)
    except psycopg2.errors.InsufficientPrivilege:
        return False
    except psycopg2.IntegrityError:
        return True
    finally:
        connection.close()


def test_the_receipts_of_a_stream_go_with_it(opened: Opened) -> None:
    shop, jobs = opened("shop_app"), opened("weir_app").database
    shop.create_stream("shop/orders", "n", owner="team_shop")
    shop.append("shop/orders", [{"n": 1}])
    shop.create_reader_group("g", ["shop/orders"], owner="team_shop")
    with shop.reader("g") as reader:
        for batch in reader:
            batch.commit()
    shop.truncate_stream("shop/orders", "tail", dry_run=False)
    kept = " UNION ALL ".join(
        f"SELECT '{one}' FROM {one}"
        for one in ("placement", "delivered_range", "truncation", "truncated_range")
    )
    assert len(rows(jobs, kept)) == 4
    shop.seal_stream("shop/orders")
    shop.delete_reader_group("g")
    shop.delete_stream("shop/orders")
    assert rows(jobs, kept) == []


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"by": "me\nand you"}, "requested_by control"),
        ({"by": "me\u202e"}, "requested_by control"),
        ({"by": ""}, "requested_by empty"),
        ({"reason": "\x1b[2J"}, "reason control"),
        ({"reason": "\u0085"}, "reason control"),
        ({"reason": "why " * 501}, "reason 2,000"),
        ({"reason": ""}, "reason empty"),
        ({"request": "a\tb"}, "request control"),
        ({"asked": "[]"}, "asked object"),
        ({"asked": '{"keys": ["ann"]}'}, "asked hash"),
        ({"asked": '{"keys": "ann"}'}, "asked hash"),
        ({"asked": '{"salt": "ann"}'}, "asked hash"),
        ({"asked": '{"condition_hash": "ann"}'}, "asked hash"),
        ({"asked": '{"who": "ann"}'}, "asked"),
    ],
)
def test_an_erasure_that_is_asked_for_by_sql_has_what_a_form_would_let_pass(
    opened: Opened, given: dict[str, str], wrong: str
) -> None:
    shop = opened("shop_app")
    shop.create_stream("shop/orders", "n", owner="team_shop")
    [row] = rows(shop.database, "SELECT stream_id FROM stream")
    begin = "SELECT begin_erasure(:request, :s, :by, :reason, CAST(:asked AS jsonb))"
    right = {"request": "r", "by": "me", "reason": "asked", "asked": "{}", "s": row.stream_id}
    with raises(f"argument_invalid {wrong} erase"):
        rows(shop.database, begin, **{**right, **given})
    rows(shop.database, begin, **right)
    assert len(rows(shop.database, "SELECT 1 FROM erasure_request")) == 1


def test_a_function_with_a_teams_rights_sees_no_more_in_a_session_of_jobs(
    opened: Opened, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    shop, bank, jobs = opened("shop_app"), opened("bank_app"), opened("weir_app")
    shop.create_stream("secret/orders", "n", owner="team_shop")
    shop.append("secret/orders", [{"n": 1}])
    bank.create_stream("bank/accounts", "n", owner="team_bank")
    bank.append("bank/accounts", [{"n": 1}])
    execute(
        test_database.owner_dsn,
        "CREATE SCHEMA bank; GRANT USAGE, CREATE ON SCHEMA bank TO bank_app;"
        "GRANT USAGE ON SCHEMA bank TO weir_jobs",
    )
    asked = (
        "SELECT count(*) FROM weir.commits(''{}'')", "SELECT weir.count_between(''{}'')",
        "SELECT count(*) FROM weir.active_segments(''{}'')",
        "SELECT weir.closed_cut_at(''{}'', now())",
        "SELECT weir_internal.stream_id(''{}'')",
    )  # fmt: skip
    for n, ask in enumerate(asked):
        for name, stream in (("theirs", "secret/orders"), ("own", "bank/accounts")):
            rows_of = f"SELECT x::text FROM ({ask.format(stream).replace(chr(39) * 2, chr(39))}) x"
            execute(
                dsn_of(postgres_server, test_database, "bank_app"),
                f"CREATE FUNCTION bank.{name}_{n}() RETURNS text LANGUAGE plpgsql "
                f"SECURITY DEFINER AS $$ BEGIN RETURN ({rows_of}); END $$",
            )
        assert rows(jobs.database, f"SELECT bank.own_{n}() AS told")[0].told
        with raises("stream_not_found"):
            rows(jobs.database, f"SELECT bank.theirs_{n}()")
