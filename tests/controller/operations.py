"""The controller's operations, each with all that it needs but the database; also to be asked for
again, as the same request.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tests.world.streams import Lane, staged, unique
from weir.controller.commit import commit
from weir.controller.scale import scale
from weir.controller.seal import seal_stream
from weir.controller.streams import create_stream
from weir.controller.transactions import abort, begin
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.kernel.attempt import Attempt
from weir.model.column_changes import NOTHING, ColumnChanges
from weir.model.names import stream_name
from weir.model.schema import Field
from weir.model.split_points import Found, HotSegment, split_points
from weir.retention.delete_stream import delete_stream
from weir.retention.manual_truncation import truncate
from weir.retention.run import retain
from weir.scaling.run import scale_by_load

Operation = Callable[[Database], Any]

WRITTEN: dict[str, int | Sequence[int]] = {"0.0": [2, 3], "1.0": 1}


def creating(name: str, request: str) -> Operation:
    return lambda database: create_stream(
        database, stream_name(name), routing_key="key", segments=2, request_id=request
    )["segments"]  # fmt: skip


def beginning(lane: Lane, batch: str) -> Operation:
    return lambda database: begin(
        database, lane.name, writer_id="writer", batch_id=batch, fingerprint="print", lease=600.0,
        source="dag/run/task",
    )  # fmt: skip


def committing(*attempts: Attempt, written: Any = WRITTEN) -> Operation:
    return lambda database: commit(database, *[staged(one, written) for one in attempts])


def aborting(attempt: Attempt) -> Operation:
    return lambda database: abort(database, attempt)


def scaling(lane: Lane, *seal: str, parts: int = 2) -> Operation:
    request = unique("scale")
    return lambda database: scale(
        database, lane.name, seal=seal, parts=parts, request_id=request
    )["created"]  # fmt: skip


def truncating(lane: Lane, cut: str) -> Operation:
    request = unique("truncate")
    return lambda database: truncate(database, lane.name, cut, request_id=request)


def updating(
    lane: Lane, fields: list[Field] | None = None, columns: ColumnChanges = NOTHING, **changes: Any
) -> Operation:
    request = unique("update")
    return lambda database: update_stream(
        database, lane.name, changes, fields=fields, column_changes=columns, request_id=request
    )  # fmt: skip


def sealing(lane: Lane) -> Operation:
    request = unique("seal")
    return lambda database: seal_stream(database, lane.name, request_id=request)


def deleting(lane: Lane) -> Operation:
    request = unique("delete")
    return lambda database: delete_stream(database, lane.name, request_id=request)


def retaining(lane: Lane) -> Operation:
    """Return a run of retention for one stream, which returns its error and the cut."""

    def run(database: Database) -> Any:
        [report] = retain(database, [lane.name])
        return report.get("error"), report.get("cut")

    return run


def equal_ranges(hot: Sequence[HotSegment]) -> Found:
    """Return split points into equal ranges, as where there is no data."""
    return Found(
        {
            (one.stream_id, one.segment.segment_id): split_points(
                one.segment.key_low, one.segment.key_high, [], one.pieces
            )
            for one in hot
        },
        {},
    )


def scaling_by_load(lane: Lane) -> Operation:
    """Return a run of scaling for one stream, the same each time. It returns whether it failed, the
    rule and the new segments."""
    request = unique("run")

    def run(database: Database) -> Any:
        reports = scale_by_load(database, equal_ranges, names=[lane.name], request_id=request)
        return [("error" in r, r.get("rule"), r.get("created")) for r in reports]

    return run


def retaining_what_is_due(database: Database) -> Any:
    """Run retention for all streams of which it is due, and return the errors, the rules and the
    cuts."""
    return [(r.get("error"), r.get("rule"), r.get("cut")) for r in retain(database)]
