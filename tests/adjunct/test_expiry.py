"""Versions expire when their store no longer keeps them, and never while somebody needs them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.raises import raises
from tests.world.adjunct import Store
from tests.world.groups import Group
from tests.world.streams import Lane, run, unique
from weir.adjunct.expiry import expire_versions, prune_versions
from weir.adjunct.stores import delete_store
from weir.database.connection import Database
from weir.model.adjunct_expiry import Expiry, Kept, expire
from weir.queries.adjunct.versions import AdjunctFile

DAY = 1000


def line(*clocks: int, last: int | None = None) -> list[Kept]:
    """Versions at some clocks, each with a history, and superseded when the next was published."""
    superseded = [*clocks[1:], last]
    return [
        Kept(i + 1, "line", clock, at, history_from=clocks[i - 1] if i else 0)
        for i, (clock, at) in enumerate(zip(clocks, superseded, strict=True))
    ]


def test_superseded_versions_expire_after_a_while_but_for_the_newest_and_the_pinned() -> None:
    versions = line(100, 200, 300, 400)
    assert expire(versions, now=450, keep=100, history=None).tables == {1, 2}
    assert expire(versions, now=9000, keep=100, history=None).tables == {1, 2, 3}
    assert expire(versions, now=9000, keep=100, history=None, pinned=[2]).tables == {1, 3}


def test_a_history_keeps_the_version_that_it_begins_with() -> None:
    versions = line(100, 200, 300, 400)
    found = expire(versions, now=1000, keep=1, history=750)
    assert 2 not in found.tables  # it is the newest that is at most as old as the clock 250
    assert 1 in found.tables
    assert found.histories == {1, 2}
    asked = expire(versions, now=9000, keep=1, history=None, asked=[("line", 150)])
    assert asked.tables == {2, 3}
    assert asked.histories == {1}
    assert expire(versions, now=9000, keep=1, history=None).histories == {1, 2, 3, 4}


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=25),
    st.integers(1, 60), st.integers(20, 200),
    st.lists(st.integers(1, 300), max_size=4),
)  # fmt: skip
def test_whatever_expires_when_each_clock_of_the_history_can_be_asked_for(
    steps: list[int], keep: int, history: int, checks: list[int]
) -> None:
    """A store lives on: a version, a run of the expiry, time that passes."""
    versions: list[Kept] = []
    now = 0
    for number, step in enumerate(steps, start=1):
        before = versions[-1].clock if versions else 0
        clock = now + step
        if versions:
            versions[-1] = Kept(**{**versions[-1].__dict__, "superseded": clock})
        versions.append(Kept(number, "line", clock, None, history_from=before))
        now = clock + (checks[number % len(checks)] if checks else 0)
        versions = after(versions, expire(versions, now=now, keep=keep, history=history))
        assert versions[-1].published
        for asked in range(max(0, now - history), now):
            assert answerable(versions, asked), (asked, now)
    assert len([v for v in versions if v.published]) <= keep + 2 * 8 + 4


def after(versions: list[Kept], expiry: Expiry) -> list[Kept]:
    found = []
    for one in versions:
        known: dict[str, Any] = dict(one.__dict__)
        if one.version in expiry.tables:
            known["published"] = False
        if one.version in expiry.histories:
            known["history_from"] = None
        found.append(Kept(**known))
    return [one for one in found if one.published or one.history_from is not None]


def answerable(versions: list[Kept], clock: int) -> bool:
    """As `history_since` finds it."""
    reached = versions[-1].clock
    for one in reversed(versions):
        if one.published and reached <= one.clock <= clock:
            return True
        if one.history_from is None:
            return False
        reached = one.history_from
        if reached == 0:
            return True
    return False


def test_files_of_an_expired_version_become_garbage_unless_another_version_has_them(
    shared_database: Database,
) -> None:
    lane = Lane.made(shared_database, retention="consumed")
    lane.append({"0.0": 5})
    store = Store.made(lane, keep_versions=1)
    kept = [AdjunctFile("kept.parquet", 1, 1, 0, 0), AdjunctFile("lost.parquet", 1, 1, 0, 0)]
    first = store.publish(store.begun(), files=kept)
    lane.append({"0.0": 5})
    store.publish(store.begun(), kept=kept[:1], files=[])
    group = Group.made(lane)
    batch = group.reader().must_open()
    run(
        shared_database,
        """INSERT INTO adjunct_pin (group_id, batch_id, store_id, cut, clock, version, pinned_at)
        VALUES (:g, :b, :a, '{}', 1, 1, now())""",
        g=group.group_id, b=batch.batch_id, a=store.row.store_id,
    )  # fmt: skip
    run(
        shared_database,
        "UPDATE adjunct_version SET superseded_at = now() - interval '1 h' WHERE store_id = :a "
        "AND superseded_at IS NOT NULL",
        a=store.row.store_id,
    )
    assert expire_versions(shared_database) == []
    with raises(f"batch_open {group.name} {store.name} committed"):
        delete_store(shared_database, store.name, request_id=unique("delete"))
    run(shared_database, "UPDATE reader_batch SET state = 'committed', ended_at = now() "
        "WHERE group_id = :g", g=group.group_id)  # fmt: skip
    assert expire_versions(shared_database) == [{"adjunct_store": store.name, "expired": [1]}]
    dead = store.rows("SELECT path FROM garbage WHERE path LIKE '%.parquet' AND :a = :a")
    assert "lost.parquet" in [row.path for row in dead]
    assert "kept.parquet" not in [row.path for row in dead]
    assert first.version not in [
        row.version
        for row in store.rows(
            "SELECT version FROM adjunct_version WHERE store_id = :a AND state = 'published'"
        )
    ]
    run(shared_database, "UPDATE adjunct_version SET ended_at = '-infinity' WHERE store_id = :a "
        "AND state = 'expired'", a=store.row.store_id)  # fmt: skip
    known = "SELECT version FROM adjunct_version WHERE store_id = :a ORDER BY version"
    prune_versions(shared_database, 1.0)
    assert [row.version for row in store.rows(known)] == [1, 2]  # the batch's row names it
    run(shared_database, "DELETE FROM adjunct_pin WHERE store_id = :a", a=store.row.store_id)
    prune_versions(shared_database, 1.0)
    assert [row.version for row in store.rows(known)] == [2]
