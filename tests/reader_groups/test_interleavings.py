"""Two sessions at one group at the same time: one after the other, or refused; never stuck."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.world.groups import LEASE, Group
from tests.world.streams import (
    Lane,
    at_once,
    rows,
    staged,
    while_held,
)
from weir.controller.seal import seal_stream
from weir.controller.transactions import ping
from weir.database.connection import Database
from weir.errors import Fenced
from weir.queries.reader_groups.outputs.tables import Column
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.readers import release_expired, renew
from weir.reader_groups.groups.update import update_reader_group
from weir.reader_groups.locks import lock_group
from weir.reader_groups.outputs.tables import StagedTable, make_staging
from weir.retention.capture import capture
from weir.retention.delete_stream import delete_stream
from weir.retention.prune import prune
from weir.retention.release import release
from weir.retention.run import retain


def test_renewing_leases_while_a_batch_is_committed_is_no_deadlock(
    lane: Lane, caplog: pytest.LogCaptureFixture
) -> None:
    # The thread that renews: the reader first, then the transactions of its output.
    lane.append({"0.0": 5})
    group, out = Group.made(lane), Lane.made(lane.database, retention="consumed")
    reader = group.reader()
    batch = reader.must_open()
    attempt = out.opened()

    def renewing(connection: Connection) -> None:
        renew(connection, group.name, reader.reader_id, reader.token, LEASE)

    outcomes = while_held(
        lane.database,
        renewing,
        lambda: reader.commit(batch, [staged(attempt, {"0.0": 5})]),
        lambda c: ping(c, attempt, LEASE, 3600.0),  # while the commit waits for the reader's row
    )
    assert outcomes[0] is None
    assert [one.events for one in outcomes[1]] == [5]
    assert out.tail() == {"0.0": 5, "1.0": 0}
    assert "deadlock" not in caplog.text


def test_readers_that_open_at_once_share_without_overlap(lane: Lane) -> None:
    wide = Lane.made(lane.database, segments=8, retention="consumed")
    wide.append({f"{i}.0": 3 for i in range(8)})
    group = Group.made(wide)
    readers = [group.reader(f"r{i}") for i in range(4)]
    batches = at_once(*[reader.open for reader in readers])
    read = [bound.segment_id for batch in batches for bound in batch.bounds]
    assert sorted(read) == list(range(8))
    for result in at_once(*[partial(r.commit, b) for r, b in zip(readers, batches, strict=True)]):
        assert result == []
    assert group.cut() == wide.tail()


def test_a_commit_that_waits_for_a_take_over_is_refused(lane: Lane) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane)
    a, b = group.reader("a"), group.reader("b")
    batch = a.must_open()

    def releasing(connection: Connection) -> list[str]:
        locked = lock_group(connection, group.name)
        return release_expired(connection, locked, lease=0.0)

    # With its batch open an expired reader stays ...
    group.lapse("a")
    released, committed = while_held(lane.database, releasing, partial(a.commit, batch))
    assert (released, committed) == ([], [])
    # ... without one it goes, and what it asks for then is refused.
    group.lapse("a")
    released, opened = while_held(lane.database, releasing, a.open)
    assert released == ["a"]
    assert isinstance(opened, Fenced)
    assert opened.code == "reader_replaced"
    assert b.open() is None


def test_a_group_created_while_the_stream_is_truncated_begins_at_the_new_head(
    lane: Lane,
) -> None:
    for _ in range(6):
        one = Lane.made(lane.database, retention="consumed")
        one.append({"0.0": 5, "1.0": 5})
        group, _ = at_once(partial(Group.made, one), partial(one.truncate, "0.0=2, 1.0=3"))
        assert group.cut() in ({"0.0": 0, "1.0": 0}, {"0.0": 2, "1.0": 3})
        assert group.cut() == group.released()


@pytest.mark.parametrize(
    "what",
    ["checkpoint", "retention", "prune", "update", "truncate", "delete", "release", "output"],
)
def test_appends_to_a_stream_do_not_wait_for_its_groups(database: Database, what: str) -> None:
    # As a group is locked while its commit puts many rows into a table.
    lane = Lane.made(database, retention="consumed")
    group = Group.made(lane, release="manual")
    lane.append({"0.0": 5})
    reader = group.reader()
    reader.read_all()
    capture(database)
    attempt, written = lane.opened(), lane.opened()
    lane.append({"0.0": 5})
    batch = reader.must_open()
    if what == "delete":
        seal_stream(database, lane.name, request_id="seal")
    works: dict[str, Callable[[], Any]] = {
        "checkpoint": partial(group.checkpoint, "now"),
        "retention": partial(retain, database, [lane.name]),
        "prune": partial(prune, database, 0.0),
        "update": partial(
            update_reader_group, database, group.name, on_gap="skip", request_id="update"
        ),
        "truncate": partial(lane.truncate, "0.0=2, 1.0=0"),
        "delete": partial(delete_stream, database, lane.name, request_id="delete"),
        "release": partial(release, database, group.name, "position", request_id="release"),
        "output": partial(reader.commit, batch, [staged(written, {"0.0": 1})]),
    }

    def others(_: Connection) -> str:
        if what == "delete":
            rows(database, "SELECT FROM stream WHERE stream_id = :s FOR NO KEY UPDATE NOWAIT",
                 s=lane.stream_id)  # fmt: skip
        else:
            lane.commit(attempt, {"1.0": 1})
        return "while the group is held"

    if what == "prune":
        lane.truncate("0.0=6, 1.0=0")
    done, outcome = while_held(database, lambda c: lock_group(c, group.name), works[what], others)
    assert done == "while the group is held", done
    assert what == "delete" or not isinstance(outcome, Exception), outcome


def test_a_group_that_is_always_locked_is_had_in_the_end(database: Database) -> None:
    lane = Lane.made(database, retention="consumed")
    group = Group.made(lane)
    over = Event()

    def lock_for_a_while(connection: Connection) -> None:
        lock_group(connection, group.name)
        time.sleep(0.3)

    def commits() -> None:  # as many, one after the other
        while not over.is_set():
            database.transaction(lock_for_a_while)

    def once() -> Any:
        try:
            return [group.checkpoint(f"{i}") for i in range(3)]
        finally:
            over.set()

    *_, made = at_once(commits, commits, commits, once)
    assert [one["checkpoint"] for one in made] == ["0", "1", "2"]


def test_appends_to_the_input_of_a_batch_do_not_wait_for_its_commit_that_completes_a_checkpoint(
    test_database: TestDatabase, database: Database
) -> None:
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.numbers (n bigint);
        GRANT SELECT, INSERT ON public.numbers TO weir_jobs, weir_publisher""",
    )
    lane = Lane.made(database, retention="consumed")
    group = Group.made(lane)
    lane.append({"0.0": 5})
    reader = group.reader()
    batch = reader.must_open()
    checkpoint(database, group.name, name="waits", barrier=True)
    column = Column("n", "int8", "bigint", None, 20, -1, False, False, False)
    staging, _ = make_staging(database, batch, 0, [column])
    table = StagedTable("public.numbers", staging, (), 0)
    owner = Database(test_database.owner_dsn, patience=60.0, connect_patience=60.0)

    def append(_: Connection) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lane.append, {"1.0": 1}).result(timeout=50)

    outcomes = while_held(
        database,
        lambda c: c.execute(text("LOCK TABLE public.numbers IN ACCESS EXCLUSIVE MODE")),
        lambda: reader.commit(batch, tables=[table]),
        append,
        by=owner,
    )
    owner.dispose()
    assert outcomes == (None, [])
    [state] = group.rows("SELECT state FROM checkpoint WHERE group_id = :g")
    assert state.state == "complete"
    assert group.released() == {"0.0": 5, "1.0": 0}
