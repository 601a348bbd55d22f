"""What was truncated has a receipt, for as long as its stream lives: who had read it, and when."""

import json
from typing import Any

from tests.conftest import TestDatabase
from tests.sql.history import lived_through, scaled_again_and_again
from tests.sql.test_cost import analyze, cost
from tests.world.groups import Group
from tests.world.streams import Lane, rows, run, unique
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.model.key_space import KeyRange
from weir.model.segment import segment_name
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.retention.delete_stream import delete_stream
from weir.retention.prune import prune
from weir.retention.run import retain


def receipts(lane: Lane) -> list[tuple[Any, ...]]:
    found = lane.rows(
        """SELECT segment, from_offset, to_offset, number, rule FROM receipts
        WHERE stream = :n ORDER BY number, segment""",
        n=str(lane.name),
    )
    return [tuple(row) for row in found]


def of_offsets(lane: Lane, segment: str, start: int, end: int) -> dict[str | None, Any]:
    found = lane.rows(
        "SELECT * FROM was_read_before_it_went(:n, :g, :a, :b)",
        n=str(lane.name), g=segment, a=start, b=end,
    )  # fmt: skip
    return {row.reader_group: row for row in found}


def of_cut(lane: Lane, cut: dict[str, Any]) -> dict[str | None, Any]:
    found = lane.rows(
        "SELECT * FROM was_read_before_it_went(:n, CAST(:c AS jsonb))",
        n=str(lane.name), c=json.dumps(cut),
    )  # fmt: skip
    return {row.reader_group: row for row in found}


def test_a_receipt_says_which_subscribers_had_read_what_retention_truncated_and_by_which_runs(
    lane: Lane,
) -> None:
    one, two = Group.made(lane), Group.made(lane)
    for _ in range(3):
        lane.append({"0.0": 4, "1.0": 2})
        one.reader("dag/monday/read").read_all()
    two.reader("dag/tuesday/read").read_all()
    one.checkpoint("c")
    two.checkpoint("c")
    retain(lane.database, [lane.name])
    assert receipts(lane) == [("0.0", 0, 12, 1, "consumed"), ("1.0", 0, 6, 1, "consumed")]
    found = of_offsets(lane, "0.0", 3, 12)
    assert found.keys() == {one.name, two.name}
    assert all(row.read and (row.events, row.lost_events) == (9, 0) for row in found.values())
    assert (found[one.name].batches, found[two.name].batches) == ([1, 3], [1, 1])
    assert found[one.name].runs == ["dag/monday/read"] * 2
    [[released]] = one.rows("SELECT released_at FROM reader_group_stream WHERE group_id = :g")
    assert found[one.name].released_at == released < found[one.name].truncated_at
    assert of_offsets(lane, "0.0", 12, 20) == of_cut(lane, {"0.0": 0, "1.0": 0}) == {}
    assert all(row.read and row.events == 18 for row in of_cut(lane, {"0.0": 1}).values())


def test_what_a_subscriber_lost_is_named_and_a_group_that_is_none_is_not_asked(lane: Lane) -> None:
    slow, reads = Group.made(lane), Group.made(lane)
    Group.made(lane, subscriber=False)
    lane.append({"0.0": 10, "1.0": 1})
    _read_one(slow, 6)
    reads.reader().read_all()
    late = Group.made(lane, start="tail")
    lane.truncate("0.0=8, 1.0=1")
    found = of_offsets(lane, "0.0", 0, 8)
    position = slow.cut()["0.0"]
    assert {name: row.read for name, row in found.items()} == {
        slow.name: position >= 8, reads.name: True, late.name: False,
    }  # fmt: skip
    assert found[slow.name].lost_events == max(0, 8 - position)
    assert (found[late.name].lost_events, found[late.name].passed_events) == (0, 8)
    assert found[slow.name].rule == "by_hand"
    lost = sum(max(0, end - slow.cut()[name]) for name, end in (("0.0", 8), ("1.0", 1)))
    assert of_cut(lane, {"0.0": 8, "1.0": 1})[slow.name].lost_events == lost > 0
    lane.append({"0.0": 5})
    lane.truncate("0.0=12, 1.0=1")  # what it lost is counted on
    assert of_cut(lane, {"0.0": 12, "1.0": 1})[slow.name].lost_events == (
        lost + 12 - max(8, position)
    )


def test_nobody_subscribed(lane: Lane) -> None:
    lane.append({"0.0": 3})
    lane.truncate("0.0=2, 1.0=0")
    [row] = of_offsets(lane, "0.0", 0, 3).values()
    assert (row.reader_group, row.read, row.events) == (None, None, 2)
    assert list(of_cut(lane, {"0.0": 2, "1.0": 0})) == [None]


def test_a_move_of_the_head_by_which_no_event_went_has_no_receipt(lane: Lane) -> None:
    lane.scale("0.0", ranges=[_half(0, 0.25), _half(0.25, 0.5)])
    lane.truncate("2.1=0, 3.1=0, 1.0=0")
    assert receipts(lane) == []


def test_receipts_over_scales_are_just_what_lies_below_the_head_also_after_pruning_and_a_deletion(
    lane: Lane,
) -> None:
    group = Group.made(lane)
    sizes: dict[str, int] = {}
    for i in range(6):
        for name in lane.active():
            lane.append({name: i + 2})
        group.reader("dag/run/task").read_all()
        group.checkpoint(f"c{i}")
        [oldest, *_] = lane.active()
        sizes |= lane.sizes()
        lane.scale(oldest, ranges=_same(lane, oldest))
        retain(lane.database, [lane.name])
    head = lane.head()
    below: dict[str, int] = {}
    for row in lane.rows("SELECT segment_id, to_offset - from_offset AS n FROM truncated_range "
                         "WHERE stream_id = :s"):  # fmt: skip
        name = segment_name(row.segment_id)
        below[name] = below.get(name, 0) + row.n
    wanted = {
        name: head.get(name, size) for name, size in sizes.items() if head.get(name) != "future"
    }
    assert below == {name: size for name, size in wanted.items() if size}
    before = [of_offsets(lane, name, 0, size) for name, size in sorted(below.items())]
    assert all(answer[group.name].read for answer in before)
    prune(lane.database, 0)
    assert lane.value("SELECT count(*) FROM segment WHERE stream_id = :s") < len(sizes)
    assert [of_offsets(lane, n, 0, size) for n, size in sorted(below.items())] == before
    delete_reader_group(lane.database, group.name, request_id=unique("delete"))
    assert [of_offsets(lane, n, 0, size) for n, size in sorted(below.items())] == before
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    delete_stream(lane.database, lane.name, request_id=unique("delete"))
    for table in ("truncation", "truncated_range", "delivered_range", "placement"):
        assert lane.value(f"SELECT count(*) FROM {table} WHERE stream_id = :s") == 0


def test_neighbouring_batches_are_one_range_and_after_a_reset_they_are_another(lane: Lane) -> None:
    group = Group.made(lane)
    for _ in range(5):
        lane.append({"0.0": 2})
        group.reader().read_all()
    ranges = """SELECT placement, from_offset, to_offset, events, first_batch, last_batch
        FROM delivered_range WHERE group_id = :g ORDER BY 1, 2"""
    assert [tuple(row) for row in group.rows(ranges)] == [(1, 0, 10, 10, 1, 5)]
    reset_reader_group(
        lane.database, group.name, "start", allow_repeat=True, request_id=unique("r")
    )
    group.reader().read_all()
    assert [tuple(r) for r in group.rows(ranges)] == [(1, 0, 10, 10, 1, 5), (2, 0, 10, 10, 6, 6)]
    placed = "SELECT cause, left_at, cut FROM placement WHERE group_id = :g ORDER BY number"
    assert [tuple(row) for row in group.rows(placed)] == [
        ("entered", None, {"0.0": 0, "1.0": 0}),
        ("reset", {"0.0": 10, "1.0": 0}, {"0.0": 0, "1.0": 0}),
    ]


def test_what_a_group_skipped_is_a_placement(lane: Lane) -> None:
    group = Group.made(lane, on_gap="skip")
    lane.append({"0.0": 5, "1.0": 5})
    lane.truncate("0.0=4, 1.0=2")
    group.reader().read_all()
    placed = "SELECT cause, left_at, cut FROM placement WHERE group_id = :g ORDER BY number"
    assert [tuple(row) for row in group.rows(placed)][1:] == [
        ("skipped", {"0.0": 0, "1.0": 0}, {"0.0": 4, "1.0": 2})
    ]


def test_an_answer_reads_as_much_after_thousands_of_truncations_as_after_a_few(
    test_database: TestDatabase,
) -> None:
    database = test_database.open()
    read: list[list[int]] = []
    for epochs in (40, 4000):
        lane = Lane.made(database, retention="consumed")
        group = Group.made(lane)
        scaled_again_and_again(lane, epochs)
        lived_through(lane, group, epochs)
        run(database, "UPDATE stream SET state = state")
        analyze(test_database)
        [[segment]] = rows(
            database,
            """SELECT segment_name(segment_id) FROM truncated_range
            WHERE stream_id = :s AND number = 20""",
            s=lane.stream_id,
        )  # fmt: skip
        given = {"n": str(lane.name), "g": segment}
        offsets = "SELECT * FROM was_read_before_it_went(:n, :g, 0, 1)"
        cut = "SELECT * FROM was_read_before_it_went(:n, jsonb_build_object(CAST(:g AS text), 1))"
        read.append([_pages(database, question, given) for question in (offsets, cut)])
    few, many = read
    assert all(b <= 2 * a + 10 for a, b in zip(few, many, strict=True)), read


def _half(low: float, high: float) -> Any:
    return KeyRange(low, high)


def _same(lane: Lane, segment: str) -> list[Any]:
    [[low, high]] = lane.rows(
        """SELECT key_low, key_high FROM segment
        WHERE stream_id = :s AND segment_name(segment_id) = :g""",
        g=segment,
    )  # fmt: skip
    return [_half(low, (low + high) / 2), _half((low + high) / 2, high)]


def _read_one(group: Group, events: int) -> None:
    reader = group.reader()
    reader.commit(reader.must_open(events))


def _pages(database: Database, question: str, given: dict[str, Any]) -> int:
    return database.transaction(lambda c: cost(c, question, **given))
