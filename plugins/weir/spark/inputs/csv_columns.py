"""Csv files: their columns, their rows as texts, and the values of these in the columns' types."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from weir.errors import InvalidInput
from weir.front_ends import give
from weir.inputs.compression import ENDINGS, compression_of
from weir.inputs.csv_header import check_encoding, check_text_of, names_of, not_closed, text_fields
from weir.inputs.files import Inputs
from weir.kernel.rejected import MALFORMED
from weir.kernel.text_guess import field_of, lines_of
from weir.kernel.text_options import ENCODINGS, TextOptions
from weir.model.schema import GUESSED, VOID, Field, show
from weir.spark.base.exact import exact, quoted
from weir.spark.base.malformed import fault, malformed
from weir.spark.base.session import COMPLETE
from weir.spark.inputs.guess import guess
from weir.spark.inputs.places import BLOCK, FILE, file_names, one_slash
from weir.spark.inputs.text_files import look, unclosed_quote
from weir.spark.inputs.text_values import number, value
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import spark_path

_ROW = "_weir_csv_row"  # the text of a row that is no csv row of so many columns


@dataclass(frozen=True)
class Csv:
    """How to read the csv files of an append."""

    inputs: Inputs
    fields: list[Field]  # in the order of the files; of type `void` where no value shows a type
    sure: frozenset[str]  # the columns whose values were all looked at already
    several_lines: frozenset[int]  # the files with newlines inside rows
    dropped: int  # how many rows at the beginning of each file are none of its data
    empty: str  # what stands for an empty text in quotes

    @property
    def apart(self) -> bool:
        """Return whether each file must be read by itself, because its first rows are dropped."""
        return self.dropped > 0

    def scan(self, spark: SparkSession, group: Sequence[int]) -> DataFrame:
        """Return the rows of some files as texts, with their places, and the text of each row that
        is malformed."""
        inputs, how = self.inputs, self.inputs.how
        paths = [exact(spark_path(inputs.root, inputs.files[i].path)) for i in group]
        names = [one["name"] for one in self.fields]
        struct = StructType([StructField(name, StringType()) for name in [*names, _ROW]])
        reader = spark.read.schema(struct).options(**reading(how), **COMPLETE)
        reader = reader.option("header", how.header and not self.dropped).option(
            "enforceSchema", True
        )
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", _ROW)
        reader = reader.option("emptyValue", self.empty)
        reader = reader.option("multiLine", bool(self.several_lines.intersection(group)))
        frame = reader.format("csv").load(paths).select(
            "*", F.col("_metadata.file_path").alias(FILE),
            F.col("_metadata.file_block_start").alias(BLOCK),
        )  # fmt: skip
        if not self.dropped:
            return frame
        numbered = frame.withColumn("_weir_n", F.monotonically_increasing_id())
        row = F.col("_weir_n").bitwiseAND(F.lit((1 << 33) - 1))
        return numbered.where((F.col(BLOCK) > 0) | (row >= self.dropped)).drop("_weir_n")

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return rows of values, and MALFORMED; other columns stay."""
        how = self.inputs.how
        names = [one["name"] for one in self.fields]
        others = [name for name in frame.columns if name not in {*names, _ROW}]
        texts = [self._text(column) for column in quoted(names)]
        values = []
        for one, text in zip(self.fields, texts, strict=True):
            kind, name = one["type"], one["name"]
            given = text if kind == "string" else F.when(text != "", text)
            if kind == VOID:
                found = F.lit(None)
            elif name in self.sure and not _formatted(kind, self.inputs):
                found = (number(given, how) if _is_number(kind) else given).try_cast(show(kind))
            else:
                found = value(given, show(kind), how, bool(one["metadata"].get(GUESSED)))
            values.append(found.alias(f"_weir_value{names.index(name)}"))
        both = frame.select(*quoted(names), *values, _ROW, *quoted(others))
        faults = [
            F.when((text != "") & F.col(f"_weir_value{i}").isNull(),
                   fault(one["name"], text, show(one["type"])))
            for i, (one, text) in enumerate(zip(self.fields, texts, strict=True))
            if one["type"] not in ("string", VOID) and one["name"] not in self.sure
        ]  # fmt: skip
        why = F.when(F.col(_ROW).isNotNull(), malformed(F.col(_ROW)))
        if faults:
            wrong = F.coalesce(*faults)
            written = F.to_csv(F.struct(*quoted(names)), self._writing())
            written = F.replace(written, F.lit(self.empty), F.lit(how.quote * 2))
            why = why.when(wrong.isNotNull(), malformed(written, wrong))
        kept = [
            F.col(f"_weir_value{i}").alias(one["name"], metadata=one["metadata"])
            for i, one in enumerate(self.fields)
        ]
        return both.select(*kept, why.alias(MALFORMED), *quoted(others))

    def _text(self, column: Column) -> Column:
        return F.when(column == self.empty, F.lit("")).otherwise(column)

    def _writing(self) -> dict[str, str]:
        white = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
        options = {k: v for k, v in reading(self.inputs.how).items() if k != "encoding"}
        return {**options, **white}


def reading(how: TextOptions) -> dict[str, str]:
    """Return Spark's options for csv files that are written so."""
    return {
        "sep": how.separator,
        "quote": how.quote or "\0",
        "escape": how.escape or how.quote or "\0",
        "comment": how.comment or "\0",
        "encoding": ENCODINGS[how.encoding],
        "nullValue": how.null_value,
    }


def _is_number(kind: object) -> bool:
    return str(kind).startswith(("decimal", "double", "long"))


def _formatted(kind: object, inputs: Inputs) -> bool:
    how = inputs.how
    return bool(
        (kind == "date" and how.date_format) or (kind == "timestamp" and how.timestamp_format)
        or kind == "boolean"
    )  # fmt: skip


def csv_columns(
    spark: SparkSession, inputs: Inputs, known: list[Field] | None, say: Callable[[str], None]
) -> Csv:
    """Return how to read the files. Columns that the stream has keep its types.

    Raises InvalidInput that names what cannot be read, or not unchanged.
    """
    named = names_of(inputs, known)
    inputs, names, dropped = replace(inputs, how=named.how), named.names, named.dropped
    _check_endings(inputs)
    several = _several_lines(spark, inputs)
    types = {one["name"]: one for one in known or []}
    texts = text_fields(names, known)
    csv = Csv(inputs, texts, frozenset(), several, dropped, uuid.uuid4().hex)
    new = [name for name in names if name not in types]
    if not new or inputs.infer == "strings":
        return csv
    files = [[i] for i in range(len(inputs.files))] if csv.apart or several else [
        list(range(len(inputs.files)))
    ]  # fmt: skip
    say(f"looking at all values of {len(new)} columns, to find types that keep them")
    rows = csv.scan(spark, files[0])
    for group in files[1:]:
        rows = rows.union(csv.scan(spark, group))
    rows = rows.where(F.col(_ROW).isNull())
    found = dict(
        zip(new, guess(rows, [csv._text(c) for c in quoted(new)], inputs.how), strict=True)
    )
    for line in lines_of(found):
        say(line)
    fields = [field_of(name, found[name]) if name in found else types[name] for name in names]
    return Csv(inputs, fields, frozenset(new), several, dropped, csv.empty)


def _several_lines(spark: SparkSession, inputs: Inputs) -> frozenset[int]:
    """Return the files that have newlines inside quotes. Raises InvalidInput for a file with a
    quote that is never closed, or with bytes that its encoding does not have."""
    how = inputs.how
    if how.encoding != "utf-8":
        for file in inputs.files:
            check_encoding(inputs, file.path)
    if how.wide:
        return frozenset(range(len(inputs.files)))
    paths = [exact(spark_path(inputs.root, file.path)) for file in inputs.files]
    lines = (
        spark.read.options(**COMPLETE)
        .text(paths)
        .select(one_slash(F.col("_metadata.file_path")).alias("file"), "value")
    )
    found = look(lines, how)
    if not found:
        return frozenset()
    whole = [spark_path(inputs.root, file.path) for file in inputs.files]
    several = []
    for i, name in enumerate(file_names(spark, inputs.root, whole)):
        if name not in found:
            continue
        path = inputs.files[i].path
        check_text_of(path, found[name])
        if line := unclosed_quote(inputs.root, path, how):
            raise not_closed(path, line, how)
        several.append(i)
    return frozenset(several)


def _check_endings(inputs: Inputs) -> None:
    """Raise InvalidInput for a file that Spark would not decompress, or would try to: it goes by
    the ends of names."""
    system, base = filesystem(inputs.root)
    for file in inputs.files:
        with system.open_input_file(f"{base}/{file.path}") as source:
            found = compression_of(source)
        shown = next((name for name, end in ENDINGS.items() if file.path.lower().endswith(end)), "")
        if found != shown:
            is_ = f"compressed with {found}" if found else "not compressed"
            ends = f"end in {ENDINGS[found]}" if found else f"not end in {ENDINGS[shown]}"
            raise InvalidInput(
                "compression_unsupported",
                f"the input file {file.path!r} is {is_}, and Spark goes by its name; let that "
                f"{ends}, or {give(engine='pyarrow')}.",
            )
