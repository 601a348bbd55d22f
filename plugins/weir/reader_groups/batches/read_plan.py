"""Plan the files of a batch: which rows of which files have its events, and what was truncated."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.controller.missing import missing_of_bounds
from weir.controller.read_plan import Slices, slices_of_bounds
from weir.errors import Truncated
from weir.front_ends import do
from weir.model.bounds import Bound
from weir.model.segment import segment_name
from weir.queries.reader_groups.batches import read_plan as sql
from weir.reader_groups.batch import Batch

_SHOWN = 5  # the most segments of a batch that a sentence names


@dataclass(frozen=True)
class BatchPlan:
    """What is to be read for a batch, of each stream that is delivered. `names`: of all streams of
    the group, by id. `lost`: by id of a stream, how many events were truncated after the batch was
    opened. `gaps`: sentences about these."""

    names: dict[int, str]
    streams: list[Slices]
    lost: dict[int, int]
    gaps: list[str]

    @property
    def without_columns(self) -> list[str]:
        """Streams that never had an event and have no declared columns."""
        return [one.name for one in self.streams if not one.fields]

    def shown(self, bounds: tuple[Bound, ...]) -> str:
        """Return what the batch reads, for sentences: its first segments."""
        read = [b for b in bounds if b.end > b.start]
        named = [
            f"{self.names[b.stream_id]} {segment_name(b.segment_id)} from {b.start} to {b.end}"
            for b in read[:_SHOWN]
        ]
        more = [f"{len(read) - _SHOWN} more segments"] if len(read) > _SHOWN else []
        return ", ".join(named + more)


def plan_batch(
    connection: Connection, batch: Batch, not_delivered: Collection[int] = ()
) -> BatchPlan:
    """Return what is to be read for a batch. `not_delivered`: ids of streams that are left out.
    Raises Truncated if events were truncated after it was opened, unless the group skips gaps."""
    streams = sql.streams(connection, group=batch.group)
    plan = BatchPlan({stream_id: name for stream_id, name, _ in streams}, [], {}, [])
    for stream_id, name, fields in streams:
        if stream_id in not_delivered:
            continue
        bounds = [
            (b.segment_id, b.start, b.end)
            for b in batch.bounds
            if b.stream_id == stream_id and b.end > b.start
        ]
        slices = slices_of_bounds(connection, stream_id, bounds) if bounds else []
        plan.streams.append(Slices(name, stream_id, slices, fields))
        found = sum(s.end_row - s.first_row for s in slices)
        wanted = sum(end - start for _, start, end in bounds)
        if found == wanted:
            continue
        plan.lost[stream_id] = wanted - found
        missing = missing_of_bounds(connection, name, stream_id, bounds, wanted - found)
        where = f" (of {wanted:,} in batch {batch.batch_id} of group {batch.group})"
        gap = f"{missing.said(where)}, after the batch was opened"
        if batch.on_gap == "fail":
            raise Truncated(
                "events_truncated",
                f"{gap}; to continue without them, "
                f"{do('update_reader_group', reader_group=batch.group, on_gap='skip')}.",
            )
        plan.gaps.append(gap)
    return plan
