"""A version is built by one builder at a time, from where the last one ends, and published once."""

import pytest
from sqlalchemy import Connection

from tests.raises import raises
from tests.watching import count_statements
from tests.world.adjunct import LEASE, Store
from tests.world.streams import Lane, at_once, rows, unique, while_held
from weir.adjunct.builds import Build, Running, stores_to_build
from weir.adjunct.publication import fail_build, renew_build
from weir.adjunct.stores import delete_store, lock_store
from weir.adjunct.versions import AdjunctVersion
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.retention.delete_stream import delete_stream


@pytest.fixture
def lane(shared_database: Database) -> Lane:
    made = Lane.made(shared_database, segments=2, retention="consumed")
    made.append({"0.0": 5, "1.0": 5})
    return made


def test_the_first_version_reads_from_the_head_and_the_next_from_the_cut_of_the_first(
    lane: Lane,
) -> None:
    store = Store.made(lane)
    first = store.begun()
    assert (first.kind, first.from_cut, first.cut) == ("rebuilt", lane.head(), lane.tail())
    assert store.newest() is None
    published = store.publish(first)
    assert store.newest() == published
    assert store.begin() == published
    lane.append({"0.0": 1})
    second = store.begun()
    assert (second.kind, second.base, second.from_cut) == ("extended", published, first.cut)
    assert store.publish(second).version == 2


def test_an_empty_stream_has_an_empty_version(shared_database: Database) -> None:
    store = Store.made(Lane.made(shared_database, retention="consumed"))
    version = store.publish(store.begun(), files=[])
    assert (version.rows, version.files) == (0, ())
    assert store.begin() == version


def test_while_one_builds_no_other_does_and_who_continues_after_it_has_its_cut(lane: Lane) -> None:
    store = Store.made(lane)
    first = store.begun("a")
    lane.append({"0.0": 1})
    assert store.begin("b") == Running(1, "a")
    store.lapse()
    again = store.begun("b")
    assert (again.version, again.attempt, again.cut) == (1, 2, first.cut)
    assert again.folder != first.folder
    with raises("attempt_fenced adjunct"):
        store.database.transaction(lambda c: renew_build(c, first, LEASE))
    with raises("attempt_fenced adjunct"):
        store.publish(first)
    published = store.publish(again)
    assert store.publish(again) == published
    found = store.rows("SELECT reason FROM garbage WHERE path = :p", p=first.folder)
    assert [row.reason for row in found] == ["fenced"]


def test_whoever_changes_what_a_store_keeps_waits_for_the_other(lane: Lane) -> None:
    store_id = Store.made(lane).row.store_id

    def change(connection: Connection) -> str:
        lock_store(connection, store_id)
        return "done"

    done = while_held(lane.database, change, lambda: lane.database.transaction(change))
    assert done == ("done", "done")


def test_of_many_who_begin_at_once_one_builds(lane: Lane) -> None:
    store = Store.made(lane)
    begun = at_once(*(lambda i=i: store.begin(f"builder {i}") for i in range(4)))
    assert sum(isinstance(one, Build) for one in begun) == 1
    assert sum(isinstance(one, Running) for one in begun) == 3


def test_a_scale_without_events_moves_the_cut_of_the_newest_version(lane: Lane) -> None:
    store = Store.made(lane)
    first = store.build()
    lane.scale("0.0", "1.0")
    moved = store.begin()
    assert isinstance(moved, AdjunctVersion)
    assert (moved.version, moved.cut) == (1, lane.tail())
    assert moved.clock > first.clock
    assert store.rows("SELECT count(*) FROM adjunct_version WHERE store_id = :a") == [(1,)]
    [[position]] = lane.rows("SELECT position FROM lag WHERE reader_group = :g", g=store.name)
    assert position == lane.tail()


def test_a_version_complete_to_an_older_cut_is_found_and_none_is_built(lane: Lane) -> None:
    store = Store.made(lane)
    cut = lane.tail()
    first = store.build()
    lane.append({"0.0": 1, "1.0": 1})
    second = store.build()
    assert store.begin(cut=cut) == first
    assert store.begin(cut={"0.0": 6, "1.0": 5}) == second
    lane.append({"0.0": 1, "1.0": 1})
    build = store.begun(cut={"0.0": 7, "1.0": 6}, clock=second.clock + 1)
    assert (build.cut, build.clock) == ({"0.0": 7, "1.0": 6}, second.clock + 1)


def test_among_many_versions_few_are_looked_at_for_the_oldest_that_is_complete(lane: Lane) -> None:
    store = Store.made(lane)
    versions = [store.build()]
    for _ in range(20):
        lane.append({"0.0": 1})
        versions.append(store.build())
    counted = count_statements(store.database)
    for version in versions:
        assert store.find(version.cut) == version
    assert len(counted) <= 12 * len(versions)
    assert store.find({"0.0": 1_000, "1.0": 0}) is None


def test_another_value_converts_the_last_version_and_another_key_begins_at_the_head(
    lane: Lane,
) -> None:
    store = Store.made(lane)
    first = store.build()
    store.update(value="upper(key)")
    converted = store.begun()
    assert (converted.kind, converted.base, converted.cut) == ("converted", first, first.cut)
    store.update(key="upper(key)")  # while it is built: it is abandoned
    with raises("attempt_fenced adjunct"):
        lane.append({"0.0": 1})
        rebuilt = store.begun()
        store.publish(converted)
    assert (rebuilt.version, rebuilt.kind, rebuilt.base) == (3, "rebuilt", None)
    assert rebuilt.from_cut == lane.head()
    assert store.publish(rebuilt).definition == 3


def test_once_a_changed_definition_is_built_no_batch_finds_an_older_version(lane: Lane) -> None:
    store = Store.made(lane)
    first = store.build()
    store.update(value="upper(key)")
    assert store.find(lane.tail()) == first  # until the next build
    second = store.build()
    assert second.cut == first.cut
    assert store.find(lane.tail()) == second
    lane.append({"0.0": 1})
    store.build()
    assert store.find(first.cut) == second


def test_a_changed_definition_is_built_for_no_older_cut_than_that_of_the_last_version(
    lane: Lane,
) -> None:
    store = Store.made(lane)
    cut = lane.tail()
    lane.append({"0.0": 1})
    first = store.build()
    store.update(value="upper(key)")
    build = store.begun(cut=cut)
    assert (build.kind, build.cut, build.clock) == ("converted", first.cut, first.clock)


def test_other_code_of_a_function_converts_anew_and_rebuilds_if_it_makes_keys(lane: Lane) -> None:
    store = Store.made(lane, value="f:values", value_columns="a INT")
    store.build(code="one")
    assert isinstance(store.begin(code="one"), AdjunctVersion)
    assert store.begun(code="two").kind == "converted"
    keyed = Store.made(lane, key="f:keys", key_type="STRING")
    keyed.build(code="one")
    assert keyed.begun(code="two").kind == "rebuilt"


def test_a_gap_is_an_error_or_a_new_beginning_that_says_what_is_missing(lane: Lane) -> None:
    store = Store.made(lane)
    store.build()
    lane.append({"0.0": 4, "1.0": 1})
    lane.truncate("0.0=7, 1.0=5")
    with raises("adjunct_gap 2"):
        store.begin()
    store.update(on_gap="rebuild")
    build = store.begun()
    assert (build.kind, build.from_cut) == ("rebuilt", {"0.0": 7, "1.0": 5})
    store.publish(build)
    [row] = store.rows(
        """SELECT lost_events, complete_since FROM adjunct_version
        WHERE store_id = :a AND version = :v""", v=build.version,
    )  # fmt: skip
    assert row.lost_events == 2
    assert row.complete_since == build.clock
    lane.append({"0.0": 1})
    store.build()
    [[since]] = store.rows(
        "SELECT max(complete_since) FROM adjunct_version WHERE store_id = :a AND version > 2"
    )
    assert since == build.clock


def test_a_gap_before_the_first_version_is_an_error_or_is_counted_in_it(lane: Lane) -> None:
    store = Store.made(lane)
    lane.append({"0.0": 4, "1.0": 1})
    lane.truncate("0.0=2, 1.0=0")
    with raises("adjunct_gap 2"):
        store.begin()
    store.update(on_gap="rebuild")
    build = store.begun()
    assert (build.kind, build.from_cut) == ("rebuilt", {"0.0": 2, "1.0": 0})
    store.lapse()
    again = store.begun("another")
    assert (again.version, again.attempt) == (build.version, 2), "nothing went since it began"
    lane.truncate("0.0=3, 1.0=0")
    store.lapse()
    anew = store.begun()
    assert (anew.version, anew.from_cut) == (build.version + 1, {"0.0": 3, "1.0": 0})
    store.publish(anew)
    assert store.rows(
        "SELECT lost_events FROM adjunct_version WHERE store_id = :a AND version = :v",
        v=anew.version,
    ) == [(3,)]  # fmt: skip


def test_a_store_of_which_nothing_went_before_its_first_version_has_lost_nothing(
    lane: Lane,
) -> None:
    lane.append({"0.0": 2})
    lane.truncate("0.0=1, 1.0=0")
    store = Store.made(lane)
    assert store.begun().from_cut == {"0.0": 1, "1.0": 0}


def test_a_gap_that_opens_while_a_version_is_built_ends_that_build(lane: Lane) -> None:
    store = Store.made(lane, on_gap="rebuild")
    store.build()
    lane.append({"0.0": 4})
    store.begun()
    store.lapse()
    lane.truncate("0.0=9, 1.0=5")
    again = store.begun()
    assert (again.version, again.kind) == (3, "rebuilt")


def test_a_deleted_stream_has_no_more_versions_and_keeps_those_it_has(lane: Lane) -> None:
    store = Store.made(lane)
    version = store.build()
    seal_stream(store.database, lane.name, request_id=unique("seal"))
    sealed = store.begin()
    assert isinstance(sealed, AdjunctVersion)
    assert sealed.files == version.files
    deleted = "SELECT stream_deleted FROM adjunct_stores WHERE adjunct_store = :n"
    assert rows(store.database, deleted, n=store.name) == [(False,)]
    delete_stream(store.database, lane.name, unread_too=True, request_id=unique("delete"))
    with raises(f"stream_deleted {lane.name}"):
        store.begin()
    assert store.newest() == sealed
    assert rows(store.database, deleted, n=store.name) == [(True,)]
    for clock, found in ((sealed.clock, sealed), (sealed.clock + 1, None)):
        assert store.find(sealed.cut, clock) == found
    store.update(keep_versions=7)  # which needs no stream
    delete_store(store.database, store.name, request_id=unique("delete"))
    assert not rows(store.database, "SELECT FROM adjunct_store WHERE name = :n", n=store.name)


def test_a_stream_that_scales_while_a_version_is_built_is_read_to_the_cut_and_then_from_it(
    lane: Lane,
) -> None:
    store = Store.made(lane)
    build = store.begun()
    lane.scale("0.0", "1.0")
    lane.append({lane.active()[0]: 2})
    first = store.publish(build)
    assert first.cut == {"0.0": 5, "1.0": 5}
    second = store.begun()
    assert (second.from_cut, second.cut) == (first.cut, lane.tail())


def test_stores_that_a_run_looks_at_are_those_whose_stream_or_definition_moved(
    lane: Lane,
) -> None:
    store, other = Store.made(lane), Store.made(lane)
    names = [store.name, other.name]

    def waiting() -> list[str]:
        return store.database.transaction(lambda c: stores_to_build(c, names))[0]

    assert waiting() == names
    store.build()
    assert waiting() == [other.name]
    build = other.begun()
    fail_build(other.database, other.name, build, "it failed")
    assert other.rows("SELECT error FROM adjunct_store WHERE store_id = :a") == [("it failed",)]
    assert other.begun("another builder").attempt == 2
    other.publish(other.begun("another builder"))
    assert other.rows("SELECT error FROM adjunct_store WHERE store_id = :a") == [(None,)]
    assert waiting() == []
    other.update(delete_when="key = 'x'")
    assert waiting() == [other.name]
    lane.append({"0.0": 1})
    assert waiting() == names


def test_history_is_that_of_the_versions_after_a_base(lane: Lane) -> None:
    store = Store.made(lane, history=3600)
    versions = [store.build()]
    for _ in range(3):
        lane.append({"0.0": 1})
        versions.append(store.build())
    last = versions[-1]
    for base in versions:
        found = store.history(last, base.clock)
        assert found.base == base
        assert len(found.files) == last.version - base.version
    between = store.history(last, versions[1].clock + 1)
    assert (between.base, len(between.files)) == (versions[1], 2)
    start = store.history(last, versions[0].clock - 1)
    assert (start.base, len(start.files)) == (None, 4)


def test_history_is_refused_where_a_changed_value_or_a_store_without_history_interrupts_it(
    lane: Lane,
) -> None:
    store = Store.made(lane, history=3600)
    first = store.build()
    store.update(value="upper(key)")
    second = store.build()
    assert store.history(second, second.clock).base == second
    with raises("adjunct_gap history"):
        store.history(second, first.clock - 1)
    store.update(history=None)
    lane.append({"0.0": 1})
    third = store.build()
    with raises("adjunct_gap history"):
        store.history(third, second.clock)


def test_a_cut_below_the_head_means_the_head(lane: Lane) -> None:
    lane.truncate("0.0=3, 1.0=5")
    store = Store.made(lane)
    build = store.begun(cut={"0.0": 1, "1.0": 0})
    assert (build.from_cut, build.cut) == (lane.head(), lane.head())
    assert store.publish(build, files=[]).rows == 0
    [event] = lane.rows("SELECT min(clock) FROM time_index WHERE stream_id = :s")
    assert build.clock < event[0] + 1


def test_what_may_have_killed_its_builder_is_built_last_and_rests_longer_each_time(
    database: Database,
) -> None:
    lane = Lane.made(database, segments=2)
    lane.append({"0.0": 5})
    stores = {Store.made(lane).name: number for number in range(3)}
    hostile, killed, harmless = (Store(database, name, lane) for name in stores)

    def order() -> list[int]:
        return [stores[one] for one in database.transaction(stores_to_build)[0]]

    assert order() == [0, 1, 2]
    hostile.begun("a")
    assert order() == [1, 2, 0], "its builder may be dead"
    hostile.lapse()
    assert order() == [1, 2, 0]
    killed.begun("a")
    killed.lapse()
    hostile.begun("b")
    hostile.lapse()
    assert order() == [2, 1], "it has died twice"
    assert (
        "a ended without a word while it built version 1 (1 times"
        in hostile.rows("SELECT error FROM adjunct_store WHERE store_id = :a")[0][0]
    )
    with_name = database.transaction(lambda c: stores_to_build(c, list(stores)))[0]
    assert [stores[one] for one in with_name] == [2, 1, 0], "somebody asks for it"
    hostile.lapse(300)
    assert order() == [2, 1, 0]
    hostile.begun("c")
    hostile.lapse(300)
    assert order() == [2, 1], "the pause grows"
    hostile.lapse(600)
    assert order() == [2, 1, 0]
    build = hostile.begun("d")
    fail_build(database, hostile.name, build, "a sentence")
    assert order() == [0, 2, 1], "it can say how it ends"
    harmless.build()
    assert order() == [0, 1]
    hostile.begun("e")
    hostile.lapse()
    hostile.begun("f")
    hostile.lapse()
    assert order() == [1]
    hostile.update(value="k")
    assert order() == [1, 0], "with another definition it may be harmless"
