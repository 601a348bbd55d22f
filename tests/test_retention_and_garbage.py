"""Retention decides by what subscribers released; garbage goes when nobody can need it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controller.support import Lane, rows, run, unique
from weir.errors import InvariantViolation
from weir.garbage import installation, sweep
from weir.reader_groups.batches import commit_batch, open_batch
from weir.reader_groups.checkpoints import checkpoint
from weir.reader_groups.groups import create_reader_group
from weir.reader_groups.readers import join
from weir.retention import capture, decide, retain
from weir.segment import Segment
from weir.storage import Database
from weir.stream_cut import StreamCut
from weir.warehouse import MARK

SEGMENTS = [Segment(0, 0.0, 0.5), Segment(1, 0.5, 1.0)]
cuts = st.tuples(st.integers(0, 9), st.integers(0, 9))


def _cut(offsets: tuple[int, int]) -> StreamCut:
    return StreamCut(dict(zip(SEGMENTS, offsets, strict=True)))


@given(cuts, st.dictionaries(st.sampled_from("abcd"), cuts, max_size=4))
def test_the_bound_is_what_every_subscriber_released_and_nothing_behind_the_head(
    head: tuple[int, int], released: dict[str, tuple[int, int]]
) -> None:
    decision = decide(
        _cut(head), {name: _cut(cut) for name, cut in released.items()}, by_consumption=True
    )
    if not released:
        assert (decision.cut, decision.rule) == (None, "no_rule")
        return
    bound = tuple(max(head[i], min(cut[i] for cut in released.values())) for i in (0, 1))
    assert decision.bound == _cut((bound[0], bound[1]))
    assert decision.cut == (None if bound == head else decision.bound)
    assert decision.held_by
    for name in decision.held_by:  # without one who holds it alone, the bound lies further on
        others = [cut for other, cut in released.items() if other != name]
        if others and len(decision.held_by) < len(released):
            without = tuple(max(head[i], min(cut[i] for cut in others)) for i in (0, 1))
            assert without != bound


def test_without_a_rule_nothing_is_truncated() -> None:
    released = {"a": _cut((9, 9))}
    assert decide(_cut((0, 0)), released, by_consumption=False).cut is None


def _consume(lane: Lane, group: str) -> None:
    token = join(lane.database, group, "reader", 60.0)
    batch = open_batch(lane.database, group, "reader", token, lease=60.0, budget=10**9)
    assert batch is not None
    commit_batch(lane.database, batch, lease=60.0)
    checkpoint(lane.database, group)


@pytest.fixture
def lane(database: Database) -> Lane:
    """A stream of its own in a database of its own: retention serves all streams."""
    return Lane.made(database)


def _group(lane: Lane, *, subscriber: bool = True) -> str:
    name = unique("group")
    create_reader_group(
        lane.database, name, [lane.name], subscriber=subscriber, request_id=unique("group")
    )
    return name


def test_what_the_slowest_subscriber_has_not_released_stays(lane: Lane) -> None:
    fast, slow = _group(lane), _group(lane)
    lane.append({"0.0": 3, "1.0": 4})
    _consume(lane, fast)
    (report,) = retain(lane.database)
    assert report["rule"] == "nothing_consumed"
    assert slow in report["reason"]
    assert fast not in report["reason"]
    _consume(lane, slow)
    (report,) = retain(lane.database)
    assert (report["rule"], report["events"], report["files"]) == ("consumed", 7, 2)
    assert lane.head() == {"0.0": 3, "1.0": 4}


def test_a_group_that_is_no_subscriber_holds_nothing_back_and_sees_what_it_lost(lane: Lane) -> None:
    subscriber, other = _group(lane), _group(lane, subscriber=False)
    lane.append({"0.0": 3, "1.0": 4})
    _consume(lane, subscriber)
    retain(lane.database)
    ((unread, lost),) = rows(
        lane.database,
        "SELECT unread_events, lost_events FROM lag WHERE reader_group = :g",
        g=other,
    )
    assert (unread, lost) == (0, 7)


def test_a_dry_run_changes_nothing_and_repeated_decisions_are_recorded_once(lane: Lane) -> None:
    group = _group(lane)
    lane.append({"0.0": 3})
    retain(lane.database)
    retain(lane.database)
    assert len(lane.rows("SELECT * FROM retention_decision WHERE stream_id = :s")) == 1
    _consume(lane, group)
    (report,) = retain(lane.database, dry_run=True)
    assert report["cut"] == {"0.0": 3, "1.0": 0}
    assert lane.head() == {"0.0": 0, "1.0": 0}
    assert len(lane.rows("SELECT * FROM retention_decision WHERE stream_id = :s")) == 1


def test_the_tail_is_captured_only_when_it_moved(lane: Lane) -> None:
    assert len(capture(lane.database)) == 1
    assert capture(lane.database) == []
    lane.append({"0.0": 3})
    (captured,) = capture(lane.database)
    assert (captured["cut"], captured["events"]) == ({"0.0": 3, "1.0": 0}, 3)


def _dead_file(lane: Lane, warehouse: Path, ago: float = 100.0) -> Path:
    path = warehouse / str(lane.stream_id) / "_weir_tx=1" / unique("file")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("dead")
    run(
        lane.database,
        """INSERT INTO garbage (root, path, stream_id, reason, dead_at)
        VALUES ('', :path, :s, 'truncated', clock_timestamp() - :ago * interval '1 second')""",
        path=str(path.relative_to(warehouse)), s=lane.stream_id, ago=ago,
    )  # fmt: skip
    return path


def test_dead_files_go_after_the_grace_period_with_the_folders_they_leave_empty(
    lane: Lane, tmp_path: Path
) -> None:
    old, young = _dead_file(lane, tmp_path), _dead_file(lane, tmp_path, ago=1.0)
    assert sweep(lane.database, str(tmp_path), 50.0)["deleted"] == 1
    assert not old.exists()
    assert young.exists()
    assert sweep(lane.database, str(tmp_path), 0.0)["deleted"] == 1
    assert not young.parent.exists()
    assert rows(lane.database, "SELECT * FROM garbage") == []


def test_a_file_stays_while_a_batch_that_was_opened_before_it_died_is_open(
    lane: Lane, tmp_path: Path
) -> None:
    group = _group(lane)
    lane.append({"0.0": 3})
    token = join(lane.database, group, "reader", 60.0)
    batch = open_batch(lane.database, group, "reader", token, lease=60.0, budget=10)
    assert batch is not None
    (tmp_path / MARK).write_text(installation(lane.database)[0])
    path = _dead_file(lane, tmp_path, ago=0.0)
    assert sweep(lane.database, str(tmp_path), 0.0)["deleted"] == 0
    commit_batch(lane.database, batch, lease=60.0)
    assert sweep(lane.database, str(tmp_path), 0.0)["deleted"] == 1
    assert not path.exists()


def test_a_file_that_is_gone_already_is_forgotten(lane: Lane, tmp_path: Path) -> None:
    _dead_file(lane, tmp_path).unlink()
    assert sweep(lane.database, str(tmp_path), 0.0)["deleted"] == 1
    assert rows(lane.database, "SELECT * FROM garbage") == []


def test_the_warehouse_of_another_installation_is_not_touched(lane: Lane, tmp_path: Path) -> None:
    path = _dead_file(lane, tmp_path)
    (tmp_path / MARK).write_text("somebody else")
    with pytest.raises(InvariantViolation, match="belongs to installation somebody else"):
        sweep(lane.database, str(tmp_path), 0.0)
    assert path.exists()


def test_a_warehouse_that_lost_its_mark_is_not_touched(lane: Lane, tmp_path: Path) -> None:
    lane.append({"0.0": 3})
    path = _dead_file(lane, tmp_path)
    with pytest.raises(InvariantViolation, match="mount"):
        sweep(lane.database, str(tmp_path), 0.0)
    assert path.exists()
    assert len(rows(lane.database, "SELECT * FROM garbage")) == 1
