"""DuckDB reads streams as tables of a DuckLake whose catalogue are views over Weir's: the rows of
`weir.read`."""

import datetime
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import psycopg2
import pyarrow as pa
import pytest

import weir
from tests.annex.erasure.world import Erasing
from tests.chance import cases, random_for
from tests.compaction.world import EVER, World
from tests.conftest import TestDatabase
from tests.engines.duck import Duck, attached, seen
from tests.world.columns import World as Columns
from tests.world.columns import column, update
from tests.world.streams import Lane, rows, unique
from weir.compaction.run import compact
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.kernel.schema import to_arrow
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.programs.opening import shared
from weir.retention.delete_stream import delete_stream
from weir.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::weir.TruncatedWarning")
MOMENT = datetime.datetime(2013, 1, 1, 1, 2, 3, 4, tzinfo=datetime.UTC)
EVERY_TYPE = pa.table({
    "key": ["a", "b", None], "flag": [True, None, False],
    "tiny": pa.array([-128, 127, None], pa.int8()), "small": pa.array([-(2**15), 1, 2], pa.int16()),
    "int": pa.array([-(2**31), 2**31 - 1, None], pa.int32()), "big": [-(2**63), 2**63 - 1, None],
    "float": pa.array([0.1, float("inf"), None], pa.float32()), "double": [0.1, -0.0, 1e300],
    "money": pa.array([Decimal("99999999.99"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
    "large": pa.array([Decimal("-1234567890123456789012345678.0123456789"), None, 0],
                      pa.decimal128(38, 10)),
    "bytes": [b"", b"\x00\xff", None], "day": [datetime.date(1, 1, 1), None, MOMENT.date()],
    "time": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", tz="UTC")),
    "local": pa.array([MOMENT.replace(tzinfo=None), None, None], pa.timestamp("us")),
    "list": [[1, None], [], None], "nested": [[[{"x": 1, "y": ["z"]}]], [None], None],
    "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    "deep": [{"a": {"b": [1]}, "it's \"odd\"": "c"}, None, {"a": None, "it's \"odd\"": None}],
    "order": ["select", "from", ""], "Mixed Case": [1, 2, 3], "a.b": [1, 2, 3],
    "2147483539": [7, 8, 9], "2147483540": [1, 1, 2],
})  # fmt: skip


@pytest.fixture
def duck(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, settings: Settings,
    database: Database,
) -> Iterator[Duck]:  # fmt: skip
    put(Lane.made(database), settings, key=["a"])  # which notes where files are
    with attached(postgres_server.dsn(test_database.name, "weir_view")) as found:
        yield found


def put(lane: Lane, settings: Settings, table: pa.Table | None = None, **columns: Any) -> int:
    """Append rows, and return their clock."""
    given = pa.table(columns) if table is None else table
    return (
        shared(settings)
        .append(str(lane.name), given, writer_id="w", batch_id=unique("batch"))
        .clock
    )


def check(duck: Duck, world: World) -> None:
    """Compare what both read now, and as of each commit."""
    name, database = str(world.lane.name), world.lane.database
    now = seen(shared(world.settings).read(name))
    assert duck.rows(name) == now
    clocks = [clock for (clock,) in rows(
        database, "SELECT clock FROM transaction WHERE stream_id = :s AND clock > 0",
        s=world.lane.stream_id,
    )]  # fmt: skip
    for clock in world.random.sample(clocks, min(3, len(clocks))):
        found = duck.rows(name, f"AT (VERSION => {clock})")
        assert found == [
            {name: row[name] for name in (found[0] if found else row)}
            for row in now if row["_clock"] <= clock
        ]  # fmt: skip


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(40, least=1)))
def test_whatever_happens_to_a_stream_both_read_the_same_now_and_as_of_then(
    database: Database, settings: Settings, duck: Duck, case: int
) -> None:
    world = Erasing.made(database, settings, random_for("ducklake", case))
    world.append()
    for _ in range(5):
        for _ in range(world.random.randint(1, 5)):
            world.change()
        check(duck, world)
        world.compact()
        check(duck, world)
        world.erase(f"k{world.random.randrange(13)}")
        check(duck, world)


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(40, least=1)))
def test_whatever_happens_to_columns_both_read_the_same(
    database: Database, settings: Settings, duck: Duck, case: int
) -> None:
    world = Columns.made(database, settings, random_for("columns for ducklake", case))
    for _ in range(6):
        world.append()
        found = duck.rows(world.lane.name)
        assert found == seen(shared(settings).read(str(world.lane.name)))
        world.change()


def test_each_type_and_name_is_read_as_it_was_appended(
    database: Database, settings: Settings, duck: Duck
) -> None:
    lane = Lane.made(database, on_missing_key="spread", name="select/table", segments=1)
    put(lane, settings, EVERY_TYPE)
    read = shared(settings).read("select/table")
    assert duck.rows("select/table") == seen(read)
    assert read.drop_columns(["_segment", "_offset", "_clock"]).equals(EVERY_TYPE)
    found = duck.connection.execute('FROM weir."select"."table"').to_arrow_table()
    kinds = {field.name: field.type for field in found.schema}
    assert kinds["time"] == pa.timestamp("us", tz="Pacific/Auckland")
    assert {name: kind for name, kind in kinds.items() if name in ("money", "local", "day")} == {
        name: EVERY_TYPE.schema.field(name).type for name in ("money", "local", "day")
    }


def test_a_head_in_the_middle_of_a_file_hides_what_is_below_it_from_who_is_attached_already(
    database: Database, settings: Settings, duck: Duck
) -> None:
    lane = Lane.made(database, segments=1)
    first = put(lane, settings, key=["a"] * 100)
    assert len(duck.rows(lane.name)) == 100
    lane.truncate("0.0=60")
    for at in ("", f"AT (VERSION => {first})"):
        assert [row["_offset"] for row in duck.rows(lane.name, at)] == list(range(60, 100))
    [[count]] = duck.ask(f'SELECT count(*) FROM weir.test."{lane.name.name}"')
    assert count == 40
    lane.truncate("0.0=100")
    assert duck.rows(lane.name) == []


@pytest.mark.parametrize("files", ["of one commit", "compacted", "erased"])
def test_what_is_truncated_is_in_changes_until_its_file_is_and_behind_no_other_door(
    database: Database, settings: Settings, duck: Duck, files: str
) -> None:
    lane = Lane.made(database, segments=1)
    clocks = [
        put(lane, settings, key=["a", "b", "a", "a"], n=[n, n + 1, n + 2, n + 3]) for n in (0, 4)
    ]
    gone = set()
    if files == "compacted":
        compact(database, settings, EVER, [lane.name], thorough=True)
    if files == "erased":
        with weir.open(settings=settings) as store:
            store.erase(str(lane.name), "asked", keys=["b"], dry_run=False)
        gone = {1, 5}
    lane.truncate("0.0=2")
    table = f'weir.test."{lane.name.name}"'
    moments = [
        f"TIMESTAMPTZ '{datetime.datetime.fromtimestamp(clock / 1e6, datetime.UTC).isoformat()}'"
        for clock in clocks
    ]

    def shown(what: str, where: str = "") -> set[int]:
        return {n for (n,) in duck.ask(f"SELECT n FROM {what} {where}")}

    left = set(range(2, 8)) - gone
    assert shown(table) == shown(table, f"AT (VERSION => {clocks[1]})") == left
    assert shown(table, f"AT (TIMESTAMP => {moments[1]})") == left
    assert shown(table, f"AT (VERSION => {clocks[0]})") == {n for n in left if n < 4}
    assert shown(table, f"AT (TIMESTAMP => {moments[0]})") == {n for n in left if n < 4}
    for door in ("changes", "insertions"):
        for low, high in (clocks, moments):
            given = f"ducklake_table_{door}('weir', 'test', '{lane.name.name}', {low}, {high})"
            assert shown(given) == set(range(8)) - gone
            assert shown(given, f"WHERE rowid IN (SELECT rowid FROM {table})") == left
            given = f"ducklake_table_deletions('weir', 'test', '{lane.name.name}', {low}, {high})"
            assert shown(given) == set()
    lane.truncate("0.0=8")
    given = f"ducklake_table_changes('weir', 'test', '{lane.name.name}', {clocks[0]}, {clocks[1]})"
    assert shown(table) == shown(given) == set()


def test_changes_between_versions_and_times_are_the_events_committed_then(
    database: Database, settings: Settings, duck: Duck
) -> None:
    lane = Lane.made(database, segments=1)
    clocks = [put(lane, settings, key=["a"], n=[i]) for i in range(12)]
    table = f"weir.test.{lane.name.name!r}".replace("'", '"')
    when = datetime.datetime.fromtimestamp(clocks[7] / 1e6, datetime.UTC).isoformat()
    changes = "FROM ducklake_table_changes('weir', 'test', '{}', {}, {}) ORDER BY n"
    for _ in range(2):
        found = duck.ask(
            "SELECT change_type, snapshot_id, n "
            + changes.format(lane.name.name, clocks[3], clocks[5])
        )
        assert found == [("insert", clocks[i], i) for i in (3, 4, 5)]
        found = duck.ask(f"SELECT max(n) FROM {table} AT (TIMESTAMP => TIMESTAMPTZ '{when}')")
        assert found == [(7,)]
        compact(database, settings, EVER, [lane.name], thorough=True)
    assert rows(database, "SELECT count(*) FROM data_file WHERE stream_id = :s", s=lane.stream_id)[
        0
    ] == (1,)


def test_as_of_a_version_a_stream_has_the_columns_of_then(
    database: Database, settings: Settings, duck: Duck
) -> None:
    lane = Lane.made(database, segments=1)
    first = put(lane, settings, key=["a"], n=pa.array([1], pa.int32()))
    update(lane, rename={"n": "m"}, widen=[])
    second = put(lane, settings, key=["b"], m=pa.array([2], pa.int32()))
    update(lane, drop=["m"])
    put(lane, settings, key=["c"], n=["text"])
    places = {"_number": 0}
    now = [{"key": k, "n": n} for k, n in (("a", None), ("b", None), ("c", "text"))]
    assert [{k: row[k] for k in ("key", "n")} for row in duck.rows(lane.name)] == now
    assert duck.rows(lane.name, f"AT (VERSION => {first})") == [
        {"key": "a", "n": 1, **places, "_offset": 0, "_clock": first}
    ]
    assert [row["m"] for row in duck.rows(lane.name, f"AT (VERSION => {second})")] == [1, 2]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_files_are_left_out_by_the_event_times_of_their_commits_and_no_event_is(
    database: Database, settings: Settings, duck: Duck, kind: str
) -> None:
    random = random_for(f"event times as {kind}", 0)
    lane = Lane.made(
        database, fields=[column("key", "string"), column("seen", kind)], event_time="`seen`"
    )
    arrow = to_arrow([column("seen", kind)]).field(0).type
    zone = datetime.UTC if kind == "timestamp" else None
    first = datetime.datetime(1969, 12, 25, tzinfo=zone)
    never = datetime.datetime(9999, 12, 31, tzinfo=zone)  # which is no event time
    times: list[datetime.datetime | None] = []
    undecided = 0
    for day in range(15):
        some = [first + datetime.timedelta(day, random.randrange(10**6) / 7) for _ in range(3)]
        # Every other file can be left out, whatever is drawn.
        more: list[datetime.datetime | None] = random.choice([[], [None], [never]])
        more = more if day % 2 else []
        given = [*some, *more] if day else [None]
        undecided += None in given or never in given
        put(lane, settings, key=["a"] * len(given), seen=pa.array(given, arrow))
        times += given
    table = f'weir.test."{lane.name.name}"'
    known = sorted(time for time in times if time and time != never)
    for low, high in [(known[0], known[-1])] + [sorted(random.sample(known, 2)) for _ in range(4)]:
        for where, kept in (
            ("seen >= $1 AND seen < $2", [t for t in known if low <= t < high]),
            ("seen > least($1, $2)", [t for t in times if t and t > low]),
            ("seen IN ($1, $2)", [low, high]),
            ("seen IS NULL OR seen > greatest($1, $2)", [t for t in times if not t or t > high]),
            ("(seen <> $1 OR seen = $1) AND seen <= $2", [t for t in known if t <= high]),
        ):
            sql = f"SELECT count(*) FROM {table} WHERE {where}"
            assert duck.connection.execute(sql, [low, high]).fetchone() == (len(kept),), where
    plan = duck.ask(
        f"EXPLAIN ANALYZE FROM {table} WHERE seen >= '{known[-1]:%Y-%m-%d %H:%M:%S.%f%z}'"
    )
    [(read,)] = [re.findall(r"Total Files Read: *(\d+)", text) for _, text in plan]
    assert int(read) <= undecided + 1 < 15
    newest = duck.ask(f"SELECT seen FROM {table} ORDER BY seen DESC NULLS LAST LIMIT 1")
    assert newest[0][0] == max(time for time in times if time)


def test_a_commit_is_a_version_once_no_other_can_come_before_it(
    database: Database, settings: Settings, duck: Duck, test_database: TestDatabase
) -> None:
    slow, quick = Lane.made(database), Lane.made(database)
    put(slow, settings, key=["a"])
    with psycopg2.connect(test_database.owner_dsn) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "UPDATE weir_internal.stream SET last_clock = weir_internal.now_clock() "
            "WHERE stream_id = %s", [slow.stream_id],
        )  # fmt: skip
        clock = put(quick, settings, key=["a"])
        [now] = duck.rows(quick.name)
        assert now["_clock"] == clock, "what is there is read at once"
        with pytest.raises(duckdb.Error, match="No snapshot found"):
            duck.rows(quick.name, f"AT (VERSION => {clock})")
    connection.close()
    assert duck.rows(quick.name, f"AT (VERSION => {clock})") == [now]
    [[present]] = duck.ask("FROM weir.current_snapshot()")
    with pytest.raises(duckdb.Error, match="No snapshot found"):
        duck.rows(quick.name, f"AT (VERSION => {present})")


def test_streams_are_there_from_their_first_columns_until_they_are_deleted(
    database: Database, settings: Settings, duck: Duck
) -> None:
    lane = Lane.made(database, name="shop/orders")
    assert "orders" not in tables(duck)
    put(lane, settings, key=["old"])
    assert "orders" in tables(duck)
    seal_stream(database, lane.name, request_id="seal")
    delete_stream(database, lane.name, unread_too=False, request_id="delete")
    assert "orders" not in tables(duck)
    again = Lane.made(database, name="shop/orders")
    put(again, settings, key=["new"])
    assert [row["key"] for row in duck.rows("shop/orders")] == ["new"]
    views = "SELECT viewname FROM pg_views WHERE viewname ~ 'inlined_delete'"
    assert lane.stream_id not in {int(one.viewname.split("_")[-1]) for one in rows(database, views)}


def tables(duck: Duck) -> set[str]:
    return {name for (name,) in duck.ask(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'weir'"
    )}  # fmt: skip


def test_a_write_is_refused(
    database: Database, settings: Settings, postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
) -> None:  # fmt: skip
    lane = Lane.made(database, segments=1)
    put(lane, settings, key=["a"])
    with (
        pytest.raises(duckdb.Error, match=r"read-only: ATTACH it with \(READ_ONLY"),
        attached(test_database.dsn, mode="METADATA_SCHEMA 'weir_ducklake'"),
    ):
        pass
    for login in ("weir_app", "weir_view"):
        with attached(postgres_server.dsn(test_database.name, login)) as duck:
            for statement in (
                f'DELETE FROM weir.test."{lane.name.name}"',
                "CREATE TABLE weir.x(a INT)",
            ):
                with pytest.raises(duckdb.Error, match="read-only"):
                    duck.ask(statement)
        connection = psycopg2.connect(postgres_server.dsn(test_database.name, login))
        with pytest.raises(psycopg2.Error, match=r"permission denied|cannot delete"):
            connection.cursor().execute("DELETE FROM weir_ducklake.ducklake_data_file")
        connection.close()


def test_a_reader_sees_the_tables_of_its_team_and_nothing_of_others(
    database: Database, settings: Settings, postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
) -> None:  # fmt: skip
    free, owned = Lane.made(database, segments=1), Lane.made(database, segments=1)
    for lane in (free, owned):
        put(lane, settings, key=["a"] * 5)
        lane.truncate("0.0=2")
    with psycopg2.connect(postgres_server.dsn("postgres", "postgres")) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT FROM pg_roles WHERE rolname = 'team_of_ducks'")
        if not cursor.rowcount:
            cursor.execute("CREATE ROLE team_of_ducks")
    connection.close()
    rows(database, "UPDATE stream SET owner = 'team_of_ducks' WHERE stream_id = :s RETURNING 1",
         s=owned.stream_id)  # fmt: skip
    hidden = f"ducklake_inlined_delete_{owned.stream_id}"
    for login, lanes in (("weir_view", [free]), ("weir_app", [free, owned])):
        dsn = postgres_server.dsn(test_database.name, login)
        with attached(dsn) as duck:
            assert tables(duck) == {lane.name.name for lane in lanes}
            assert len(duck.rows(free.name)) == 3
        with psycopg2.connect(dsn) as connection:
            cursor = connection.cursor()
            for view in ("data_file", "table", "column", "column_mapping", "table_stats"):
                cursor.execute(f"SELECT DISTINCT table_id FROM weir_ducklake.ducklake_{view}")
                assert {number for (number,) in cursor} == {lane.stream_id for lane in lanes}, view
            cursor.execute(f"SELECT count(*) FROM weir_ducklake.{hidden}")
            assert cursor.fetchone() == (2 * (owned in lanes),)
        connection.close()
