"""Streams with compactions, erasures and truncations are proven, with their files."""

import pytest

import weir
from tests.annex.erasure.world import Erasing
from tests.chance import random_for
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import rows, run
from weir.annex.audit.files import looking_at
from weir.annex.audit.run import audit
from weir.database.connection import Database
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem


@pytest.mark.parametrize("case", range(2))
def test_compactions_and_erasures_are_proven(
    database: Database, settings: Settings, case: int
) -> None:
    world = Erasing.made(database, settings, random_for("erased and audited", case))
    group = Group.made(world.lane)
    for round_ in range(3):
        for _ in range(6):
            world.append()
        group.reader().read_all()
        world.compact()
        world.erase(f"k{3 * round_ + case}", f"k{3 * round_ + 1}")
        if round_ == 1:
            world.lane.truncate(", ".join(f"{k}={v}" for k, v in group.cut().items()))
        look = looking_at(*filesystem(settings.warehouse))
        for everything in (False, True):
            done = audit(database, everything=everything, look=look)
            assert [one.what for one in done.counter_examples] == []
    assert world.lane.value("SELECT sum(events) FROM hole WHERE stream_id = :s") > 0


def test_what_was_erased_before_it_went_unread_was_not_lost(
    database: Database, settings: Settings
) -> None:
    world = Erasing.made(database, settings, random_for("erased unread"), segments=1)
    slow = Group.made(world.lane, on_gap="skip")
    world.append()
    [erased] = world.lane.tail().values()
    world.erase(*(f"k{n}" for n in range(13)))
    world.append()
    world.lane.truncate(f"0.0={erased}")
    assert audit(database, everything=True).counter_examples == []
    slow.reader().read_all()
    assert audit(database, everything=True).counter_examples == []
    for more in (1, -1):
        run(
            database,
            "UPDATE truncation SET events = events + :n, events_until = events_until + :n",
            n=more,
        )
        kinds = {one.kind for one in audit(database, everything=True).counter_examples}
        assert kinds == ({"receipt_sum"} if more == 1 else set())
    run(database, "UPDATE hole SET events = events - 1, offsets = offsets - '{[0, 1)}'")
    kinds = {one.kind for one in audit(database, everything=True).counter_examples}
    assert "lost_without_a_word" in kinds


# A file has offsets 0 to 9 of key a, b, a, b ...; those of b are erased.
_HOLES = {
    "moved by one": """offsets = (
        SELECT range_agg(int4range(lower(m) - 1, upper(m) - 1)) FROM unnest(offsets) m)""",
    "moved on by one": "offsets = offsets - '{[1, 2)}' + '{[2, 3)}'",
    "one of them moved": "offsets = offsets - '{[5, 6)}' + '{[4, 5)}'",
    "widened": "offsets = offsets + '{[2, 3)}', events = events + 1",
    "made smaller": "offsets = offsets - '{[5, 6)}', events = events - 1",
    "moved to where no file is": "chunk = 7",
}


@pytest.mark.parametrize("fault", [*_HOLES.values(), ""], ids=[*_HOLES, "removed"])
def test_a_hole_that_is_elsewhere_than_its_file_says_is_found_by_audit_and_verify(
    database: Database, settings: Settings, fault: str
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "customer")
        store.append("shop/orders", [{"customer": one} for one in "abababab" * 2])
        store.append("shop/orders", [{"customer": "c"}])
        store.erase("shop/orders", "asked", keys=["b"], dry_run=False)
        assert store.audit(everything=True, files=True)["proven"]
        store.verify()
        run(database, f"UPDATE hole SET {fault}" if fault else "DELETE FROM hole")
        with raises("ledger_refuted"):
            store.audit(everything=True, files=True)
        found = {row.kind for row in rows(database, "SELECT kind FROM counter_examples")}
        assert "hole_elsewhere" in found
        with raises("damage_found"):
            store.verify()
        kinds = {row.kind for row in rows(database, "SELECT kind FROM weir.damage")}
        assert "holes" in kinds


@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE hole SET events = events * 2",
        "INSERT INTO hole SELECT stream_id, segment_id, chunk + 1, events, offsets FROM hole",
        """INSERT INTO hole SELECT stream_id, segment_id, chunk - 1, events, (
            SELECT range_agg(int4range(lower(m) + 65536, upper(m) + 65536))
            FROM unnest(offsets) m) FROM hole""",
        "UPDATE data_file SET erased = erased + 1",
    ],
)
def test_a_hole_that_is_doubled_is_found_by_audit_and_verify(
    database: Database, settings: Settings, fault: str
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "customer")
        store.append("shop/orders", [{"customer": one} for one in "abababab"])
        store.erase("shop/orders", "asked", keys=["b"], dry_run=False)
        run(database, fault)
        with raises("ledger_refuted"):
            store.audit(everything=True)
        with raises("damage_found"):
            store.verify()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("certificate = jsonb_set(certificate, '{document,reason}', '\"another\"')", "not_signed"),
        ("certificate = jsonb_set(certificate, '{signature}', '\"AAAA\"')", "not_signed"),
        ("certificate = jsonb_set(certificate, '{key_number}', '7')", "not_signed"),
        ("request_id = 'a run that erased nothing'", "differs"),
        ("certificate = NULL, certified_at = NULL, request_id = 'none'", "lost"),
    ],
)
def test_a_certificate_that_is_false_is_found(
    database: Database, settings: Settings, test_database: TestDatabase, fault: str, kind: str
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "customer")
        store.append("shop/orders", [{"customer": one} for one in ("ann", "bob")])
        done = store.erase("shop/orders", "asked", keys=["ann"], dry_run=False)
    assert done["signed"]
    assert audit(database, everything=True).counter_examples == []
    with Database(test_database.owner_dsn, patience=5.0, connect_patience=5.0) as owner:
        run(owner, f"UPDATE erasure_request SET {fault}")
    found = {one.kind: one.what for one in audit(database).counter_examples}
    assert "shop/orders" in found[f"certificate_{kind}"]
