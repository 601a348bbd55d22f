"""Several transactions in one commit: all or none, of several streams or of one."""

import pytest

from tests.world.streams import FIELDS, Lane, staged
from weir.controller.commit import commit
from weir.controller.transactions import abort
from weir.errors import Fenced
from weir.kernel.attempt import Staged
from weir.model.schema import new_field


def test_several_streams_are_committed_together_in_the_order_given(lane: Lane) -> None:
    other = Lane.made(lane.database)
    done = commit(
        lane.database,
        staged(other.opened(), {"1.0": 4}),
        staged(lane.opened(), {"0.0": 3}),
    )
    assert [(d.stream, d.events) for d in done] == [(str(other.name), 4), (str(lane.name), 3)]
    assert (lane.tail(), other.tail()) == ({"0.0": 3, "1.0": 0}, {"0.0": 0, "1.0": 4})


@pytest.mark.parametrize("fenced_first", [False, True])
def test_if_one_is_fenced_nothing_is_committed(lane: Lane, fenced_first: bool) -> None:
    other = Lane.made(lane.database)
    lost, fine = other.opened(), lane.opened()
    abort(lane.database, lost)
    both = [staged(lost, {"0.0": 1}), staged(fine, {"0.0": 3})]
    with pytest.raises(Fenced):
        commit(lane.database, *(both if fenced_first else both[::-1]))
    assert (lane.tail(), other.tail()) == ({"0.0": 0, "1.0": 0}, {"0.0": 0, "1.0": 0})
    assert lane.commit(fine, {"0.0": 3}).repeated is False


def test_committing_several_twice_is_harmless(lane: Lane) -> None:
    other = Lane.made(lane.database)
    both = [staged(lane.opened(), {"0.0": 3}), staged(other.opened(), {"0.0": 4})]
    first = commit(lane.database, *both)
    again = commit(lane.database, *both)
    assert [d.repeated for d in first] == [False, False]
    assert [(d.repeated, d.clock) for d in again] == [(True, d.clock) for d in first]
    assert (lane.tail(), other.tail()) == ({"0.0": 3, "1.0": 0}, {"0.0": 4, "1.0": 0})


def test_two_transactions_of_one_stream_follow_each_other(lane: Lane) -> None:
    a, b = lane.opened(), lane.opened()
    first, second = commit(lane.database, staged(b, {"0.0": 3, "1.0": 1}), staged(a, {"0.0": 4}))
    assert first.clock < second.clock
    assert lane.order_in("0.0") == [b.transaction_number, a.transaction_number]
    assert lane.tail() == {"0.0": 7, "1.0": 1}


def test_two_transactions_of_one_stream_may_both_add_columns(lane: Lane) -> None:
    a, b = staged(lane.opened(), {"0.0": 3}), staged(lane.opened(), {"0.0": 4})
    commit(
        lane.database,
        Staged(a.attempt, a.files, [*FIELDS, new_field("x", "long")]),
        Staged(b.attempt, b.files, [*FIELDS, new_field("y", "long")]),
    )
    versions = lane.rows(
        "SELECT version, fields FROM stream_schema WHERE stream_id = :s ORDER BY version"
    )
    assert [[f["name"] for f in v.fields] for v in versions] == [["key", "x"], ["key", "x", "y"]]
    written = lane.rows(
        "SELECT schema_version FROM data_file WHERE stream_id = :s ORDER BY start_offset"
    )
    assert [row.schema_version for row in written] == [1, 2]


def test_late_transactions_of_two_epochs_roll_one_after_the_other(lane: Lane) -> None:
    oldest = lane.opened()
    lane.scale("0.0")
    middle = lane.opened()
    lane.scale("2.1")
    first, second = commit(
        lane.database, staged(middle, {"2.1": 4}), staged(oldest, {"0.0": 2, "1.0": 8})
    )
    assert (first.rolled, second.rolled) == (True, True)
    epochs = lane.epochs()
    assert [(e.epoch, e.reference_epoch) for e in epochs] == [
        (0, 0), (1, 1), (2, 2), (3, 1), (4, 2), (5, 0), (6, 2),
    ]  # fmt: skip
    assert epochs[3].created_at < first.clock < epochs[4].created_at
    assert epochs[5].created_at < second.clock < epochs[6].created_at
    assert (lane.sizes()["2.3"], lane.sizes()["0.5"], lane.sizes()["1.5"]) == (4, 2, 8)


def test_one_that_rolls_and_one_of_now_are_committed_together(lane: Lane) -> None:
    late = lane.opened()
    lane.scale("0.0")
    now = lane.opened()
    first, second = commit(
        lane.database, staged(late, {"0.0": 2}), staged(now, {"2.1": 1, "1.0": 1})
    )
    # The copies 2.3 and 1.3 of the segments that `now` wrote to took their place.
    assert (first.rolled, second.rolled) == (True, False)
    assert lane.tail() == {"2.3": 1, "3.3": 0, "1.3": 1}
