"""A reader in a program of one's own: what a batch writes counts from its commit on, or never."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weir as programs
from tests.committed_folders import committed_folders
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.spark.installation import Installation
from weir.model.names import StreamName, stream_name
from weir.spark import OpenBatch, Reader

pytestmark = pytest.mark.usefixtures("configured")

ROWS = 60


@pytest.fixture
def stream(weir: Installation, test_database: TestDatabase) -> StreamName:
    """Events in three segments, a stream and a table for results."""
    stream = weir.create(segments=3)
    weir.create("s/out", segments=2)
    weir.put(stream, [(f"key {n % 11}", n) for n in range(ROWS)])
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.results (k text, n bigint PRIMARY KEY);
        GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher""",
    )
    return stream


@pytest.fixture
def group(weir: Installation, stream: StreamName) -> str:
    return weir.group(stream)


def read(weir: Installation, group: str, **options: Any) -> Reader:
    return Reader(weir.spark, group, **options)


def write_all(batch: OpenBatch[Any]) -> None:
    """The events, into each kind of output."""
    for output in ("stream:s/out", "parquet:out", "table:public.results"):
        batch.write(output, batch.events)


def published(weir: Installation, group: str) -> Iterator[list[int]]:
    """The `n` in each kind of output."""
    yield sorted(row.n for row in weir.frame(stream_name("s/out")).collect())
    root = Path(weir.settings.output_roots[0])
    folders = [str(root / folder) for folder in committed_folders(weir.database, group, "out")]
    found = (
        weir.spark.read.parquet(*folders)
        if folders
        else weir.spark.sql("SELECT 'a' k, 0L n LIMIT 0")
    )
    assert found.columns == ["k", "n"], "without the places of the events"
    yield sorted(row.n for row in found.collect())
    yield [n for (n,) in weir.query("SELECT n FROM public.results ORDER BY n")]


def test_what_each_batch_writes_counts_with_its_commit(weir: Installation, group: str) -> None:
    reports = []
    with read(weir, group) as reader:
        for batch in reader:
            assert batch.events.columns == ["k", "n", "_segment", "_offset", "_clock"]
            assert batch.size == ROWS
            write_all(batch)
            assert list(published(weir, group)) == [[], [], []]
            reports.append(batch.commit())
    assert list(published(weir, group)) == [list(range(ROWS))] * 3
    [report] = reports
    assert (report["batch"], report["events"]) == (1, ROWS)
    assert report["tables"] == [{"table": "public.results", "rows": ROWS}]
    assert weir.value("SELECT unread_events FROM lag") == 0
    with read(weir, group) as reader:
        assert list(reader) == []
    assert weir.query("SELECT FROM readers") == []


def test_an_engine_takes_over_what_the_other_has_begun(
    weir: Installation, stream: StreamName, group: str
) -> None:
    with programs.open(settings=weir.settings) as store:
        readers: dict[str, Callable[[], Any]] = {
            "pyarrow": lambda: store.reader(group, reader_id="one"),
            "spark": lambda: read(weir, group, reader_id="one"),
        }
        for first, second in (("spark", "pyarrow"), ("pyarrow", "spark")):
            with raises("reader_misused before"), readers[first]() as reader:
                write_all(next(reader))
                next(reader)
            with readers[second]() as reader:
                for batch in reader:
                    assert batch.attempt == 2
                    write_all(batch)
                    batch.commit()
            if first == "spark":
                weir.put(stream, [(f"key {n % 11}", n) for n in range(ROWS, 2 * ROWS)])
    assert list(published(weir, group)) == [list(range(2 * ROWS))] * 3
