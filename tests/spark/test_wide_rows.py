"""Rows with very many columns: what Weir asks of Spark does not grow with their number."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import MEMORY_COMMAND_NAME

from tests.released import only
from tests.spark.installation import Installation

ODD = ["a.b", "a`b", "A`.b ", "ключ"]  # names that mean something else unless they are quoted


@contextmanager
def counted(weir: Installation) -> Iterator[list[str]]:
    """The calls from Python to the JVM, which are made as ever."""
    calls: list[str] = []
    client: Any = weir.spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    send = client.send_command

    def noted(command: str, *rest: Any, **options: Any) -> Any:
        if not command.startswith(MEMORY_COMMAND_NAME):  # of a collected object, now or later
            calls.append(command)
        return send(command, *rest, **options)

    client.send_command = noted
    try:
        yield calls
    finally:
        del client.send_command


def table(columns: int) -> pa.Table:
    names = [*ODD, *(f"c{i}" for i in range(columns - len(ODD) - 2))]
    return pa.table({"k": ["a", "b"], "n": [1, 2], **{name: [3, 4] for name in names}})


@pytest.mark.release
def test_appending_asks_no_more_of_spark_for_many_columns_than_for_few(weir: Installation) -> None:
    def calls(columns: int, key: str, files: int) -> int:
        stream = weir.create(f"s/{key[0]}{files}-{columns}", key=key)
        rows = table(columns)
        paths = [f"{columns}-{key[0]}-{i}.parquet" for i in range(files)]
        for path in paths:
            pq.write_table(rows, f"{weir.input}/{path}")
        frame = weir.spark.read.parquet(f"{weir.input}/{paths[0]}")
        with counted(weir) as made:
            weir.ingest(stream, paths)
            weir.append(stream, frame)
        return len(made)

    for key, files in (("k", 1), ("upper(k)", 2)):
        few = calls(10, key, files)
        many = calls(1_000, key, files)
        assert few > 100
        assert many < few + 500, f"{many} calls for 1,000 columns, {few} for 10"


@pytest.mark.parametrize("files", only(2, of=[1, 2]))
def test_columns_keep_their_exact_names_and_their_values(weir: Installation, files: int) -> None:
    stream = weir.create()
    rows = table(10)
    paths = [f"{i}.parquet" for i in range(files)]
    for path in paths:
        pq.write_table(rows, f"{weir.input}/{path}")
    weir.ingest(stream, paths)
    weir.append(stream, weir.spark.read.parquet(f"{weir.input}/0.parquet"))
    facts = weir.check(stream, read=True)
    for name, values in rows.to_pydict().items():
        assert sorted(facts[name]) == sorted(values * (files + 1)), name
    assert {name for name in map(str, facts) if not name.startswith("_")} == set(rows.column_names)
