"""Json files: their columns, the objects on their lines, and the values of these in the columns'
types.

A line may hold several objects: one after another, separated by commas, or in a list. All become
events, or what can't be read becomes a malformed row. Spark by itself reads the first value of a
line and drops what follows.
"""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weir.errors import InvalidInput
from weir.front_ends import do
from weir.inputs.csv_header import check_text_of
from weir.inputs.files import Inputs
from weir.kernel.rejected import MALFORMED
from weir.kernel.text_guess import SAMPLE
from weir.model.schema import GUESSED, VOID, Field, plain, show
from weir.spark.base.exact import exact
from weir.spark.base.malformed import malformed
from weir.spark.base.session import COMPLETE
from weir.spark.inputs.json_lines import (
    LONGEST_LINE,
    either,
    gained,
    has_gained,
    look,
    numbers_as_text,
    unfit,
)
from weir.spark.inputs.json_texts import (
    LONG_NUMBER,
    Texts,
    always_exact,
    as_texts,
    clean,
    floats_in_strings,
    loses_digits,
    pieces,
)
from weir.spark.inputs.places import BLOCK, FILE
from weir.warehouse.paths import spark_path

_PIECE = "_weir_piece"
_LINES = 40  # the most columns whose types are said
_LARGE = 8 << 20  # bytes; Spark's variants do not hold much more


@dataclass(frozen=True)
class Json:
    """How to read the json files of an append."""

    inputs: Inputs
    fields: list[Field]  # of type `void` where no value shows a type
    guard: str  # a text that is in no file
    more: list[tuple[Field, Any]] = field(default_factory=list)  # columns with fields that are new

    def scan(self, spark: SparkSession, group: list[int]) -> DataFrame:
        """Return the lines of some files, with their places."""
        inputs = self.inputs
        paths = [exact(spark_path(inputs.root, inputs.files[i].path)) for i in group]
        place = F.col("_metadata.file_path").alias(FILE), F.col("_metadata.file_block_start")
        return spark.read.options(**COMPLETE).text(paths).select(
            "value", place[0], place[1].alias(BLOCK)
        )  # fmt: skip

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return a row per object, and MALFORMED; other columns than the line stay."""
        others = [name for name in frame.columns if name != "value"]
        typed = [one for one in self.fields if one["type"] != VOID]
        texts = Texts(self.guard, typed, self.inputs.how)
        piece = F.col(_PIECE)
        frame = pieces(frame, self.guard).where(F.trim(piece) != "")
        wrong = unfit(piece)
        fit = F.when(~wrong, texts.wrapped(piece))
        slow_at_once = F.lit(True) if always_exact(typed) else piece.rlike(LONG_NUMBER)
        fast = F.when(~slow_at_once, texts.parsed(fit, typed))
        frame = frame.select(piece, wrong.alias("_weir_wrong"), fast.alias("_weir_fast"), *others)
        fast, good = F.col("_weir_fast"), texts.good(F.col("_weir_fast"))
        doubt = ~F.coalesce(good, F.lit(False)) | floats_in_strings(
            F.get(fast.getField("v"), F.lit(0)), typed
        )
        again = F.when(doubt & ~F.col("_weir_wrong"), texts.exactly(piece))
        unique = (F.octet_length(piece) > _LARGE) | texts.unique(piece)
        more = self._gained(texts, piece)
        frame = frame.select(
            piece, "_weir_wrong", "_weir_fast", again.alias("_weir_again"),
            F.coalesce(unique, F.lit(False)).alias("_weir_unique"), more.alias("_weir_more"),
            *others,
        )  # fmt: skip
        again = F.col("_weir_again")
        whole = F.when(again.isNull(), good).otherwise(texts.good(again))
        fault = texts.first_fault(again)
        bad = (
            F.col("_weir_wrong") | F.col("_weir_more") | ~F.col("_weir_unique")
            | ~F.coalesce(whole, F.lit(False)) | fault.isNotNull()
        )  # fmt: skip
        text = F.when(F.col("_weir_wrong"), clean(piece)).otherwise(piece)
        events = F.when(again.isNull(), fast.getField("v")).otherwise(texts.values(again))
        frame = frame.select(
            F.when(bad, malformed(text, fault)).alias(MALFORMED), events.alias("_weir_events"),
            *others,
        )  # fmt: skip
        none = F.array(F.lit(None).cast(texts.struct(typed)))
        event = F.explode(F.when(F.col(MALFORMED).isNull(), F.col("_weir_events")).otherwise(none))
        frame = frame.select(event.alias("_weir_event"), MALFORMED, *others)
        columns = [
            (F.lit(None) if one["type"] == VOID else F.col("_weir_event").getField(one["name"]))
            .alias(one["name"], metadata=one["metadata"])
            for one in self.fields
        ]  # fmt: skip
        return frame.select(*columns, MALFORMED, *others)

    def _gained(self, texts: Texts, piece: Column) -> Column:
        """Return whether an object has a field that the stream's column does not have."""
        if not self.more:
            return F.lit(False)
        found = [{**one, "type": kind} for one, kind in self.more]
        row = texts.parsed(texts.wrapped(piece), found).getField("v")
        known = {one["name"]: one["type"] for one, _ in self.more}
        return F.coalesce(
            F.exists(row, lambda x: either(
                has_gained(x.getField(n["name"]), known[n["name"]], n["type"]) for n in found
            )),  # type: ignore[arg-type,return-value]
            F.lit(False),
        )  # fmt: skip


def json_columns(
    spark: SparkSession,
    inputs: Inputs,
    known: list[Field] | None,
    quarantine: bool,
    say: Callable[[str], None],
) -> Json:
    """Return how to read the files. Columns that the stream has keep its types.

    Raises InvalidInput that names what cannot be read, or not unchanged.
    """
    guard = uuid.uuid4().hex
    empty = Json(inputs, [], guard)
    lines = pieces(empty.scan(spark, list(range(len(inputs.files)))), guard)
    found = _found(spark, inputs, lines, guard)
    types = {one["name"]: one for one in known or []}
    if not found and known is None:
        raise _nothing_found(spark, inputs)
    new = [one for name, one in found.items() if name not in types]
    for one, line in _checked(new, lines, guard, inputs):
        found[one["name"]] = one
        if line:
            say(line)
    fields = [types.get(name) or found[name] for name in found or types]
    closed = iter(plain([one for one in fields if one["type"] != VOID]))
    fields = [one if one["type"] == VOID else next(closed) for one in fields]
    more = {n: gained(types[n]["type"], found[n]["type"], n) for n in found if n in types}
    paths = [path for some in more.values() for path in some]
    if paths and not quarantine:
        raise InvalidInput(
            "column_unknown",
            f"{paths[0]!r} is not a field of column {paths[0].split('.')[0]!r} of the stream, "
            "whose type can't change; leave it out, or to quarantine such rows "
            f"{do('update_stream', stream='STREAM', on_bad_rows='quarantine')}.",
        )
    return Json(inputs, fields, guard, [(types[n], found[n]["type"]) for n in more if more[n]])


def _found(spark: SparkSession, inputs: Inputs, lines: DataFrame, guard: str) -> dict[str, Field]:
    """Return the columns with the types that Spark infers from all objects."""
    texts = Texts(guard, [], inputs.how)
    unparsed = uuid.uuid4().hex  # not a column of the user
    jvm: Any = spark._jvm

    def infer(some: DataFrame) -> list[Field]:
        listed = some.where(~unfit(F.col(_PIECE))).select(texts.listed(F.col(_PIECE)))
        data = getattr(listed._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
        reader = spark.read.option("columnNameOfCorruptRecord", unparsed)
        reader = reader.option("allowSingleQuotes", False).option("timeZone", "UTC")
        struct = StructType.fromJson(json.loads(reader._jreader.json(data).schema().json()))
        return [one for one in struct.jsonValue()["fields"] if one["name"] != unparsed]

    found = infer(lines)
    names = [one["name"] for one in found]
    if len(set(names)) < len(names):  # within one object: such a line is malformed
        found = infer(lines.where(texts.unique(F.col(_PIECE))))
        if not found:
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(
                "column_named_twice",
                f"an object in the files has the name {twice!r} twice; rename one of them.",
            )
    seen: dict[str, str] = {}
    for one in found:
        name = one["name"]
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise InvalidInput(
                "column_named_twice",
                f"objects in the files have the names {other!r} and {name!r} (upper and lower case "
                "count as the same); rename one of them.",
            )
    return {one["name"]: one for one in found}


def _checked(
    new: list[Field], lines: DataFrame, guard: str, inputs: Inputs
) -> list[tuple[Field, str]]:
    """Return the new columns with types that keep their values, and a line about each."""
    if not new:
        return []
    piece = F.col(_PIECE)
    texts = Texts(guard, new, inputs.how)
    rounded: set[str] = set()
    double = [one for one in new if numbers_as_text(one["type"]) is not None]
    if double:
        lost = lines.where(piece.rlike(LONG_NUMBER) & ~unfit(piece)).select(
            F.explode(Texts(guard, double, inputs.how).exactly(piece).getField("v")).alias("r")
        )
        tests = [
            F.bool_or(loses_digits(F.col("r").getField(one["name"]), one["type"], guard))
            for one in double
        ]
        row = lost.agg(F.array(*tests)).first()
        assert row is not None
        rounded = {one["name"] for one, test in zip(double, row[0], strict=True) if test}
    texts_only = [one for one in new if one["type"] == "string"]
    empty = _empty(lines, texts_only, texts)
    checked = []
    for number, one in enumerate(new):
        why = ""
        if one["name"] in rounded:
            one = {**one, "type": as_texts(one["type"], only="double")}
            why = "numbers have more digits than a double keeps"
        elif one["name"] in empty:
            one = {**one, "type": VOID}
        kind = show(one["type"])
        if kind not in ("string", VOID):
            one = {**one, "metadata": {GUESSED: True}}
        shown = "left open, because all its values are null" if kind == VOID else kind
        line = f"  {one['name']}: {shown}{f' ({why})' if why else ''}" if number < _LINES else ""
        checked.append((one, line))
    return checked


def _empty(lines: DataFrame, fields: list[Field], texts: Texts) -> set[str]:
    """Return the columns of strings that are null in all objects: Spark takes null for a string."""
    frame = lines.where(~unfit(F.col(_PIECE)))
    for rows in (frame.limit(SAMPLE), frame):
        if not fields:
            break
        parsed = texts.parsed(texts.wrapped(F.col(_PIECE)), fields).getField("v")
        counts = rows.select(F.explode(parsed).alias("r")).agg(
            F.array(*[F.count(F.col("r").getField(one["name"])) for one in fields])
        ).first()  # fmt: skip
        assert counts is not None
        fields = [one for one, count in zip(fields, counts[0], strict=True) if count == 0]
    return {one["name"] for one in fields}


def _nothing_found(spark: SparkSession, inputs: Inputs) -> InvalidInput:
    """Return the error for json files in which there is no column."""
    paths = [exact(spark_path(inputs.root, file.path)) for file in inputs.files]
    lines = spark.read.text(paths).select(F.col("_metadata.file_path").alias("file"), "value")
    for name, wrong in look(lines).items():
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
