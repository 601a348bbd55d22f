"""What a consumer checks before it opens a batch, and what stops all of its run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from tests.committed_folders import committed_folders
from tests.conftest import TestDatabase
from tests.consumers.test_failures import consumer
from tests.consumers.test_reader import append, found
from tests.crash.jobs import execute
from tests.raises import raises
from weir.annex.recovery.recover import recover
from weir.controller.ownership import read_installation
from weir.controller.rejected import make_rejected_stream
from weir.model.names import stream_name
from weir.warehouse.marker import Marker, write_marker


def large(events: pa.Table, threshold: int = 0) -> pa.Table:
    return events.filter([n >= threshold for n in events["n"].to_pylist()])


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("stream:s/nowhere",), "stream_not_found s/nowhere"),
    (("stream:s/in",), "output_invalid g s/in Reader"),
    (("stream:out",), "name_invalid stream"),
    (("stream:s/out.rejected",), "name_invalid reserved"),
    (("stream:s/out", "stream:s/out"), "argument_invalid output"),
    (("parquet:p", "parquet:./p"), "argument_invalid output"),
    (("tables:x",), "output_invalid"),
    (("parquet:../x",), "path_not_allowed"),
    (("parquet:p compression=rar",), "output_invalid 'rar' zstd"),
    (("parquet:p rows_per_file=x",), "output_invalid rows_per_file 'x'"),
    (("parquet:p color=red",), "output_invalid parquet:p 'color=red' places"),
    (("parquet:p places=maybe",), "output_invalid places 'maybe' yes no"),
    (("parquet:p places=yes places=no",), "output_invalid 'places=no' once"),
    (("stream:s/out places=yes",), "output_invalid stream:s/out 'places=yes' no options"),
    (("table:public.last mode=upsert",), "output_invalid upsert"),
    (("table:public.last mode=replace key=n,",), "output_invalid key 'n,'"),
    (("table:public.last mode=upsert key=k newest=nn",), "column_unknown 'nn'"),
]


@pytest.mark.usefixtures("results")
def test_outputs_and_arguments_are_checked_before_a_batch_is_opened(
    store: weir.StreamStore,
) -> None:
    append(store, range(3))
    for outputs, says in WRONG:
        with raises(says):
            consumer(store, large, *outputs).run()
    for function, given, says in (
        (large, {"parameters": {"treshold": 28}}, "argument_invalid large 'treshold' parameter"),
        (lambda e, most: e, {}, "argument_invalid 'most' parameter"),
        (large, {"on_error": "ignore"}, "argument_invalid on_error 'ignore' stop, split"),
    ):
        with raises(says):
            consumer(store, function, "stream:s/out", **given)
    assert found(store, "SELECT FROM reader_batch") == []


def test_the_function_gets_its_parameters_and_names_what_goes_to_each_output(
    store: weir.StreamStore,
) -> None:
    append(store, range(20))
    store.create_stream("s/few", "k", segments=1)

    def both(events: pa.Table, threshold: int) -> dict[str, pa.Table]:
        return {"s/out": events, "s/few": large(events, threshold)}

    outputs = ("stream:s/out", "stream:s/few")
    consumer(store, both, *outputs, parameters={"threshold": 18}).run()
    assert sorted(store.read("s/out")["n"].to_pylist()) == list(range(20))
    assert sorted(store.read("s/few")["n"].to_pylist()) == [18, 19]


def test_places_are_written_where_they_are_asked_for(
    store: weir.StreamStore, test_database: TestDatabase
) -> None:
    append(store, range(9))
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.placed (k text, n bigint, _segment bigint, _offset bigint);
        GRANT SELECT, INSERT ON public.placed TO weir_jobs, weir_publisher""",
    )
    outputs = ("table:public.placed", "parquet:p", "parquet:placed places=yes")
    consumer(store, large, *outputs).run()
    root = Path(store.settings.output_roots[0])
    names = []
    for output in ("p", "placed"):
        [folder] = committed_folders(store.database, "g", output)
        [file, *_] = (root / folder).rglob("*.parquet")
        names.append(pq.ParquetFile(file).schema_arrow.names)
    assert names == [["k", "n"], ["k", "n", "_segment", "_offset", "_clock"]]
    there = store.read("s/in").select(["n", "_segment", "_offset"]).to_pylist()
    placed = found(store, "SELECT n, _segment, _offset FROM public.placed")
    assert sorted(map(tuple, placed)) == sorted(tuple(row.values()) for row in there)


def test_after_a_restore_a_consumer_opens_no_batch_and_writes_nothing(
    store: weir.StreamStore,
) -> None:
    """The numbers of its batches, and their folders, were given out by the lost history."""
    append(store, range(3))
    known = read_installation(store.database)
    write_marker(store.settings.warehouse, Marker(known.installation_id, known.sweep_count + 1))
    called: list[pa.Table] = []
    for run in (
        consumer(store, called.append, "parquet:p").run,
        lambda: next(iter(store.reader("g"))),
    ):
        with raises("database_restored weir recover"):
            run()
    assert called == []
    assert found(store, "SELECT FROM reader_batch") == found(store, "SELECT FROM reader") == []
    assert list(Path(store.settings.output_roots[0]).iterdir()) == []
    recover(store.database, store.settings.warehouse, unknown_files="keep", request_id="recover")
    assert consumer(store, large, "parquet:p").run()["events"] == 3


def test_a_manifest_that_cannot_be_written_keeps_nobody_from_committing_and_reading(
    store: weir.StreamStore,
) -> None:
    in_the_way = Path(store.settings.output_roots[0], "p/group=g/_manifest.json")
    (in_the_way / "folder").mkdir(parents=True)
    for numbers in (range(20), [20]):
        append(store, numbers)
        with raises("manifest_not_written _manifest.json parquet:p"):
            consumer(store, large, "parquet:p").run()
        assert found(store, "SELECT FROM reader_batch WHERE state = 'open'") == []
        assert found(store, "SELECT unread_events FROM lag") == [(0,)]
    (in_the_way / "folder").rmdir()
    in_the_way.rmdir()
    consumer(store, large, "parquet:p").run()
    assert len(committed_folders(store.database, "g", "p")) == 2
    assert in_the_way.is_file()


def test_a_function_that_fails_on_everything_is_stopped_for_a_day(store: weir.StreamStore) -> None:
    append(store, range(3))

    def fails(_: Any) -> Any:
        raise RuntimeError("always")

    with weir.open(settings=replace(store.settings, rejected_events=2)) as few:
        for _ in range(2):
            with raises("too_many_rejected g 2 always") as failed:
                consumer(few, fails, "stream:s/out", on_error="quarantine").run()
            assert not failed.value.retryable
    assert store.count("s/in.rejected") == 2
    assert found(store, "SELECT unread_events FROM lag") == [(1,)]


def test_a_stream_of_rejected_rows_has_nowhere_to_set_events_aside(store: weir.StreamStore) -> None:
    rejected = make_rejected_stream(store.database, stream_name("s/in"))
    store.create_reader_group("repairs", [str(rejected)])
    repairs = replace(consumer(store, large, "parquet:p", on_error="quarantine"), group="repairs")
    with raises("name_invalid reserved"):
        repairs.run()
