"""Appends that began in an earlier epoch: nothing is lost, and each key keeps its order."""

import sys
from dataclasses import replace
from functools import partial
from threading import Barrier
from types import SimpleNamespace

import pytest

from tests.raises import raises
from tests.world.streams import Lane, at_once, staged
from weir.controller.commit import commit
from weir.controller.expiry import expire
from weir.controller.staged import announce
from weir.errors import Fenced
from weir.model.segment import parse_segment_name


def ranges(lane: Lane, *names: str) -> list[tuple[float, float]]:
    found = lane.rows(
        """SELECT key_low, key_high FROM segment WHERE stream_id = :s
        AND segment_id = ANY(:ids) ORDER BY key_low""",
        ids=[parse_segment_name(name) for name in names],
    )
    return [tuple(row) for row in found]


def sealed_in(lane: Lane, name: str) -> int | None:
    epoch: int | None = lane.value(
        "SELECT sealed_epoch FROM segment WHERE stream_id = :s AND segment_id = :id",
        id=parse_segment_name(name),
    )
    return epoch


def test_append_begun_before_a_split_rolls(lane: Lane) -> None:
    late = lane.opened()
    before = lane.append({"0.0": 5, "1.0": 1})
    lane.scale("0.0")
    after = lane.append({"2.1": 3, "3.1": 4})
    done = lane.commit(late, {"0.0": 7, "1.0": 2})
    assert done.rolled
    assert (done.events, done.clock > after.clock > before.clock) == (9, True)
    # 0.0 -> 2.1 and 3.1 -> its copy 0.2, which holds the late events -> copies 2.3 and 3.3.
    assert lane.sizes() == {
        "0.0": 5, "1.0": 1, "2.1": 3, "3.1": 4, "0.2": 7, "1.2": 2, "2.3": 0, "3.3": 0, "1.3": 0,
    }  # fmt: skip
    assert lane.active() == ["2.3", "3.3", "1.3"]
    assert [sealed_in(lane, s) for s in ("0.0", "1.0", "2.1", "3.1", "0.2", "1.2", "2.3")] == [
        1, 2, 2, 2, 3, 3, None,
    ]  # fmt: skip
    assert ranges(lane, "2.3", "3.3", "1.3") == ranges(lane, "2.1", "3.1", "1.0")
    assert ranges(lane, "0.2", "1.2") == ranges(lane, "0.0", "1.0")


def test_after_rolls_alone_segments_are_matched_by_number(lane: Lane) -> None:
    first, second = lane.opened(), lane.opened()
    lane.scale("0.0")
    third = lane.opened()
    assert lane.commit(first, {"0.0": 1}).rolled
    # `third` began in epoch 1, of which epoch 3 is a copy: it appends to 2.3 in place of 2.1.
    assert not lane.commit(third, {"2.1": 4, "1.0": 2}).rolled
    assert lane.tail() == {"2.3": 4, "3.3": 0, "1.3": 2}
    # `second` began in epoch 0, whose copy 2 is sealed: another roll.
    assert lane.commit(second, {"0.0": 1}).rolled


def test_append_begun_before_a_merge_rolls_if_the_ranks_of_its_files_alternate(lane: Lane) -> None:
    late = lane.opened()
    [merged] = lane.scale("0.0", "1.0", parts=1)
    written = staged(late, {"0.0": [2, 3], "1.0": 4})
    first, second, other = written.files  # ranks 0 to 1, 2 to 4 and 5 to 8
    across = (first, replace(second, last_seq=8), replace(other, first_seq=3, last_seq=6))
    [done] = commit(lane.database, replace(written, files=across))
    assert done.rolled
    assert lane.sizes() == {"0.0": 0, "1.0": 0, merged: 0, "0.2": 5, "1.2": 4, "2.3": 0}
    assert {epoch.reason for epoch in lane.epochs() if epoch.cause == "roll"} == {
        "transaction 1 began before a scale"
    }


def test_roll_of_a_roll(lane: Lane) -> None:
    first, second = lane.opened(), lane.opened()
    lane.scale("0.0")
    on_copy_of_one = lane.opened()
    lane.commit(first, {"0.0": 1})  # epochs 2 (of 0) and 3 (of 1)
    on_three = lane.opened()
    lane.scale("2.3")  # epoch 4
    for attempt, written, origin in [
        (on_three, {"2.3": 2}, 1),  # began in a duplicate of epoch 1
        (on_copy_of_one, {"2.1": 3}, 1),
        (second, {"0.0": 4}, 0),
    ]:
        last = lane.epochs()[-1]
        assert lane.commit(attempt, written).rolled
        new = lane.epochs()[last.epoch + 1 :]
        assert [(e.reference_epoch, e.reference_epoch <= e.epoch) for e in new] == [
            (origin, True),
            (4, True),
        ]
    sizes = lane.sizes()
    assert (sizes["2.5"], sizes["2.7"], sizes["0.9"]) == (2, 3, 4)
    assert lane.active() == ["4.10", "5.10", "3.10", "1.10"]


def test_appends_that_commit_at_once_after_a_split_share_one_roll(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = [lane.opened() for _ in range(8)]
    # None locks the stream again before all have recorded that they wait, however slow they are.
    all_wait = Barrier(len(attempts))
    pause = SimpleNamespace(sleep=lambda seconds: all_wait.wait(60))
    monkeypatch.setattr(sys.modules[commit.__module__], "time", pause)
    lane.scale("0.0", parts=2)
    done = at_once(
        *[
            partial(commit, lane.database, staged(attempt, {"0.0": 1 + i}))
            for i, attempt in enumerate(attempts)
        ]
    )
    assert [len(one) for one in done] == [1] * 8, done
    assert {one[0].rolled for one in done} == {True}
    assert {one[0].repeated for one in done} == {False}
    assert sorted(one[0].events for one in done) == list(range(1, 9))
    assert [e.cause for e in lane.epochs()] == ["create", "scale", "roll", "roll"]
    assert lane.sizes()["0.2"] == 36


def test_what_waits_is_taken_along_and_what_would_be_refused_is_left_to_its_writer(
    lane: Lane,
) -> None:
    fine, held = lane.opened(), lane.opened(inputs=["a.csv"])
    other, mine = lane.opened(inputs=["a.csv"]), lane.opened()
    lane.commit(other, {"1.0": 1})
    lane.scale("0.0", parts=2)
    for attempt in (fine, held):
        lane.database.transaction(partial(announce, staged=staged(attempt, {"0.0": 2})))
    assert lane.commit(mine, {"0.0": 3}).rolled
    assert lane.order_in("0.2") == [mine.transaction_number, fine.transaction_number]
    done = lane.commit(fine, {"0.0": 2})
    assert (done.repeated, done.events) == (True, 2)
    with raises("file_already_appended 'a.csv'"):
        lane.commit(held, {"0.0": 2})


def test_a_writer_that_died_after_it_said_it_was_ready_is_aborted_like_any_other(
    lane: Lane,
) -> None:
    attempt = lane.opened(lease=0.0)
    lane.scale("0.0", parts=2)
    lane.database.transaction(lambda c: announce(c, staged(attempt, {"0.0": 2})))
    ended = [one for one in expire(lane.database, 0.0) if one["stream"] == str(lane.name)]
    assert [one["transaction"] for one in ended] == [attempt.transaction_number]
    with pytest.raises(Fenced):
        lane.commit(attempt, {"0.0": 2})
