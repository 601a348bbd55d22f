"""The audit computes by itself what each receipt says that its groups lost."""

import pytest

from tests.annex.audit.world import read_some
from tests.world.adjunct import Store
from tests.world.groups import Group
from tests.world.streams import Lane, run, unique
from weir.adjunct.builds import Build
from weir.annex.audit.run import audit
from weir.reader_groups.groups.reset import reset_reader_group


def kinds(lane: Lane) -> set[str]:
    return {one.kind for one in audit(lane.database, everything=True).counter_examples}


def loses(lane: Lane, group: str, events: int) -> None:
    """Write another loss into all that says it in the newest receipt."""
    run(
        lane.database,
        """UPDATE truncation SET lost = lost || jsonb_build_object(CAST(:g AS text), :n),
            subscribers = CASE WHEN subscribers ? :g THEN jsonb_set(jsonb_set(subscribers,
                ARRAY[:g, 'lost'], to_jsonb(CAST(:n AS bigint))), ARRAY[:g, 'lost_so_far'],
                to_jsonb(CAST(:n AS bigint))) ELSE subscribers END
        WHERE number = (SELECT max(number) FROM truncation)""",
        g=group, n=events,
    )  # fmt: skip


def lost(lane: Lane, group: str) -> int:
    return int(lane.value(
        """SELECT coalesce(lost ->> :g, '0')::bigint FROM truncation WHERE stream_id = :s
        ORDER BY number DESC LIMIT 1""", g=group))  # fmt: skip


def check_found(lane: Lane, group: str) -> None:
    """Check that the loss in the newest receipt is proven, and each other one refuted."""
    right = lost(lane, group)
    assert kinds(lane) == set()
    for wrong in {0, 1, right - 1, right + 1, 1000} - {right}:
        loses(lane, group, wrong)
        assert kinds(lane) & {"lost_differs", "lost_without_a_word"}, wrong
    loses(lane, group, right)
    assert kinds(lane) == set()


@pytest.mark.parametrize("subscriber", [True, False])
def test_a_loss_of_a_truncation_by_hand_is_computed(alone: Lane, subscriber: bool) -> None:
    alone.append({"0.0": [4, 3]})
    group = Group.made(alone, subscriber=subscriber, on_gap="skip")
    read_some(group, 4)
    alone.truncate("0.0=6, 1.0=0")
    assert lost(alone, group.name) == 2
    check_found(alone, group.name)
    group.reader().read_all()
    check_found(alone, group.name)


def test_events_of_a_batch_that_was_open_when_they_went_count_as_lost(alone: Lane) -> None:
    alone.append({"0.0": [2, 4, 3]})
    group = Group.made(alone, on_gap="skip")
    read_some(group, 2)
    reader = group.reader()
    batch = reader.must_open(4)
    alone.truncate("0.0=5, 1.0=0")
    assert lost(alone, group.name) == 3
    check_found(alone, group.name)
    reader.commit(batch)
    check_found(alone, group.name)
    group.reader().read_all()
    check_found(alone, group.name)


def test_a_loss_of_a_group_with_an_end_is_counted_up_to_its_end(alone: Lane) -> None:
    alone.append({"0.0": 4})
    group = Group.made(alone, on_gap="skip", end="tail")
    alone.append({"0.0": 4})
    alone.truncate("0.0=6, 1.0=0")
    assert lost(alone, group.name) == 4
    check_found(alone, group.name)


def test_a_loss_of_a_store_is_computed_also_after_it_was_built_anew(alone: Lane) -> None:
    store = Store.made(alone, on_gap="rebuild")
    for _ in range(3):
        alone.append({"0.0": 4})
        store.build()
    alone.append({"0.0": 4})
    alone.truncate("0.0=14, 1.0=0")
    assert lost(alone, store.name) == 2
    check_found(alone, store.name)
    build = store.begin()
    assert isinstance(build, Build)
    store.publish(build)
    check_found(alone, store.name)


def test_a_loss_before_a_reset_is_computed_after_it(alone: Lane) -> None:
    alone.append({"0.0": 8})
    group = Group.made(alone, on_gap="skip")
    alone.truncate("0.0=5, 1.0=0")
    for to in ("tail", "head"):
        reset_reader_group(
            alone.database, group.name, to, allow_loss=True, allow_truncated=True,
            allow_repeat=True, request_id=unique("reset"),
        )  # fmt: skip
        check_found(alone, group.name)


def test_a_loss_of_a_scaled_stream_is_computed_per_segment(alone: Lane) -> None:
    alone.append({"0.0": 4, "1.0": 4})
    group = Group.made(alone, on_gap="skip")
    read_some(group, 4)
    alone.scale("0.0", parts=2)
    for segment in alone.active():
        alone.append({segment: 3})
    alone.truncate("2.1=2, 3.1=1, 1.0=5")
    assert lost(alone, group.name) == 8
    check_found(alone, group.name)
    group.reader().read_all()
    check_found(alone, group.name)


def test_a_group_that_becomes_a_subscriber_is_named_from_then_on_and_not_before(
    alone: Lane,
) -> None:
    alone.append({"0.0": 8})
    group = Group.made(alone, subscriber=False, on_gap="skip")
    alone.truncate("0.0=1, 1.0=0")
    group.update(subscriber=True, allow_truncated=True)
    assert kinds(alone) == set()
    alone.truncate("0.0=3, 1.0=0")
    assert kinds(alone) == set()
    run(alone.database, "UPDATE truncation SET subscribers = '{}', lost = '{}' WHERE number = 2")
    assert kinds(alone) == {"subscriber_not_named"}
