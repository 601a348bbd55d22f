"""Readers that wait for, replace and outlive one another: leases, whatever a program computes."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import weir
from tests.conftest import TestDatabase
from tests.consumers.test_failures import consumer
from tests.consumers.test_reader import append, found
from tests.crash.jobs import blocked_by, held_commits, wait_for
from tests.raises import raises
from tests.world.groups import open_batch
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.groups.readers import join
from weir.reader_groups.groups.update import update_reader_group

SHORT = 0.9  # seconds
LONG = 6.0  # which a busy machine does not use up between two renewals


def opened(store: weir.StreamStore, **settings: Any) -> weir.StreamStore:
    given = {"reader_lease": SHORT, **settings}
    return weir.open(settings=replace(store.settings, **given))


def taken(store: weir.StreamStore, reader_id: str) -> Any:
    """What another reader gets."""
    token = join(store.database, "g", reader_id, 60.0)
    everything = Budget.of(store.settings)
    return open_batch(store.database, "g", reader_id, token, lease=SHORT, budget=everything)


def wait_for_renewals(store: weir.StreamStore, count: int) -> None:
    """Until the lease of the only reader has been renewed so often."""
    seen: set[object] = set()

    def renewed() -> bool:
        seen.update(found(store, "SELECT lease_until FROM reader WHERE lease_until < 'infinity'"))
        return len(seen) > count

    wait_for("renewals", renewed, 60)


def test_a_reader_that_hangs_gives_way_to_others_and_one_that_works_does_not(
    store: weir.StreamStore,
) -> None:
    append(store, range(20))
    long = {"reader_lease": LONG, "max_batch_time": 60.0}
    with opened(store, **long) as works, works.reader("g", reader_id="one") as reader:
        batch = next(reader)
        wait_for_renewals(store, 2)
        assert taken(store, "first") is None, "it renews its lease"
        with opened(store, max_batch_time=0.1) as slow, slow.reader("g", reader_id="one") as hangs:
            hung = next(hangs)
            assert hung.batch_id == batch.batch_id
            heir = wait_for("its batch", lambda: taken(store, "second"), 60)
            assert heir.batch_id == hung.batch_id
            with raises("batch_taken_over 'one'"):
                hung.commit()


def test_what_another_reader_has_is_waited_for(store: weir.StreamStore) -> None:
    append(store, range(20))
    with store.reader("g") as first, ThreadPoolExecutor(1) as pool:
        batch = next(first)

        def second() -> list[Any]:
            with store.reader("g") as reader:
                return list(reader)

        waiting = pool.submit(second)
        time.sleep(0.5)
        assert not waiting.done()
        batch.commit()
        assert waiting.result(30) == []


def test_a_lease_that_is_renewed_during_the_commit_does_not_fail_the_run(
    store: weir.StreamStore, test_database: TestDatabase
) -> None:
    # The renewal waits for the commit, and then finds the append of the output no longer open.
    for first in (0, 20):
        append(store, range(first, first + 20))
    with (
        opened(store, batch_events=20) as short,
        ThreadPoolExecutor(1) as pool,
        held_commits(test_database) as commits,
    ):
        run = pool.submit(consumer(short, lambda events: events, "stream:s/out").run)
        [server] = wait_for("the commit", commits.waiting)
        wait_for("the renewal", lambda: blocked_by(test_database.dsn, server))
        commits.let_go()
        report = run.result()
    assert (len(report["batches"]), report["events"]) == (2, 40)
    assert sorted(store.read("s/out")["n"].to_pylist()) == list(range(40))


@pytest.mark.usefixtures("results")
def test_of_what_was_truncated_under_an_open_batch_the_heir_is_told_or_counts_it(
    store: weir.StreamStore,
) -> None:
    append(store, range(60))
    [[part], [whole], _] = found(store, "SELECT events FROM data_file ORDER BY segment_id")
    lost = part // 2 + whole
    with store.reader("g", reader_id="first") as reader:
        next(reader)
    store.truncate_stream("s/in", f"0.0={part // 2}, 1.0={whole}, 2.0=0", dry_run=False)
    says = f"events_truncated {lost} events s/in 60 batch 1 g UTC hand on_gap skip"
    with raises(says), store.reader("g", reader_id="heir") as heir:
        _ = next(heir).events
    update_reader_group(store.database, "g", on_gap="skip", request_id="skip")
    for batch in store.reader("g", reader_id="heir"):
        assert (batch.batch_id, batch.attempt, batch.size) == (1, 3, 60)
        assert batch.events.num_rows == 60 - lost
        batch.commit({"stream:s/out": batch.events})
    assert store.count("s/out") == 60 - lost
    assert found(store, "SELECT lost_events, unread_events FROM lag") == [(lost, 0)]


def test_a_batch_of_an_aligned_group_knows_its_moment_and_holds_all_streams_to_it(
    store: weir.StreamStore,
) -> None:
    append(store, range(20))
    append(store, [1, 2], "s/out")
    store.create_reader_group("aligned", ["s/in", "s/out"], aligned=True)
    with store.reader("aligned", order="stream") as reader:
        append(store, [3], "s/out")  # after the moment at which the run began
        for batch in reader:
            up_to = batch.up_to
            assert batch.size == 22
            assert batch.events_of("s/out")["n"].to_pylist() == [1, 2]
            batch.commit()
    assert up_to is not None
    bound = f"time_clock(CAST('{up_to.isoformat()}' AS timestamptz))"
    assert found(store, f"SELECT max(clock) > {bound} FROM time_index") == [(True,)]
