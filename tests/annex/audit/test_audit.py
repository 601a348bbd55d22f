"""What happens in order is proven, and each fault that is planted is found by its name."""

import re
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

import weir
from tests.annex.audit.faults import FAULTS
from tests.annex.audit.world import World, read_some
from tests.raises import raises
from tests.rooms import LIBRARY, REPOSITORY
from tests.watching import count_statements
from tests.world.groups import Group
from tests.world.streams import Lane, at_once, rows, run, unique
from weir.annex.audit.run import ask, audit
from weir.annex.audit.sentences import SENTENCES, CounterExample
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.database.definitions import files
from weir.reader_groups.batches.history import prune_batches
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.retention.run import retain
from weir.settings import Settings

FUNCTIONS = {
    name for path in files(REPOSITORY / "sql", "functions")
    for name in re.findall(r"CREATE OR REPLACE FUNCTION \w+\.(\w+)", path.read_text())
}  # fmt: skip


def test_all_that_happens_in_order_is_proven(world: World) -> None:
    for everything in (True, False, False):
        done = audit(world.database, everything=everything)
        assert [one.what for one in done.counter_examples] == []
    assert {lost["reader_group"] for lost in done.lost} == {world.slow.name, world.store.name}
    assert sum(lost["events"] for lost in done.lost) == sum(
        group["lost"] for row in world.lane.rows(
            "SELECT subscribers FROM truncations WHERE stream = :n", n=str(world.lane.name))
        for group in row.subscribers.values()
    )  # fmt: skip
    [last] = rows(world.database, "SELECT * FROM audits ORDER BY number DESC LIMIT 1")
    assert (last.proven, last.since, last.streams) == (True, done.since, done.streams)
    assert rows(world.database, "SELECT * FROM counter_examples") == []


class _Taken(Exception):
    """Takes a fault out again."""


def found_with(world: World, fault: str) -> list[CounterExample]:
    """Return what an audit finds with a fault, which is taken out afterwards."""
    found: list[CounterExample] = []
    given = {
        "s": world.lane.stream_id, "o": world.out.stream_id, "g": world.group.group_id,
        "w": world.slow.group_id, "t": world.store.row.group_id,
    }  # fmt: skip

    def work(connection: Connection) -> None:
        used = {name: value for name, value in given.items() if f":{name}" in fault}
        assert connection.execute(text(fault), used).rowcount > 0, "nothing was planted"
        found.extend(ask(connection, everything=True).counter_examples)
        raise _Taken

    with pytest.raises(_Taken):
        world.database.transaction(work)
    return found


@pytest.mark.parametrize(("kind", "fault"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_planted_fault_is_found_by_its_name(world: World, kind: str, fault: str) -> None:
    found = found_with(world, fault)
    assert kind in {one.kind for one in found}, [one.what for one in found]


def test_every_kind_but_those_of_files_is_planted() -> None:
    of_files = {"file_absent", "file_size", "file_rows", "hole_elsewhere"}
    of_erasures = {kind for kind in SENTENCES if kind.startswith("certificate_")}  # test_erased.py
    assert {kind for _, kind, _ in FAULTS} == SENTENCES.keys() - of_files - of_erasures


def test_an_audit_that_goes_on_finds_what_came_since_and_says_it_in_the_views(alone: Lane) -> None:
    lane, group = alone, Group.made(alone)
    for _ in range(3):
        lane.append({"0.0": 4, "1.0": 2})
        group.reader().read_all()
    assert audit(lane.database).since is None
    lane.append({"0.0": 4})
    group.reader().read_all()
    run(lane.database, "UPDATE data_file SET events = events - 1 WHERE start_offset = 12")
    done = audit(lane.database)
    assert done.since is not None
    assert [one.kind for one in done.counter_examples] == ["file_missing"]
    [row] = rows(lane.database, "SELECT * FROM counter_examples")
    assert (row.kind, row.stream) == ("file_missing", str(lane.name))
    assert row.what == (
        f"no file of stream {lane.name} has offsets 15 to 16 of segment 0.0, "
        "which lie between its head and its tail"
    )
    error = done.error()
    assert error is not None
    with raises("ledger_refuted"):
        raise error
    run(lane.database, "UPDATE data_file SET events = events + 1 WHERE start_offset = 12")
    assert audit(lane.database).since == done.since, "it goes on from what was proven"
    assert rows(lane.database, "SELECT * FROM counter_examples") == []


def test_a_stream_that_is_sealed_and_read_to_its_end_is_proven(alone: Lane) -> None:
    group = Group.made(alone)
    alone.append({"0.0": 4, "1.0": 2})
    read_some(group, 3)
    seal_stream(alone.database, alone.name, request_id="seal")
    assert audit(alone.database, everything=True).counter_examples == []
    group.reader().read_all()
    group.checkpoint("end")
    assert audit(alone.database, everything=True).counter_examples == []


def test_a_position_that_passed_one_event_which_nobody_got_is_found(alone: Lane) -> None:
    Group.made(alone)
    alone.append({"0.0": 1})
    of_one = "(SELECT segment_id FROM segment_tail WHERE tail_offset = 1)"
    position = f"next_offset = next_offset + 1 WHERE segment_id = {of_one}"
    run(alone.database, f"UPDATE reader_group_segment SET {position}")
    assert [one.kind for one in audit(alone.database, everything=True).counter_examples] == [
        "not_delivered"
    ]


@pytest.mark.parametrize("days", [0, 2])
def test_batches_that_are_pruned_are_not_missed(alone: Lane, days: int) -> None:
    group = Group.made(alone)
    for _ in range(3):
        alone.append({"0.0": 4, "1.0": 2})
        group.reader().read_all()
        group.checkpoint(unique("c"))
    earlier = f"- interval '{days} days'"
    run(alone.database, f"UPDATE placement SET placed_at = placed_at {earlier} - interval '1 day'")
    run(alone.database, f"UPDATE checkpoint SET created_at = created_at {earlier}")
    for columns, table in (("committed_at ended_at", "reader_batch"),
                           ("first_at last_at", "delivered_range")):  # fmt: skip
        for one in columns.split():
            run(alone.database, f"UPDATE {table} SET {one} = {one} {earlier}")
    assert audit(alone.database, everything=True).counter_examples == []
    assert (prune_batches(alone.database, 0) > 0) == (days > 0)
    assert audit(alone.database, everything=True).counter_examples == []
    alone.append({"0.0": 4, "1.0": 2})
    group.reader().read_all()
    assert audit(alone.database, everything=True).counter_examples == []


def test_a_checkpoint_that_waits_for_batches_is_proven(alone: Lane) -> None:
    group = Group.made(alone)
    for _ in range(3):
        alone.append({"0.0": [4, 3], "1.0": 2})
        reader = group.reader()
        batch = reader.must_open(5)
        checkpoint(alone.database, group.name, name=unique("c"), barrier=True)
        reader.commit(batch)
        group.checkpoint(unique("c"))
        read_some(group, 2)
        assert audit(alone.database, everything=True).counter_examples == []
    assert audit(alone.database).counter_examples == []


@pytest.mark.parametrize("everything", [False, True])
def test_what_is_asked_is_as_many_statements_for_ten_streams_as_for_one(
    alone: Lane, everything: bool
) -> None:
    counts = []
    for streams in (1, 10):
        for _ in range(streams):
            lane = Lane.made(alone.database, retention="consumed")
            lane.append({"0.0": 4})
            Group.made(lane).reader().read_all()
        audit(alone.database)
        sent = count_statements(alone.database)
        audit(alone.database, everything=everything)
        counts.append(len(sent))
    assert counts[0] == counts[1]


def test_an_audit_beside_commits_batches_and_truncations_finds_nothing(alone: Lane) -> None:
    group = Group.made(alone)

    def append() -> None:
        for _ in range(12):
            alone.append({"0.0": [2, 1], "1.0": 3})

    def read() -> None:
        for number in range(12):
            read_some(group, 7)
            group.checkpoint(f"c{number}")
            retain(alone.database, [alone.name])

    def look() -> list[str]:
        done = [audit(alone.database, everything=n % 2 == 0) for n in range(6)]
        return [found.what for one in done for found in one.counter_examples]

    assert at_once(append, read, look, look) == [None, None, [], []]


def test_the_audit_calls_no_function_of_the_schemas_and_imports_no_rule() -> None:
    statements = REPOSITORY / "sql" / "annex" / "audit" / "queries"
    assert (statements / "streams.sql").exists()
    for path in [*LIBRARY.glob("annex/audit/*.py"), *statements.glob("*.sql")]:
        source = path.read_text()
        if path.suffix == ".sql":  # some functions of Python have the same names
            assert set(re.findall(r"\b([a-z_]+)\(", source)) & FUNCTIONS == set(), path
        imported = set(re.findall(r"^(?:-- import: )?from (weir\.(?:annex\.)?\w+)", source, re.M))
        queries = set(re.findall(r"^from (weir\.queries\.annex\.\w+)", source, re.M))
        assert imported <= {"weir.annex.audit", "weir.database", "weir.errors", "weir.queries"}, (
            path
        )
        assert queries <= {"weir.queries.annex.audit"}, path
        shared = set(re.findall(r"^-- fragments: (\S+)", source, re.M))
        assert shared <= {"kept.sql"}, path


def test_files_are_compared_with_the_ledger(settings: Settings) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("a/b", "n")
        for _ in range(4):
            store.append("a/b", [{"n": "1"}, {"n": "2"}])
        assert store.audit(files=True)["proven"]
        paths = sorted(Path(settings.warehouse).rglob("*.parquet"))
        paths[0].unlink()
        paths[1].write_bytes(b"no Parquet")
        bad = bytearray(paths[2].read_bytes())
        bad[-12:-8] = b"\xff\xff\xff\xff"
        paths[2].write_bytes(bad)
        with raises("ledger_refuted"):
            store.audit(files=True)
        found = rows(Database.of(settings), "SELECT kind FROM counter_examples ORDER BY kind")
    assert [row.kind for row in found] == ["file_absent", "file_rows", "file_size"]
