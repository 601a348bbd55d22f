"""Why something is still there, and how long still."""

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from tests.raises import raises
from tests.retention.placing import let_release
from tests.world.groups import Group
from tests.world.retention import DAY, consume, pass_time
from tests.world.streams import Lane, rows, run, unique
from weir.controller.seal import seal_stream
from weir.controller.transactions import abort
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.retention.capture import capture
from weir.retention.delete_stream import delete_stream
from weir.retention.release import read_alerts
from weir.retention.run import retain

HOUR = 3600


@pytest.fixture
def lane(database: Database) -> Lane:
    return Lane.made(database, retention="consumed")


def why(lane: Lane) -> dict[tuple[str, int], str]:
    found = lane.rows("SELECT * FROM why_kept(:n)", n=str(lane.name))
    return {(row.segment, row.start_offset): row.why for row in found}


def subscriber(group: Group) -> Any:
    [row] = rows(group.database, "SELECT * FROM subscribers WHERE reader_group = :n", n=group.name)
    return row


def alerts(lane: Lane) -> list[str]:
    return read_alerts(lane.database, [str(lane.name)])


def limit(lane: Lane, **limits: int | None) -> None:
    changes = {f"retain_{name}": value for name, value in limits.items()}
    update_stream(lane.database, lane.name, changes, request_id=unique("limit"))


def test_each_file_says_who_needs_it(lane: Lane) -> None:
    lane.append({"0.0": [2, 3], "1.0": 4})
    assert set(why(lane).values()) == {
        "no rule truncates it: there is no subscriber that has not timed out, and no maximum"
    }
    slow, fast = Group.made(lane, release="manual"), Group.made(lane)
    consume(fast)
    let_release(slow, {"0.0": 2, "1.0": 3})
    held = f"subscriber {slow.name} has not released it"
    assert why(lane) == {
        ("0.0", 0): "the next run of retention truncates it",
        ("0.0", 2): held,
        ("1.0", 0): held,
    }
    limit(lane, min_age=HOUR)
    assert why(lane)["0.0", 0] == "it is within the minimum age"
    assert why(lane)["0.0", 2] == f"it is within the minimum age; {held}"
    pass_time(lane, 2 * HOUR)
    capture(lane.database)
    assert why(lane)["0.0", 0] == "it is within the minimum age", "no record is as old as that"
    pass_time(lane, 2 * HOUR)
    assert why(lane)["0.0", 0] == "the next run of retention truncates it"


def test_what_is_garbage_says_what_it_waits_for(lane: Lane) -> None:
    lane.append({"0.0": [2, 3]})
    group = Group.made(lane)
    reader = group.reader()
    batch = reader.must_open()
    lane.truncate("0.0=2, 1.0=0")
    [(path, bytes_, said)] = [
        (row.file, row.bytes, row.why)
        for row in lane.rows("SELECT * FROM why_kept(:n) WHERE segment IS NULL", n=str(lane.name))
    ]
    assert bytes_ == 20
    assert f"(truncated) and may be needed by batch 1 of group {group.name}" in said
    reader.commit(batch)
    [row] = lane.rows("SELECT * FROM why_kept(:n, :path)", n=str(lane.name), path=path)
    assert row.why.endswith("(truncated) and is swept after the grace period")


def test_what_a_maximum_takes_is_not_said_to_be_held(lane: Lane) -> None:
    lane.append({"0.0": 3})
    slow = Group.made(lane, release="manual")
    let_release(slow, {"0.0": 0, "1.0": 0})
    held = f"subscriber {slow.name} has not released it"
    limit(lane, max_age=HOUR)
    capture(lane.database)
    assert why(lane) == {("0.0", 0): held}
    pass_time(lane, 2 * HOUR)
    next_run = "the next run of retention truncates it, because it exceeds a maximum"
    assert why(lane) == {("0.0", 0): f"{next_run}, although {held}"}
    limit(lane, max_age=5 * HOUR)
    update_stream(lane.database, lane.name, {"retention": "age"}, request_id=unique("off"))
    assert why(lane) == {("0.0", 0): "it is within the limits"}


def test_any_file_is_explained_by_its_path_alone(lane: Lane) -> None:
    def said(path: str) -> str:
        [row] = lane.rows("SELECT * FROM why_kept(NULL, :path)", path=path)
        return str(row.why)

    lane.append({"0.0": 3})
    [file] = lane.files()
    assert said(file.path) == why(lane)["0.0", 0]
    attempt = lane.opened(source="dag/run/task")
    written = f"{attempt.folder}_weir_segment=0/_weir_task=0/part.parquet"
    assert "of dag/run/task writes it, and has not committed yet" in said(written)
    abort(lane.database, attempt)
    assert said(written).startswith("it is garbage (aborted)")
    for unknown in (f"{lane.stream_id}/what", "what"):
        assert said(unknown).startswith("the database records no file of this path; give it as in")
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    assert said(file.path) == "the stream is sealed, which is kept as it is until it is deleted"
    delete_stream(lane.database, lane.name, request_id=unique("delete"))
    assert said(file.path) == "it is garbage (deleted) and is swept after the grace period"


def test_a_file_may_be_named_as_the_file_system_prints_it(lane: Lane) -> None:
    other = Lane.made(lane.database, retention="consumed")
    lane.append({"0.0": [2, 3]})
    run(
        lane.database,
        "INSERT INTO garbage (root, path, reason) VALUES ('/out', 'd/b=1/a=1/', 'fenced')",
    )

    def said(path: str, stream: Lane | None = None) -> list[tuple[str, str]]:
        name = str(stream.name) if stream else None
        found = lane.rows("SELECT * FROM why_kept(:n, :path)", n=name, path=path)
        return [(row.file, row.why) for row in found]

    file, second = sorted(one.path for one in lane.files())
    [(_, kept)] = said(file)
    for path in (
        f"/srv/.weir/warehouse/{file}", f"file:///srv/warehouse/{file}", f"./{file}", f"{file}/",
        f"s3a://bucket/warehouse/{file}",
    ):  # fmt: skip
        assert said(path) == said(path, lane) == [(file, kept)]
        assert said(path, other) == [(file, f"of stream {lane.name}: {kept}")]
    folder = f"/srv/warehouse/{lane.stream_id}/_weir_tx=1"
    assert sorted(said(folder)) == [(file, kept), (second, kept)], "a folder is all that is in it"
    garbage = (
        "/out/d/b=1/a=1/",
        "it is garbage (fenced) and is swept after the grace period",
    )
    for path in (
        "/out/d/b=1/a=1/part.parquet", "file:/out/d/b=1/a=1", "/out/d",
        "d/b=1/a=1/", "./d/b=1/a=1/part.parquet",
    ):  # fmt: skip
        assert said(path) == said(path, lane) == [garbage]
    for path in ("", "/", "/out/d/batch=2", "/out/d/b=1/a=11", f"{file}2", "9" * 30):
        [(_, unknown)] = said(path)
        assert unknown.startswith("the database records no file of this path; give it as in")
    with raises("argument_missing stream"):
        lane.rows("SELECT * FROM why_kept(NULL, NULL)")


def test_the_status_of_a_stream_is_its_last_decision(lane: Lane) -> None:
    group = Group.made(lane)
    retain(lane.database)
    [row] = lane.rows("SELECT * FROM retention_status")
    assert (row.stream, row.rule, row.held_by) == (str(lane.name), "nothing_consumed", [group.name])
    assert row.due_at is None
    assert row.checked_at is not None


def test_a_stream_at_rest_is_looked_at_again_when_a_warning_is_due(lane: Lane) -> None:
    group = Group.made(lane)
    limit(lane, max_age=10 * 86400)
    lane.append({"0.0": 3})
    capture(lane.database)
    retain(lane.database)
    assert (alerts(lane), retain(lane.database)) == ([], [])
    pass_time(lane, 7 * 86400)
    assert (alerts(lane), retain(lane.database)) == ([], []), "two days before it is a fifth"
    pass_time(lane, 86400 + 60)
    assert [one["stream"] for one in retain(lane.database)] == [str(lane.name)]
    assert [a for a in alerts(lane) if f"subscriber {group.name} has not released" in a]


def test_a_group_that_keeps_pace_is_never_overtaken(lane: Lane) -> None:
    group = Group.made(lane)
    limit(lane, max_age=4 * 86400, max_bytes=1000)
    for _ in range(4):
        lane.append({"0.0": 10, "1.0": 5})
        capture(lane.database)
        group.reader().read_all()
        checkpoint_all(lane.database)
        pass_time(lane, 86400)
        run(
            lane.database,
            "UPDATE checkpoint SET created_at = created_at - interval '1 day'",
        )
    lane.append({"0.0": 10, "1.0": 5})
    found = subscriber(group)
    assert found.held_events == 15
    assert found.loses_after is not None
    assert found.loses_after - found.active_at > timedelta(days=4)
    assert alerts(lane) == []


def test_a_group_that_almost_keeps_pace_is_overtaken_so_late_that_it_is_never(lane: Lane) -> None:
    group = Group.made(lane)
    limit(lane, max_age=30 * 86400)
    lane.append({"0.0": 1})
    reader = group.reader()
    pass_time(lane, 20 * 86400)
    run(
        lane.database,
        "UPDATE reader_group SET created_at = created_at - interval '20 days' WHERE group_id = :g",
        g=group.group_id,
    )
    reader.commit(reader.must_open())
    group.checkpoint()
    lane.append({"0.0": 1})
    capture(lane.database)
    assert subscriber(group).loses_after is None
    assert [report["rule"] for report in retain(lane.database, [lane.name])] == ["consumed"]


def test_a_stream_that_grows_overtakes_by_size_the_sooner_the_faster(lane: Lane) -> None:
    group = Group.made(lane)
    limit(lane, max_bytes=1000)
    run(lane.database, "UPDATE stream SET created_at = created_at - interval '1 day'")
    lane.append({"0.0": 10})
    capture(lane.database)
    pass_time(lane, 86400)
    lane.append({"0.0": 20})  # 200 bytes a day, and 700 left
    [[left]] = rows(lane.database, "SELECT loses_after - clock_timestamp() FROM subscribers")
    assert timedelta(days=3) < left < timedelta(days=4)
    lane.append({"0.0": 60})  # now 800 a day, and 100 left
    [[left]] = rows(lane.database, "SELECT loses_after - clock_timestamp() FROM subscribers")
    assert left < timedelta(hours=4)
    assert group.name in alerts(lane)[0]
    lane.append({"0.0": 60})
    [[left]] = rows(lane.database, "SELECT loses_after - clock_timestamp() FROM subscribers")
    assert left <= timedelta(0)


def test_a_warning_says_when_a_decision_will_lose_something_whatever_rules(lane: Lane) -> None:
    """Beside the decisions: none before that time loses anything, and the next one does."""
    lost_at_once = lost_later = never = 0
    for _ in range(5):
        lane.append({"0.0": 1})
        capture(lane.database)
        pass_time(lane, 2 * DAY)
    group = Group.made(lane, start="0.0=1, 1.0=0")
    for retention, min_age, max_age, min_bytes, max_bytes in product(
        ("consumed", "age", "size"), (None, 5, 20), (None, 3, 30), (None, 25, 35), (None, 30, 45)
    ):
        if (min_age or 0) > (max_age or 99) or (min_bytes or 0) > (max_bytes or 99):
            continue
        if {"age": max_age, "size": max_bytes}.get(retention, 1) is None:
            continue
        limits = {"a": min_age, "b": max_age, "c": min_bytes, "d": max_bytes}
        run(
            lane.database,
            """UPDATE stream SET retention = :retention, retain_min_age = 86400 * :a,
               retain_max_age = 86400 * :b, retain_min_bytes = :c, retain_max_bytes = :d""",
            retention=retention, **limits,
        )  # fmt: skip
        at, now = subscriber(group).loses_after, moment(lane)
        if at is None:
            pass_time(lane, 100 * DAY)
            assert loses(lane, group) is False, (retention, limits)
            pass_time(lane, -100 * DAY)
            never += 1
        elif at <= now:
            assert loses(lane, group), (retention, limits)
            lost_at_once += 1
        else:
            left = (at - now).total_seconds()
            pass_time(lane, left - 60)
            assert not loses(lane, group), (retention, limits)
            pass_time(lane, 120)
            assert loses(lane, group), (retention, limits)
            pass_time(lane, -left - 60)
            lost_later += 1
    assert min(lost_at_once, lost_later, never) > 10


def moment(lane: Lane) -> datetime:
    [[now]] = lane.rows("SELECT clock_timestamp()")
    return now  # type: ignore[no-any-return]


def loses(lane: Lane, group: Group) -> bool:
    [report] = retain(lane.database, [lane.name], dry_run=True)
    return group.name in report["lost"]


def test_alerts_name_the_timed_out_and_what_was_lost(lane: Lane) -> None:
    inactive, living = Group.made(lane, time_out=HOUR), Group.made(lane)
    lane.append({"0.0": 3})
    consume(living)
    assert alerts(lane) == []
    pass_time(lane, 2 * HOUR)
    assert [a for a in alerts(lane) if f"{inactive.name} of stream" in a]
    retain(lane.database, [])
    assert subscriber(inactive).timed_out is False, (
        "what it had not read is truncated: nothing is unread"
    )
    said = " ".join(alerts(lane))
    assert f"subscriber {inactive.name} lost 3 unread events of stream {lane.name}" in said
