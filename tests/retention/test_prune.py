"""Metadata shrinks, and nothing that can be asked for changes."""

import json
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.upkeep import run as upkeep
from tests.chance import cases, random_for
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.watching import count_statements
from tests.world.groups import Group
from tests.world.jobs import main
from tests.world.retention import consume
from tests.world.streams import Lane, rows, run, unique
from weir.controller.cuts import load_cuts
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.history.job_runs import RunId, read_outcome
from weir.model.key_space import KeyRange
from weir.reader_groups.groups.lifecycle import fork_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.retention.capture import capture
from weir.retention.prune import prune
from weir.retention.release import release
from weir.retention.run import retain
from weir.warehouse.marker import MARKER


@pytest.fixture
def lane(database: Database) -> Lane:
    return Lane.made(database, retention="consumed")


def counts(lane: Lane) -> dict[str, int]:
    return {
        table: lane.value(f"SELECT count(*) FROM {table} WHERE stream_id = :s")
        for table in ("segment", "epoch", "time_index", "stream_cut", "retention_decision")
    }


def answers(lane: Lane, *groups: Group) -> dict[str, Any]:
    """What can still be asked for: sizes from every position to the tail, lags, segments."""
    name = str(lane.name)
    cuts = [lane.head(), lane.tail(), *[group.cut(lane) for group in groups]]
    found: dict[str, Any] = {}
    for cut in map(json.dumps, cuts):
        sizes = lane.rows("SELECT * FROM size_till(:n, CAST(:c AS jsonb))", n=name, c=cut)
        found[cut] = [tuple(row) for row in sizes]
    for what, sql in {
        "between": "SELECT segment, from_offset, to_offset FROM segments_between(:n)",
        "active": "SELECT segment, key_low, key_high, first_offset FROM active_segments(:n)",
        "stream": "SELECT head, tail, events_appended, events_retained, bytes_retained "
                  "FROM streams WHERE stream = :n",
        "lag": "SELECT reader_group, unread_events, unread_bytes, lost_events, lag FROM lag "
               "WHERE stream = :n ORDER BY 1",
        "truncated": "SELECT events_till, size_till FROM truncation_record WHERE stream = :n",
        "now": "SELECT segments, splits, merges FROM current_epoch_record WHERE stream = :n",
        "start": "SELECT stream_cut_at(:n, '2000-01-01')",
    }.items():  # fmt: skip
        found[what] = [tuple(r) for r in lane.rows(sql, n=name)]
    return found


def test_where_nothing_is_old_one_statement_says_so(lane: Lane) -> None:
    group = Group.made(lane)
    for _ in range(3):
        lane.append(dict.fromkeys(lane.active(), 3))
        lane.scale(lane.active()[0])
    consume(group)
    retain(lane.database)
    counted = count_statements(lane.database)
    assert prune(lane.database, 3600.0) == []
    assert len(counted) == 1
    assert prune(lane.database, 0.0) != []
    del counted[:]
    assert prune(lane.database, 0.0) == []
    assert len(counted) == 1


def test_a_decision_that_lost_events_stays_and_its_stream_is_not_looked_at_for_it(
    lane: Lane,
) -> None:
    group = Group.made(lane, release="manual")
    lane.append({"0.0": 3})
    release(lane.database, group.name, "tail", request_id=unique("release"))
    while retain(lane.database):
        pass
    assert counts(lane)["retention_decision"] > 1
    prune(lane.database, 0.0)
    sent = count_statements(lane.database)
    assert prune(lane.database, 0.0) == []
    assert len(sent) == 1
    found = lane.rows("SELECT lost FROM retention_decision WHERE stream_id = :s AND lost <> '{}'")
    assert [row.lost for row in found] == [{group.name: 3}]


def test_never_an_epoch_in_which_an_open_transaction_began(lane: Lane) -> None:
    late = lane.opened("late")
    group = Group.made(lane)
    lane.append({"0.0": 3, "1.0": 1})
    lane.scale("0.0")
    lane.append(dict.fromkeys(lane.active(), 1))
    consume(group)
    retain(lane.database)
    prune(lane.database, 0.0)
    assert lane.value("SELECT min(epoch) FROM epoch WHERE stream_id = :s") == 0
    done = lane.commit(late, {"0.0": 5})
    assert done.rolled
    assert sum(end - start for _, start, end in group.reader().read_all()) == 5
    group.checkpoint()
    retain(lane.database)
    prune(lane.database, 0.0)
    assert lane.value("SELECT min(epoch) FROM epoch WHERE stream_id = :s") == 3
    committed = lane.commit(late, {"0.0": 5})
    assert committed.repeated, "a transaction is kept as long as its stream"


def test_a_place_whose_metadata_was_pruned_is_said_to_be_truncated(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3, "1.0": 1})
    group.reader().read_all()
    group.checkpoint("early")
    lane.scale("0.0")
    lane.append({"1.0": 2, "2.1": 3})
    consume(group)
    retain(lane.database)
    assert prune(lane.database, 0.0) != []
    assert "0.0" not in lane.sizes()

    def reset(to: str) -> Any:
        return reset_reader_group(
            group.database, group.name, to, allow_repeat=True, request_id=unique("reset")
        )

    before = group.cut()
    for place in ("start", "checkpoint early"):
        with raises("events_truncated 0.0 {"):
            reset(place)
    with raises("events_truncated 0.0 {"):
        fork_reader_group(
            group.database, group.name, unique("fork"), at="checkpoint early",
            request_id=unique("fork"),
        )  # fmt: skip
    assert group.cut() == before
    assert reset("head")["position"] == {str(lane.name): lane.head()}


def test_a_time_whose_epoch_was_pruned_is_where_the_head_and_the_commits_of_then_are(
    lane: Lane,
) -> None:
    """A segment of the head may be older than the first epoch that is left."""
    lane.append({"1.0": 2})
    between = lane.value("SELECT clock_time(last_clock) FROM stream WHERE stream_id = :s")
    lane.append({"1.0": 1})
    lane.scale("0.0", "1.0", ranges=[KeyRange(0.0, 0.25), KeyRange(0.25, 1.0)])
    lane.truncate("1.0=0, 2.1=0, 3.1=future")
    assert prune(lane.database, 0.0) != []
    assert counts(lane)["epoch"] == 1
    sql = "SELECT stream_cut_at(:n, :at)"
    assert lane.value(sql, n=str(lane.name), at="2000-01-01") == lane.head()
    then = {"1.0": 2, "2.1": 0, "3.1": "future"}
    assert lane.value(sql, n=str(lane.name), at=between) == then


@pytest.mark.parametrize("segment", ["4.0", "0.1", "2.2"])
def test_a_segment_that_never_existed_was_not_truncated(lane: Lane, segment: str) -> None:
    """Its number was not given out, or its epoch is known and has no such segment."""
    lane.append({"0.0": 3})
    lane.scale("0.0")
    lane.truncate("1.0=0, 2.1=0, 3.1=0")
    assert prune(lane.database, 0.0) != []
    cut = {segment: 0, "1.0": 0}
    with raises(f"cut_invalid {segment} because"):
        lane.database.transaction(lambda c: load_cuts(c, lane.stream_id, cut))


def by_hand(lane: Lane, cut: dict[str, Any]) -> None:
    """Truncate there, if that is not behind the head."""
    if lane.value(
        "SELECT at_or_before(:s, head, CAST(:c AS jsonb)) FROM stream WHERE stream_id = :s",
        c=json.dumps(cut),
    ):
        lane.truncate(json.dumps(cut))


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(12)))
def test_nothing_that_can_be_asked_for_changes(database: Database, case: int) -> None:
    random = random_for(case)
    lane = Lane.made(database, segments=random.randint(1, 3), retention="consumed")
    groups = [Group.made(lane, on_gap="skip", subscriber=i < 2) for i in range(3)]
    pruned = 0
    for _ in range(25):
        active = lane.active()
        what = random.random()
        if what < 0.35:
            lane.append({name: random.randint(1, 4) for name in random.sample(active, 1)})
        elif what < 0.55:
            first = random.randrange(len(active))
            block = active[first : first + random.randint(1, 2)]
            lane.scale(*block, parts=random.randint(1, 2))
        elif what < 0.75:
            group = random.choice(groups)
            reader = group.reader(f"reader {random.randint(1, 2)}")
            if (batch := reader.open(budget=random.randint(1, 8))) is not None:
                reader.commit(batch)
            reader.leave()
            group.checkpoint()
        elif what < 0.85:
            capture(database)
        elif what < 0.9:
            by_hand(lane, groups[0].cut())
        retain(database)
        before = answers(lane, *groups)
        pruned += len(prune(database, 0.0))
        assert answers(lane, *groups) == before
        for group in groups:
            group.check_positions()
    lane.append({lane.active()[0]: 1})
    lane.scale(lane.active()[0])  # there is something to prune, whatever happened before
    for group in groups:
        consume(group)
    tail = lane.tail()
    retain(database, [lane.name])
    assert lane.head() == tail
    pruned += len(prune(database, 0.0))
    left = counts(lane)
    assert left["segment"] == len(tail)
    assert left["epoch"] <= 1 + lane.value("SELECT current_epoch FROM stream WHERE stream_id = :s")
    assert pruned > 0
    assert rows(database, "SELECT * FROM data_file") == []


def test_a_stream_that_can_not_be_pruned_stops_nothing_else(
    lane: Lane, test_database: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine = Lane.made(lane.database, retention="consumed")
    for one in (lane, fine):
        group = Group.made(one)
        one.append({"0.0": 3})
        one.scale("0.0")
        consume(group)
    retain(lane.database)
    run(
        lane.database,
        """UPDATE reader_group_stream SET end_cut = '{"9.9": 0}' WHERE stream_id = :s""",
        s=lane.stream_id,
    )
    broken, pruned = prune(lane.database, 0.0)
    assert broken["stream"] == str(lane.name)
    assert str(broken["error"]).startswith(f"stream {lane.name}: the stream has no segment 9.9")
    assert (pruned["stream"], pruned["segments"]) == (str(fine.name), 1)
    # The job does the rest, and says it.
    for name, value in {
        "DATABASE": test_database.dsn, "WAREHOUSE": str(tmp_path), "METADATA_HISTORY": "0",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"WEIR_{name}", value)
    (tmp_path / MARKER).write_text(read_installation(lane.database).installation_id)
    who = RunId("weir_upkeep", "r", "t")
    assert main("upkeep", upkeep, ["--run", json.dumps(who.__dict__), "--arguments", "{}"]) == 1
    state, report, sentence, retryable = read_outcome(lane.database, who)
    assert (state, retryable) == ("failed", True)
    assert str(broken["error"]) in str(sentence)
    assert report is not None
    assert report["pruned"] == [broken]
    assert report["pruned_runs"] == 0


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(8)))
def test_recorded_cuts_that_the_head_has_passed_are_forgotten_and_no_others(
    database: Database, case: int
) -> None:
    random = random_for(case)
    lane = Lane.made(database, segments=3, retention="consumed")
    capture(database)
    for _ in range(random.randint(0, 12)):
        lane.append({random.choice(lane.active()): random.randint(1, 3)})
        if random.random() < 0.2:
            lane.scale(random.choice(lane.active()))
        capture(database)
    recorded = lane.rows("SELECT recorded_at, cut FROM stream_cut WHERE stream_id = :s")
    # At a record, or with some segments ahead of it and some behind.
    cut = dict(random.choice(recorded).cut)
    tail = lane.tail()
    if random.random() < 0.6 and set(cut) == set(tail):
        cut = {name: random.randint(0, tail[name]) for name in tail}
    by_hand(lane, cut)
    # Something old below the head, so that it is looked at.
    run(
        database,
        """INSERT INTO retention_decision (stream_id, stream_name, decided_at, rule, reason, head,
            held_by, events, bytes)
        SELECT :s, :name, clock_timestamp() - i * interval '1 day', 'x', 'x', '{}', '{}', 0, 0
        FROM generate_series(1, 2) i""",
        s=lane.stream_id,
        name=str(lane.name),
    )
    ahead = lane.rows(
        """SELECT r.recorded_at FROM stream_cut r JOIN stream s USING (stream_id)
        WHERE stream_id = :s AND NOT at_or_before(:s, r.cut, s.head)"""
    )
    assert [report.get("error") for report in prune(database, 0.0)] == [None]
    left = lane.rows("SELECT recorded_at FROM stream_cut WHERE stream_id = :s")
    assert {row.recorded_at for row in left} == {row.recorded_at for row in ahead}
