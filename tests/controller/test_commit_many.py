"""Several transactions in one commit: all or none, of several streams or of one."""

import pytest

from tests.world.streams import FIELDS, Lane, staged
from weir.controller.commit import commit
from weir.controller.transactions import abort
from weir.errors import Fenced
from weir.kernel.attempt import Staged
from weir.model.schema import new_field


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
