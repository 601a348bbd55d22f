"""What is hidden from a login is told by no function, view, table, error or list."""

import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg2
import pytest

from tests.conftest import TestDatabase
from tests.raises import raises
from tests.sql.teams import Opened, dsn_of, opened_by_logins
from tests.world.streams import database_for_many, rows, run
from weir.adjunct.stores import define_store
from weir.controller.announcements import watch
from weir.controller.rejected import make_rejected_stream
from weir.errors import WeirError
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import stream_name
from weir.programs.store import StreamStore
from weir.reader_groups.history import keep_history, record_groups
from weir.retention.capture import capture
from weir.settings import Settings

_DATABASE = TestDatabase("hidden", "", "")
_NOBODY = 999_999_999  # an id that nothing has
_EXAMPLES: dict[str, tuple[str, ...]] = {
    "integer": ("0", "1"), "bigint": ("0", "1", "9000000000000000000"), "text": ("'0.0'", "'g'"),
    "double precision": ("0",), "boolean": ("true", "false"), "numeric": ("1",),
    "timestamp with time zone": ("now()",), "bigint[]": ("'{0,1}'",), "text[]": ("'{g}'",),
    "jsonb": ("""'{"0.0": 2, "1.0": 2}'""", "NULL"), "jsonb[]": ("""ARRAY['{"0.0": 0}'::jsonb]""",),
    "int4multirange[]": ("'{}'",), "name": ("current_user",),
}  # fmt: skip


@pytest.fixture(scope="module")
def opened(
    postgres_server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    """Yield `opened(login)` of one installation for all tests of this file, which only look."""
    folder = tmp_path_factory.mktemp("hidden")
    for name in ("input", "output", "warehouse"):
        (folder / name).mkdir()
    (folder / "input/x.csv").write_text("n\n1\n")
    settings = Settings(
        state=folder, warehouse=str(folder / "warehouse"), grace_period=0.0,
        input_roots=(str(folder / "input"),), output_roots=(str(folder / "output"),),
    )  # fmt: skip
    with (
        database_for_many(postgres_server, _DATABASE.name),
        opened_by_logins(postgres_server, _DATABASE, settings) as open_as,
    ):
        yield open_as


@pytest.fixture
def ask(opened: Opened, postgres_server: EmbeddedPostgres) -> Iterator[Callable[[str], Any]]:
    """Yield `ask(login)`, which returns a cursor of this login alone."""
    connections = []

    def cursor(login: str) -> Any:
        opened("bank_app")
        connections.append(psycopg2.connect(dsn_of(postgres_server, _DATABASE, login)))
        made = connections[-1].cursor()
        made.execute("SET search_path = weir_internal, weir")
        return made

    yield cursor
    for connection in connections:
        connection.close()


@pytest.fixture(scope="module")
def secret(opened: Opened) -> dict[str, int]:
    """Make what others don't see, all of whose names have `secret`; return ids of it."""
    shop, jobs = opened("shop_app"), opened("weir_app")
    for table, column in (("stream", "stream_id"), ("reader_group", "group_id")):  # found in texts
        rows(
            jobs.database, f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), 7700000)"
        )
    opened("bank_app").create_stream("bank/accounts", "n", owner="team_bank")
    opened("bank_app").create_reader_group("banks", ["bank/accounts"], owner="team_bank")
    jobs.create_stream("all/free", "n")
    shop.create_stream(
        "secret/orders", "n", owner="team_shop", segments=2, on_bad_rows="quarantine"
    )
    shop.create_stream("secret/other", "n", owner="team_shop")
    make_rejected_stream(shop.database, stream_name("secret/orders"))
    wanted = [("events", "secret/orders"), ("hours", "secret/orders"), ("hours", "secret/to-come")]
    watch(jobs.database, "airflow", wanted)
    shop.append("secret/orders", [{"n": n} for n in range(20)], writer_id="secret-writer")
    shop.create_reader_group("secretive", ["secret/orders"], owner="team_shop")
    with shop.reader("secretive", reader_id="secret-reader") as reader:
        for batch in reader:
            batch.commit({"stream:secret/other": batch.events, "parquet:secret": batch.events})
    define_store(
        shop.database, "secret/known", stream_name("secret/orders"), AdjunctConfiguration(),
        definition=AdjunctDefinition(key="n", value="n"), request_id="known",
    )  # fmt: skip
    shop.append("secret/orders", [{"n": n} for n in range(20)])
    shop.checkpoint_reader_group("secretive", "secret-noon")
    shop.truncate_stream("secret/orders", "tail", dry_run=False)
    shop.append("secret/orders", [{"n": n} for n in range(20)])
    shop.update_stream("secret/orders", retention="size", retain_max_bytes="1 B")
    shop.erase("secret/orders", "a secret", keys=["3"], dry_run=False)
    shop.update_stream("secret/orders", tags=["secret"])
    refused: list[Callable[[], object]] = [
        lambda: shop.create_stream("secret/refused!", "n", owner="team_shop"),
        lambda: shop.delete_adjunct_store("secret/nowhere"),
        lambda: shop.seal_stream("secret/missing"),
        lambda: shop.apply(text="streams: {secret/orders: {routing_key: other}}"),
    ]
    for act in refused:
        with pytest.raises(WeirError):
            act()
    jobs.update_stream("secret/orders", tags=["secret", "by jobs"])
    jobs.retention(streams=["secret/orders", "all/free"])
    jobs.upkeep()
    run(
        jobs.database,
        """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
                                state, error)
        VALUES ('d', 'r', 't', -1, 1, 'ingest', '{"stream": "all/free"}', 'failed',
                'It is locked by seal_stream of ''secret/orders''.');
        INSERT INTO garbage (root, path, reason) VALUES ('/out', 'secret/group=x/', 'fenced');
        INSERT INTO found_damage (path, kind, stream_id, what)
        SELECT 'secret/file', 'missing', stream_id, 'of secret' FROM stream WHERE name = 'orders';
        UPDATE retention_queue SET due_at = '-infinity'""",
    )
    [(stream, group)] = rows(
        shop.database,
        """SELECT stream_id, group_id FROM reader_group_stream JOIN reader_group g USING (group_id)
        WHERE g.name = 'secretive'""",
    )
    return {"in_stream_id": stream, "in_group_id": group}


def test_no_view_and_no_table_tells_of_it(
    secret: dict[str, int], ask: Callable[[str], Any]
) -> None:
    told: dict[str, set[str]] = {}
    for login in ("shop_app", "bank_app", "weir_view"):
        cursor = ask(login)
        cursor.execute(
            """SELECT format('%s.%I', relnamespace::regnamespace, relname) FROM pg_class
            WHERE relkind IN ('r', 'v') AND relnamespace::regnamespace::text ~ '^weir'
              AND has_table_privilege(oid, 'SELECT')"""
        )
        relations = [name for (name,) in cursor]
        assert len(relations) > 100
        told[login] = set()
        for name in relations:
            cursor.execute(f"SELECT v::text FROM {name} v WHERE v::text LIKE '%secret%'")
            if cursor.fetchall():
                told[login].add(name)
    assert told["bank_app"] == told["weir_view"] == set()
    assert told["shop_app"] >= {
        "weir.streams", "weir.job_runs", "weir.requests", "weir.announcements", "weir.damage",
        "weir.troubles",
        "weir_internal.request", "weir_internal.watch", "weir_internal.watched_partition",
        "weir_ducklake.ducklake_schema",
    }  # fmt: skip


def test_a_function_tells_of_a_hidden_id_what_it_tells_of_none(
    secret: dict[str, int], ask: Callable[[str], Any]
) -> None:
    for login in ("bank_app", "weir_view"):
        cursor = ask(login)
        cursor.execute(
            """SELECT p.proname, p.proargnames::text[], ARRAY(
                SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY g (t, i)
                ORDER BY i)
            FROM pg_proc p WHERE p.pronamespace = 'weir_internal'::regnamespace
              AND has_function_privilege(p.oid, 'EXECUTE')
              AND p.proargnames && '{in_stream_id, in_group_id}'::text[] ORDER BY p.proname"""
        )
        asked, told = 0, set()
        for name, names, types in cursor.fetchall():
            if any(kind not in _EXAMPLES for kind in types):
                continue
            of_ids = dict(zip(names, types, strict=False))
            choices = [
                ("{" + one + "}",) if one in secret else _EXAMPLES[kind]
                for one, kind in of_ids.items()
            ]
            for given in itertools.islice(itertools.product(*choices), 12):
                call = f"SELECT f::text FROM {name}({', '.join(given)}) f"
                answers = []
                for ids in (secret, dict.fromkeys(secret, _NOBODY)):
                    answer = _answer(cursor, _filled(call, ids))
                    answers.append(_filled(answer, {}, ids))
                asked += 1
                if answers[0] != answers[1]:
                    told.add(name)
        assert asked > 50
        assert told == set()


def _answer(cursor: Any, call: str) -> str:
    """What a call returns, or its error."""
    cursor.execute("SAVEPOINT one")
    try:
        cursor.execute(call)
        answer: Any = cursor.fetchall()
    except psycopg2.Error as error:
        # Of what a login writes it is told that there is no such id, or that it may not.
        refused = isinstance(
            error, (psycopg2.IntegrityError, psycopg2.errors.InsufficientPrivilege)
        )
        answer = "refused" if refused else (error.pgcode, error.diag.message_primary)
    cursor.execute("ROLLBACK TO one")
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:[\d:.+-]+", "now", str(answer))


def _filled(text: str, ids: dict[str, int], without: dict[str, int] | None = None) -> str:
    """The text with ids in the place of their names, or without numbers that are ids."""
    for name, number in ids.items():
        text = text.replace("{" + name + "}", str(number))
    for number in (without or {}).values():
        text = text.replace(str(number), "id")
    return text


# Hidden names, and names of as many letters that nothing has.
_NAMES = {
    "stream": ("secret/orders", "nowhat/orders"), "reader_group": ("secretive", "nowhating"),
    "adjunct_store": ("secret/known", "nowhat/known"),
}  # fmt: skip


def _alike(answer: str) -> str:
    return re.sub("nowhating|secretive", "NAME", re.sub("nowhat/|secret/", "NAME/", answer))


def test_a_function_tells_of_a_hidden_name_what_it_tells_of_none(
    secret: dict[str, int], ask: Callable[[str], Any]
) -> None:
    cursor = ask("bank_app")
    cursor.execute(
        """SELECT p.oid::regproc::text, (p.proargnames::text[])[:p.pronargs], ARRAY(
            SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY g (t, i)
            ORDER BY i)
        FROM pg_proc p WHERE p.pronamespace::regnamespace::text LIKE 'weir%%'
          AND has_function_privilege(p.oid, 'EXECUTE') AND EXISTS (
            SELECT FROM unnest((p.proargnames::text[])[:p.pronargs]) a
            WHERE a ~ '^(in_)?((stream|group|reader_group|store)(_name)?s?|names?|of)$')"""
    )
    asked, told = set(), set()
    for name, names, types in cursor.fetchall():
        if any(kind not in _EXAMPLES for kind in types) or "staging" in name:
            continue
        for place in range(2):
            choices: list[tuple[str, ...]] = []
            for one, kind in zip(names, types, strict=True):
                named = [
                    f"'{{{pair[place]}}}'" if kind == "text[]" else f"'{pair[place]}'"
                    for what, pair in _NAMES.items()
                    if kind in ("text", "text[]") and (what in one or one == "of" or "name" in one
                        or ("group" in one and what == "reader_group")
                        or ("store" in one and what == "adjunct_store"))
                ]  # fmt: skip
                choices.append(tuple(named) or _EXAMPLES[kind])
            found = [
                _alike(_answer(cursor, f"SELECT f::text FROM {name}({', '.join(given)}) f"))
                for given in itertools.islice(itertools.product(*choices), 12)
            ]
            if place == 0:
                before = found
            elif found != before:
                told.add(name)
        asked.add(name)
    assert len(asked) > 20
    assert told == set()


_NEEDED: dict[str, Any] = {
    "name": "n", "reader": "r", "reason": "why", "cut": "tail", "to": "tail", "rows": [{"n": 1}],
    "segments": ["0.0"], "files": ["x.csv"], "new_reader_group": "h", "routing_key": "n", "key": 3,
}  # fmt: skip
# With what a method comes to look at what is named.
_MORE: dict[str, dict[str, Any]] = {
    "checkpoint_reader_group": {"barrier": True}, "update_stream": {"tags": ["t"]},
    "update_reader_group": {"subscriber": "no"}, "erase": {"keys": ["3"]},
    "ingest": {"engine": "pyarrow"}, "update_adjunct_store": {"keep_versions": "2"},
}  # fmt: skip


def _calls(store: StreamStore, place: int) -> dict[str, Callable[[], object]]:
    """The calls of a program that name something, by the method and what they name."""
    calls: dict[str, Callable[[], object]] = {}
    for method, function in inspect.getmembers(type(store), inspect.isfunction):
        given = inspect.signature(function).parameters
        for what in ("stream", "streams", "reader_group", "adjunct_store", "of"):
            # To define a store by SQL takes a JVM: see the next test.
            if method.startswith("_") or what not in given or method == "define_adjunct_store":
                continue
            kinds = _NAMES if what == "of" else [what.removesuffix("s")]
            for kind in kinds:
                values = {
                    name: _NAMES[name][place] if name in _NAMES else _NEEDED[name]
                    for name, parameter in given.items()
                    if parameter.default is parameter.empty and name in {**_NAMES, **_NEEDED}
                } | _MORE.get(method, {})
                name = _NAMES[kind][place]
                values[what] = [name] if what == "streams" else name
                calls[f"{method} {what} {kind}"] = partial(getattr(store, method), **values)
    return calls


def _said(call: Callable[[], object]) -> str:
    try:
        made = call()
        if hasattr(made, "__enter__"):
            with made:  # type: ignore[attr-defined]
                pass
        return _alike(f"answers {made}")
    except WeirError as error:
        return _alike(f"{error.code} {error}")


def test_a_program_is_told_of_a_hidden_name_what_it_is_told_of_none(
    opened: Opened, secret: dict[str, int]
) -> None:
    bank = opened("bank_app")
    hidden, missing = _calls(bank, 0), _calls(bank, 1)
    assert len(hidden) > 25
    # What makes something says that the name is taken.
    made = {one for one in hidden if re.match(r"create_\w+ (stream|reader_group) ", one)}
    assert len(made) == 2
    told = {one: (_said(hidden[one]), _said(missing[one])) for one in hidden if one not in made}
    assert {one: said for one, said in told.items() if said[0] != said[1]} == {}


def test_a_name_that_is_taken_is_all_that_is_told_of_it(
    opened: Opened, secret: dict[str, int]
) -> None:
    bank = opened("bank_app")
    acts: list[tuple[str, Callable[[], object]]] = [
        ("stream_exists", lambda: bank.create_stream("secret/orders", "n")),
        ("stream_exists", lambda: bank.create_stream("secret/orders", "other", segments=5)),
        ("group_exists", lambda: bank.create_reader_group("secretive", ["bank/accounts"])),
        ("group_exists", lambda: bank.fork_reader_group("banks", "secretive")),
        ("stream_not_found", lambda: define_store(
            bank.database, "bank/known", stream_name("secret/orders"), AdjunctConfiguration(),
            definition=AdjunctDefinition(key="n", value="n"), request_id="of-hidden")),
        ("group_exists", lambda: define_store(
            bank.database, "secret/known", stream_name("bank/accounts"), AdjunctConfiguration(),
            definition=AdjunctDefinition(key="n", value="n"), request_id="taken")),
        ("", lambda: bank.apply(text="streams: {secret/orders: {routing_key: n}}")),
    ]  # fmt: skip
    said = []
    for code, act in acts:
        with pytest.raises(WeirError) as raised:
            act()
        assert raised.value.code == (code or raised.value.code)
        said.append(str(raised.value))
    for word in ("team_shop", "shop_app", "secret/other", "'n'", "segments 2", "2 segments"):
        assert word not in str(said)


def test_nobody_lists_what_is_hidden_and_what_is_due_is_told_of_what_is_seen(
    opened: Opened, secret: dict[str, int]
) -> None:
    shop, bank, jobs = (opened(one).database for one in ("shop_app", "bank_app", "weir_app"))
    due = "SELECT stream FROM retention_due() WHERE stream LIKE 'secret%' ORDER BY 1"
    assert rows(jobs, due) == rows(shop, due) != []
    assert rows(bank, due) == []
    waits = """SELECT kind, name FROM progress_of('{secretive}', '{secret/orders}', '[{
        "reader_group": "secretive", "cuts": {}}]')"""
    assert len(rows(shop, waits)) == 2
    assert rows(bank, waits) == []
    for database in (shop, bank, jobs):
        with raises("database_failed permission denied"):
            rows(database, "SELECT hidden_names('bank_app')")


def test_the_past_is_told_of_what_is_seen(opened: Opened, secret: dict[str, int]) -> None:
    shop, bank, jobs = (opened(one).database for one in ("shop_app", "bank_app", "weir_app"))
    record_groups(jobs, ["secretive", "banks"])
    capture(jobs)
    keep_history(jobs)
    for table, asked in (
        ("group_history", "group_id IN (SELECT group_id FROM reader_group)"),
        ("stream_history", "true"),
        ("owner_history", "owner <> ''"),
    ):
        mine, others, all_ = (
            {str(one) for one in rows(database, f"SELECT t FROM {table} t WHERE {asked}")}
            for database in (shop, bank, jobs)
        )
        assert mine < all_, table
        assert others < all_, table
    seen = "SELECT DISTINCT owner FROM owner_history WHERE owner <> '' ORDER BY 1"
    assert [one.owner for one in rows(shop, seen)] == ["team_shop"]
    assert [one.owner for one in rows(bank, seen)] == ["team_bank"]


def test_a_team_sees_the_runs_and_requests_of_its_logins_and_of_what_it_sees(
    opened: Opened, secret: dict[str, int]
) -> None:
    shop, bank = opened("shop_app"), opened("bank_app")
    runs = "SELECT job, arguments::text, coalesce(error, '') FROM weir.job_runs"
    requests = "SELECT operation, object, result::text FROM weir.requests"
    assert "by jobs" in str(rows(shop.database, runs))
    for job in ("apply", "delete_adjunct_store", "seal_stream", "create_stream"):
        assert rows(shop.database, f"{runs} WHERE job = '{job}'") != [], "of its own login"
    assert {one.operation for one in rows(shop.database, requests)} >= {
        "create_stream", "create_reader_group", "update_stream",
    }  # fmt: skip
    for seen in (shop, bank):
        assert "all/free" in str(rows(seen.database, requests)), "nobody's, by another login"
    shop.create_reader_group("secret-gone", ["secret/other"], owner="team_shop")
    shop.delete_reader_group("secret-gone")
    assert "secret-gone" in str(rows(shop.database, requests)), "of its own login"
    assert "secret" not in str(rows(bank.database, requests))
