"""What attempts, deleted copies and truncations left behind has events, too: it goes at once with
them, or the certificate waits for it. An erasure that was stopped goes on."""

import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.annex.erasure.test_everywhere import ASKED, WHO, filled
from tests.annex.erasure.test_former_names import where_it_is_not_an_input
from tests.annex.erasure.test_subject import copied
from tests.chance import some
from tests.conftest import TestDatabase
from tests.crash.fault_points import kill_at, moments_of
from tests.raises import raises
from tests.world.garbage import sweep
from tests.world.streams import rows, run
from weir.annex.erasure import everywhere
from weir.annex.erasure.certificate import sign_waiting
from weir.annex.erasure.everywhere import Everywhere, Wanted
from weir.annex.erasure.sentences import forgetting
from weir.annex.publication import run as publication
from weir.controller.rejected import make_rejected_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.operations.action import Job
from weir.operations.form import parse
from weir.operations.jobs import ACTIONS, FORMS
from weir.operations.runner import by_hand, perform
from weir.programs.store import StreamStore
from weir.settings import Settings


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Garbage is kept for an hour, as where people work."""
    return replace(settings, grace_period=3600.0)


def orders(store: StreamStore, name: str = "shop/orders", **how: Any) -> None:
    store.create_stream(name, "customer", **how)
    store.append(name, [{"customer": who, "n": n} for n, who in enumerate((WHO, "ann"))])


def test_a_failed_attempt_at_an_output_goes_at_once(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    orders(store)
    copied(store, "writers", "shop/orders", {"parquet:plain": {"customer": "customer"}})
    [made] = rows(store.database, "SELECT root, path FROM parquet_output")
    failed = made.path.replace("attempt=1", "attempt=7")
    assert failed != made.path
    shutil.copytree(Path(made.root) / made.path, Path(made.root) / failed)
    run(store.database, """INSERT INTO garbage (root, path, reason)
        VALUES (:root, :path, 'fenced')""", root=made.root, path=failed)  # fmt: skip
    done = store.erase("shop/orders", **ASKED)
    assert done["signed"], done["waits_for"]
    assert where_it_is_not_an_input(settings, test_database) == []


def test_a_failed_attempt_that_cannot_be_deleted_is_waited_for(
    store: StreamStore, settings: Settings
) -> None:
    orders(store)
    copied(store, "writers", "shop/orders", {"parquet:plain": {"customer": "customer"}})
    [made] = rows(store.database, "SELECT root, path FROM parquet_output")
    run(store.database, """INSERT INTO garbage (root, path, reason)
        VALUES ('/no/such/root', :path, 'fenced')""", path=made.path)  # fmt: skip
    done = store.erase("shop/orders", **ASKED)
    assert done["signed"] is False
    assert done["waits_for"] == ["the deletion of files below /no/such/root"]
    run(store.database, "DELETE FROM garbage WHERE root <> ''")
    assert len(sign_waiting(store.database, settings.grace_period)) == 1


def test_files_of_deleted_copies_go_at_once(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = filled(store)
    store.seal_stream(f"{name}-by-n")
    store.delete_stream(f"{name}-by-n", dry_run=False)
    assert [path for path in where_it_is_not_an_input(settings, test_database) if "/" in path]
    done = store.erase(name, **ASKED)
    assert done["signed"], done["waits_for"]
    assert where_it_is_not_an_input(settings, test_database) == []


def test_what_expired_of_a_store_that_is_there_is_kept_for_its_readers_and_of_a_gone_one_goes(
    store: StreamStore,
) -> None:
    orders(store)
    store.create_stream("shop/others", "n")
    store.define_adjunct_store("shop/mine", "shop/others")
    run(store.database, """INSERT INTO garbage (root, path, reason)
        SELECT '', '_weir_adjunct=' || store_id || '/version=1/a.parquet', 'expired'
        FROM adjunct_store UNION ALL
        SELECT '', '_weir_adjunct=4711/version=1/a.parquet', 'expired'""")  # fmt: skip
    assert store.erase("shop/orders", **ASKED)["signed"]
    [left] = rows(store.database, "SELECT path, reason FROM garbage WHERE reason <> 'swept'")
    assert (left.reason, "4711" in left.path) == ("expired", False)


def test_who_is_truncated_wholly_is_erased_with_a_certificate(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    store.create_stream("shop/orders", "customer")
    store.append("shop/orders", [{"customer": WHO}])
    store.append("shop/orders", [{"customer": "ann"}])
    store.truncate_stream("shop/orders", "0.0=1", dry_run=False)
    done = store.erase("shop/orders", **ASKED)
    assert (done["events"], done["signed"]) == (0, True)
    assert where_it_is_not_an_input(settings, test_database) == []
    [kept] = rows(store.database, "SELECT state, events FROM weir.certificates")
    assert (kept.state, kept.events) == ("signed", 0)


def test_the_same_request_by_hand_goes_on_before_the_sweep_and_answers_what_it_did(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = filled(store)
    with (
        patch.object(everywhere, "sweep", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        store.erase(name, **ASKED)
    assert where_it_is_not_an_input(settings, test_database)
    done = store.erase(name, **ASKED)
    assert (done["events"], done["signed"]) == (8, True)
    assert where_it_is_not_an_input(settings, test_database) == []
    assert store.erase(name, **ASKED) == done
    assert len(rows(store.database, "SELECT FROM weir.certificates")) == 1
    store.append(name, [{"customer": WHO, "n": 9}])
    assert store.erase(name, **ASKED)["events"] == 1, "what came since is erased, too"
    assert len(rows(store.database, "SELECT FROM weir.certificates")) == 2


@pytest.mark.parametrize("by_hand", [False, True])
def test_killed_at_any_moment_the_same_request_goes_on_without_waiting_for_a_lease(
    store: StreamStore, settings: Settings, test_database: TestDatabase, by_hand: bool
) -> None:
    """By hand, each try is a request of its own for the same."""
    folder = Path(settings.warehouse)

    def erasing(name: str, again: str, database: Database) -> Any:
        whole = Everywhere(database, settings, Wanted(stream_name(name), (WHO,)))
        run_id = f"by hand/{name}{again if by_hand else ''}"
        return whole.erase(run_id, "me", "asked", lambda _line: None, by_hand=by_hand)

    erasing(filled(store), "", store.database)  # it makes the key that signs
    moments = moments_of(test_database.dsn, partial(erasing, filled(store), ""), folder)
    for number, moment in some(enumerate(moments), *moments, least=3):
        name = filled(store)
        kill_at(test_database.dsn, partial(erasing, name, ""), folder, number)
        done = erasing(name, "/again", store.database)
        assert (done["events"], done["signed"]) == (8, True), moment
        assert [store.count(name), store.count(f"{name}-by-n")] == [6, 6], moment
    assert where_it_is_not_an_input(settings, test_database) == []


def test_a_publication_that_fails_does_not_keep_the_files_for_ever(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = filled(store, publish="iceberg")
    store.publish(streams=[name])
    with patch.object(publication._Run, "_publish", side_effect=OSError("no room")):
        done = store.erase(name, **ASKED)
        assert not done["signed"]
        assert [one for one in done["waits_for"] if "no room" in one]
        assert [one for one in done["waits_for"] if one.startswith("a snapshot of the table")]
        run(store.database, "UPDATE garbage SET garbage_since = now() - interval '1 day'")
        sweep(store.database, settings.warehouse, settings.grace_period)
    assert len(sign_waiting(store.database, settings.grace_period)) == 1
    assert where_it_is_not_an_input(settings, test_database) == []
    store.publish(streams=[name])


def test_what_runs_batches_and_checks_have_recorded_forgets_the_key(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    orders(store)
    copied(store, "writers", "shop/orders", {"parquet:plain": {"customer": "customer"}})
    store.create_stream(WHO + "/orders", "n")
    sentence = f"row {{'customer': '{WHO}'}} does not fit, nor does {WHO}; {WHO}9 does."
    others = """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
        state, report, error, progress)
        VALUES ('d', :run, 't', -1, 1, 'erase', CAST(:arguments AS jsonb), :state,
            jsonb_build_object('hot', jsonb_build_array(CAST(:who AS text)), 'n', 8), :error,
            :error)"""
    arguments = f'{{"keys": ["{WHO}"], "stream": "{WHO}/orders", "condition": "c = \'{WHO}\'"}}'
    for state in ("killed", "failed"):
        run(store.database, others, run=state, state=state, who=WHO, error=sentence,
            arguments=arguments)  # fmt: skip
    run(store.database, "UPDATE reader_batch SET error = :error", error=sentence)
    run(store.database, "INSERT INTO found_damage (path, kind, what) VALUES ('x', 'rows', :error)",
        error=sentence)  # fmt: skip
    run(store.database, "INSERT INTO counter_example (kind, what) VALUES ('x', :error)",
        error=sentence)  # fmt: skip
    run(store.database, """INSERT INTO request (request_id, operation, object, arguments, result)
        VALUES ('r', 'o', 'shop/orders', '', jsonb_build_object('pins', CAST(:who AS text)))""",
        who=WHO)  # fmt: skip
    assert store.erase("shop/orders", **ASKED)["signed"]
    kept = rows(store.database, "SELECT arguments, report, error FROM job_run WHERE dag_id = 'd'")
    for row in kept:
        assert row.arguments == {
            "keys": ["(not kept)"], "stream": f"{WHO}/orders", "condition": "c = '(not kept)'"
        }  # fmt: skip
        assert row.report == {"hot": ["(not kept)"], "n": 8}
        assert row.error == (
            f"row {{'customer': '(not kept)'}} does not fit, nor does (not kept); {WHO}9 does."
        )
    for table in ("reader_batch", "found_damage", "counter_example", "request"):
        held = rows(store.database, f"SELECT t::text FROM {table} t")
        assert held
        kept_names = re.compile(rf"{WHO}(9|/orders)")
        assert not [row for (row,) in held if WHO in kept_names.sub("", row)], table


def test_no_certificate_names_a_file_by_the_key_and_copies_of_deleted_streams_are_listed(
    store: StreamStore,
) -> None:
    orders(store)
    run(store.database, """INSERT INTO transaction_input
        (stream_id, path, transaction_number, bytes)
        SELECT stream_id, :path, transaction_number, 1 FROM transaction
        WHERE stream_name = 'shop/orders'""", path=f"customer={WHO}/a.csv")  # fmt: skip
    store.create_stream("shop/gone", "n")
    store.seal_stream("shop/gone")
    store.delete_stream("shop/gone", dry_run=False)
    done = store.erase("shop/orders", **ASKED)
    [files] = [one for one in done["remains"] if one["what"] == "input files"]
    assert files["why"] == "1 file below the input roots; Weir only reads them"
    assert ("what was made", "of 1 deleted stream") in {
        (one["what"], one["name"]) for one in done["remains"]
    }
    [made] = rows(store.database, "SELECT certificate FROM weir.certificates")
    assert WHO not in json.dumps(made.certificate)


@pytest.mark.parametrize(
    ("key", "sentence", "kept"),
    [
        ("17", "17 rows of '17' and 17.0=17 at \"17\"", "17 rows of '(not kept)' and 17.0=17 at "
         "\"(not kept)\""),
        ("ann", "ann, annie and 'ann'", "(not kept), annie and '(not kept)'"),
        ("", "nothing '' is", "nothing '' is"),
        ("M\u00fcller", "M\\u00fcller or M\u00fcller is", "(not kept) or (not kept) is"),
    ],
)  # fmt: skip
def test_a_number_is_forgotten_in_quotes_only_and_a_name_as_a_word(
    key: str, sentence: str, kept: str
) -> None:
    forget = forgetting([key])
    assert forget(sentence) == kept
    assert forget({"a": [key, "0.0=17"], "n": 17}) == {
        "a": [key and "(not kept)", "0.0=17"],
        "n": 17,
    }


def test_the_empty_text_is_a_key(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    store.create_stream("shop/orders", "customer")
    store.append("shop/orders", [{"customer": one} for one in ("", "ann", " ")])
    made = make_rejected_stream(store.database, stream_name("shop/orders"))
    store.append(str(made), [{"row": "ann;1", "source": "a"}])
    copied(store, "writers", "shop/orders", {"parquet:plain": {"customer": "customer"}})
    done = store.erase("shop/orders", "asked", keys=[""], dry_run=False)
    assert (done["events"], done["outputs"], done["signed"]) == (1, {"plain of writers": 1}, True)
    assert sorted(store.read("shop/orders")["customer"].to_pylist()) == [" ", "ann"]
    assert store.count(str(made)) == 1


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[2Jb", "a\x85b", "a\u202eb", "a\u2028b"])
def test_neither_reason_nor_who_asks_takes_control_characters(
    store: StreamStore, text: str
) -> None:
    orders(store)
    with raises("argument_invalid"):
        store.erase("shop/orders", text, keys=[WHO])
    with raises("argument_invalid"):
        store.erase("shop/orders", "asked", keys=[WHO], requested_by=text)


def test_the_question_says_who_asks_for_what_and_other_events_in_the_same_number_do_not_pass(
    store: StreamStore, settings: Settings
) -> None:
    orders(store)
    action = ACTIONS["erase"]
    assert action.measure is not None

    def asked(**arguments: Any) -> Any:
        given = {"stream": "shop/orders", "reason": "ticket 7", "dry_run": False, **arguments}
        job = Job("erase", by_hand("erase"), settings, store.database)
        return job, given, parse(FORMS["erase"], given)

    job, given, arguments = asked(keys=[WHO, "nobody"], requested_by="ann of support")
    loss = action.measure(job, arguments)
    assert loss is not None
    [said] = [line for line in loss.lines if "ticket 7" in line]
    assert said == ("these are the events of 2 keys; ann of support asks for it, because: ticket 7")
    assert not [line for line in loss.lines if WHO in line]
    for other in ({"keys": ["ann", "nobody"]}, {"keys": [WHO, "nobody"], "reason": "another"}):
        job, given, _ = asked(**{"requested_by": "ann of support", **other})
        job.approved = json.loads(json.dumps(loss.facts))
        with raises("approval_void"):
            perform(job, ACTIONS["erase"], given)
    job, given, _ = asked(keys=[WHO, "nobody"], requested_by="ann of support")
    job.approved = json.loads(json.dumps(loss.facts))
    assert perform(job, ACTIONS["erase"], given)["events"] == 1
