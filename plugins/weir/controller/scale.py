"""Scale: seal some active segments and create others over the same keys (semantics 6)."""

from collections.abc import Sequence
from typing import TypedDict

from sqlalchemy import Connection

from weir.controller.epochs import next_epoch
from weir.controller.locks import LockedStream, lock_stream
from weir.database.connection import Database
from weir.database.requests import Request
from weir.model.key_space import KeyRange, check_scale, even_split, merge_blocks, splits_and_merges
from weir.model.names import StreamName
from weir.model.scaling_policy import check_count
from weir.model.segment import Segment, parse_segment_name, segment_id, segment_number
from weir.queries.controller import epochs
from weir.queries.controller import scale as sql


class Scaled(TypedDict):
    """A stream that was scaled. `epoch`: the new one. `sealed`: the names of segments. `created`:
    name, low and high key of each new one."""

    stream: str
    epoch: int
    sealed: list[str]
    created: list[list[str | float]]


def scale(
    database: Database,
    name: StreamName,
    *,
    seal: Sequence[str],
    ranges: Sequence[KeyRange] = (),
    parts: int = 2,
    reason: str = "",
    request_id: str,
) -> Scaled:
    """Replace the segments `seal` (`number.epoch`) by others over the same keys.

    The new segments are `ranges`, numbered in the order given; or each block of neighbours divided
    into `parts` equal ranges. The id of a segment that a roll has copied means the copy (semantics
    6.2). `reason` is recorded with the epoch.

    Raises Conflict for a segment that is not active, or if too few segments
    would be left; InvalidInput for ranges that do not cover exactly the sealed keys; NotFound.
    """
    numbers = [segment_number(parse_segment_name(segment)) for segment in seal]
    request = Request[Scaled](
        request_id, "scale", str(name),
        {"seal": sorted(numbers), "ranges": list(ranges), "parts": parts, "reason": reason},
    )  # fmt: skip

    def work(connection: Connection) -> Scaled:
        stream = lock_stream(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        stream.must_be_active()
        active = epochs.active_segments(connection, stream_id=stream.stream_id)
        sealed = _meant(connection, stream, active, [parse_segment_name(one) for one in seal])
        old = _ranges(active, sealed)
        # First check that the segments are active: before that, the new ranges mean nothing.
        check_scale(active, sealed, old)
        wanted = list(ranges) or _equal_parts(merge_blocks(old), parts)
        created = scale_in(
            connection, stream, active, sealed, wanted, cause="scale",
            reason=reason or "asked for", request_id=request_id,
        )  # fmt: skip
        return request.done(
            connection,
            {
                "stream": str(name),
                "epoch": stream.current_epoch + 1,
                "sealed": [s.name for s in active if s.segment_id in sealed],
                "created": [[s.name, s.key_low, s.key_high] for s in created],
            },
        )

    return database.transaction(work)


def scale_in(
    connection: Connection,
    stream: LockedStream,
    active: Sequence[Segment],
    sealed: Sequence[int],
    wanted: Sequence[KeyRange],
    *,
    cause: str,
    reason: str,
    request_id: str,
) -> list[Segment]:
    """Scale a locked stream whose active segments are known, and return the new segments.

    Raises like `scale`.
    """
    settings = stream.configuration
    check_scale(active, sealed, wanted, settings.min_segments, settings.max_segments)
    epoch = stream.current_epoch + 1
    created = [
        Segment(segment_id(stream.next_segment_number + i, epoch), r.low, r.high)
        for i, r in enumerate(wanted)
    ]
    next_epoch(
        connection,
        stream,
        epoch=epoch,
        reference_epoch=epoch,
        seal=sealed,
        create=created,
        splits_and_merges=splits_and_merges(_ranges(active, sealed), wanted),
        cause=cause,
        reason=reason,
        request_id=request_id,
        next_segment_number=stream.next_segment_number + len(created),
    )
    return created


def _meant(
    connection: Connection, stream: LockedStream, active: Sequence[Segment], given: Sequence[int]
) -> list[int]:
    """Return the given ids, each replaced by that of its active copy if a roll has made one.

    An id that the stream never had is returned unchanged, so that it is refused.
    """
    here = {segment.segment_id for segment in active}
    if here.issuperset(given):
        return list(given)
    before = sql.known(connection, stream_id=stream.stream_id, ids=sorted(set(given) - here))
    # Only the copies made by a roll share their number with another segment of the stream.
    copies = {segment.number: segment.segment_id for segment in active}
    meant = {one: copies.get(segment_number(one), one) for one in before}
    return [meant.get(one, one) for one in given]


def _ranges(active: Sequence[Segment], sealed: Sequence[int]) -> list[KeyRange]:
    return [KeyRange(s.key_low, s.key_high) for s in active if s.segment_id in sealed]


def _equal_parts(blocks: Sequence[KeyRange], parts: int) -> list[KeyRange]:
    check_count("parts", parts)
    return [part for block in blocks for part in even_split(parts, block)]
