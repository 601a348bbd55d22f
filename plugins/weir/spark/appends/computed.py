"""What of an append only Spark can compute: a routing key or an event time that is an expression,
or a key whose text only Spark writes in the same way each time. The rows go to the kernel with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.errors import InvalidInput, InvariantViolation
from weir.installation.opened import Say
from weir.kernel.attempt import Attempt, StagedFile
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import check_type, missing_column
from weir.kernel.rejected import MALFORMED
from weir.kernel.stage import KEY, KEY_TYPES
from weir.model import key_space
from weir.model.new_columns import fitting, lacking_defaults
from weir.model.plain_column import plain_column
from weir.model.schema import VOID, Field
from weir.model.segment import segment_name
from weir.spark.base.conversion import fit
from weir.spark.base.exact import exact
from weir.spark.base.ordered_frames import one_after_another
from weir.spark.base.routing import routing_steps
from weir.spark.base.session import (
    COMPLETE,
    FAILING_ALONE,
    NOTHING,
    computing_session,
    moved,
    resolving_session,
)
from weir.spark.base.stored_columns import named_columns, stored_schema, with_defaults
from weir.spark.users.date_patterns import naming_patterns
from weir.spark.users.expressions import (
    Expression,
    check_expression,
    with_expression,
    with_value,
)
from weir.warehouse.paths import spark_path

# The number of files, and of rows of each, whose keys are checked after writing.
_SAMPLED, _SAMPLED_ROWS = 4, 16


@dataclass(frozen=True)
class Computed:
    """Rows with what Spark computes of them. `names`: the columns that it adds. `texts`: the
    expressions, by what they are."""

    frame: DataFrame
    names: frozenset[str] = frozenset()
    key: Expression | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Run a block that computes the rows; name the expression with a pattern of dates that
        fails."""
        with naming_patterns(self.texts):
            yield

    def check(
        self, warehouse: str, attempt: Attempt, fields: Sequence[Field], files: Sequence[StagedFile]
    ) -> None:
        """Compute the keys of the first rows of a few files again, from what was written.

        Raises InvariantViolation if a row is in another segment than its key, because then
        something that Weir does not know changes the meaning of the key.
        """
        if self.key is None or self.key.plain:
            return
        resolving = resolving_session(self.frame.sparkSession)
        used = {name.lower() for name in self.key.columns}
        read = [field for field in fields if field["name"].lower() in used]
        struct, ranges = stored_schema(read), {one.segment_id: one for one in attempt.segments}
        parts = []
        for file in files[:: max(1, len(files) // _SAMPLED)]:
            reader = resolving.read.options(**COMPLETE).schema(struct)
            rows = reader.parquet(exact(spark_path(warehouse, file.path))).limit(_SAMPLED_ROWS)
            rows = rows.select(*named_columns(read))
            found = with_expression(rows, self.key, KEY, _key_of(attempt), resolving).where(
                f"{KEY} IS NOT NULL"
            )
            parts.append(found.select(routing_steps(F.col(KEY)), F.lit(file.segment_id), KEY))
        for steps, segment_id, value in one_after_another(parts).collect() if parts else ():
            segment = ranges[segment_id]
            if not segment.key_low <= steps / key_space.STEPS < segment.key_high:
                raise InvariantViolation(
                    "key_misplaced",
                    f"Spark placed key {value!r} of stream {attempt.stream} in the wrong segment, "
                    f"{segment_name(segment_id)}, because a setting of this session changes what "
                    "the routing key means, so nothing was committed; append with a session that "
                    "does not have it.",
                )


def computed_of(attempt: Attempt, frame: DataFrame, given: list[Field], say: Say) -> Computed:
    """Return the rows of an attempt, which have the columns `given`, with what only Spark can
    compute. Raises InvalidInput for an expression that can't be computed from them."""
    fields = fitting(
        str(attempt.stream), attempt.fields, given, attempt.on_new_column, attempt.dropped
    ).fields
    has_key, has_time = _left_to_spark(attempt, [*fields, *given])
    if not (has_key or has_time):
        return Computed(frame)
    names = [one["name"] for one in given]
    known = {one["name"]: one for one in fields}
    fitted = [known.get(name, one) for name, one in zip(names, given, strict=True)]
    defaults = lacking_defaults(fields, fitted)
    resolving = resolving_session(frame.sparkSession)
    columns = [*names, *(one["name"] for one in defaults)]
    key, texts, added = None, {}, list[str]()
    rows = with_defaults(fit(frame, given, fields, MALFORMED), defaults)
    apart = FAILING_ALONE if has_time else NOTHING
    computing, rows = computing_session(rows, say, apart)
    if has_key:
        key = _checked_key(attempt, columns, resolving)
        new = attempt.fields is None  # later it is too late to refuse a key
        rows = with_expression(rows, key, KEY, _key_of(attempt), resolving, new=new)
        texts[_key_of(attempt)] = key.text
        added.append(KEY)
    if has_time:
        rows = _with_time(attempt, rows, columns, resolving)
        texts[_time_of(attempt)] = str(attempt.event_time)
        added.append(TIME)
    rows = moved(rows.drop(*(one["name"] for one in defaults)), computing)
    return Computed(rows, frozenset(added), key, texts)


def needs_spark(attempt: Attempt, given: Sequence[Field]) -> bool:
    """Return whether only Spark computes the routing keys or event times of rows that have the
    columns `given`."""
    return any(_left_to_spark(attempt, [*(attempt.fields or ()), *given]))


def _left_to_spark(attempt: Attempt, fields: Sequence[Field]) -> tuple[bool, bool]:
    has_time = attempt.event_time is not None and plain_column(attempt.event_time) is None
    return not _kernel_knows(attempt.routing_key, fields), has_time


def _kernel_knows(text: str, fields: Sequence[Field]) -> bool:
    """Return whether the kernel makes routing keys of a column, or says that it is missing."""
    column = plain_column(text)
    if column is None:
        return False
    kinds = [one["type"] for one in fields if one["name"].lower() == column.lower()]
    return not kinds or kinds[0] in (VOID, *KEY_TYPES)


def _with_time(
    attempt: Attempt, rows: DataFrame, columns: Sequence[str], resolving: SparkSession
) -> DataFrame:
    text = str(attempt.event_time)
    expression = check_expression(text, _time_of(attempt), resolving)
    known = {name.lower() for name in columns}
    for name in expression.columns:
        if name.lower() not in known:
            raise missing_column(attempt.stream, text, name, columns)
    rows = with_value(rows, expression, TIME, _time_of(attempt), resolving)
    check_type(attempt.stream, text, rows.schema[TIME].dataType.jsonValue())
    return rows


def _key_of(attempt: Attempt) -> str:
    return f"routing key of stream {attempt.stream},"


def _time_of(attempt: Attempt) -> str:
    return f"event time of stream {attempt.stream},"


def _checked_key(attempt: Attempt, columns: Sequence[str], resolving: SparkSession) -> Expression:
    """Return the routing key, checked again before each use. The check at the stream's creation
    used the rules of that time."""
    key = check_expression(attempt.routing_key, _key_of(attempt), resolving)
    known = {column.lower() for column in columns}
    for name in key.columns:
        if name.lower() not in known:
            raise InvalidInput(
                "routing_key_column_missing",
                f"the routing key of stream {attempt.stream} is {attempt.routing_key!r}, but the "
                f"rows have no column {name!r} (they have {', '.join(list(columns)[:8])}); add "
                "it.",
            )
    return key
