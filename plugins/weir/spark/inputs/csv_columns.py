"""Csv files: their columns, their rows as texts, and the values of these in the columns' types."""

import codecs
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from weir.errors import InvalidInput
from weir.front_ends import give
from weir.model.names import check_user_columns, shortened
from weir.model.schema import GUESSED, VOID, Field, show
from weir.spark.base.exact import exact, quoted
from weir.spark.base.malformed import MALFORMED, fault, malformed
from weir.spark.base.session import COMPLETE
from weir.spark.failures.unreadable import damage_of, damaged
from weir.spark.inputs.files import Inputs
from weir.spark.inputs.guess import Guess, guess
from weir.spark.inputs.places import BLOCK, FILE, file_names, one_slash
from weir.spark.inputs.text_files import Header, check_text_of, header, look, unclosed_quote
from weir.spark.inputs.text_options import ENCODINGS
from weir.spark.inputs.text_values import leaves, number, value
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import spark_path

_TEXT: Field = {"type": "string", "nullable": True, "metadata": {}}
_SHOWN = 40  # the most columns whose types are said
_ROW = "_weir_csv_row"  # the text of a row that is no csv row of so many columns
_PIECE = 1 << 20


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
        reader = spark.read.schema(struct).options(**how.reading(), **COMPLETE)
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
        options = {k: v for k, v in self.inputs.how.reading().items() if k != "encoding"}
        return {**options, **white}


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
    names, dropped = _header(inputs, known)
    check_user_columns(names)
    _check_separator(inputs, names, known)
    several = _several_lines(spark, inputs)
    types = {one["name"]: one for one in known or []}
    texts = [types.get(name) or {**_TEXT, "name": name} for name in names]
    for one in texts:
        if not leaves(one["type"]):
            raise InvalidInput(
                "column_type_unsupported",
                f"column {one['name']!r} is {show(one['type'])} in the stream, which a csv file "
                "can't hold; append it as json or Parquet.",
            )
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
    for line in _lines(found, inputs):
        say(line)
    fields = [_field(name, found[name]) if name in found else types[name] for name in names]
    return Csv(inputs, fields, frozenset(new), several, dropped, csv.empty)


def _field(name: str, found: Guess) -> Field:
    metadata = {} if found.kind in (None, "string") else {GUESSED: True}
    return {"name": name, "type": found.kind or VOID, "nullable": True, "metadata": metadata}


def _lines(found: dict[str, Guess], inputs: Inputs) -> list[str]:
    """Return a line per column: its name, its type, and why."""
    lines = []
    for name, one in list(found.items())[:_SHOWN]:
        kind = one.kind or "left open, because all its values are null"
        lines.append(f"  {shortened(name, 60)[1:-1]}: {kind}{f' ({one.why})' if one.why else ''}")
    if len(found) > _SHOWN:
        lines.append(f"  ... and {len(found) - _SHOWN:,} more columns")
    return lines


def _header(inputs: Inputs, known: list[Field] | None) -> tuple[list[str], int]:
    """Return the columns of the files, and how many rows of each Spark must drop itself."""
    system, base = filesystem(inputs.root)
    how = inputs.how

    def first(path: str) -> Header:
        try:
            with system.open_input_stream(f"{base}/{path}", compression="detect") as source:
                return header(source, path, how)
        except OSError:
            if (damage := damage_of(inputs.root, path, "csv")) is not None:
                raise damaged(path, damage) from None
            raise

    with ThreadPoolExecutor(16) as pool:
        headers = list(pool.map(first, [file.path for file in inputs.files]))
    one = headers[0]
    for file, other in zip(inputs.files, headers, strict=True):
        if not other.names:
            what = "header line; add one, or say that the files have none" if how.header else "row"
            raise InvalidInput("header_missing", f"the file {file.path!r} has no {what}.")
        if other.before != one.before or (
            other.names != one.names if how.header else len(other.names) != len(one.names)
        ):
            raise InvalidInput(
                "headers_differ",
                f"the header line of {file.path!r} ({', '.join(other.names[:5])}) is not the same "
                f"as that of {inputs.files[0].path!r} ({', '.join(one.names[:5])}); append files "
                "with different headers separately.",
            )
    dropped = 0
    if how.skip_lines:
        dropped = one.before + (1 if how.header else 0)
    if how.header:
        return [name or f"_c{i}" for i, name in enumerate(one.names)], dropped
    if known and len(known) != len(one.names):
        raise InvalidInput(
            "columns_unknown",
            f"the first row of {inputs.files[0].path!r} has {len(one.names)} values, but the "
            f"stream has {len(known)} columns, and the files have no header line; add one.",
        )
    return [f["name"] for f in known] if known else [
        f"_c{i}" for i in range(len(one.names))
    ], dropped


def _check_separator(inputs: Inputs, names: list[str], known: list[Field] | None) -> None:
    """Raise InvalidInput for a single column whose name looks like several."""
    if len(names) > 1 or names[0] in {one["name"] for one in known or []}:
        return
    for other in (";", "\t", "|", ","):
        if other in names[0]:
            raise InvalidInput(
                "separator_wrong",
                f"the header line of {inputs.files[0].path!r} has one column, "
                f"{shortened(names[0])}; {give(separator=other)} if the file uses it, or rename "
                "the column.",
            )


def _several_lines(spark: SparkSession, inputs: Inputs) -> frozenset[int]:
    """Return the files that have newlines inside quotes. Raises InvalidInput for a file with a
    quote that is never closed, or with bytes that its encoding does not have."""
    how = inputs.how
    if how.encoding != "utf-8":
        for file in inputs.files:
            _check_encoding(inputs, file.path)
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
            raise InvalidInput(
                "quotes_not_closed",
                f"the quotes that open in line {line:,} of {path!r} are never closed; add the "
                f"missing {how.quote}, or {give(quote='none')} if the file does not quote.",
            )
        several.append(i)
    return frozenset(several)


def _check_encoding(inputs: Inputs, path: str) -> None:
    """Raise InvalidInput for a file with bytes that its encoding does not have, or with NUL."""
    system, base = filesystem(inputs.root)
    decoder = codecs.getincrementaldecoder(inputs.how.encoding)("strict")
    line = 1
    with system.open_input_stream(f"{base}/{path}", compression="detect") as source:
        while True:
            piece = source.read(_PIECE)
            try:
                text = decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as error:
                wrong = error.object[error.start : error.start + 4]
                raise InvalidInput(
                    "encoding_wrong",
                    f"{path!r} is not {ENCODINGS[inputs.how.encoding]}: at about line "
                    f"{line:,} it has the bytes {wrong.hex(' ')}, which that lacks; "
                    f"{give(encoding='ENCODING')} with that of the file.",
                ) from None
            line += text.count("\n")
            if "\0" in text:
                raise InvalidInput(
                    "nul_characters",
                    f"{path!r} has NUL characters at about line {line:,}; remove them, or "
                    f"{give(encoding='ENCODING')} with that of the file.",
                )
            if not piece:
                return
