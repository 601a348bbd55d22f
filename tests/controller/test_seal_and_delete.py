"""The end of a stream: sealed it can only be read, deleted it is gone with all it owned."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.raises import raises
from tests.world import questions as queries
from tests.world.groups import Group
from tests.world.streams import Lane, at_once, rows, staged, unique, while_held
from weir.controller.locks import lock_streams
from weir.controller.seal import seal_stream
from weir.controller.staged import announce
from weir.controller.transactions import abort
from weir.controller.update import update_stream
from weir.errors import Fenced, NotFound
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.retention.capture import capture
from weir.retention.delete_stream import delete_stream
from weir.retention.run import retain


def seal(lane: Lane) -> None:
    seal_stream(lane.database, lane.name, request_id=unique("seal"))


def delete(lane: Lane, *, unread_too: bool = False, request_id: str | None = None) -> None:
    delete_stream(
        lane.database, lane.name, unread_too=unread_too, request_id=request_id or unique("delete")
    )


def test_a_sealed_stream_refuses_every_change_and_can_be_read(lane: Lane) -> None:
    lane.append({"0.0": 3})
    attempt = lane.opened()
    seal(lane)
    refused: list[Callable[[], object]] = [
        lambda: lane.begin(),
        lambda: lane.scale("0.0", parts=2),
        lambda: lane.truncate("0.0=1, 1.0=0"),
        lambda: update_stream(lane.database, lane.name, {"tags": ("x",)}, request_id=unique("u")),
    ]
    for change in refused:
        with raises("stream_not_active sealed"):
            change()
    with pytest.raises(Fenced):
        lane.commit(attempt, {"0.0": 1})
    assert lane.tail() == {"0.0": 3, "1.0": 0}
    active = lane.database.transaction(lambda c: queries.active_segments(c, lane.name))
    assert active == []
    assert lane.rows("SELECT * FROM segments WHERE stream = :n AND active", n=str(lane.name)) == []
    seal(lane)


def test_what_is_being_written_is_aborted_and_becomes_garbage(lane: Lane) -> None:
    open_, done = lane.opened(), lane.opened()
    lane.commit(done, {"0.0": 1})
    result = seal_stream(lane.database, lane.name, request_id="dag/run/seal")
    assert result["aborted"] == [open_.transaction_number]
    assert [g.path for g in lane.rows("SELECT path FROM garbage WHERE stream_id = :s")] == [
        open_.folder
    ]
    assert seal_stream(lane.database, lane.name, request_id="dag/run/seal") == result


def test_segments_at_a_time_before_the_sealing_are_still_known(lane: Lane) -> None:
    lane.append({"0.0": 3})
    lane.scale("1.0", parts=2)
    seal(lane)
    found = lane.rows("""SELECT a.segment FROM stream, active_segments(:n, created_at) a
                      WHERE stream_name = :n""", n=str(lane.name))  # fmt: skip
    assert [row.segment for row in found] == ["0.0", "1.0"]
    assert lane.rows("SELECT * FROM active_segments(:n, now() + interval '1 day')",
                     n=str(lane.name)) == []  # fmt: skip


def test_a_deleted_stream_leaves_nothing_but_garbage(lane: Lane) -> None:
    lane.append({"0.0": [3, 4], "1.0": 5}, inputs=["a.csv"])
    group = Group.made(lane)
    reader = group.reader()
    reader.commit(reader.must_open(3))
    group.checkpoint()
    assert retain(lane.database, [lane.name])[0]["events"] == 3
    lane.scale("0.0", parts=2)
    abort(lane.database, lane.opened())
    lane.opened()
    capture(lane.database)
    reader.read_all()
    for table in ("retention_decision", "stream_cut", "transaction", "reader_group_segment"):
        assert lane.rows(f"SELECT 1 FROM {table} WHERE stream_id = :s"), "there is one to delete"
    seal(lane)
    delete(lane, request_id="dag/run/delete")
    delete(lane, request_id="dag/run/delete")
    tables = rows(
        lane.database,
        """SELECT table_name FROM information_schema.columns JOIN pg_tables
            ON tablename = table_name AND schemaname = table_schema
        WHERE table_schema = 'weir_internal' AND column_name = 'stream_id'""",
    )
    assert len(tables) > 10
    left = [
        t.table_name
        for t in tables
        if lane.rows(f"SELECT 1 FROM {t.table_name} WHERE stream_id = :s")
    ]
    # The row that remembers the numbers of its segments, and what tells the readers of its group
    # that it was deleted, until the group leaves it. What its batches read is kept as long as they.
    assert sorted(left) == ["batch_input", "garbage", "reader_group_stream", "stream"]
    with raises("stream_deleted"):
        reader.open()
    [garbage] = rows(lane.database, "SELECT * FROM garbage WHERE reason = 'deleted' AND path = :p",
                     p=f"{lane.stream_id}/")  # fmt: skip
    assert garbage.bytes == 120 - 30
    with pytest.raises(NotFound):
        lane.begin()
    with raises("stream_not_found"):
        lane.rows("SELECT * FROM active_segments(:n)", n=str(lane.name))


def test_a_recreated_stream_goes_on_with_the_segment_numbers(lane: Lane) -> None:
    lane.scale("0.0", "1.0", parts=1)
    seal(lane)
    delete(lane)
    again = Lane.made(lane.database, segments=2, name=str(lane.name))
    assert again.stream_id != lane.stream_id
    assert again.active() == ["3.0", "4.0"]
    assert again.head() == again.tail() == {"3.0": 0, "4.0": 0}
    assert again.scale("3.0", parts=1) == ["5.1"]
    again.append({"4.0": 1})


def test_what_a_subscriber_has_not_read_is_not_deleted_unless_it_is_asked_for(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3})
    seal(lane)
    with raises(f"would_lose_data subscriber {group.name} 3"):
        delete(lane)
    reader = group.reader()
    batch = reader.must_open()
    with raises(f"batch_open {group.name}"):
        delete(lane, unread_too=True)
    reader.commit(batch)
    delete(lane)


def test_unread_events_can_be_deleted_by_asking_for_it(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3})
    seal(lane)
    delete(lane, unread_too=True)
    assert group.states() == {}


def test_a_waiting_append_is_committed_by_the_seal(lane: Lane) -> None:
    attempt = lane.opened()
    lane.scale("0.0", parts=2)
    lane.database.transaction(lambda c: announce(c, staged(attempt, {"0.0": 3})))
    [waiting] = rows(lane.database, "SELECT * FROM committing_transactions WHERE stream = :n",
                     n=str(lane.name))  # fmt: skip
    assert waiting.transaction_number == attempt.transaction_number
    seal(lane)
    assert lane.sizes()["0.2"] == 3
    assert lane.commit(attempt, {"0.0": 3}).events == 3


def test_a_group_is_told_that_its_stream_is_gone_also_when_the_name_is_in_use_again(
    lane: Lane,
) -> None:
    group = Group.made(lane)
    reader = group.reader()
    seal(lane)
    assert reader.open() is None, "a sealed stream is read to its end"
    delete(lane)
    Lane.made(lane.database, name=str(lane.name))
    with raises(f"stream_deleted {lane.name} {group.name}"):
        reader.open()
    group.checkpoint("after")
    [found] = rows(lane.database, "SELECT streams FROM reader_groups WHERE reader_group = :g",
                   g=group.name)  # fmt: skip
    assert found.streams == f"{lane.name} (deleted)"


@pytest.mark.parametrize("what", ["stream", "group"])
def test_two_tries_of_one_deletion_at_once_return_its_result(lane: Lane, what: str) -> None:
    group = Group.made(lane)
    request_id = unique("delete")

    def delete() -> Mapping[str, Any]:
        if what == "group":
            return delete_reader_group(lane.database, group.name, request_id=request_id)
        return delete_stream(lane.database, lane.name, request_id=request_id)

    if what == "stream":
        seal_stream(lane.database, lane.name, request_id=unique("seal"))
    # Both have asked whether it was done before, and wait for the stream.
    _, results = while_held(
        lane.database,
        lambda c: lock_streams(c, ids=[lane.stream_id]),
        lambda: at_once(delete, delete, delete, delete),
    )
    assert all(one == results[0] for one in results), results
    assert isinstance(results[0], dict), results[0]
