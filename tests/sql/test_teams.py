"""Members of an owner's role see and change what it owns. Others don't know of it, and what they
still need is counted by everybody."""

import io
from collections.abc import Callable

from sqlalchemy import text

from tests.chance import random_for
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.sql.teams import LOGINS, Opened, dsn_of
from tests.world.garbage import sweep
from tests.world.groups import Group
from tests.world.streams import rows, run
from weir.annex.erasure.certificate import sign_waiting
from weir.controller.rejected import make_rejected_stream
from weir.database.connection import Database, copy_in
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.names import stream_name
from weir.programs.store import StreamStore
from weir.reader_groups.outputs.tables import StagedTable, make_staging, read_table
from weir.spark.consumers.put_back import _make_group


def database_of(store: StreamStore) -> Database:
    return store.database


def test_a_team_does_with_its_stream_what_jobs_do(opened: Opened) -> None:
    shop = opened("shop_app")
    shop.create_stream("secret/orders", "customer", owner="team_shop", segments=2)
    shop.create_reader_group("secretive", ["secret/orders"], owner="team_shop")
    shop.append("secret/orders", [{"customer": "ann", "amount": 1}] * 5)
    with shop.reader("secretive") as reader:
        for batch in reader:
            batch.commit()
    shop.checkpoint_reader_group("secretive", "noon")
    shop.scale_stream("secret/orders", segments=["0.0"])
    shop.append("secret/orders", [{"customer": "bob", "amount": 2}])
    assert shop.count("secret/orders") == 6
    shop.update_stream("secret/orders", tags=["mine"])
    shop.truncate_stream("secret/orders", "tail", dry_run=False)
    assert shop.count("secret/orders") == 0
    shop.delete_reader_group("secretive")
    shop.seal_stream("secret/orders")
    shop.delete_stream("secret/orders")


def test_a_login_of_jobs_sees_everything_and_a_reader_what_nobody_owns(
    opened: Opened, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    opened("shop_app").create_stream("a/owned", "n", owner="team_shop")
    opened("weir_app").create_stream("a/free", "n")
    asked = "SELECT stream FROM weir.streams ORDER BY stream"
    seen = {
        login: execute(dsn_of(postgres_server, test_database, login), asked)
        for login in ("weir_app", "weir_view", "shop_app", "bank_app")
    }
    both, free = [("a/free",), ("a/owned",)], [("a/free",)]
    assert seen == {"weir_app": both, "shop_app": both, "weir_view": free, "bank_app": free}


def test_a_team_erases_what_it_sees_says_so_and_leaves_the_signature_to_jobs(
    opened: Opened,
) -> None:
    shop, jobs = opened("shop_app"), opened("weir_app")
    shop.create_stream("shop/orders", "customer", owner="team_shop")
    shop.append("shop/orders", [{"customer": one} for one in ("ann", "bob")])
    done = shop.erase("shop/orders", "asked", keys=["ann"], dry_run=False)
    assert (done["events"], done["signed"]) == (1, False)
    assert "of other teams" in [one["name"] for one in done["remains"]]
    shop.create_reader_group("slow", ["shop/orders"], owner="team_shop")
    with shop.reader("slow") as reading:
        batch = next(iter(reading))
        shop.erase("shop/orders", "asked", keys=["bob"], dry_run=False)
        waits = """SELECT * FROM weir_internal.erasure_waits(
            ARRAY(SELECT generate_series(1::bigint, 99)), 0)"""
        assert "batch 1 of slow" in [row[0] for row in rows(shop.database, waits)]
        assert rows(opened("bank_app").database, waits) == []
        batch.commit()
    sweep(jobs.database, jobs.settings.warehouse, jobs.settings.grace_period)
    assert len(sign_waiting(jobs.database, jobs.settings.grace_period)) == 2
    certificate = "SELECT state FROM weir.certificates"
    assert [row.state for row in rows(shop.database, certificate)] == ["signed", "signed"]
    assert rows(opened("bank_app").database, certificate) == []


def test_a_stream_refuses_what_its_team_has_erased_and_no_other_team_asks_or_says_what(
    opened: Opened,
) -> None:
    shop, bank, jobs = opened("shop_app"), opened("bank_app"), opened("weir_app")
    shop.create_stream("shop/orders", "customer", owner="team_shop", refuse_erased=True)
    shop.append("shop/orders", [{"customer": one} for one in ("ann", "bob")])
    shop.erase("shop/orders", "asked", keys=["ann"], dry_run=False)
    for store in (shop, jobs):
        with raises("key_erased 1"):
            store.append("shop/orders", [{"customer": "ann"}])
    [known] = rows(jobs.database, "SELECT stream_id FROM erased_keys")
    asked = "SELECT * FROM erased_keys_of(:s)"
    note = "SELECT note_erased_keys(:s, ARRAY['bob'])"
    assert len(rows(shop.database, asked, s=known.stream_id)) == 1
    assert rows(bank.database, asked, s=known.stream_id) == []
    rows(bank.database, note, s=known.stream_id)
    assert shop.append("shop/orders", [{"customer": "bob"}]).events == 1
    shop.update_stream("shop/orders", refuse_erased="no")
    assert rows(shop.database, asked, s=known.stream_id) == [], "no append needs it"


def test_a_team_that_truncates_is_told_what_groups_of_others_lose(opened: Opened) -> None:
    shop, everyone = opened("shop_app"), opened("weir_app")
    everyone.create_stream("shop/orders", "n", owner="team_shop", retention="consumed",
                           retain_min_age="none")  # fmt: skip
    everyone.create_reader_group("audit", ["shop/orders"], owner="team_bank")
    shop.append("shop/orders", [{"n": 1}] * 3)
    told = shop.truncate_stream("shop/orders", "tail")
    assert "audit" in str(told), "the dry run names who loses"
    shop.seal_stream("shop/orders")
    with raises("would_lose_data subscriber"):
        shop.delete_stream("shop/orders")
    everyone.retention()
    assert shop.count("shop/orders") == 3
    found = rows(database_of(shop), "SELECT reader_group, unread_events FROM weir.lag")
    assert [tuple(one) for one in found] == [("audit", 3)], "who sees a stream sees who reads it"


def test_nobody_reads_or_changes_with_the_group_of_others(opened: Opened) -> None:
    everyone, shop, bank = opened("weir_app"), opened("shop_app"), opened("bank_app")
    everyone.create_stream("all/events", "n")
    everyone.append("all/events", [{"n": 1}])
    bank.create_reader_group("banks", ["all/events"], owner="team_bank")
    acts: list[Callable[[], object]] = [
        lambda: shop.reset_reader_group("banks", "tail"),
        lambda: shop.update_reader_group("banks", subscriber="no"),
        lambda: shop.delete_reader_group("banks"),
        lambda: shop.checkpoint_reader_group("banks", "mine"),
        lambda: shop.release_reader_group("banks", at="tail"),
        lambda: shop.fork_reader_group("banks", "ours"),
        lambda: shop.reader_offline("banks", "any"),
    ]
    for act in acts:
        with raises("not_permitted group"):
            act()
    with raises("not_permitted group"), shop.reader("banks") as reader:
        list(reader)
    with bank.reader("banks") as reader:
        for batch in reader:
            assert batch.events.num_rows == 1
            batch.commit()
    assert everyone.read("all/events").num_rows == 1


def test_upkeep_is_for_logins_that_see_everything(opened: Opened) -> None:
    for act in ("upkeep", "retention", "checkpoints", "compact", "verify", "audit", "stream_cuts"):
        with raises("not_permitted schedule"):
            getattr(opened("bank_app"), act)()


def test_what_an_audit_found_is_seen_by_those_who_see_what_it_names_and_changed_by_no_team(
    opened: Opened,
) -> None:
    shop, bank, everyone = opened("shop_app"), opened("bank_app"), opened("weir_app")
    shop.create_stream("secret/orders", "customer", owner="team_shop")
    shop.create_reader_group("secretive", ["secret/orders"], owner="team_shop")
    run(
        database_of(everyone),
        """INSERT INTO counter_example (kind, group_id, what)
        SELECT 'batch_input_differs', group_id, 'of ' || name FROM reader_group""",
    )
    seen = [rows(database_of(one), "SELECT what FROM counter_examples") for one in (shop, bank)]
    assert seen == [[("of secretive",)], []]
    for change in (
        "UPDATE audited_stream SET clock = clock + 1",
        "DELETE FROM counter_example",
        "UPDATE audit SET proven = true",
    ):
        with raises("database_failed permission denied"):
            run(database_of(shop), change)


def test_where_nothing_has_an_owner_everybody_sees_all_runs(opened: Opened) -> None:
    opened("weir_app").create_stream("all/free", "n")
    opened("weir_app").upkeep()
    for login in ("shop_app", "weir_app"):
        asked = database_of(opened(login))
        assert ("all/free",) in rows(asked, "SELECT object FROM weir.requests")
        assert ("upkeep",) in rows(asked, "SELECT job FROM weir.job_runs")


def test_an_owner_is_a_role_that_the_login_is_a_member_of(opened: Opened) -> None:
    shop, everyone = opened("shop_app"), opened("weir_app")
    with raises("right_missing database"):
        everyone.create_stream("a/b", "n", owner="nobody_at_all")
    with raises("right_missing everybody"):
        shop.create_stream("a/b", "n", owner="team_bank")
    everyone.create_stream("a/b", "n")
    with raises("right_missing everybody"):
        shop.update_stream("a/b", owner="team_shop")
    everyone.update_stream("a/b", owner="team_bank")
    with raises("stream_not_found"):
        shop.update_stream("a/b", owner="team_shop")
    everyone.update_stream("a/b", owner="none")
    assert shop.count("a/b") == 0


def test_what_is_seen_is_what_a_model_says(opened: Opened, database: Database) -> None:
    chance = random_for("teams")
    owners = [None, "team_shop", "team_bank"]
    everyone = opened("weir_app")
    streams = {f"w/s{n}": chance.choice(owners) for n in range(8)}
    for name, owner in streams.items():
        everyone.create_stream(name, "n", owner=owner or "")
    groups = {f"g{n}": (chance.choice(owners), chance.sample(sorted(streams), chance.randint(1, 3)))
              for n in range(12)}  # fmt: skip
    for name, (owner, read) in groups.items():
        everyone.create_reader_group(name, read, owner=owner or "")
    for _ in range(3):
        for login, team in LOGINS.items():
            mine = {name for name, owner in streams.items() if owner in (None, team)}
            theirs = {name for name, (owner, read) in groups.items()
                      if owner == team or mine & {*read}}  # fmt: skip
            asked = database_of(opened(login))
            assert {one.stream for one in rows(asked, "SELECT stream FROM weir.streams")} == mine
            seen = rows(asked, "SELECT reader_group FROM weir.reader_groups")
            assert {one.reader_group for one in seen} == theirs
            lag = {(g, s) for g in theirs for s in groups[g][1]
                   if s in mine or groups[g][0] == team}  # fmt: skip
            found = rows(asked, "SELECT reader_group, stream FROM weir.lag")
            assert {tuple(one) for one in found} <= lag
        name = chance.choice(sorted(streams))
        streams[name] = chance.choice(owners)
        everyone.update_stream(name, owner=streams[name] or "none")


def test_every_table_that_is_about_a_stream_or_group_has_its_policies(database: Database) -> None:
    without = rows(
        database,
        """SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'weir_internal'::regnamespace
        AND c.relkind = 'r' AND NOT (c.relrowsecurity AND 2 = (
            SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive))
        ORDER BY 1""",
    )
    assert [one.relname for one in without] == [
        "alembic_version", "audit", "installation", "signing_key"
    ]  # fmt: skip


def test_jobs_pay_nothing_for_teams(opened: Opened) -> None:
    """What the statements of a login of jobs are planned to do, and what those of a team's."""
    opened("shop_app").create_stream("a/b", "n", owner="team_shop")
    asked = "EXPLAIN SELECT * FROM stream s JOIN segment USING (stream_id) WHERE s.name = 'b'"
    plans = {
        login: str(rows(database_of(opened(login)), asked)) for login in ("weir_app", "bank_app")
    }
    assert "SubPlan" not in plans["weir_app"]
    assert "SubPlan" in plans["bank_app"]


def test_rejected_rows_belong_to_whom_their_stream_belongs(opened: Opened) -> None:
    everyone, shop, bank = opened("weir_app"), opened("shop_app"), opened("bank_app")
    name = stream_name("a/b")

    def seen() -> list[list[str]]:
        asked = "SELECT stream FROM weir.streams WHERE stream LIKE '%.rejected'"
        return [[one.stream for one in rows(database_of(s), asked)] for s in (shop, bank)]

    everyone.create_stream("a/b", "n", owner="team_shop")
    make_rejected_stream(database_of(shop), name)
    assert seen() == [["a/b.rejected"], []]
    everyone.update_stream("a/b", owner="team_bank")
    assert seen() == [[], ["a/b.rejected"]]
    everyone.update_stream("a/b", owner="none")
    assert seen() == [["a/b.rejected"]] * 2
    everyone.create_stream("a/c", "n")
    make_rejected_stream(database_of(bank), stream_name("a/c"))
    assert seen() == [["a/b.rejected", "a/c.rejected"]] * 2


def test_who_has_a_name_anew_sees_what_it_does(opened: Opened) -> None:
    shop, bank = opened("shop_app"), opened("bank_app")
    shop.create_stream("a/b", "n", owner="team_shop")
    shop.seal_stream("a/b")
    shop.delete_stream("a/b")
    bank.create_stream("a/b", "n", owner="team_bank")
    bank.append("a/b", [{"n": 1}])
    bank.update_stream("a/b", tags=["ours"])
    requested = rows(database_of(bank), "SELECT operation FROM request WHERE object = 'a/b'")
    assert {"create_stream", "update_stream"} <= {one.operation for one in requested}
    with raises("stream_not_found"):
        shop.read("a/b")


def test_a_team_stages_rows_for_tables_that_no_other_team_reads(
    opened: Opened, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    shop, bank = opened("shop_app"), opened("bank_app")
    shop.create_stream("a/b", "n", owner="team_shop")
    shop.append("a/b", [{"n": 1}])
    shop.create_reader_group("g", ["a/b"], owner="team_shop")
    reader = Group(database_of(shop), "g", ()).reader()
    batch = reader.must_open()
    execute(
        test_database.owner_dsn,
        """CREATE SCHEMA team CREATE TABLE kinds (kind text);
        GRANT USAGE ON SCHEMA team TO weir_publisher;
        GRANT USAGE ON SCHEMA team TO team_shop;
        GRANT INSERT ON team.kinds TO weir_publisher, team_shop""",
    )
    mine = database_of(shop)
    columns = mine.transaction(lambda c: read_table(c, "team.kinds"))
    name, copy = make_staging(mine, batch, 0, columns)
    piece = mine.transaction(lambda c: copy_in(c, copy, io.BytesIO(b"events\n")))
    asked = f"SELECT kind FROM weir_staging.{name}"
    assert [one.kind for one in rows(mine, asked)] == ["events"]
    assert [one.kind for one in rows(database_of(opened("weir_app")), asked)] == ["events"]
    theirs = database_of(bank)
    with raises("database_failed"):
        rows(theirs, asked)
    for call in ("drop_staging(:name)", "make_staging(:name, '{}', '{}', '{}')"):
        with raises("right_missing own"):
            rows(theirs, f"SELECT weir_internal.{call}", name=name)
    with raises("database_failed"):
        rows(theirs, "SELECT weir_internal.announced('airflow', ARRAY['a/b'], ARRAY[1])")
    with raises("database_failed"):
        rows(theirs, "DELETE FROM weir_internal.watch RETURNING stream_name")
    assert [one.kind for one in rows(mine, asked)] == ["events"]
    reader.commit(batch, tables=[StagedTable("team.kinds", name, (piece,), 1)])
    assert execute(test_database.owner_dsn, "SELECT kind FROM team.kinds") == [("events",)]


def test_lineage_tells_nothing_of_appends_to_streams_of_others(opened: Opened) -> None:
    shop, bank = opened("shop_app"), opened("bank_app")
    shop.create_stream("a/b", "n", owner="team_shop")
    shop.append("a/b", [{"n": 1}])
    shop.create_stream("a/free", "n")
    shop.create_reader_group("g", ["a/b"], owner="team_shop")
    with shop.reader("g") as reader:
        for batch in reader:
            batch.commit({"stream:a/free": batch.events})
    database_of(shop).transaction(lambda c: c.execute(text(
        """INSERT INTO transaction_input (stream_id, transaction_number, path, bytes)
        SELECT stream_id, transaction_number, 's3://secret/file', 1 FROM transaction
        WHERE stream_name = 'a/b'""")))  # fmt: skip
    asked = "SELECT * FROM weir.lineage('a/free')"
    assert "secret" in str(rows(database_of(shop), asked))
    assert "secret" not in str(rows(database_of(bank), asked))


def test_the_group_that_puts_back_belongs_to_whom_its_group_belongs(opened: Opened) -> None:
    everyone, shop, bank = opened("weir_app"), opened("shop_app"), opened("bank_app")
    everyone.create_stream("a/free", "n")
    bank.create_reader_group("banks", ["a/free"], owner="team_bank")
    rejected = make_rejected_stream(database_of(bank), stream_name("a/free"))
    with raises("right_missing everybody"):
        _make_group(database_of(shop), "banks", [rejected])
    _make_group(database_of(bank), "banks", [rejected])
    with raises("not_permitted group"):
        shop.delete_reader_group("banks-put-back")
