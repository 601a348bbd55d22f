"""Two sessions at one stream at the same time: one order or the other, never a mixture."""

import contextlib
from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from sqlalchemy import Connection

from tests.world.groups import Group
from tests.world.streams import Lane, at_once, staged, while_held
from weir.controller.commit import commit, commit_in
from weir.controller.locks import lock_streams
from weir.controller.transactions import Committed
from weir.errors import Conflict
from weir.kernel.attempt import Attempt


def committing(
    lane: Lane, attempt: Attempt, written: dict[str, int]
) -> Callable[[Connection], list[Committed]]:
    """A commit whose transaction is still open when it returns."""

    def work(connection: Connection) -> list[Committed]:
        locked = lock_streams(connection, ids=[lane.stream_id])
        return commit_in(connection, locked, [staged(attempt, written)])

    return work


def test_a_begin_that_waited_for_a_roll_sees_the_copies(lane: Lane) -> None:
    late = lane.opened()
    lane.scale("0.0")
    _, attempt = while_held(lane.database, committing(lane, late, {"0.0": 3}), lane.opened)
    assert [s.name for s in attempt.segments] == ["2.3", "3.3", "1.3"]


def test_a_group_that_waited_for_a_commit_begins_after_it(lane: Lane) -> None:
    attempt = lane.opened()
    _, group = while_held(
        lane.database,
        committing(lane, attempt, {"0.0": 3}),
        partial(Group.made, lane, start="tail"),
    )
    assert group.cut() == {"0.0": 3, "1.0": 0}


def test_the_same_batch_begun_twice_at_once_is_two_attempts_at_one_transaction(
    lane: Lane,
) -> None:
    for i in range(4):
        one, other = at_once(partial(lane.opened, f"{i}"), partial(lane.opened, f"{i}"))
        assert one.transaction_number == other.transaction_number
        assert {one.attempt, other.attempt} == {1, 2}


def test_many_sessions_at_once_lose_nothing_and_never_block_each_other(
    lane: Lane, caplog: pytest.LogCaptureFixture
) -> None:
    other = Lane.made(lane.database, retention="consumed")
    lanes = (lane, other)

    def appending(seed: int) -> int:
        random, appended = Random(seed), 0
        for _ in range(6):
            attempts = [one.opened() for one in random.sample(lanes, 2)]
            written = [
                {random.choice(attempt.segments).name: random.randint(1, 5)} for attempt in attempts
            ]
            commit(
                lane.database,
                *[staged(a, w) for a, w in zip(attempts, written, strict=True)],
            )
            appended += sum(sum(w.values()) for w in written)
        return appended

    def scaling(seed: int) -> int:
        random = Random(seed)
        for _ in range(5):
            one = random.choice(lanes)
            names = one.active()
            first = random.randrange(len(names))
            with contextlib.suppress(Conflict):  # another one was faster
                one.scale(*names[first : first + 2], parts=random.choice([1, 2, 3]))
        return 0

    outcomes = at_once(
        *[partial(appending, seed) for seed in range(3)], *[partial(scaling, s) for s in (7, 8)]
    )
    assert not [one for one in outcomes if isinstance(one, Exception)]
    assert sum(sum(one.sizes().values()) for one in lanes) == sum(outcomes)
    assert sum(f.events for one in lanes for f in one.files()) == sum(outcomes)
    assert "deadlock" not in caplog.text
