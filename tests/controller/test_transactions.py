"""Append transactions: identity, attempts, fencing, leases."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.raises import raises
from tests.world.streams import Lane, rows, run, staged, unique
from weir.controller.commit import commit
from weir.controller.expiry import expire
from weir.controller.seal import seal_stream
from weir.controller.transactions import Committed, abort, ping, ping_all
from weir.database.connection import Database
from weir.errors import Fenced
from weir.kernel.attempt import Attempt
from weir.model.names import stream_name
from weir.retention.delete_stream import delete_stream
from weir.settings import load


def pinged(lane: Lane, attempt: Attempt, lease: float = 60.0, longest: float = 3600.0) -> None:
    lane.database.transaction(lambda c: ping(c, attempt, lease, longest))


def state(lane: Lane, number: int = 1) -> str:
    return str(
        lane.value(
            "SELECT state FROM transaction WHERE stream_id = :s AND transaction_number = :n",
            n=number,
        )
    )


def lapse(lane: Lane) -> None:
    """Let the leases of all open transactions run out."""
    run(
        lane.database,
        "UPDATE transaction SET lease_until = opened_at - interval '1 day' WHERE stream_id = :s",
        s=lane.stream_id,
    )


def expired(lane: Lane, lease: float = 0.0) -> Sequence[Mapping[str, Any]]:
    """What expiry aborts of this stream."""
    return [one for one in expire(lane.database, lease) if one["stream"] == str(lane.name)]


def garbage(lane: Lane) -> dict[str, str]:
    found = lane.rows("SELECT path, reason FROM garbage WHERE stream_id = :s")
    return {row.path: row.reason for row in found}


def test_attempt_is_given_the_active_segments_and_a_folder_of_its_own(lane: Lane) -> None:
    first, second = lane.opened("a"), lane.opened("b")
    assert [s.name for s in first.segments] == ["0.0", "1.0"]
    assert [(s.key_low, s.key_high) for s in first.segments] == [(0.0, 0.5), (0.5, 1.0)]
    assert first.folder == f"{lane.stream_id}/_weir_tx=1/_weir_attempt=1/"
    assert second.folder == f"{lane.stream_id}/_weir_tx=2/_weir_attempt=1/"


def test_nothing_is_visible_before_the_commit(lane: Lane) -> None:
    lane.opened()
    assert lane.tail() == {"0.0": 0, "1.0": 0}
    assert lane.files() == []


def test_commit_gives_files_their_offsets_in_the_order_of_their_rows(lane: Lane) -> None:
    done = lane.append({"0.0": [3, 4], "1.0": 5})
    lane.append({"0.0": 2})
    assert (done.events, done.files, done.bytes, done.rolled, done.repeated) == (
        12, 3, 120, False, False,
    )  # fmt: skip
    assert lane.tail() == {"0.0": 9, "1.0": 5}
    assert [(f.start_offset, f.events) for f in lane.files("0.0")] == [(0, 3), (3, 4), (7, 2)]
    assert lane.order_in("0.0") == [1, 1, 2]


def test_files_that_interleave_are_refused_and_nothing_is_committed(lane: Lane) -> None:
    written = staged(lane.opened(), {"0.0": [3, 4]})
    first, second = written.files
    overlapping = replace(second, first_seq=first.last_seq)
    with raises("invariant_violated interleave"):
        commit(lane.database, replace(written, files=(first, overlapping)))
    assert (lane.tail(), state(lane)) == ({"0.0": 0, "1.0": 0}, "open")


def test_a_file_of_a_segment_that_the_attempt_does_not_know_is_refused(lane: Lane) -> None:
    attempt = lane.opened()
    with raises("invariant_violated 7.0 epoch"):
        lane.commit(attempt, {"0.0": 1, "7.0": 1})
    assert (lane.tail(), state(lane)) == ({"0.0": 0, "1.0": 0}, "open")


def test_beginning_a_committed_batch_returns_its_result_and_appends_nothing(lane: Lane) -> None:
    done = lane.append({"0.0": 3}, batch="monday")
    again = lane.begin("monday")
    assert isinstance(again, Committed)
    assert again.repeated
    assert (again.transaction_number, again.clock, again.events, again.bytes, again.files) == (
        done.transaction_number, done.clock, 3, 30, 1,
    )  # fmt: skip
    assert lane.tail() == {"0.0": 3, "1.0": 0}


def test_beginning_an_open_batch_takes_it_over_and_fences_the_attempt_before(lane: Lane) -> None:
    orphan = lane.opened("monday")
    mine = lane.opened("monday")
    assert (mine.transaction_number, mine.attempt) == (orphan.transaction_number, 2)
    assert mine.folder != orphan.folder
    with raises("attempt_fenced attempt 1 attempt 2"):
        pinged(lane, orphan)
    with raises("attempt_fenced attempt 2 attempt 1"):
        lane.commit(orphan, {"0.0": 3})
    assert lane.tail() == {"0.0": 0, "1.0": 0}
    pinged(lane, mine)
    lane.commit(mine, {"0.0": 4})
    assert lane.tail() == {"0.0": 4, "1.0": 0}
    with pytest.raises(Fenced):
        lane.commit(orphan, {"0.0": 3})
    assert lane.tail() == {"0.0": 4, "1.0": 0}


def test_an_aborted_batch_starts_anew_under_another_attempt(lane: Lane) -> None:
    first = lane.opened("monday", fingerprint="old")
    assert abort(lane.database, first)
    assert not abort(lane.database, first)
    with raises("attempt_fenced aborted"):
        lane.commit(first, {"0.0": 3})
    with pytest.raises(Fenced):
        pinged(lane, first)
    second = lane.opened("monday", fingerprint="new")
    assert second.attempt == 2
    assert second.transaction_number == first.transaction_number
    with pytest.raises(Fenced):
        lane.commit(first, {"0.0": 3})
    lane.commit(second, {"0.0": 4})
    assert lane.tail() == {"0.0": 4, "1.0": 0}


@pytest.mark.parametrize("done", [False, True])
def test_the_same_batch_with_another_input_is_refused(lane: Lane, done: bool) -> None:
    attempt = lane.opened("monday", fingerprint="100 bytes")
    if done:
        lane.commit(attempt, {"0.0": 1})
    with raises("input_changed"):
        lane.begin("monday", fingerprint="200 bytes")
    if not done:  # and the attempt was not fenced by the refusal
        lane.commit(attempt, {"0.0": 1})


def test_batches_of_different_writers_are_different_batches(lane: Lane) -> None:
    lane.append({"0.0": 1}, batch="monday", writer="a")
    lane.append({"0.0": 1}, batch="monday", writer="b")
    assert lane.tail() == {"0.0": 2, "1.0": 0}


def test_an_unknown_stream_is_named(shared_database: Database) -> None:
    lane = Lane(shared_database, stream_name("no/such"), 0)
    with raises("stream_not_found no/such"):
        lane.begin()


def test_an_aborted_attempt_and_all_before_it_become_garbage(lane: Lane) -> None:
    lane.opened("monday")
    second = lane.opened("monday")
    assert garbage(lane) == {}
    abort(lane.database, second)
    assert garbage(lane) == {
        f"{lane.stream_id}/_weir_tx=1/_weir_attempt=1/": "aborted",
        f"{lane.stream_id}/_weir_tx=1/_weir_attempt=2/": "aborted",
    }


def test_a_fenced_attempt_becomes_garbage_with_the_commit_and_the_committed_one_never(
    lane: Lane,
) -> None:
    lane.opened("monday")
    lane.commit(lane.opened("monday"), {"0.0": 1})
    assert garbage(lane) == {f"{lane.stream_id}/_weir_tx=1/_weir_attempt=1/": "fenced"}


def test_aborting_after_the_commit_or_after_a_take_over_does_nothing(lane: Lane) -> None:
    orphan = lane.opened("monday")
    mine = lane.opened("monday")
    assert not abort(lane.database, orphan)
    lane.commit(mine, {"0.0": 1})
    assert not abort(lane.database, mine)
    assert state(lane) == "committed"
    assert f"{lane.stream_id}/_weir_tx=1/_weir_attempt=2/" not in garbage(lane)


def test_a_ping_after_its_own_commit_is_harmless(lane: Lane) -> None:
    # The thread that renews leases may come a moment after the commit.
    attempt = lane.opened()
    lane.commit(attempt, {"0.0": 1})
    pinged(lane, attempt)


def test_a_lease_longer_than_the_longest_time_or_that_reaches_beyond_it_is_refused(
    lane: Lane,
) -> None:
    attempt = lane.opened(lease=50.0)
    before = lane.value("SELECT lease_until FROM transaction WHERE stream_id = :s")
    with raises("argument_invalid 500 s 100 s"):
        pinged(lane, attempt, lease=500.0, longest=100.0)
    pinged(lane, attempt, lease=60.0, longest=100.0)
    renewed = lane.value("SELECT lease_until FROM transaction WHERE stream_id = :s")
    assert renewed > before

    def later(seconds: int) -> None:
        run(
            lane.database,
            f"UPDATE transaction SET opened_at = opened_at - interval '{seconds} s' "
            "WHERE stream_id = :s",
            s=lane.stream_id,
        )

    later(50)
    with raises("transaction_too_long 60 s 100 s"):
        pinged(lane, attempt, lease=60.0, longest=100.0)
    assert lane.value("SELECT lease_until FROM transaction WHERE stream_id = :s") == renewed
    other = lane.opened(lease=50.0)
    lane.database.transaction(lambda c: ping_all(c, [attempt, other], 60.0, 100.0))
    [one, two] = lane.rows(
        "SELECT lease_until FROM transaction WHERE stream_id = :s ORDER BY transaction_number"
    )
    assert two.lease_until > one.lease_until == renewed, "the others are renewed all the same"
    later(51)
    with raises("attempt_fenced longer 100 s"):
        pinged(lane, attempt, lease=60.0, longest=100.0)
    assert state(lane) == "open"
    lane.commit(attempt, {"0.0": 1})


def test_a_lease_longer_than_a_transaction_may_take_is_no_setting(tmp_path: Path) -> None:
    (tmp_path / "weir.toml").write_text("transaction_lease = 700\ntransaction_max = 600\n")
    with raises("setting_invalid 700 s 600 s"):
        load({"WEIR_CONFIG": str(tmp_path / "weir.toml")})


def test_a_ping_that_is_refused_says_what_happened(lane: Lane) -> None:
    first = lane.opened("batch")
    second = lane.opened("batch")
    with raises("attempt_fenced attempt 1 attempt 2"):
        pinged(lane, first)
    abort(lane.database, second)
    with raises("attempt_fenced attempt 2 aborted"):
        pinged(lane, second)
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    delete_stream(lane.database, lane.name, request_id=unique("delete"))
    with raises("attempt_fenced attempt 2 deleted"):
        pinged(lane, second)


def test_a_transaction_that_was_forgotten_is_named_at_its_commit(lane: Lane) -> None:
    attempt = lane.opened()
    run(lane.database, "DELETE FROM transaction WHERE stream_id = :s", s=lane.stream_id)
    with raises("transaction_not_found 1 recovery"):
        lane.commit(attempt, {"0.0": 1})


@pytest.mark.parametrize("lease", [float("nan"), float("inf"), -1.0])
def test_a_lease_that_is_no_duration_is_refused_with_its_value(lane: Lane, lease: float) -> None:
    attempt = lane.opened()
    with raises(f"argument_invalid {lease:g} s"):
        lane.opened("other", lease=lease)
    with raises(f"argument_invalid {lease:g} s"):
        lane.database.transaction(lambda c: ping(c, attempt, lease, 1000.0))
    assert lane.value("SELECT count(*) FROM transaction WHERE stream_id = :s") == 1


def test_a_lease_that_ran_out_forbids_nothing_until_somebody_aborts(lane: Lane) -> None:
    attempt = lane.opened()
    lapse(lane)
    pinged(lane, attempt)
    lapse(lane)
    lane.commit(attempt, {"0.0": 3})
    assert lane.tail() == {"0.0": 3, "1.0": 0}
    assert expired(lane) == []


def test_expiry_aborts_what_expired_and_leaves_the_rest(lane: Lane) -> None:
    dead = lane.opened("dead", source="dag/run/dead")
    lapse(lane)
    alive = lane.opened("alive")
    assert expired(lane) == [{"stream": str(lane.name), "transaction": 1, "source": "dag/run/dead"}]
    assert (state(lane, 1), state(lane, 2)) == ("aborted", "open")
    assert list(garbage(lane)) == [dead.folder]
    with pytest.raises(Fenced):
        lane.commit(dead, {"0.0": 3})
    lane.commit(alive, {"0.0": 1})
    assert expired(lane) == []


def test_expiry_spares_what_expired_less_than_a_lease_after_the_server_started(lane: Lane) -> None:
    attempt = lane.opened()
    lapse(lane)
    [[age]] = rows(
        lane.database,
        "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float",
    )
    # With a lease longer than the server has been running its holder still has time ...
    assert expired(lane, age + 60.0) == []
    pinged(lane, attempt)
    lapse(lane)
    # ... with a shorter one it has had its chance.
    assert len(expired(lane, age)) == 1


def test_a_report_says_the_time_of_a_commit_beside_its_clock(lane: Lane) -> None:
    done = lane.append({"0.0": 1})
    at = datetime.fromisoformat(done.report()["committed_at"])
    assert at.timestamp() == pytest.approx(done.clock / 1e6, abs=0.002)
    assert at.tzinfo is not None
