"""Rows into tables of Weir's database: every type unchanged, and what doesn't fit is said."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.types import StructType

import weir as programs
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.spark.installation import Installation
from weir.consumers.columns import matched
from weir.consumers.engine import Copy
from weir.errors import BadRows
from weir.model.schema import Field
from weir.queries.reader_groups.outputs.tables import Column
from weir.reader_groups.outputs.tables import read_table
from weir.settings import Settings
from weir.spark.consumers.table_output import copy_rows

# Column, type in Postgres, type in Spark, its values in Spark's SQL, how Postgres shows them.
TYPES: list[tuple[str, str, str, list[str], list[str]]] = [
    ("b", "boolean", "boolean", ["true", "false"], ["true", "false"]),
    ("i1", "smallint", "tinyint", ["-128", "127"], ["-128", "127"]),
    ("i4", "bigint", "int", ["-2147483648", "7"], ["-2147483648", "7"]),
    ("i8", "numeric", "bigint", ["9223372036854775807", "0"], ["9223372036854775807", "0"]),
    ("f4", "real", "float", ["1.5", "float('NaN')"], ["1.5", "NaN"]),
    ("f8", "double precision", "double", ["1e300", "double('-Infinity')"],
     ["1e+300", "-Infinity"]),
    ("d", "numeric(12, 3)", "decimal(10,2)", ["12345678.91", "-0.01"], ["12345678.910", "-0.010"]),
    ("s", "text", "string", ["'a,\"b\"\\n\\\\.'", "''"], ['a,"b"\n\\.', ""]),
    ("v", "varchar(3)", "string", ["'äö '", "'\\\\N'"], ["äö ", "\\N"]),
    ("u", "uuid", "string", ["'00000000-0000-0000-0000-00000000000a'", "NULL"],
     ["00000000-0000-0000-0000-00000000000a", "None"]),
    ("x", "bytea", "binary", ["X'00FF5C'", "X''"], ["\\x00ff5c", "\\x"]),
    ("day", "date", "date", ["'0001-01-01'", "'2024-02-29'"], ["0001-01-01", "2024-02-29"]),
    ("t", "timestamptz", "timestamp", ["'2024-03-31 01:30:00.123456 Europe/Berlin'",
     "'1969-12-31 23:59:59.9Z'"], ["2024-03-31 00:30:00.123456+00", "1969-12-31 23:59:59.9+00"]),
    ("tn", "timestamp", "timestamp_ntz", ["'2024-03-31 02:30:00'", "'2024-01-01 00:00:00'"],
     ["2024-03-31 02:30:00", "2024-01-01 00:00:00"]),
    ("a", "jsonb", "array<int>", ["array(1, NULL)", "array()"], ["[1, null]", "[]"]),
    ("m", "json", "map<string,string>", ["map('k', 'v')", "map()"], ['{"k":"v"}', "{}"]),
    ("o", "jsonb", "struct<p:string>", ["named_struct('p', 'q\"')", "NULL"],
     ['{"p": "q\\""}', "None"]),
    ("va", "jsonb", "variant", ["parse_json('{\"p\": [1.5, null]}')", "parse_json('\"t\"')"],
     ['{"p": [1.5, null]}', '"t"']),
    ("e", "mood", "string", ["'good'", "'bad'"], ["good", "bad"]),
    ("i2", "smallint", "smallint", ["-32768", "5"], ["-32768", "5"]),
    ("odd", "double precision", "double", ["123456789.123D", "-0.0D"], ["123456789.123", "-0"]),
    ("money", "numeric(38, 10)", "decimal(38,10)", ["'12345678901234567890.0000000001'",
     "'0.0000000001'"], ["12345678901234567890.0000000001", "0.0000000001"]),
    ("list", "json", "array<double>", ["array(1.5D, NULL, double('NaN'), 1e7D, 0.001D)",
     "array()"], ['[1.5,null,"NaN",1.0E7,0.001]', "[]"]),
    ("days", "json", "map<string,date>", ["map('k\\u0001', DATE'2026-01-01', '', NULL)", "map()"],
     ['{"k\\u0001":"2026-01-01","":null}', "{}"]),
    ("flags", "json", "map<int,boolean>", ["map(1, true, -2, false)", "map()"],
     ['{"1":true,"-2":false}', "{}"]),
    ("deep", "json", "struct<a:int,b:struct<c:array<binary>,d:string,e:timestamp,f:timestamp_ntz,"
     "g:decimal(10,7),h:float>>",
     ["named_struct('a', 1, 'b', named_struct('c', array(X'00FF'), 'd', NULL,"
      " 'e', TIMESTAMP'2026-01-01 10:00:00Z', 'f', TIMESTAMP_NTZ'2026-01-01 10:00:00.5',"
      " 'g', 0.0000001, 'h', float('1.1')))", "named_struct('a', NULL, 'b', NULL)"],
     ['{"a":1,"b":{"c":["AP8="],"d":null,"e":"2026-01-01T10:00:00.000000Z",'
      '"f":"2026-01-01T10:00:00.500000","g":1E-7,"h":1.1}}', '{"a":null,"b":null}']),
]  # fmt: skip


def make(test_database: TestDatabase, columns: str, name: str = "public.results") -> str:
    execute(
        test_database.owner_dsn,
        f"CREATE TABLE {name} ({columns});"
        f"GRANT SELECT, INSERT ON {name} TO weir_jobs, weir_publisher",
    )
    return name


def test_values_of_every_type_arrive_unchanged_by_both_engines(
    weir: Installation, test_database: TestDatabase
) -> None:
    execute(test_database.owner_dsn, "CREATE TYPE public.mood AS ENUM ('good', 'bad')")
    more = [("mood", "public.mood"), ("timestamptz", "timestamptz")]
    kinds = {t[0]: dict(more).get(t[1], t[1]) for t in TYPES}
    columns = "row int, " + ", ".join(f'"{n}" {kind}' for n, kind in kinds.items())
    tables = [make(test_database, columns, f"public.of_{one}") for one in ("spark", "pyarrow")]
    stream = weir.create(key="row", segments=2)
    rows = [
        "SELECT {} AS row, {}".format(
            i,
            ", ".join(f"CAST({t[3][i] if i < 2 else 'NULL'} AS {t[2]}) AS `{t[0]}`" for t in TYPES),
        )
        for i in range(3)
    ]
    # A session in another time zone must not move times.
    weir.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        weir.append(stream, weir.spark.sql(" UNION ALL ".join(rows)))
        group = weir.group(stream)
        report = weir.consumer(
            group, lambda e: e.drop("_segment", "_offset", "_clock"), f"table:{tables[0]}"
        ).run()
    finally:
        weir.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert report["batches"][0]["tables"] == [{"table": tables[0], "rows": 3}]
    weir.group(stream, name="by-pyarrow")
    with programs.open(settings=weir.settings) as store:
        for batch in store.reader("by-pyarrow"):  # which knows only the parts of a variant
            batch.commit({f"table:{tables[1]}": batch.events.drop_columns(["va"])})
    shown = ", ".join(f'"{name}"::text' for name in kinds)
    for table in tables:
        found = weir.query(f"SELECT {shown} FROM {table} ORDER BY row")
        assert len(found) == 3
        for i, row in enumerate(found):
            wanted = {one[0]: one[4][i] if i < 2 else "None" for one in TYPES}
            wanted |= {"va": "None"} if table == tables[1] else {}
            assert dict(zip(kinds, map(str, row), strict=True)) == wanted, table


WRONG = [
    ("n string", "column_type_differs 'n' string bigint t cast"),
    ("n decimal(10,0)", "column_type_differs 'n' decimal(10,0) bigint"),
    (
        "n int, N int",
        "column_unknown t 'N' n, small, money, at, must, made, pad, low",
    ),
    ("n int, small int", "column_type_differs 'small' int smallint"),
    ("n int, money decimal(10,3)", "column_type_differs 'money' decimal(10,3) numeric(10,2)"),
    ("n int, money double", "column_type_differs 'money' double numeric"),
    ("n int, at timestamp_ntz", "column_type_differs 'at' timestamp_ntz timestamp with time zone"),
    ("n int, made int", "table_refused 'made' t"),
    ("n int", "column_missing 'must' t"),
    ("n array<int>, must string", "column_type_differs 'n' array<integer> bigint"),
    ("must string, pad string", "column_type_differs 'pad' string character(5) t pads"),
    ("must string, low timestamp", "column_type_differs 'low' timestamp timestamp(3) six digits"),
    ("must string, n int, n int", "columns_invalid t 'n' twice"),
    ("must string, _weir_piece string", "columns_invalid '_weir_piece'"),
]


@pytest.fixture
def columns(weir: Installation, test_database: TestDatabase) -> list[Column]:
    name = make(
        test_database,
        """n bigint, small smallint, money numeric(10, 2), at timestamptz, must text NOT NULL,
        made bigint GENERATED ALWAYS AS IDENTITY, pad char(5), low timestamptz(3),
        _weir_piece text""",
    )
    return weir.database.transaction(lambda c: read_table(c, name))


def fields_of(columns: str) -> list[Field]:
    schema = StructType.fromDDL(columns)
    assert isinstance(schema, StructType)
    fields: list[Field] = schema.jsonValue()["fields"]
    return fields


@pytest.mark.release
def test_columns_that_do_not_fit_are_named_in_a_sentence(
    weir: Installation, columns: list[Column]
) -> None:
    for given, says in WRONG:
        with raises(says):
            matched("t", columns, fields_of(given))
    fine = fields_of("must string, n int, money decimal(9,1)")
    assert [column.name for column in matched("t", columns, fine)] == ["must", "n", "money"]


def test_a_row_that_postgres_refuses_is_named_with_its_column_and_nothing_is_published(
    weir: Installation, test_database: TestDatabase
) -> None:
    make(test_database, "k varchar(3), n bigint")
    stream = weir.create()
    weir.put(stream, [("abc", 1), ("abcd", 2)])
    group = weir.group(stream)
    said = 'value too long for type character varying.3. .column k: "abcd".'
    with pytest.raises(Exception, match=rf"not fit table public.results \({said}\)") as failed:
        weir.consumer(group, lambda e: e.select("k", "n"), "table:public.results").run()
    assert isinstance(failed.value.__cause__, BadRows)
    assert weir.query("SELECT FROM public.results") == []
    assert weir.query("SELECT abandoned_staging()") == [], "what it had staged is dropped"
    assert weir.value("SELECT unread_events FROM lag") == 2


@pytest.mark.release
def test_an_outage_on_the_executors_is_an_outage(weir: Installation, settings: Settings) -> None:
    away = replace(settings, database="host=127.0.0.1 port=1 dbname=weir", connect_patience=0.1)
    frame = weir.spark.range(5)
    with raises("output_not_writable port=1 cause") as failed:
        copy_rows(frame, Copy("t", "COPY t FROM STDIN (FORMAT csv)", []), away)
    assert failed.value.retryable


@pytest.mark.release
def test_tasks_without_rows_copy_nothing(weir: Installation, test_database: TestDatabase) -> None:
    make(test_database, "n bigint")
    stream = weir.create()
    weir.put(stream, [("abc", 1)])

    def some(events: Any) -> Any:
        return events.select("n").repartition(8)

    weir.consumer(weir.group(stream), some, "table:public.results").run()
    weir.put(stream, [("abc", 2)])
    nothing: Any = lambda events: events.select("n").where("n > 5")  # noqa: E731 - short
    report = weir.consumer("readers", nothing, "table:public.results").run()
    assert report["batches"][0]["tables"] == [{"table": "public.results", "rows": 0}]
    assert [n for (n,) in weir.query("SELECT n FROM public.results")] == [1]
