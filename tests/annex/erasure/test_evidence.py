"""What was erased is evidence: it is added by what erases alone, changed by nobody, and signed only
if the ledger says the same."""

import json
from collections.abc import Iterator

import pytest

from tests.annex.erasure.test_everywhere import ASKED, WHO
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.world.streams import rows, run
from weir.annex.erasure.certificate import sign_waiting
from weir.database.connection import Database
from weir.programs.store import StreamStore
from weir.settings import Settings


@pytest.fixture
def owner(test_database: TestDatabase) -> Iterator[Database]:
    """The login that owns the tables."""
    with Database(test_database.owner_dsn, patience=5.0, connect_patience=5.0) as database:
        yield database


def orders(store: StreamStore) -> None:
    store.create_stream("shop/orders", "customer")
    store.append("shop/orders", [{"customer": who} for who in (WHO, "ann", "bob")])


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM erasure_request",
        "DELETE FROM erasure",
        "UPDATE erasure_request SET certificate = NULL, certified_at = NULL",
        "UPDATE erasure_request SET reason = 'another'",
        "UPDATE erasure SET events = events + 1",
        """INSERT INTO erasure_request (request_id, stream_id, stream_name, requested_by, reason,
            asked, searched, remains, done_at)
        SELECT 'false', stream_id, 'bank/accounts', 'me', 'no', '{}', '[]', '[]', now()
        FROM stream""",
        """INSERT INTO erasure (stream_id, stream_name, compaction_number, requested_by, reason,
            asked, events, files, segments)
        SELECT stream_id, stream_name, 7, 'me', 'no', '{}', 7, 1, '{"0.0": 7}' FROM stream""",
    ],
)
def test_no_job_adds_changes_or_deletes_evidence_by_itself(
    store: StreamStore, statement: str
) -> None:
    orders(store)
    store.erase("shop/orders", **ASKED)
    before = rows(store.database, "SELECT * FROM weir.certificates")
    with raises("database_failed"):
        run(store.database, statement)
    assert rows(store.database, "SELECT * FROM weir.certificates") == before
    rights = """SELECT r, t, p FROM unnest(ARRAY['weir_jobs', 'weir_team', 'weir_reader']) r,
        unnest(ARRAY['erasure', 'erasure_request']) t,
        unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) p
        WHERE has_table_privilege(r, 'weir_internal.' || t, p)"""
    assert rows(store.database, rights) == []
    called = """SELECT r, p.proname FROM unnest(ARRAY['weir_jobs', 'weir_team', 'weir_reader']) r,
        pg_proc p WHERE p.proname IN ('sign_erasure', 'add_erasure')
            AND has_function_privilege(r, p.oid, 'EXECUTE')"""
    assert rows(store.database, called) == [("weir_jobs", "sign_erasure")]


def test_events_that_are_no_holes_were_not_erased(store: StreamStore) -> None:
    orders(store)
    store.erase("shop/orders", **ASKED)
    claim = """SELECT record_requested_erasure(c.stream_id, c.number + :later, 'me', 'no',
        CAST(:asked AS jsonb), 1, 1, NULL, NULL, '{"0.0": 1}')
        FROM compaction c WHERE c.state = 'done' ORDER BY c.number DESC LIMIT 1"""
    [signed] = rows(store.database, "SELECT request FROM weir.certificates")
    for asked in ({}, {"request": signed.request}):
        with raises("right_missing 1 records"):
            rows(store.database, claim, later=9, asked=json.dumps(asked))
    run(store.database, "DELETE FROM hole")  # which is a job's right, and no evidence of anything
    store.append("shop/orders", [{"customer": WHO}])
    with raises("right_missing compaction"):
        store.erase("shop/orders", "again", keys=["ann"], dry_run=False)
    run(store.database, "SELECT end_erasure(:r, '[]', '[]')", r=signed.request)
    run(store.database, "SELECT forget_erasure(:r)", r=signed.request)
    run(store.database, "SELECT count_erased(:r, 'a/store', NULL, NULL, 7)", r=signed.request)
    [after] = rows(store.database, "SELECT events, certificate FROM weir.certificates")
    assert after.events == 1
    assert after.certificate["document"]["stores"] == {}


def test_names_and_counts_of_what_was_searched_come_from_the_ledger(store: StreamStore) -> None:
    orders(store)
    [stream] = rows(store.database, "SELECT stream_id FROM stream")
    run(store.database, "SELECT begin_erasure('mine', :s, 'me', 'no', '{}')", s=stream.stream_id)
    said = [
        {"stream": "bank/accounts", "stream_id": stream.stream_id, "by": "x", "events": 99},
        {"stream": "bank/accounts", "stream_id": 4711, "by": "x"},
    ]
    run(store.database, "SELECT end_erasure('mine', CAST(:said AS jsonb), '[]')",
        said=json.dumps(said))  # fmt: skip
    [made] = rows(store.database, "SELECT stream_name, searched FROM erasure_request")
    assert made.stream_name == "shop/orders"
    assert [(one["stream"], one["events"]) for one in made.searched] == [("shop/orders", 0)]


@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE erasure SET events = 7, segments = '{\"0.0\": 7}'",
        "UPDATE erasure SET events = 7",
        "UPDATE erasure SET compaction_number = 4711",
        "UPDATE erasure SET stream_name = 'bank/accounts'",
        "UPDATE erasure_request SET stream_name = 'bank/accounts'",
        "UPDATE erasure_request SET searched = jsonb_set(searched, '{0,stream}', '\"bank/a\"')",
        "UPDATE erasure_request SET searched = jsonb_set(searched, '{0,events}', '7')",
        "DELETE FROM hole",
        "UPDATE compaction SET state = 'aborted'",
    ],
)
def test_what_the_ledger_does_not_say_is_not_signed(
    store: StreamStore, settings: Settings, owner: Database, fault: str
) -> None:
    orders(store)
    assert store.erase("shop/orders", **ASKED)["signed"]
    run(owner, "UPDATE erasure_request SET certificate = NULL, certified_at = NULL")
    run(owner, fault)
    assert sign_waiting(store.database, settings.grace_period) == []
    [kept] = rows(store.database, "SELECT certificate FROM weir.certificates")
    assert kept.certificate is None
