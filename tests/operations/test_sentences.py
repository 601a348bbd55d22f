"""What a run says in the end: the last line of a task's log, and what its row shows of it."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import weir
from tests.world.streams import rows
from weir.database.connection import Database
from weir.operations.action import Job
from weir.operations.form import parse
from weir.operations.jobs import ACTIONS, FORMS
from weir.operations.runner import by_hand, perform
from weir.settings import Settings

Do = Callable[..., str]
N, ORDERS = "[0-9,]+", {"stream": "shop/orders"}
# What needs Spark, or a reader that is away, ends its runs in the tests of these.
OTHERS = {
    "back_test", "define_adjunct_store", "delete_adjunct_store", "update_adjunct_store", "ingest",
    "process", "put_back", "reader_offline",
}  # fmt: skip


@pytest.fixture
def do(database: Database, settings: Settings) -> Do:
    """Return `do(action, **arguments)`, which runs it as a job and returns its sentence."""

    def do(action: str, /, **arguments: Any) -> str:
        job = Job(action, by_hand(action), settings, database)
        perform(job, ACTIONS[action], arguments)
        last = "SELECT progress FROM job_runs WHERE run_id = :run AND state = 'succeeded'"
        assert [one.progress for one in rows(database, last, run=job.run.run_id)] == [job.sentence]
        return job.sentence

    return do


def test_each_run_ends_with_a_sentence_about_what_it_did(do: Do, settings: Settings) -> None:
    told: dict[str, list[str]] = {}

    def say(wanted: str, action: str, /, **arguments: Any) -> None:
        said = do(action, **arguments)
        assert re.fullmatch(wanted, said), said
        told.setdefault(action, []).append(said)

    say("stream shop/orders is created, with routing key n, 2 segments",
        "create_stream", **ORDERS, routing_key="n", segments=2)  # fmt: skip
    with weir.open(settings=settings) as store:
        say("the tails of 1 stream are recorded; 0 new files compared with the record",
            "stream_cuts")  # fmt: skip
        store.append("shop/orders", [{"n": i} for i in range(10)])
        say("reader group g reads shop/orders, from head",
            "create_reader_group", reader_group="g", streams=["shop/orders"])  # fmt: skip
        for batch in store.reader("g"):
            batch.commit({})
        store.append("shop/orders", [{"n": i} for i in range(10)])
    say("1 reader group checkpointed", "checkpoints")
    say("reader group g has checkpoint 'c'; what lies before it is released",
        "checkpoint_reader_group", reader_group="g", name="c")  # fmt: skip
    say("reader group f reads on from checkpoint c of reader group g", "fork_reader_group",
        reader_group="g", new_reader_group="f", at="checkpoint c")  # fmt: skip
    say("reader group g is changed: release", "update_reader_group", reader_group="g",
        release="manual")  # fmt: skip
    say("reader group g has released what lies before checkpoint c",
        "release_reader_group", reader_group="g", at="checkpoint c")  # fmt: skip
    again = {"reader_group": "g", "to": "head", "allow_repeat": True}
    say("reader group g is not reset: this was a dry run",
        "reset_reader_group", **again, dry_run=True)  # fmt: skip
    say("reader group g reads on from head", "reset_reader_group", **again)
    say("stream shop/orders: 0.0 sealed, 2.1, 3.1 created \\(epoch 1\\)",
        "scale_stream", **ORDERS, segments=["0.0"])  # fmt: skip
    say("0 streams scaled, of 0 looked at", "scale")
    decisions = [{"action": "split"}, {"action": "none"}, {"action": "merge"}]
    form = parse(FORMS["scale"], {})
    said = ACTIONS["scale"].said(form, {"decisions": decisions})
    assert said == "2 streams scaled, of 3 looked at"
    say("stream shop/orders is changed: retention", "update_stream", **ORDERS, retention="consumed")
    say("0 events of 0 streams are truncated; 0 files deleted \\(0 bytes\\)", "retention")
    say("0 events of 0 streams would be truncated", "retention", dry_run=True)
    say(f"20 events of stream shop/orders would be truncated \\({N} bytes\\)",
        "truncate_stream", **ORDERS, cut="tail")  # fmt: skip
    say(f"20 events of stream shop/orders are truncated \\({N} bytes\\)",
        "truncate_stream", **ORDERS, cut="tail", dry_run=False)  # fmt: skip
    of_key = {**ORDERS, "reason": "asked", "keys": ["nobody"]}
    say("0 events would be erased: this was a dry run", "erase", **of_key)
    say("the keys are those of no event of stream shop/orders, or of what was made of it", "erase",
        **of_key, dry_run=False)  # fmt: skip
    say("nothing is to be compacted", "compact")
    say("nothing is new", "publish")
    say("0 streams would get a new snapshot", "publish", dry_run=True)
    say("0 files of 0 streams are as recorded \\(0 bytes\\)", "verify", contents=False)
    say("the ledger of 1 stream and 2 reader groups is proven", "audit")
    say(f"0 appends aborted, {N} files deleted \\({N} bytes\\), 0 compacted into 0",
        "upkeep")  # fmt: skip
    say("the database is its own; 0 unknown files, 0 missing, of which 0 are found",
        "recover", unknown_files="report")  # fmt: skip
    say("1 changed, 0 are as declared", "apply", text="streams: {shop/a: {routing_key: n}}")
    say("0 differ, 1 are as declared", "apply", text="streams: {shop/a: {routing_key: n}}",
        dry_run=True)  # fmt: skip
    say("reader group f is not deleted: this was a dry run",
        "delete_reader_group", reader_group="f", dry_run=True)  # fmt: skip
    say("reader group f is deleted", "delete_reader_group", reader_group="f", dry_run=False)
    say("stream shop/orders is sealed: nothing more can be appended", "seal_stream", **ORDERS)
    say("stream shop/orders is not deleted: this was a dry run",
        "delete_stream", **ORDERS, unread_too=True, dry_run=True)  # fmt: skip
    say("stream shop/orders is deleted",
        "delete_stream", **ORDERS, unread_too=True, dry_run=False)  # fmt: skip
    say("0 versions of adjunct stores built, 0 expired", "adjunct")
    assert set(ACTIONS) - set(told) == OTHERS
