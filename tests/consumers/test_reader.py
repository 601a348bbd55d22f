"""A reader of a group on pyarrow: what a batch writes counts from its commit on, or never."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

import weir
from tests.committed_folders import committed_folders
from tests.conftest import TestDatabase
from tests.crash.forks import Child
from tests.crash.jobs import execute
from tests.raises import raises
from weir.controller.transactions import Committed
from weir.errors import InvalidInput
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.outputs.tables import sweep_staging

PLACES = ["_segment", "_offset", "_clock"]
ALL = ("stream:s/out", "table:public.results", "parquet:p", "table:public.last mode=upsert key=k")


def append(store: weir.StreamStore, numbers: Sequence[int], stream: str = "s/in") -> Committed:
    return store.append(stream, [{"k": f"key {n % 7}", "n": n} for n in numbers])


def found(store: weir.StreamStore, sql: str) -> list[Any]:
    return list(store.database.transaction(lambda c: c.execute(text(sql)).all()))


def sinks(store: weir.StreamStore) -> list[list[int]]:
    """The `n` in each kind of output."""
    root = Path(store.settings.output_roots[0])
    folders = committed_folders(store.database, "g", "p")
    files = [file for folder in folders for file in (root / folder).rglob("*.parquet")]
    rows = [n for file in files for n in pq.ParquetFile(file).read()["n"].to_pylist()]
    return [
        sorted(row.get("n") for row in store.read("s/out").to_pylist()),
        [row.n for row in found(store, "SELECT n FROM public.results ORDER BY n")],
        sorted(rows),
        [row.n for row in found(store, "SELECT n FROM public.last ORDER BY n")],
    ]


def write_all(batch: Any) -> dict[str, Any]:
    return dict.fromkeys(ALL, batch.events)


@pytest.mark.usefixtures("results")
def test_what_each_batch_writes_counts_with_its_commit(store: weir.StreamStore) -> None:
    for first in range(0, 60, 20):
        append(store, range(first, first + 20))
    done = []
    for batch in store.reader("g", batch_events=20, function=None):
        assert batch.events.column_names == ["k", "n", *PLACES]
        assert batch.events.num_rows == batch.size == 20
        done.append(batch.commit(write_all(batch)))
        assert sinks(store)[:3] == [list(range(20 * len(done)))] * 3
    assert [one["batch"] for one in done] == [1, 2, 3]
    assert done[0]["tables"] == [{"table": "public.results", "rows": 20},
                                 {"table": "public.last", "rows": 20}]  # fmt: skip
    assert sinks(store)[3] == list(range(53, 60)), "the last of each key"
    assert list(store.reader("g")) == []
    assert found(store, "SELECT reader_id FROM reader") == [], "each loop left the group"


@pytest.mark.usefixtures("results")
def test_a_loop_that_ends_early_publishes_nothing_and_leaves_the_batch(
    store: weir.StreamStore,
) -> None:
    append(store, range(20))

    def fails() -> None:
        for batch in store.reader("g"):
            for output in ALL:
                batch.write(output, batch.events)
            raise ValueError("by the program")

    with pytest.raises(ValueError, match="by the program"):
        fails()
    for batch in store.reader("g"):
        batch.write(ALL[0], batch.events)
        break
    assert sinks(store) == [[]] * 4
    assert found(store, "SELECT FROM reader WHERE lease_until > now()") == []
    assert sweep_staging(store.database) == [], "what was staged is dropped"
    for batch in store.reader("g"):
        assert (batch.batch_id, batch.attempt) == (1, 3)
        batch.commit(write_all(batch))
    assert sinks(store)[:3] == [list(range(20))] * 3


def test_events_of_a_key_are_in_order_over_scales_and_in_write_order_if_asked(
    store: weir.StreamStore,
) -> None:
    store.create_reader_group("ordered", ["s/in"])
    for i, first in enumerate(range(0, 120, 30)):
        append(store, range(first, first + 30))
        if i < 3:
            store.scale_stream("s/in", segments=[f"{i}.0"], parts=2)
    read = [n for batch in store.reader("g") for n in _committed(batch)]
    for key in range(7):
        mine = [n for n in read if n % 7 == key]
        assert mine == sorted(mine)
    assert sorted(read) == list(range(120))
    in_order = store.reader("ordered", order="stream", batch_events=25)
    assert [n for batch in in_order for n in _committed(batch)] == list(range(120))
    for name, files, size in (("few-files", 1, 0), ("few-bytes", 0, 1)):
        store.create_reader_group(name, ["s/in"])
        small = store.reader(name, batch_files=files, batch_bytes=size)
        sizes = [len(_committed(batch)) for batch in small]
        assert (sum(sizes), len(sizes) > 3) == (120, True), name


def _committed(batch: Any) -> list[int]:
    numbers: list[int] = batch.events["n"].to_pylist()
    batch.commit()
    return numbers


def test_several_streams_are_read_apart_or_as_one(store: weir.StreamStore) -> None:
    store.append("s/out", [{"k": "a", "m": 1}])
    append(store, [0, 1])
    store.append("s/out", [{"k": "b", "m": 2}])
    store.create_reader_group("both", ["s/in", "s/out"])
    with store.reader("both") as reader:
        batch = next(reader)
        assert batch.events_of("s/in")["n"].to_pylist() == [1, 0]
        for wrong in ("", "s/none"):
            with raises("group_unsuitable reader s/in s/out"):
                batch.events_of(wrong)
        with raises("group_unsuitable reads"):
            _ = batch.events
        merged = batch.merged(columns=["K", "m"])
        assert merged.column_names == ["k", "m", "_stream", *PLACES]
        assert merged["_stream"].to_pylist() == ["s/out", "s/in", "s/in", "s/out"]
        assert merged["m"].to_pylist() == [1, None, None, 2]
        assert batch.merged().column_names == ["k", "_stream", *PLACES]
        with raises("column_unknown 'nope'"):
            batch.merged(columns=["nope"])
        batch.commit()


@pytest.mark.usefixtures("results")
def test_rows_of_other_kinds_are_written_as_the_values_that_they_are(
    store: weir.StreamStore,
) -> None:
    pandas = pytest.importorskip("pandas")
    append(store, [0])
    for batch in store.reader("g"):
        batch.commit(
            {
                "table:public.last": [{"k": "a", "n": 1, "j": None}],
                "table:public.results": pandas.DataFrame({"k": ["b"], "n": [2]}),
                "parquet:p partition_by=k": pa.table({"k": ["a/b", "", None], "n": [1, 2, 3]}),
            }
        )
    assert found(store, "SELECT k, n, j FROM public.last") == [("a", 1, None)]
    assert found(store, "SELECT k, n FROM public.results") == [("b", 2)]
    [folder] = committed_folders(store.database, "g", "p")
    below = Path(store.settings.output_roots[0]) / folder
    names = {file.parent.name for file in below.rglob("*.parquet")}
    assert names == {"k=a%2Fb", "k=__HIVE_DEFAULT_PARTITION__"}


WRONG: list[tuple[str, Any, str]] = [
    ("table:public.none", {"n": [1]}, "table_not_found public.none"),
    ("table:public.results", {"n": ["x"]}, "column_type_differs 'n' string bigint"),
    ("table:public.results", {"n": [1], "m": [1]}, "column_unknown 'm'"),
    ("table:public.results", {"k": ["a"]}, "column_missing 'n'"),
    ("table:public.results mode=all", {"n": [1]}, "output_invalid 'all'"),
    ("table:public.last", {"k": ["seven c"]}, "bad_rows character varying(6) seven c function"),
    ("table:public.last", {"k": ["blanks "]}, "bad_rows varying(6) blanks function"),
    ("topic:x", {"n": [1]}, "output_invalid"),
    ("stream:s/none", {"k": ["a"]}, "stream_not_found s/none"),
    ("stream:s/out", {"n": [1]}, "column_missing routing"),
    ("stream:s/out", {"k": ["a", None]}, "bad_rows 1 routing key"),
    ("stream:s/out", {"k": ["a"], "_offset": [1]}, "columns_invalid _offset"),
    ("parquet:../p", {"n": [1]}, "path_not_allowed"),
    ("parquet:q partition_by=x", {"n": [1]}, "column_unknown 'x'"),
    ("parquet:q partition_by=n", {"n": [1.5]}, "column_type_differs 'n' double"),
    ("parquet:q partition_by=n", {"n": [1], "Batch": [1]}, "columns_invalid 'Batch'"),
    ("parquet:q", {"n": [None]}, "column_type_unsupported 'n'"),
    ("table:public.last mode=upsert key=k", {"k": ["other"], "n": [1]}, "output_invalid 'k'"),
    ("table:public.last mode=upsert key=k", {"k": [b"x"], "n": [1]}, "output_invalid 'k'"),
]


@pytest.mark.usefixtures("results")
def test_wrong_use_is_told_in_a_sentence_and_the_batch_can_still_be_committed(
    store: weir.StreamStore,
) -> None:
    append(store, range(3))
    with raises("group_not_found nobody"):
        next(iter(store.reader("nobody")))
    for options, says in (({"engine": "pandas"}, "argument_invalid 'pandas'"),
                          ({"order": "key"}, "argument_invalid 'key'"),
                          ({"batch_files": -1}, "argument_invalid batch_files -1")):  # fmt: skip
        with raises(says):
            store.reader("g", **options)
    with raises("not_open reader"):
        next(store.reader("g"))
    with store.reader("g") as reader:
        batch = next(reader)
        with raises("reader_misused before"):
            next(reader)
        for output, columns, says in WRONG:
            with raises(says):
                batch.write(output, pa.table(columns))
        for nothing in (None, 5, {"n": 1}):
            with raises("frame_unsupported"):
                batch.write("parquet:q", nothing)
        batch.write("stream:s/out", batch.events)
        with raises("reader_misused s/out output"):
            batch.write("stream:s/out", batch.events)
        batch.write("table:public.results", [{"k": "a", "n": 1}, {"k": "b", "n": 1}])
        with raises("bad_rows public.results results_pkey function"):
            batch.commit()
        batch.again()
        batch = next(reader)
        batch.commit({"stream:s/out": batch.events})
        with raises("reader_misused over"):
            batch.commit()
    assert store.count("s/out") == 3
    assert found(store, "SELECT FROM public.last") == []


def test_a_root_that_takes_no_files_is_told_and_the_batch_stays(store: weir.StreamStore) -> None:
    append(store, range(3))
    root = Path(store.settings.output_roots[0])
    root.rmdir()
    root.write_text("not a folder")
    with store.reader("g") as reader:
        batch = next(reader)
        with raises(f"output_not_writable {root}") as failed:
            batch.write("parquet:p", batch.events)
        assert failed.value.retryable
        root.unlink()
        batch.commit({"parquet:p": batch.events})


def test_a_store_that_is_not_joined_is_said(store: weir.StreamStore) -> None:
    append(store, range(3))
    with store.reader("g") as reader:
        batch = next(reader)
        with raises("join_invalid s/none adjuncts"):
            batch.enrich(batch.events, "s/none", "k")


def test_a_forked_process_is_told_to_open_a_reader_of_its_own(store: weir.StreamStore) -> None:
    append(store, range(3))
    with store.reader("g") as reader:
        batch = next(reader)

        def forked() -> str:
            try:
                batch.commit({"stream:s/out": batch.events})
            except InvalidInput as error:
                return error.code
            return "committed"

        assert Child(forked).wait() == (0, "not_open")
        batch.commit({"stream:s/out": batch.events})
    assert store.count("s/out") == 3


@pytest.mark.usefixtures("results")
def test_a_reader_goes_on_after_all_its_sessions_were_ended(
    store: weir.StreamStore, test_database: TestDatabase, postgres_server: EmbeddedPostgres
) -> None:
    for first in range(0, 60, 20):
        append(store, range(first, first + 20))

    def restart() -> None:
        postgres_server.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{test_database.name}'"
        )

    for batch in store.reader("g", batch_events=20):
        restart()
        for output in ALL:
            batch.write(output, batch.events)
            restart()
        batch.commit()
        restart()
    assert sinks(store)[:3] == [list(range(60))] * 3


def test_a_closed_installation_commits_nothing(store: weir.StreamStore) -> None:
    append(store, range(3))
    with raises("not_open closed"), store.reader("g", reader_id="me") as reader:
        batch = next(reader)
        store.close()
        batch.commit()
    with weir.open(settings=store.settings) as again:
        assert again.count("s/out") == 0
        with again.reader("g", reader_id="me") as other:
            assert next(other).attempt == 2


def test_an_upsert_by_two_columns_of_the_routing_key_is_checked_together(
    store: weir.StreamStore, test_database: TestDatabase
) -> None:
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.pairs (k text, n bigint, PRIMARY KEY (k, n));
        GRANT SELECT, INSERT, UPDATE ON public.pairs TO weir_jobs, weir_publisher""",
    )
    append(store, range(2))
    output = "table:public.pairs mode=upsert key=k,n"
    for batch in store.reader("g"):
        swapped = batch.events.set_column(1, "n", pc.subtract(1, batch.events["n"]))
        batch.write(output, swapped)  # only k is the routing key
        batch.commit()
    assert len(found(store, "SELECT FROM public.pairs")) == 2


@pytest.mark.usefixtures("results")
def test_an_empty_list_is_a_result_without_rows(store: weir.StreamStore) -> None:
    append(store, range(3))
    for batch in store.reader("g"):
        none = [row for row in batch.events.to_pylist() if row["n"] > 9]
        batch.commit(dict.fromkeys(ALL, none))
    assert sinks(store) == [[], [], [], []]
    append(store, range(3))
    for batch in store.reader("g"):
        batch.commit({"table:public.results": batch.events})
    assert len(found(store, "SELECT FROM public.results")) == 3
    append(store, range(1))
    for batch in store.reader("g"):
        batch.commit({"table:public.results mode=replace": []})
    assert found(store, "SELECT FROM public.results") == [], "no rows replace all rows, too"
    assert found(store, "SELECT unread_events FROM lag WHERE reader_group = 'g'")[0][0] == 0


@pytest.mark.parametrize(
    ("output", "columns", "says"),
    [
        ("parquet:p partition_by=k", {"k": ["a"]}, "column_missing partitioned k"),
        ("parquet:p partition_by=n,k", {"k": ["a"], "n": [1]}, "column_missing partitioned"),
        ("parquet:p", [("n", [1]), ("N", [2])], "columns_invalid 'n' twice"),
    ],
)  # fmt: skip
def test_a_result_of_which_something_would_be_lost_is_refused(
    store: weir.StreamStore, output: str, columns: Any, says: str
) -> None:
    append(store, range(3))
    pairs = columns.items() if isinstance(columns, dict) else columns
    names, values = zip(*pairs, strict=True)
    with raises(says), store.reader("g", reader_id="me") as reader:
        next(reader).commit({output: pa.table(list(values), names=list(names))})
    with store.reader("g", reader_id="me") as reader:
        assert next(reader).attempt == 2


def test_folders_are_named_by_values_whatever_the_columns_are_called(
    store: weir.StreamStore,
) -> None:
    append(store, [1])
    rows = {
        "row": ["a", None, "b"], "row_list": [True, False, True], "0": [7, 8, 9],
        "day": pa.array([0, 1, 4_000_000], pa.int32()).cast(pa.date32()), "v": [1, 2, 3],
    }  # fmt: skip
    for batch in store.reader("g"):
        batch.commit({"parquet:p partition_by=row,row_list,0,day": pa.table(rows)})
    [folder] = committed_folders(store.database, "g", "p")
    root = Path(store.settings.output_roots[0]) / folder
    written = {
        str(file.parent.relative_to(root)): pq.ParquetFile(file).read()["v"].to_pylist()
        for file in root.rglob("*.parquet")
    }
    assert written == {
        "row=a/row_list=true/0=7/day=1970-01-01": [1],
        "row=__HIVE_DEFAULT_PARTITION__/row_list=false/0=8/day=1970-01-02": [2],
        "row=b/row_list=true/0=9/day=+12921-08-18": [3],
    }


@pytest.mark.usefixtures("results")
def test_a_period_of_pandas_and_a_map_with_a_key_twice_are_refused(store: weir.StreamStore) -> None:
    frame = pd.DataFrame({"k": ["a"], "p": [pd.Period("2020-01")]})
    with raises("column_type_unsupported 'p'"):
        store.append("s/in", frame)
    twice = pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))
    append(store, range(1))
    with raises("bad_rows a twice"), store.reader("g", reader_id="me") as reader:
        next(reader).commit(
            {"table:public.last mode=replace": pa.table(
                {"k": ["a"], "n": [1], "j": twice})}
        )  # fmt: skip
