"""The columns of input files: find them, compare them with the stream's, and check for what Spark
would change or drop silently."""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from weir.errors import InvalidInput
from weir.model.names import check_user_columns, shortened
from weir.model.schema import SEQ, Field, plain, without_metadata
from weir.spark.exact import exact, quoted
from weir.spark.parquet_columns import ParquetColumns, parquet_columns
from weir.spark.session import COMPLETE
from weir.spark.text_files import (
    LONGEST_LINE,
    check_text_of,
    columns_with,
    either,
    gained,
    has_gained,
    header,
    is_rounded,
    look,
    numbers_as_text,
    shows,
    unclosed_quote,
    unfit,
)
from weir.spark.unreadable import damage_of, damaged
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import spark_path

if TYPE_CHECKING:
    from weir.spark.inputs import Inputs

MALFORMED = "_weir_malformed"  # the text of a row that could not be parsed, else null
# Times without a zone are UTC in every session. Quotes in a csv file are doubled, as in RFC 4180
# and in all programs but Spark.
READING = {"timeZone": "UTC", "escape": '"', **COMPLETE}
_TEXT: Field = {"type": "string", "nullable": True, "metadata": {}}
_NUMBERS = {"integer", "long", "double"}
_SHOWN = 40  # the most columns whose inferred types are logged


@dataclass(frozen=True)
class Columns:
    """What to read from the files, and how to make rows of it."""

    schema: StructType  # the columns that Spark reads; for text formats with MALFORMED
    several_lines: frozenset[int] = frozenset()  # the csv files with newlines inside rows
    json: dict[str, str] | None = None  # the options for json files, which are read line by line
    # Columns to parse again in other types, a pattern of the lines to parse, and a test that says
    # whether the row is malformed.
    tests: list[tuple[StructType, str, Column]] = field(default_factory=list)
    parquet: ParquetColumns | None = None

    def parsed(self, frame: DataFrame) -> DataFrame:
        """Return the rows of a frame that was scanned."""
        if self.parquet is not None:
            return self.parquet.parsed(frame, MALFORMED)
        if self.json is None:
            return frame
        value = F.col("value")
        options = {**self.json, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
        fit = F.when(~unfit(value), value)
        parsed = [F.from_json(fit, self.schema, options).alias("_weir_row")]
        for i, (schema, lines, _) in enumerate(self.tests):
            again = F.when(value.rlike(lines), fit)
            parsed.append(F.from_json(again, schema, options).alias(f"_weir_test{i}"))
        suspect = either(test for *_, test in self.tests)
        frame = frame.where(F.trim(value) != "").select("value", SEQ, *parsed)
        row = F.col("_weir_row")
        text = F.replace(
            F.make_valid_utf8(F.left(value, F.lit(LONGEST_LINE))), F.lit("\0"), F.lit("\ufffd")
        )
        malformed = F.when(unfit(value), text).otherwise(row.getField(MALFORMED))
        if suspect is not None:
            malformed = F.coalesce(malformed, F.when(suspect, value))
        rows = frame.select("_weir_row.*", malformed.alias("_weir_why"), SEQ).drop(MALFORMED)
        return rows.withColumnRenamed("_weir_why", MALFORMED)


def columns_of(
    spark: SparkSession,
    inputs: "Inputs",
    known: list[Field] | None,
    quarantine: bool,
    say: Callable[[str], None],
) -> Columns:
    """Return the columns of the files. In text files they have the types of the stream's columns.

    Raises InvalidInput that names what cannot be read, or not unchanged.
    """
    if inputs.format == "parquet":
        found = parquet_columns(inputs)
        return Columns(found.scanned, parquet=found)
    reader = spark.read.options(**{**READING, **inputs.options})
    paths = [exact(spark_path(inputs.root, file.path)) for file in inputs.files]
    if inputs.format == "csv":
        return _csv(spark, reader, inputs, paths, known, say)
    return _json(spark, reader, inputs, paths, known, quarantine, say)


def _struct(fields: Sequence[Field]) -> StructType:
    return StructType.fromJson({"type": "struct", "fields": without_metadata(list(fields))})


def _with_malformed(struct: StructType) -> StructType:
    return StructType([*struct.fields, StructField(MALFORMED, StringType())])


def _csv(
    spark: SparkSession,
    reader: DataFrameReader,
    inputs: "Inputs",
    paths: list[str],
    known: list[Field] | None,
    say: Callable[[str], None],
) -> Columns:
    names = _csv_header(inputs)
    check_user_columns(names)
    _check_separator(inputs, names, known)
    several_lines = _several_lines(spark, inputs, paths)
    if known is not None:
        types = {one["name"]: one for one in known}
        fields = [types.get(name, {**_TEXT, "name": name}) for name in names]
    else:
        fields = _inferred(reader, inputs, paths, names, bool(several_lines), say)
    return Columns(_with_malformed(_struct(fields)), several_lines)


def _inferred(
    reader: DataFrameReader,
    inputs: "Inputs",
    paths: list[str],
    names: list[str],
    several_lines: bool,
    say: Callable[[str], None],
) -> list[Field]:
    """Return the columns of csv files with the types that fit their values."""
    if inputs.infer == "strings":
        return [{**_TEXT, "name": name} for name in names]
    say(f"inferring the types of {len(names)} columns: reading {len(paths)} files once for that")
    reader = reader.option("header", True).option("multiLine", several_lines)
    found = reader.option("inferSchema", True).csv(paths).schema.jsonValue()["fields"]
    if len(found) != len(names):
        raise InvalidInput(
            "header_invalid",
            f"the header line of {inputs.files[0].path!r} has {len(names)} columns by RFC 4180, "
            f"but Spark reads {len(found)}; quote the names that contain a separator, a quote or "
            "a control character.",
        )
    fields = [{**one, "name": name} for one, name in zip(found, names, strict=True)]
    codes = _codes(reader, paths, fields)
    fields = [{**_TEXT, "name": f["name"]} if f["name"] in codes else f for f in fields]
    shown = shows(fields[:_SHOWN]) + (", ..." if len(fields) > _SHOWN else "")
    zeros = (
        f"; strings for their leading zeros: {', '.join(sorted(codes)[:_SHOWN])}" if codes else ""
    )
    say(
        f"inferred for good: {shown}{zeros} (for other types give Columns when the stream is "
        "created, or choose to infer strings)"
    )
    return fields


def _codes(reader: DataFrameReader, paths: list[str], fields: list[Field]) -> set[str]:
    """Return the columns of numbers with a value that has a leading zero, such as 00501: they are
    codes."""
    numbers = [one["name"] for one in fields if one["type"] in _NUMBERS]
    if not numbers:
        return set()
    texts = reader.schema(_struct([{**_TEXT, "name": one["name"]} for one in fields])).csv(paths)
    zero = [
        F.coalesce(F.bool_or(column.rlike(r"^\s*[+-]?0[0-9]")), F.lit(False))
        for column in quoted(numbers)
    ]
    row = texts.agg(F.array(*zero)).collect()[0]
    return {name for name, has in zip(numbers, row[0], strict=True) if has}


def _csv_header(inputs: "Inputs") -> list[str]:
    """Return the columns of the files' header lines, which must be the same in all of them."""
    system, base = filesystem(inputs.root)
    separator = inputs.separator

    def first(path: str) -> list[str]:
        try:
            with system.open_input_stream(f"{base}/{path}", compression="detect") as source:
                return header(source, path, separator)
        except OSError:
            if (damage := damage_of(inputs.root, path, "csv")) is not None:
                raise damaged(path, damage) from None
            raise

    with ThreadPoolExecutor(16) as pool:
        headers = list(pool.map(first, [file.path for file in inputs.files]))
    for file, one in zip(inputs.files, headers, strict=True):
        if not one:
            raise InvalidInput(
                "header_missing", f"the file {file.path!r} has no header line; add one."
            )
        if one != headers[0]:
            raise InvalidInput(
                "headers_differ",
                f"the header line of {file.path!r} ({', '.join(one[:5])}) is not the same as that "
                f"of {inputs.files[0].path!r} ({', '.join(headers[0][:5])}); append files with "
                "different headers separately.",
            )
    return [name or f"_c{i}" for i, name in enumerate(headers[0])]


def _check_separator(inputs: "Inputs", names: list[str], known: list[Field] | None) -> None:
    """Raise InvalidInput for a single column whose name looks like several."""
    if len(names) > 1 or names[0] in {one["name"] for one in known or []}:
        return
    for other in (";", "\t", "|", ","):
        if other in names[0]:
            raise InvalidInput(
                "separator_wrong",
                f"the header line of {inputs.files[0].path!r} has one column, "
                f"{shortened(names[0])}; give the separator {other!r} if the file uses it, or "
                "rename the column.",
            )


def _several_lines(spark: SparkSession, inputs: "Inputs", paths: list[str]) -> frozenset[int]:
    """Return the csv files that have newlines inside quotes. Raises InvalidInput for a file with a
    quote that is never closed, or that is not UTF-8."""
    lines = spark.read.text(paths).select(
        one_slash(F.col("_metadata.file_path")).alias("file"), "value"
    )
    found = look(lines, inputs.separator)
    if not found:
        return frozenset()
    whole = [spark_path(inputs.root, file.path) for file in inputs.files]
    several = []
    for i, name in enumerate(file_names(spark, inputs.root, whole)):
        if name not in found:
            continue
        path = inputs.files[i].path
        check_text_of(path, found[name])
        if line := unclosed_quote(inputs.root, path, inputs.separator):
            raise InvalidInput(
                "quotes_not_closed",
                f"the quotes that open in line {line:,} of {path!r} are never closed; add the "
                'missing ".',
            )
        several.append(i)
    return frozenset(several)


def _json(
    spark: SparkSession,
    reader: DataFrameReader,
    inputs: "Inputs",
    paths: list[str],
    known: list[Field] | None,
    quarantine: bool,
    say: Callable[[str], None],
) -> Columns:
    unparsed = uuid.uuid4().hex  # not a column of the user
    try:
        struct = reader.option("columnNameOfCorruptRecord", unparsed).json(paths).schema
    except AnalysisException as error:
        if error.getCondition() != "COLUMN_ALREADY_EXISTS":
            raise
        name = (error.getMessageParameters() or {}).get("columnName", "?").strip("`")
        raise InvalidInput(
            "column_named_twice",
            f"an object in the files has the name {name!r} twice (upper and lower case count as "
            "the same); rename one of them.",
        ) from None
    found = {one["name"]: one for one in struct.jsonValue()["fields"] if one["name"] != unparsed}
    types = {one["name"]: one for one in known or []}
    if not found and known is None:
        raise _nothing_found(spark, inputs, paths)
    fields = plain([types.get(name) or found[name] for name in found or types])
    tests: list[tuple[StructType, str, Column]] = []
    more = {n: gained(types[n]["type"], found[n]["type"], n) for n in found if n in types}
    if paths_gained := [path for some in more.values() for path in some]:
        if not quarantine:
            raise InvalidInput(
                "column_unknown",
                f"{paths_gained[0]!r} is not a field of column {paths_gained[0].split('.')[0]!r} "
                "of the stream, whose type can't change; leave it out, or set on_bad_rows to "
                "quarantine with weir_update_stream.",
            )
        kinds = [found[f["name"]]["type"] if more.get(f["name"]) else None for f in fields]
        tests += _test(fields, kinds, len(tests), "", lambda column, one: has_gained(
            column, types[one["name"]]["type"], one["type"]))  # fmt: skip
    kinds = [numbers_as_text(one["type"]) for one in fields]
    if any(kinds):
        tests += _test(
            fields,
            kinds,
            len(tests),
            "[0-9]{16}",
            lambda column, one: is_rounded(column, one["type"]),
        )
    options = {**READING, **inputs.options}
    return Columns(_with_malformed(_struct(fields)), json=options, tests=tests)


def _test(
    fields: list[Field],
    kinds: list[Any],
    number: int,
    lines: str,
    test: Callable[[Column, Field], Column | None],
) -> list[tuple[StructType, str, Column]]:
    """Return columns to parse in these types, the lines to parse, and the test that marks a
    malformed row."""
    some = columns_with(fields, kinds)
    row = F.col(f"_weir_test{number}")
    whole = either(test(row.getField(one["name"]), one) for one in some)
    return [] if whole is None else [(_struct(some), lines, whole)]


def _nothing_found(spark: SparkSession, inputs: "Inputs", paths: list[str]) -> InvalidInput:
    """Return the error for json files in which there is no column."""
    lines = spark.read.text(paths).select(
        one_slash(F.col("_metadata.file_path")).alias("file"), "value"
    )
    for name, wrong in look(lines, None).items():
        check_text_of(name.rpartition("/")[2], wrong)
    longest = lines.select(F.max(F.octet_length("value"))).first()
    if longest is not None and (longest[0] or 0) > LONGEST_LINE:
        return InvalidInput(
            "line_too_long",
            f"a line of the files has {longest[0]:,} bytes, but an event may have at most "
            f"{LONGEST_LINE:,} as JSON; write one object per line.",
        )
    example = lines.where(F.trim("value") != "").select(F.left("value", F.lit(80))).first()
    if example is None:
        return InvalidInput(
            "file_empty",
            f"the input file {inputs.files[0].path!r} is empty; it must have at least one JSON "
            "object.",
        )
    return InvalidInput(
        "no_columns",
        f"no line of {inputs.files[0].path!r} is a JSON object with a field (the first line is "
        f"{example[0]!r}); write one object per line.",
    )


def file_names(spark: SparkSession, root: str, paths: list[str]) -> list[str]:
    """Return the paths as Spark reports them with the rows: with the host, even if the root leaves
    it out."""
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path
    system = path(spark_path(root)).getFileSystem(context._jsc.hadoopConfiguration())
    names = [str(system.makeQualified(path(one)).toUri().toString()) for one in paths]
    return ["file:/" + n[5:].lstrip("/") if n.startswith("file:") else n for n in names]


def one_slash(path: Column) -> Column:
    """Return local paths with one slash after `file:`. Spark reports `file:/x` or `file:///x`,
    depending on how the path was built."""
    return F.regexp_replace(path, "^file:/+", "file:/")
