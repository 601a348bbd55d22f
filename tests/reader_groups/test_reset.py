"""A group that is reset: it may go back only on purpose, and what it held is held again."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import unique
from weir.errors import Fenced
from weir.reader_groups.groups.reset import reset_reader_group


def reset(group: Group, to: str, **options: Any) -> Mapping[str, Any]:
    return reset_reader_group(group.database, group.name, to, request_id=unique("reset"), **options)


def test_a_reset_goes_back_only_when_it_is_said_that_outputs_may_repeat(group: Group) -> None:
    reader = group.reader()
    reader.commit(reader.must_open(budget=10))
    group.checkpoint("one")
    reader.commit(reader.must_open())
    with raises("events_would_repeat"):
        reset(group, "checkpoint one")
    assert group.cut() == {"0.0": 10, "1.0": 10}
    done = reset(group, "checkpoint one", allow_repeat=True)
    assert (done["generation"], group.cut()) == (1, {"0.0": 5, "1.0": 5})
    reset(group, "start", allow_repeat=True)
    assert group.cut() == {"0.0": 0, "1.0": 0}
    reset(group, "tail")
    assert group.cut() == {"0.0": 10, "1.0": 10}


def test_a_reader_of_before_a_reset_publishes_nothing(group: Group) -> None:
    reader = group.reader()
    batch = reader.must_open()
    reset(group, "head")
    with raises("batch_taken_over abandoned"):
        reader.commit(batch)
    with pytest.raises(Fenced):
        reader.open()
    assert group.states() == {"0.0": ("unassigned", 0, None), "1.0": ("unassigned", 0, None)}
    assert group.reader("another").must_open().batch_id == 2
