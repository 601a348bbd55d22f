"""A file is appended once: what another committed batch holds is refused by name."""

import pytest

from tests.raises import raises
from tests.world.streams import Lane
from weir.controller.transactions import Committed, abort
from weir.errors import Conflict
from weir.kernel.attempt import Attempt


def test_a_file_that_another_committed_batch_holds_is_refused_at_begin(lane: Lane) -> None:
    lane.append({"0.0": 1}, batch="first", inputs=["jan.csv", "feb.csv"], source="dag/run/one")
    with raises("file_already_appended 'feb.csv' transaction 1 dag/run/one"):
        lane.begin("second", inputs=["feb.csv", "mar.csv"])
    assert lane.value("SELECT count(*) FROM transaction WHERE stream_id = :s") == 1


def test_of_two_open_at_once_with_one_file_the_second_to_commit_is_refused(lane: Lane) -> None:
    first = lane.opened("first", inputs=["jan.csv"])
    second = lane.opened("second", inputs=["jan.csv", "feb.csv"])
    lane.commit(second, {"0.0": 2})
    with raises("file_already_appended 'jan.csv'"):
        lane.commit(first, {"0.0": 1})
    assert lane.tail() == {"0.0": 2, "1.0": 0}


def test_allow_repeated_files_appends_its_rows_a_second_time(lane: Lane) -> None:
    lane.append({"0.0": 1}, batch="first", inputs=["jan.csv"])
    lane.append({"0.0": 1}, batch="second", inputs=["jan.csv"], allow_repeated_files=True)
    assert lane.tail() == {"0.0": 2, "1.0": 0}
    with raises("file_already_appended transaction 1"):
        lane.begin("third", inputs=["jan.csv"])


def test_allow_repeated_files_counts_for_its_own_batch_only(lane: Lane) -> None:
    again = lane.opened("again", inputs=["jan.csv"], allow_repeated_files=True)
    plain = lane.opened("plain", inputs=["jan.csv"])
    lane.commit(again, {"0.0": 1})
    with pytest.raises(Conflict):
        lane.commit(plain, {"0.0": 1})


def test_the_same_batch_returns_its_result_whatever_it_holds(lane: Lane) -> None:
    lane.append({"0.0": 1}, batch="first", inputs=["jan.csv"])
    assert isinstance(lane.begin("first", inputs=["jan.csv"]), Committed)


def test_files_of_open_and_aborted_batches_are_not_held(lane: Lane) -> None:
    aborted = lane.opened("aborted", inputs=["jan.csv"])
    abort(lane.database, aborted)
    lane.opened("open", inputs=["jan.csv"])
    assert isinstance(lane.begin("third", inputs=["jan.csv"]), Attempt)


def test_an_attempt_with_fewer_files_gives_the_others_up(lane: Lane) -> None:
    abort(lane.database, lane.opened("monday", inputs=["jan.csv", "feb.csv"]))
    lane.append({"0.0": 1}, batch="monday", inputs=["jan.csv"])
    assert isinstance(lane.begin("other", inputs=["feb.csv"]), Attempt)


def test_streams_hold_files_independently(lane: Lane) -> None:
    other = Lane.made(lane.database)
    lane.append({"0.0": 1}, inputs=["jan.csv"])
    other.append({"0.0": 1}, inputs=["jan.csv"])
    assert other.tail() == {"0.0": 1, "1.0": 0}
