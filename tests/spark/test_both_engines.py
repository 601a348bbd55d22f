"""Spark and pyarrow read one group: the same values come out, and either takes over what the other
has begun."""

from collections.abc import Callable
from typing import Any

import weir as programs
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.spark.installation import Installation
from weir.model.names import stream_name
from weir.spark import Reader
from weir.spark.consumers.parquet_output import output_frame

# By column its type in Postgres, and the values that Spark makes of SQL.
KINDS: dict[str, tuple[str, list[str]]] = {
    "flag": ("boolean", ["true", "false"]),
    "tiny": ("smallint", ["CAST(-128 AS TINYINT)", "CAST(127 AS TINYINT)"]),
    "small": ("smallint", ["CAST(-32768 AS SMALLINT)", "CAST(5 AS SMALLINT)"]),
    "whole": ("numeric", ["-2147483648", "7"]),
    "long": ("bigint", ["-9223372036854775808L", "9223372036854775807L"]),
    "single": ("real", ["CAST('0.1' AS FLOAT)", "CAST('-Infinity' AS FLOAT)"]),
    "double": ("double precision", ["1e-300D", "CAST('NaN' AS DOUBLE)"]),
    "odd": ("double precision", ["123456789.123D", "-0.0D"]),
    "money": ("numeric(38, 10)", ["CAST('12345678901234567890.0000000001' AS DECIMAL(38, 10))",
                                  "CAST('0.0000000001' AS DECIMAL(38, 10))"]),
    "words": ("text", ["'a\"b\\\\c, é \\n\\t'", "''"]),
    "bytes": ("bytea", ["X'00FF'", "X''"]),
    "day": ("date", ["DATE'0001-01-01'", "DATE'9999-12-31'"]),
    "moment": ("timestamptz", ["TIMESTAMP'1969-12-31 23:59:59.999999'",
                               "TIMESTAMP'2026-03-29 01:30:00.000001'"]),
    "plain": ("timestamp", ["TIMESTAMP_NTZ'0001-01-01 00:00:00'",
                            "TIMESTAMP_NTZ'2026-03-29 02:30:00.1'"]),
    "list": ("json", ["array(1.5D, NULL, CAST('NaN' AS DOUBLE), 1e7D, 0.001D)",
                      "CAST(array() AS ARRAY<DOUBLE>)"]),
    "map": ("json", ["map('k\\u0001', DATE'2026-01-01', '', NULL)",
                     "CAST(map() AS MAP<STRING, DATE>)"]),
    "by_number": ("json", ["map(1, true, -2, false)", "CAST(map() AS MAP<INT, BOOLEAN>)"]),
    "nested": ("json", [
        "named_struct('a', 1, 'b', named_struct('c', array(X'00FF'), 'd', CAST(NULL AS STRING),"
        " 'e', TIMESTAMP'2026-01-01 10:00:00', 'f', TIMESTAMP_NTZ'2026-01-01 10:00:00.5',"
        " 'g', CAST('0.0000001' AS DECIMAL(10, 7)), 'h', CAST('1.1' AS FLOAT)))",
        "named_struct('a', NULL, 'b', NULL)"]),
}  # fmt: skip


def make(weir: Installation, test_database: TestDatabase) -> None:
    """Append a row of each kind of value and one of nulls; make a table for each engine."""
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in KINDS.items())
    for engine in ("spark", "pyarrow"):
        execute(
            test_database.owner_dsn,
            f"""CREATE TABLE public.of_{engine} (row int, {columns});
            GRANT SELECT, INSERT ON public.of_{engine} TO weir_jobs, weir_publisher""",
        )
        weir.create(f"s/{engine}", key="row", segments=2)
    rows = [
        "SELECT {} AS row, {}".format(
            i,
            ", ".join(
                f"CAST({values[i] if i < 2 else 'NULL'} AS {{{name}}}) AS `{name}`"
                for name, (_, values) in KINDS.items()
            ),
        )
        for i in range(3)
    ]
    types = {
        name: weir.spark.sql(f"SELECT {values[0]} AS x").schema["x"].dataType.simpleString()
        for name, (_, values) in KINDS.items()
    }
    stream = weir.create("s/kinds", key="row", segments=2)
    weir.append(stream, weir.spark.sql(" UNION ALL ".join(rows).format(**types)))


def test_both_engines_write_every_kind_of_value_alike(
    weir: Installation, test_database: TestDatabase
) -> None:
    make(weir, test_database)
    with programs.open(settings=weir.settings, spark=weir.spark) as store:
        for engine in ("spark", "pyarrow"):
            store.create_reader_group(engine, ["s/kinds"])
            for batch in store.reader(engine, engine=engine):
                rows = batch.events
                batch.commit(
                    {f"table:public.of_{engine}": rows, f"stream:s/{engine}": rows,
                     "parquet:kinds": rows}
                )  # fmt: skip
        shown = ", ".join(f'"{name}"::text' for name in KINDS)
        of = {e: weir.query(f"SELECT row, {shown} FROM public.of_{e} ORDER BY row")
              for e in ("spark", "pyarrow")}  # fmt: skip
        assert len(of["spark"]) == 3
        for spark, arrow in zip(of["spark"], of["pyarrow"], strict=True):
            assert spark._asdict() == arrow._asdict()
        kinds = ["row", *KINDS]
        read = {e: store.read(f"s/{e}", columns=kinds).sort_by("row") for e in of}
        assert read["spark"].schema == read["pyarrow"].schema
        source = store.read("s/kinds", columns=kinds).sort_by("row")
        for name in kinds:
            wanted = str(source[name].to_pylist())
            assert str(read["spark"][name].to_pylist()) == wanted, name
            assert str(read["pyarrow"][name].to_pylist()) == wanted, name
    assert output_of(weir, "spark") == output_of(weir, "pyarrow")


def output_of(weir: Installation, group: str) -> list[str]:
    """The rows that count of the group's Parquet output, as Spark reads them."""
    frame = output_frame(weir.spark, weir.database, weir.settings, "parquet:kinds", group)
    return sorted(map(str, frame.select("row", *KINDS).collect()))


def test_an_engine_takes_over_what_the_other_has_begun(
    weir: Installation, test_database: TestDatabase
) -> None:
    weir.create(segments=3)
    weir.create("s/out", segments=2)
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.results (k text, n bigint PRIMARY KEY);
        GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher""",
    )
    stream = stream_name("s/events")
    group = weir.group(stream)

    def write(batch: Any) -> None:
        for output in ("stream:s/out", "table:public.results", "parquet:out"):
            batch.write(output, batch.events)

    with programs.open(settings=weir.settings) as store:
        for i, (first, second) in enumerate([("spark", "pyarrow"), ("pyarrow", "spark")]):
            weir.put(stream, [(f"key {n % 11}", n) for n in range(60 * i, 60 * i + 60)])
            readers: dict[str, Callable[[], Any]] = {
                "pyarrow": lambda: store.reader(group, reader_id="one"),
                "spark": lambda: Reader(
                    weir.spark, group, reader_id="one", installation=weir.opened
                ),
            }
            with raises("batch_not_committed"), readers[first]() as reader:
                write(next(reader))
                next(reader)
            with readers[second]() as reader:
                for batch in reader:
                    assert batch.attempt == 2
                    write(batch)
                    batch.commit()
    numbers = list(range(120))
    assert sorted(row.n for row in weir.frame(stream_name("s/out")).collect()) == numbers
    assert [n for (n,) in weir.query("SELECT n FROM public.results ORDER BY n")] == numbers
