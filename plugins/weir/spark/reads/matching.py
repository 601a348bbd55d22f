"""Find the places of events by their routing keys, or by a condition over their columns."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.controller.read_plan import FileSlice
from weir.erasure.asked import masked
from weir.erasure.find import with_keys
from weir.errors import InvalidInput
from weir.model.schema import Field
from weir.spark.reads.native import frame_of, scanning_session
from weir.spark.users.expressions import check_expression, with_expression, with_value

_KEY, _MATCHES = "_weir_key", "_weir_matches"


def places_of_keys(
    spark: SparkSession,
    warehouse: str,
    stream_id: int,
    slices: Sequence[FileSlice],
    fields: list[Field],
    routing_key: str,
    keys: Sequence[str],
) -> dict[int, npt.NDArray[np.int64]]:
    """Return per segment the offsets, ascending, of the events that have one of some routing keys
    (as text). Opens the files only of segments that have such keys."""
    if not (slices := with_keys(slices, keys)):
        return {}
    resolving, what = scanning_session(spark), "routing key"
    frame = frame_of(spark, warehouse, stream_id, slices, fields, order="none")
    key = check_expression(routing_key, what, resolving)
    frame = with_expression(frame, key, _KEY, what, resolving).where(F.col(_KEY).isin(*keys))
    return _by_segment(frame)


def places_where(
    spark: SparkSession,
    warehouse: str,
    stream_id: int,
    slices: Sequence[FileSlice],
    fields: list[Field],
    condition: str,
) -> dict[int, npt.NDArray[np.int64]]:
    """Return per segment the offsets, ascending, of the events that fulfil a condition. Those for
    which it is null, or can't be computed, do not.

    Raises InvalidInput for one that is no condition over the columns, or calls a function that
    routing keys may not call."""
    if not slices:
        return {}
    resolving, what = scanning_session(spark), "condition"
    frame = frame_of(spark, warehouse, stream_id, slices, fields, order="none")
    try:
        checked = check_expression(condition, what, resolving)
        frame = with_value(frame, checked, _MATCHES, what, resolving)
        kind = frame.schema[_MATCHES].dataType.simpleString()
        if kind != "boolean":
            raise InvalidInput(
                "condition_not_boolean",
                f"the condition {condition!r} is {kind}, neither true nor false; compare it with "
                "something, such as \"customer = 'C123'\".",
            )
    except InvalidInput as error:  # which is logged and recorded: without what is to be forgotten
        error.sentence = error.sentence.replace(repr(condition), repr(masked(condition)))
        error.args = (error.code, error.sentence)
        raise
    return _by_segment(frame.where(F.col(_MATCHES)))


def _by_segment(frame: DataFrame) -> dict[int, npt.NDArray[np.int64]]:
    found = frame.select("_segment", "_offset").toArrow()
    segments, offsets = found["_segment"].to_numpy(), found["_offset"].to_numpy()
    order = np.lexsort((offsets, segments))
    segments, offsets = segments[order], offsets[order]
    begins = np.flatnonzero(np.diff(segments, prepend=-1))
    parts = np.split(offsets, begins[1:]) if len(begins) else []
    return {int(segments[at]): part for at, part in zip(begins, parts, strict=True)}
