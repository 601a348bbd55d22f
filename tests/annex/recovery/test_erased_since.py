"""After a restore the report says that erasures since the backup are not known, and which."""

import json
import time
from typing import Any

import weir
from tests.annex.erasure.test_everywhere import ASKED, WHO
from tests.annex.recovery.test_compacted_files import Restore, elsewhere
from tests.raises import raises
from tests.world.streams import rows
from weir.database.connection import Database
from weir.settings import Settings


def erased_after_a_backup(
    database: Database, settings: Settings, restore: Restore
) -> tuple[dict[str, Any], Settings]:
    """The certificate of an erasure, and the settings of a database from before it."""
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "customer")
        store.append("shop/orders", [{"customer": who} for who in (WHO, "ann", "bob")])
        store.create_stream("shop/others", "customer")
        store.append("shop/others", [{"customer": "bob"}])
        store.erase("shop/others", "before", keys=["bob"], dry_run=False)  # makes the key
    database.dispose()
    back = restore(database)
    with weir.open(settings=settings) as store:
        store.erase("shop/orders", **ASKED)
        certificates = "SELECT certificate FROM weir.certificates WHERE reason = 'asked'"
        [made] = rows(store.database, certificates)
    return made.certificate, elsewhere(settings, back)


def test_a_report_says_that_erasures_since_the_backup_are_unknown_and_what_shows_them(
    database: Database, settings: Settings, restore: Restore
) -> None:
    certificate, restored = erased_after_a_backup(database, settings, restore)
    forged = json.loads(json.dumps(certificate))
    forged["document"] |= {"request": "another"}
    with weir.open(settings=restored) as store:
        [before] = rows(store.database, "SELECT certificate FROM weir.certificates")
        given = [json.dumps(one) for one in (certificate, forged, before.certificate)]
        said = store.recover(erased=given)["erased"]
        assert said["unknown_since"] is not None
        assert said["files"] == len(said["examples"]) == 1
        first, second, third = said["certificates"]
        assert (first["known"], first["signed"], first["keys"]) == (False, True, 1)
        assert first["events"] == {"shop/orders": 1}
        assert (second["known"], second["signed"]) == (False, False)
        assert (third["known"], third["signed"]) == (True, True)
        assert len(said["then"]) == 3
        assert certificate["document"]["request"] in said["then"][1]
        store.recover(unknown_files="keep")
        assert store.recover()["erased"]["unknown_since"] is None
        assert store.erase("shop/orders", **ASKED)["signed"]
        assert WHO not in store.read("shop/orders")["customer"].to_pylist()


def test_what_is_made_in_a_restored_database_hides_no_erasure(
    database: Database, settings: Settings, restore: Restore
) -> None:
    _, restored = erased_after_a_backup(database, settings, restore)
    with weir.open(settings=restored) as store:
        before = store.recover()["erased"]["unknown_since"]
        time.sleep(1)  # it is said in whole seconds
        store.create_stream("shop/new", "customer")
        store.create_reader_group("new", ["shop/new"])
        with raises("database_restored"):
            store.append("shop/new", [{"customer": "ann"}])
        with raises("database_restored"):
            store.erase("shop/orders", **ASKED)
        assert store.recover()["erased"]["unknown_since"] == before


def test_what_is_no_certificate_is_refused_without_saying_what_it_is(
    database: Database, settings: Settings
) -> None:
    with weir.open(settings=settings) as store:
        for text in ("s3cret", "{}", "[" * 9999, '{"document": {"erased": 7}}'):
            with raises("argument_invalid certificate") as refused:
                store.recover(erased=[text])
            assert "s3cret" not in str(refused.value)
