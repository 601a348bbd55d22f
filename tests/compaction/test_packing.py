"""Old commits share rows of the time index, and every answer stays the same."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import pytest

from spark_jobs.upkeep import run as upkeep
from tests.chance import cases, random_for
from tests.compaction.questions import Questions, entries
from tests.conftest import TestDatabase
from tests.controller.driver import Driver
from tests.crash.jobs import write_config
from tests.world.groups import Group
from tests.world.jobs import main
from tests.world.streams import Lane, at_once, database_for_many, rows, run, unique
from weir.compaction.pack import pack
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.history.job_runs import RunId, read_outcome
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.retention.prune import prune
from weir.settings import Settings

EVER = 1e9


@pytest.fixture(scope="module")
def database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """One database for all histories."""
    with database_for_many(postgres_server, "packing") as opened:
        yield opened


def change(driver: Driver, random: Random) -> None:
    what = random.choice(["append"] * 6 + ["scale", "begin", "late", "truncate"])
    if what == "begin":
        driver.open.append(driver.begin())
    elif what == "late" and driver.open:
        driver.commit_some(random, 1)
    elif what == "scale" and random.random() < 0.3:
        driver.scale(random)
    elif what == "truncate" and random.random() < 0.3:
        driver.truncate(random)
    else:
        driver.append(random)


def aged(lane: Lane, by: float) -> float:
    """Return an age that so many of the stream's commits have."""
    clocks = [row.clock for row in entries(lane)]
    if not clocks:
        return 0.0
    [[seconds]] = rows(lane.database, "SELECT extract(epoch FROM clock_timestamp() - CAST(:at AS "
                       "timestamptz))", at=clocks[int(by * (len(clocks) - 1))])  # fmt: skip
    return float(seconds)


@pytest.mark.random
@pytest.mark.filterwarnings("ignore::weir.TruncatedWarning")
@pytest.mark.parametrize("case", range(cases(12)))
def test_every_answer_is_the_same_before_and_after_commits_are_packed(
    database: Database, case: int
) -> None:
    random = random_for("packing", case)
    driver = Driver(database, segments=2)
    readers = [Group.made(driver.lane, subscriber=False, on_gap="skip").reader() for _ in range(2)]
    packed = 0
    for _ in range(5):
        for _ in range(random.randint(5, 25)):
            change(driver, random)
        for reader in readers:
            if random.random() < 0.7 and (batch := reader.open(random.choice([1, 9, 50]))):
                reader.commit(batch)
        run(
            database,
            """UPDATE time_index SET digest = nullif(clock % 5, 0), min_event_time = clock % 7,
                max_event_time = clock + nullif(clock % 3, 0) WHERE stream_id = :s""",
            s=driver.lane.stream_id,
        )
        seed = random.random()
        asked = Questions(driver, [r.group for r in readers], Random(seed)).asked
        before = {what: ask() for what, ask in asked.items()}
        done = pack(database, aged(driver.lane, random.random()), EVER, random.choice([4, 7, 100]))
        assert not [one for one in done if "error" in one], done
        packed += sum(one["commits"] for one in done)
        for what, ask in asked.items():
            assert ask() == before[what], what
    assert packed


def of(lane: Lane, reports: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return what was done to a stream: others in the database have old commits, too."""
    return [one for one in reports if one["stream"] == str(lane.name)]


def packed(lane: Lane) -> list[int]:
    """Return how many commits each packed row of a stream has."""
    found = lane.rows(
        "SELECT commits FROM packed_commits WHERE stream_id = :s ORDER BY segment_id, start_offset"
    )
    return [row.commits for row in found]


def single(lane: Lane) -> int:
    """Return how many commits have rows of their own."""
    return int(lane.value("SELECT count(*) FROM time_index WHERE stream_id = :s"))


def test_only_old_commits_are_packed_and_a_row_is_filled_up_before_the_next(
    database: Database,
) -> None:
    lane = Lane.made(database, segments=1)
    for _ in range(3):
        lane.append({"0.0": 2})
    assert of(lane, pack(database, 0.0, EVER, 8)) == []  # too few
    lane.append({"0.0": 2})
    assert of(lane, pack(database, 3600.0, EVER, 8)) == []  # too young
    assert [one["commits"] for one in of(lane, pack(database, 0.0, EVER, 8))] == [4]
    for _ in range(9):
        lane.append({"0.0": 2})
    shown = entries(lane)
    [done] = of(lane, pack(database, 0.0, EVER, 8))
    assert (done["commits"], packed(lane), single(lane)) == (9, [8, 5], 0)
    assert entries(lane) == shown
    assert pack(database, 0.0, 0.0, 8) == []


def test_packed_commits_are_pruned_as_a_whole(database: Database) -> None:
    lane = Lane.made(database, segments=1, retention="consumed")
    for _ in range(20):
        lane.append({"0.0": 3})
    pack(database, 0.0, EVER, 5)
    lane.truncate("0.0=34")
    before = lane.value("SELECT bytes_before(:s, 0, 34)")
    [report] = of(lane, prune(database, 0.0))
    assert report["index_entries"] == 10
    assert packed(lane) == [5, 5]
    assert lane.value("SELECT bytes_before(:s, 0, 34)") == before == 340
    assert of(lane, prune(database, 0.0)) == []


def test_what_is_packed_twice_at_once_beside_appends_is_there_once(database: Database) -> None:
    lane = Lane.made(database, segments=2)
    for _ in range(10):
        lane.append({"0.0": 3, "1.0": 1})
    shown = entries(lane)
    pack_it = partial(pack, database, 0.0, EVER, 4)
    done = at_once(pack_it, pack_it, lambda: [lane.append({"0.0": 1}) for _ in range(5)])
    assert not [one for one in done if isinstance(one, Exception)], done
    assert sum(packed(lane)) + single(lane) == 25
    assert entries(lane)[:20] == shown


def test_upkeep_packs_what_is_older_than_the_setting_says(
    test_database: TestDatabase, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = test_database.open()
    check_warehouse_ownership(database, settings.warehouse)
    lane = Lane.made(database, segments=1)
    for _ in range(4):
        lane.append({"0.0": 1})
    for after, commits in ((3600, 0), (0, 0), (1e-6, 4)):
        config = write_config(settings, verify_bytes=0, compact_bytes=0, pack_after=after)
        monkeypatch.setenv("WEIR_CONFIG", str(config))
        run_id = RunId("weir_upkeep", unique("run"), "upkeep")
        given = {name: getattr(run_id, name) for name in ("dag_id", "run_id", "task_id")}
        assert main("upkeep", upkeep, ["--run", json.dumps(given), "--arguments", "{}"]) == 0
        _, report, _, _ = read_outcome(database, run_id)
        assert report is not None
        assert sum(one["commits"] for one in report["packed"]) == commits
        assert sum(packed(lane)) == commits


def grown(lane: Lane, first: int, last: int, per_file: int) -> None:
    """Make commits of 100 events to each segment, a minute apart and old, in files of so many."""
    run(
        lane.database,
        """WITH c AS MATERIALIZED (
            SELECT n, 1600000000000000 + n * CAST(60000000 AS bigint) + n * 7919 % 9973 AS clock
            FROM generate_series(CAST(:first AS bigint), :last) n
        ), appends AS (
            INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id,
                batch_id, fingerprint, state, epoch, opened_at, lease_until, ended_at, clock,
                allow_repeated_files, source, events, bytes, files)
            SELECT :s, :name, n, 'writer', n, '', 'committed', 0, now(), now(), now(), clock, false,
                '', 200, 2000, 2 FROM c
        ), entries AS (
            INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events,
                start_byte, bytes, clock, transaction_number, digest)
            SELECT :s, :name, g, n * 100, 100, n * 1000, 1000, clock, n, hashint8extended(n, g)
            FROM c, generate_series(0, 1) g
        )
        INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
            first_clock, last_clock, first_seq, last_seq, schema_version, path)
        SELECT :s, :name, g, min(n) * 100, count(*) * 100, count(*) * 1000, min(clock), max(clock),
            0, 99, 1, g || '-' || min(n)
        FROM c, generate_series(0, 1) g GROUP BY g, n / :per_file""",
        s=lane.stream_id, name=str(lane.name), first=first, last=last - 1, per_file=per_file,
    )  # fmt: skip


def metadata(lane: Lane) -> dict[str, int]:
    """Return how many rows each table has of a stream."""
    tables = lane.rows(
        """SELECT table_name FROM information_schema.columns
        JOIN information_schema.tables USING (table_schema, table_name)
        WHERE table_schema = 'weir_internal' AND column_name = 'stream_id'
          AND table_type = 'BASE TABLE'"""
    )
    return {
        name: int(lane.value(f"SELECT count(*) FROM {name} WHERE stream_id = :s"))
        for (name,) in tables
    }


def check_growth(database: Database, commits: int, per_file: int, most: int, steps: int) -> None:
    """Check that a stream has at most 5 rows per file, while it gets commits and they are packed.
    The rows of transactions, which are kept for ever (semantics 12), are not counted."""
    lane = Lane.made(database, segments=2)
    step = commits // steps
    for i in range(steps):
        grown(lane, i * step, (i + 1) * step, per_file)
        pack(database, 3600.0, EVER, most)
        rows_of = metadata(lane)
        assert rows_of.pop("transaction") == (i + 1) * step
        files = rows_of["data_file"]
        assert sum(rows_of.values()) <= 5 * files + 10, rows_of
    of_all = "SELECT count(*), sum(events), sum(digest) FROM time_indexes WHERE stream = :name"
    [found] = lane.rows(of_all, name=str(lane.name))
    assert (found.count, int(found[1])) == (2 * commits, 200 * commits)
    assert int(found[2]) == lane.value(
        """SELECT sum(CAST(hashint8extended(n, g) AS numeric))
        FROM generate_series(0, :last) n, generate_series(0, 1) g""",
        last=commits - 1,
    )


def test_the_metadata_of_a_stream_grows_with_its_files(database: Database) -> None:
    check_growth(database, 6_000, per_file=250, most=128, steps=4)


@pytest.mark.soak
def test_the_metadata_of_a_million_commits_is_five_rows_per_file(database: Database) -> None:
    check_growth(database, 1_000_000, per_file=10_000, most=4096, steps=50)
