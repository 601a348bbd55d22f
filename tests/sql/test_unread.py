"""What is unread from a cut on, on random histories, beside a model that keeps every event."""

import json

from tests.controller.model import Cut, as_json
from tests.sql.history import History


def unread(history: History, cut: Cut, head: Cut, end: Cut | None) -> tuple[object, ...]:
    [row] = history.lane.rows(
        """SELECT readable, events, bytes, clock_time(oldest) FROM unread_from(
            :s, CAST(:cut AS jsonb), CAST(:head AS jsonb), CAST(:end AS jsonb))""",
        cut=json.dumps(as_json(cut)),
        head=json.dumps(as_json(head)),
        end=None if end is None else json.dumps(as_json(end)),
    )
    return tuple(row)


def expected(history: History, cut: Cut, head: Cut, end: Cut | None) -> tuple[object, ...]:
    """The same by counting events."""
    model = history.model
    here = model.join(cut, head)
    past = model.tail() if end is None else model.join(here, end)
    times = history.commit_times()
    left = [
        event.order
        for s, (first, limit) in model.between(here, past).items()
        for event in model.segments[s].events[first:limit]
    ]
    before, after = model.size_till(here), model.size_till(past)
    assert len(left) == after[0] - before[0]
    oldest = min((times[order] for order in left), default=None)
    return as_json(here), len(left), after[1] - before[1], oldest


def test_unread_is_what_lies_between_the_cut_or_the_head_and_the_tail(history: History) -> None:
    for cut, head in history.pairs(12):
        assert unread(history, cut, head, None) == expected(history, cut, head, None)


def test_a_group_with_an_end_has_nothing_unread_behind_it(history: History) -> None:
    for (cut, head), end in zip(history.pairs(8), history.frontiers(16), strict=True):
        assert unread(history, cut, head, end) == expected(history, cut, head, end)
        assert unread(history, end, head, end)[1] == 0
    tail = history.model.tail()
    assert unread(history, tail, tail, None) == (as_json(tail), 0, 0, None)
