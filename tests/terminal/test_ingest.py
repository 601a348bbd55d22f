"""Files are ingested from a terminal without a JVM, exactly as they are written."""

import bz2
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weir as weir_package
from tests.terminal.conftest import Done
from weir.operations.action import Job

Weir = Callable[..., Done]
Ingest = Callable[..., Done]


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no job have a session of Spark."""

    def refuse(_: Job) -> None:
        raise AssertionError("this starts a JVM")

    monkeypatch.setattr(Job, "spark", property(refuse))


@pytest.fixture
def ingest(weir: Weir, tmp_path: Path) -> Ingest:
    """Return `ingest(name, content, words ...)`, which writes a file and appends it to its own
    stream."""

    def run(name: str, content: str | bytes, *words: str, key: str = "k") -> Done:
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(data)
        return weir("ingest", name, "--stream", "s/events", "--key", key, *words)

    return run


def events(weir: Weir, *columns: str) -> list[tuple[Any, ...]]:
    """The events of the stream in their order."""
    done = weir("read", "s/events", "--json")
    return [tuple(row[name] for name in columns) for row in done.lines]


def test_a_csv_file_becomes_a_stream_without_a_jvm(ingest: Ingest, weir: Weir) -> None:
    done = ingest("a.csv", 'k,n,p,note\na,1,1.50,"x\r\ny"\nb,,2.00,""\n', "--segments", "1")
    assert done.status == 0, done.err
    assert "s/events: 2 events appended (transaction 1)\n" in done.out
    assert "columns: k string, n long, p decimal(18,2), note string" in done.out
    assert events(weir, "k", "n", "note") == [("a", 1, "x\r\ny"), ("b", None, "")]
    again = weir("ingest", "a.csv", "--stream", "s/events", "--json").json
    assert (again["repeated"], again["events"]) == (True, 2)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("packed.csv", gzip.compress(b"k,n\na,1\n", mtime=0)),
        ("packed.csv.gz", b"k,n\na,1\n"),
        ("packed.csv", bz2.compress(b"k,n\na,1\n")),
        ("packed.csv.zst", pa.compress(b"k,n\na,1\n", "zstd", asbytes=True)),
        ("named.csv", b"sep=;\r\nk;n\r\na;1\r\n"),
        ("marked.csv", b"\xef\xbb\xbfk,n\na,1\n"),
        ("blank.csv ", b"k,n\na,1\n"),
        ("tabs.tsv", b"k\tn\na\t1\n"),
    ],
)
def test_a_file_is_read_whatever_its_name_says_of_its_bytes(
    ingest: Ingest, weir: Weir, name: str, content: bytes
) -> None:
    words = ("--format", "csv") if name.endswith(" ") else ()
    done = ingest(name, content, *words)
    assert done.status == 0, done.err
    assert events(weir, "k", "n") == [("a", 1)]


def test_a_last_line_without_its_end_is_told_or_refused(ingest: Ingest, weir: Weir) -> None:
    refused = ingest("cut.csv", "k,n\na,1\nb,20", "--last-line", "refuse")
    assert refused.status == 2
    assert "'b,20'" in refused.err
    assert "[file_invalid]" in refused.err
    done = ingest("cut.csv", "k,n\na,1\nb,20")
    assert "the last line of 'cut.csv' has no line end: check that it is whole" in done.out
    assert events(weir, "n") == [(1,), (20,)]
    wrong = weir("ingest", "x.parquet", "--stream", "s/events", "--last-line", "refuse")
    assert wrong.status == 2


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"k,n\na,\xff\n", "file_invalid", "not UTF-8"),
        (b"k,n\na,\x00\n", "file_invalid", "NUL"),
        (b'k,n\na,"1\n', "file_invalid", "quotes"),
        (b"k,k\na,1\n", "columns_invalid", "twice"),
        (b"k;n\na;1\n", "file_invalid", "--separator"),
        (b"", "file_invalid", "has no header"),
        (
            ",".join(["k", *(f"c{i}" for i in range(25_000))]).encode() + b"\n",
            "columns_invalid",
            "at most",
        ),
        (gzip.compress(b"k,n\na,1\n", mtime=0)[:-9], "file_invalid", "is damaged"),
    ],
)
def test_a_file_that_cannot_be_read_unchanged_is_refused_in_a_sentence(
    ingest: Ingest, weir: Weir, content: bytes, code: str, said: str
) -> None:
    done = ingest("wrong.csv", content)
    assert (done.status, f"[{code}]" in done.err) == (2, True), done.err
    assert said in done.err
    assert weir("streams", "--json").json == []


def test_what_only_spark_reads_is_refused_where_spark_is_not_wanted(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.arrow.ingest.MOST_BYTES", 4)
    done = ingest("a.json", '{"k":"a"}\n', "--engine", "pyarrow")
    assert (done.status, "[needs_spark]" in done.err) == (2, True), done.err
    assert "--engine spark" in done.err


def test_a_process_that_ingests_imports_neither_pandas_nor_pyspark_nor_other_jobs(
    ingest: Ingest, tmp_path: Path
) -> None:
    assert ingest("first.csv", "k,n\na,1\n").status == 0
    (tmp_path / "next.csv").write_text("k,n\nb,2\n")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "ingest", "next.csv", "--stream", "s/events"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(weir_package.__file__).parents[1])},
    )  # fmt: skip
    assert "1 event appended (transaction 2)" in done.stdout
    modules = done.stdout.splitlines()[-1].split()
    jobs = [name for name in modules if name.startswith("weir.spark_jobs.")]
    assert jobs == ["weir.spark_jobs.ingest"]
    assert not {"pandas", "pyspark", "polars", "airflow", "duckdb"} & set(modules)


_PROGRAM = """
import sys
from weir.terminal.__main__ import program
assert program() == 0
print(*sys.modules)
"""
