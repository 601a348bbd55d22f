"""Every type of Spark is appended and read unchanged, or refused: the table of docs/types.md."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import weir as api
from spark_jobs.verify import contents_by
from tests.annex.erasure.world import ASKED
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.spark.installation import Installation
from tests.world.streams import unique
from weir.adjunct.stores import define_store
from weir.annex.erasure.find import places
from weir.annex.erasure.run import erase
from weir.annex.verification.new_files import checking
from weir.annex.verification.verify import verify
from weir.compaction.run import Budget, compact
from weir.controller.read_plan import plan_of_stream
from weir.errors import InvalidInput
from weir.kernel.matching import in_columns
from weir.kernel.schema import with_default
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.column_changes import holds
from weir.model.schema import WHOLE, Field
from weir.programs.opening import shared
from weir.spark.adjuncts.build import build_version

PAGE = Path(__file__).parents[2] / "docs" / "types.md"


@dataclass(frozen=True)
class Kept:
    """A type that streams have: values in SQL, the type of a table that keeps them, and what its
    default may be."""

    name: str
    values: tuple[str, str]
    table: str
    default: str = ""


KEPT = [
    Kept("boolean", ("true", "false"), "boolean", "true"),
    Kept("tinyint", ("-128", "127"), "smallint", "1"),
    Kept("smallint", ("-32768", "32767"), "smallint", "1"),
    Kept("int", ("-2147483648", "2147483647"), "integer", "1"),
    Kept("bigint", ("-9223372036854775808", "9223372036854775807"), "bigint", "1"),
    Kept("float", ("1.1", "'-Infinity'"), "real", "1.5"),
    Kept("double", ("1e300", "'NaN'"), "double precision", "1.5"),
    Kept("decimal(10,2)", ("12345678.91", "-0.01"), "numeric(10,2)", "1.50"),
    Kept("decimal(38,10)", ("1234567890123456789012345678.0123456789", "0"), "numeric", ""),
    Kept("string", ("'äöü\\n\\\\N'", "''"), "text", "x"),
    Kept("binary", ("X'00FF5C'", "X''"), "bytea"),
    Kept("date", ("'0001-01-01'", "'9999-12-31'"), "date", "2013-01-01"),
    Kept("timestamp", ("'1969-12-31 23:59:59.999999Z'", "'2024-03-31 01:30:00Z'"), "timestamptz",
         "2013-01-01 00:00:00Z"),
    Kept("timestamp_ntz", ("'2024-03-31 02:30:00.000001'", "'1582-10-04 00:00:00'"), "timestamp",
         "2013-01-01 00:00:00"),
    Kept("array<int>", ("array(1, NULL)", "array()"), "jsonb"),
    Kept("map<string,int>", ("map('k', 1, 'l', NULL)", "map()"), "jsonb"),
    Kept("struct<a:int,b:string>", ("named_struct('a', 1, 'b', 'x')",
         "named_struct('a', NULL, 'b', '')"), "jsonb"),
    Kept("variant", ("parse_json('{\"a\": [1, 2.5, \"x\", null]}')", "parse_json('7')"), "jsonb"),
]  # fmt: skip
REFUSED = {
    "interval day to second": "INTERVAL '1' DAY", "interval year to month": "INTERVAL '1' YEAR",
    "string collate UTF8_LCASE": "'a' COLLATE UTF8_LCASE", "time": "TIME '01:02:03'",
}  # fmt: skip


def rows_of(frame: Any, names: list[str]) -> list[str]:
    """The rows as texts that tell all values apart, a variant by its JSON and by its type."""
    variants = {f.name for f in frame.schema.fields if f.dataType.simpleString() == "variant"}
    shown = [
        F.concat_ws(" ", F.to_json(name), F.schema_of_variant(name)) if name in variants else name
        for name in names
    ]
    return sorted(map(repr, frame.select(*shown).collect()))


def written() -> dict[str, list[str]]:
    """The table of the page: by type, its other cells."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {one[0].strip("`"): one[1:] for one in cells}


def of_every_type(weir: Installation) -> tuple[DataFrame, list[str]]:
    """Rows with a column of every type, and the names of these columns."""
    names = [f"c{i}" for i in range(len(KEPT))]
    rows = [
        f"SELECT '{key}' AS k, "
        + ", ".join(
            f"CAST({one.values[i] if i < 2 else 'NULL'} AS {one.name}) AS {name}"
            for name, one in zip(names, KEPT, strict=True)
        )
        for i, key in enumerate("abc")
    ]
    return weir.spark.sql(" UNION ALL ".join(rows)), names


@pytest.mark.release
def test_every_type_stays_when_its_files_are_put_together_and_when_others_are_erased(
    weir: Installation,
) -> None:
    frame, names = of_every_type(weir)
    stream = weir.create("t/compacted", key="k", segments=1)
    for batch in ("1", "2"):
        weir.append(stream, frame, batch)
    [report] = compact(
        weir.database, weir.settings, Budget(1 << 40, 600), [stream], thorough=True,
        check=checking(weir.opened),
    )  # fmt: skip
    assert report["files_after"] == 1, report
    assert rows_of(weir.frame(stream), names) == sorted(2 * rows_of(frame, names))
    for engine in ("pyarrow", "spark"):
        found = verify(weir.opened, contents=contents_by(weir.opened, engine))
        assert dict(found.damage) == {}, engine
    weir.append(stream, frame, "3")
    _, slices, fields = weir.database.snapshot(lambda c: plan_of_stream(c, stream))
    of_b = places(weir.settings, slices, fields, in_columns(["k"], ["b"]))
    done = erase(weir.database, weir.settings, stream, ASKED, lambda: of_b)
    assert (done.events, done.files) == (3, 2)
    left = rows_of(frame.where("k <> 'b'"), names)
    assert rows_of(weir.frame(stream), names) == sorted(3 * left)
    for engine in ("pyarrow", "spark"):
        found = verify(weir.opened, contents=contents_by(weir.opened, engine))
        assert dict(found.damage) == {}, engine


def test_every_type_is_read_by_both_engines_as_it_was_appended(weir: Installation) -> None:
    frame, names = of_every_type(weir)
    stream = weir.create("t/types", key="k", segments=2)
    weir.append(stream, frame)
    there = rows_of(frame, names)
    assert rows_of(weir.frame(stream), names) == there

    table = shared(weir.settings).read(str(stream))
    fields = {one["name"]: one for one in frame.schema.jsonValue()["fields"]}
    plain = [name for name in names if fields[name]["type"] != "variant"]
    key = [("k", "ascending")]
    known = frame.select("k", *plain).toArrow().sort_by(key)
    assert repr(table.select(["k", *plain]).sort_by(key).to_pylist()) == repr(known.to_pylist())
    arrow = {name: str(table.schema.field(name).type) for name in names}

    # What pyarrow has read it appends, except a variant, of which it knows only the parts.
    copy = weir.create("t/by-pyarrow", key="k", segments=1)
    shared(weir.settings).append(str(copy), table.select(["k", *plain]))
    assert rows_of(weir.frame(copy), plain) == rows_of(frame, plain)

    cells = {}
    for name, one in zip(names, KEPT, strict=True):
        kind = fields[name]["type"]
        cells[one.name] = [
            arrow[name], "no" if kind == "variant" else "yes", one.table.partition("(")[0],
            default_of(fields[name], one.default), wider_of(kind),
        ]  # fmt: skip
    found = {name: row[: len(cells[name])] for name, row in written().items() if name in cells}
    assert found == {name: [f"`{c}`" if i in (0, 2) else c for i, c in enumerate(row)]
                     for name, row in cells.items()}  # fmt: skip


@pytest.mark.release
def test_every_type_goes_through_a_store_and_a_consumer_to_tables_and_files(
    weir: Installation, test_database: TestDatabase
) -> None:
    frame, names = of_every_type(weir)
    streams = [
        weir.create(f"t/{name}", key="k", segments=1) for name in ("events", "changes", "out")
    ]
    for stream in streams:
        weir.append(stream, frame)
    define_store(
        weir.database, "t/kept", streams[1], AdjunctConfiguration(), AdjunctDefinition(),
        request_id="define",
    )  # fmt: skip
    build_version(weir.opened, "t/kept")
    weir.append(streams[1], frame.where("k = 'a'"), "again")  # the rows of the base are kept
    there = rows_of(frame, names)
    both = {
        **dict(zip(names, KEPT, strict=True)),
        **{f"s_{n}": KEPT[i] for i, n in enumerate(names)},
    }
    columns = ", ".join(f"{name} {one.table}" for name, one in both.items())
    execute(
        test_database.owner_dsn,
        f"""CREATE TABLE public.kept (k text, {columns});
        GRANT SELECT, INSERT ON public.kept TO weir_jobs, weir_publisher""",
    )
    plain = [name for name, one in zip(names, KEPT, strict=True) if one.name != "variant"]
    for group in ("by-spark", "by-pyarrow"):
        weir.group(streams[0], name=group)
    with api.open(settings=weir.settings, spark=weir.spark) as opened:
        for batch in opened.reader("by-spark", engine="spark", adjuncts=["t/kept"]):
            stored = batch.adjuncts["t/kept"]
            assert rows_of(stored, names) == there
            joined = batch.adjuncts.enrich(batch.events, "t/kept", "k", prefix="s_")
            batch.commit({"table:public.kept": joined.drop("s_k"), "parquet:kept": batch.events})
        for batch in opened.reader("by-pyarrow", engine="pyarrow", adjuncts=["t/kept"]):
            key = [("k", "ascending")]
            known = frame.select("k", *plain).toArrow().sort_by(key).to_pylist()
            for table in (batch.events, batch.adjuncts["t/kept"]):
                assert repr(table.select(["k", *plain]).sort_by(key).to_pylist()) == repr(known)
            with raises("column_type_differs variant"):
                batch.commit({f"stream:{streams[2]}": batch.events})
            batch.commit()
    for i, name in enumerate(names):
        same = f"{name}::text IS NOT DISTINCT FROM s_{name}::text"
        [row] = weir.query(f"SELECT count(*), count({name}), bool_and({same}) FROM public.kept")
        assert tuple(row) == (3, 2, True), KEPT[i].name
    folder = Path(weir.settings.output_roots[0]) / "kept"
    assert rows_of(weir.spark.read.parquet(str(folder)), names) == there


def default_of(field: Field, text: str) -> str:
    try:
        with_default(field, text or "1")
    except InvalidInput:
        return "no"
    return "yes"


def wider_of(kind: Any) -> str:
    if not isinstance(kind, str):
        return "its parts"
    if kind.startswith("decimal("):
        digits, _, scale = kind[len("decimal(") : -1].partition(",")
        return "more digits" if holds(f"decimal({int(digits) + 1},{scale})", kind) else "no"
    every = {"short": "smallint", "integer": "int", "long": "bigint", "double": "double",
             "timestamp_ntz": "timestamp_ntz", "string": "string", "variant": "variant",
             "timestamp": "timestamp"}  # fmt: skip
    found = [sql for one, sql in every.items() if one != kind and holds(one, kind)]
    if kind in WHOLE:
        assert holds(f"decimal({WHOLE[kind]},0)", kind)
        found.append(f"decimal({WHOLE[kind]},0)")
    return ", ".join(found) or "no"


@pytest.mark.release
@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_a_type_that_files_tables_or_readers_lack_is_refused(weir: Installation, kind: str) -> None:
    stream = weir.create(f"t/{unique('refused')}", key="k", segments=1)
    for value in (REFUSED[kind], f"array({REFUSED[kind]})"):
        with raises("column_type_unsupported 'x'"):
            weir.append(stream, weir.spark.sql(f"SELECT 'a' AS k, {value} AS x"))
    assert written()[kind][0] == "refused"


def test_the_page_has_all_types() -> None:
    assert written().keys() == {one.name for one in KEPT} | REFUSED.keys()
