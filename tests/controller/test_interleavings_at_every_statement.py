"""Two sessions at one stream: wherever the first is when the second comes, it is as if one of them
had come after the other had ended.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.controller import scenes
from tests.controller.interleave import COMMIT, Outcome, Scene, Stage, stage_on
from tests.controller.operations import (
    Operation,
    committing,
    truncating,
)
from tests.world.groups import Group, budget, open_batch
from tests.world.streams import Lane, staged
from weir.controller.commit import commit
from weir.database.connection import Database
from weir.errors import Conflict, Fenced, InvalidInput, NotFound, Truncated


@pytest.fixture
def stage(shared_database: Database) -> Iterator[Stage]:
    """Two sessions and one that watches."""
    with stage_on(shared_database) as opened:
        yield opened


@dataclass(frozen=True)
class Pair:
    """A scene, and how each operation is refused when the other came first."""

    made: Callable[[Lane], Scene]
    first_late: type[Exception] | None = None
    second_late: type[Exception] | None = None
    waits: bool = True  # the second for the first whenever that has locks


# Each operation is stopped at each of its statements in one of them. A pair that does not wait asks
# without a lock: whether a name is free, which streams are to be looked at, what a group reads.
PAIRS = [
    Pair(scenes.two_commits),
    Pair(scenes.commits_of_two_streams_named_in_opposite_order),
    Pair(scenes.commit_and_scale),
    Pair(scenes.two_scales_of_one_segment, Conflict, Conflict),
    Pair(scenes.truncation_and_scale),
    Pair(scenes.seal_and_commit, None, Fenced),
    Pair(scenes.delete_and_commit_again, None, NotFound),
    Pair(scenes.two_creates_of_one_name, Conflict, Conflict),
    Pair(scenes.one_create_asked_for_twice),
    Pair(scenes.rename_and_commit, None, Conflict),
    Pair(scenes.update_and_scale, None, Conflict),
    Pair(scenes.take_over_and_commit, None, Fenced),
    Pair(scenes.late_commit_and_scale),
    Pair(scenes.expiry_and_delete, waits=False),
    Pair(scenes.delete_and_batch, Conflict, NotFound, waits=False),
    Pair(scenes.two_runs_of_retention_where_it_is_due, waits=False),
    Pair(scenes.retention_and_a_new_subscriber_of_what_is_consumed, None, Truncated, waits=False),
    Pair(scenes.retention_and_a_release, waits=False),
    Pair(scenes.begin_and_scale),
    Pair(scenes.abort_and_commit, None, Fenced),
    Pair(scenes.two_truncations, InvalidInput, None),
    Pair(scenes.late_commit_and_commit),
]
# The same operations beside others.
MORE = [
    Pair(scenes.commit_of_two_streams_and_renewal_in_opposite_order, waits=False),
    Pair(scenes.commit_and_closing_of_the_present),
    Pair(scenes.two_scales),
    Pair(scenes.truncation_at_what_a_commit_appends),  # refused when it comes first
    Pair(scenes.seal_and_late_commit, None, Fenced),
    Pair(scenes.seal_and_scale, None, Conflict),
    Pair(scenes.delete_and_commit_of_what_the_seal_aborted, None, NotFound),
    Pair(scenes.delete_and_seal),
    Pair(scenes.delete_and_create_of_the_same_name, waits=False),
    Pair(scenes.update_and_commit),
    Pair(scenes.default_and_commit, None, Conflict),
    Pair(scenes.new_column_and_commit),
    Pair(scenes.two_renames_of_one_column, InvalidInput, InvalidInput),
    Pair(scenes.take_over_and_late_commit, None, Fenced),
    Pair(scenes.late_commits_of_two_epochs),
    Pair(scenes.two_runs_of_retention, waits=False),
    Pair(scenes.two_runs_of_retention_where_it_is_due_and_nothing_is_consumed, waits=False),
    Pair(scenes.retention_and_a_new_subscriber_at_the_head, waits=False),
    Pair(scenes.retention_and_a_fork_to_replay, None, Truncated, waits=False),
    Pair(scenes.retention_and_a_reset_to_replay, None, Truncated, waits=False),
    Pair(scenes.retention_and_the_end_of_a_subscriber, waits=False),
    Pair(scenes.retention_and_commit, waits=False),
]


def orders(stage: Stage, made: Callable[[], Scene]) -> list[Outcome]:
    """What comes out when the first operation comes first, and when the second does."""
    backwards = stage.alone(made().swapped())
    return [stage.alone(made()), Outcome(backwards.second, backwards.first, backwards.state)]


def refusal(result: Any) -> Any:
    return result if isinstance(result, type) else None


@pytest.mark.parametrize(
    "turned",
    [pytest.param(False, id=""), pytest.param(True, id="turned", marks=pytest.mark.release)],
)
@pytest.mark.parametrize(
    "pair",
    [*PAIRS, *(pytest.param(pair, marks=pytest.mark.release) for pair in MORE)],
    ids=lambda pair: pair.made.__name__,
)
def test_two_at_once_are_one_after_the_other(
    stage: Stage, shared_database: Database, pair: Pair, turned: bool
) -> None:
    def made() -> Scene:
        scene = pair.made(Lane.made(shared_database, retention="consumed"))
        return scene.swapped() if turned else scene

    right = orders(stage, made)
    late = [refusal(right[1].first), refusal(right[0].second)]
    assert late == (
        [pair.second_late, pair.first_late] if turned else [pair.first_late, pair.second_late]
    )
    for one in stage.runs(made):
        assert one.outcome in right, f"a mixture, when it was stopped before {one.statement}"
        assert one.blocked == one.had_locks or not pair.waits, one.statement


def test_no_batch_is_opened_while_a_truncation_is_at_work(
    stage: Stage, shared_database: Database
) -> None:
    # It would plan files from the old head, and be opened when they are dead: nothing kept them.
    def made() -> Scene:
        lane = Lane.made(shared_database, retention="consumed")
        lane.append({"0.0": 3}, batch="before")
        group = Group.made(lane, subscriber=False)
        token = group.reader().token
        return Scene(
            [lane.name],
            truncating(lane, "0.0=2, 1.0=0"),
            lambda database: open_batch(
                database, group.name, "reader", token, lease=60.0, budget=budget()
            ),
        )

    *_, last = stage.runs(made)
    assert last.statement == COMMIT
    assert last.blocked


def test_two_late_commits_are_one_after_the_other_or_share_a_roll(
    stage: Stage, shared_database: Database
) -> None:
    # A commit that must roll says so, and lets go of the stream for a moment: whoever rolls next
    # takes along all that wait. So it may also be as if both had been given to one commit.
    written: list[dict[str, int | Sequence[int]]] = [{"0.0": [2, 3], "1.0": 1}, {"0.0": 4}]

    def made() -> Scene:
        lane = Lane.made(shared_database, retention="consumed")
        late, other = scenes.late_attempts(lane)
        return Scene(
            [lane.name], committing(late, written=written[0]), committing(other, written=written[1])
        )

    def together(first: int) -> Outcome:
        lane = Lane.made(shared_database, retention="consumed")
        both = [staged(a, w) for a, w in zip(scenes.late_attempts(lane), written, strict=True)]
        done = stage.alone(
            Scene(
                [lane.name],
                lambda database: commit(database, both[first], both[1 - first]),
                lambda _: None,
            )
        )
        return Outcome([done.first[first]], [done.first[1 - first]], done.state)

    right, shared = orders(stage, made), [together(0), together(1)]
    runs = stage.runs(made)
    for one in runs:
        assert one.outcome in right + shared, f"stopped before {one.statement}"
    assert shared[1] in [one.outcome for one in runs], "none shared a roll"


def test_a_mixture_is_noticed(stage: Stage, shared_database: Database) -> None:
    # What it writes rests on what it read before anybody was kept from changing it.
    def careless(lane: Lane) -> Operation:
        def work(connection: Connection) -> None:
            parameters = {"s": lane.stream_id}
            read = "SELECT next_transaction_number + 1 FROM stream WHERE stream_id = :s"
            number = connection.execute(text(read), parameters).scalar_one()
            write = "UPDATE stream SET next_transaction_number = :n WHERE stream_id = :s"
            connection.execute(text(write), {**parameters, "n": number})

        return lambda database: database.transaction(work)

    def made() -> Scene:
        lane = Lane.made(shared_database, retention="consumed")
        return Scene([lane.name], careless(lane), careless(lane))

    right = orders(stage, made)
    assert [one.outcome in right for one in stage.runs(made)] == [True, False, False]


def test_a_deadlock_is_noticed_though_it_is_retried(
    stage: Stage, shared_database: Database
) -> None:
    def locking(*lanes: Lane) -> Operation:
        def work(connection: Connection) -> None:
            for lane in lanes:
                sql = "SELECT FROM stream WHERE stream_id = :s FOR NO KEY UPDATE"
                connection.execute(text(sql), {"s": lane.stream_id})

        return lambda database: database.transaction(work)

    def made() -> Scene:
        one, other = (
            Lane.made(shared_database, retention="consumed"),
            Lane.made(shared_database, retention="consumed"),
        )
        return Scene([one.name], locking(one, other), locking(other, one))

    with pytest.raises(AssertionError, match="deadlock detected"):
        stage.runs(made)
