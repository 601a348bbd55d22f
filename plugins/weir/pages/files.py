"""The files of a stream: a page of them, and why any of them is still there."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from weir.compaction.records import find_small_files
from weir.database.refusals import sqlstate
from weir.database.time_limit import CANCELLED, limit_statements
from weir.errors import InvalidInput
from weir.model.compaction import groups_of
from weir.model.names import stream_name
from weir.pages.answering import Asked, Tagged, check_stream, rows

router = APIRouter(route_class=Tagged, tags=["streams"])

MOST_REASONS = 100
MOST_FILES = 10_000  # that are counted
LOOKED_AT = 2000  # files, for what compaction would do
PATIENCE = 2.0  # seconds, for why the files of a stream are there

# Of the table, as the view weir.data_files has no clocks: they would cost it a probe for each row.
_FILES = """
SELECT weir_internal.segment_name(f.segment_id) AS segment, f.start_offset,
    f.start_offset + f.events AS end_offset, f.events - f.erased AS events, f.bytes,
    f.transaction_number,
    weir_internal.clock_time(coalesce(f.first_clock, t.clock)) AS first_clock,
    weir_internal.clock_time(coalesce(f.last_clock, t.clock)) AS last_clock, f.path
FROM weir_internal.data_file f LEFT JOIN weir_internal.transaction t
    ON t.stream_id = f.stream_id AND t.transaction_number = f.transaction_number
WHERE f.stream_name = :stream
    AND (:segment = '' OR weir_internal.segment_name(f.segment_id) = :segment)
    AND (weir_internal.segment_name(f.segment_id), f.start_offset)
        > (:after_segment, CAST(:after_offset AS bigint))
ORDER BY 1, f.start_offset LIMIT :limit + 1"""
_TOTAL = f"""SELECT count(*) FROM (SELECT FROM weir.data_files f
    WHERE f.stream = :stream AND (:segment = '' OR f.segment = :segment)
    LIMIT {MOST_FILES} + 1) f"""  # noqa: S608 - a constant
_WHY = f"""SELECT why, count(*) AS files, sum(events)::bigint AS events, sum(bytes)::bigint AS bytes
FROM weir.why_kept(:stream, CAST(NULLIF(:path, '') AS text))
GROUP BY why ORDER BY sum(bytes) DESC NULLS LAST, why LIMIT {MOST_REASONS}"""  # noqa: S608


class File(BaseModel):
    """A Parquet file: the events of a segment from `start_offset` up to `end_offset`, which were
    committed from `first_clock` to `last_clock`. `transaction_number`: none for a file
    that compaction has written."""

    segment: str
    start_offset: int
    end_offset: int
    events: int
    bytes: int
    transaction_number: int | None
    first_clock: datetime
    last_clock: datetime
    path: str


class Compaction(BaseModel):
    """What `weir compact` would do with a stream: put so many neighbours together into so many
    files, at most; none if neighbours store columns in different ways. `among`: in how many files
    it was looked for, the first; none: in all."""

    among: int | None
    files_before: int
    files_after: int
    events: int
    bytes: int


class Files(BaseModel):
    """A page of a stream's files. `total`: none if there are more than are counted. `next`: what to
    give as `after` for the page that follows."""

    total: int | None
    files: list[File]
    next: str | None


class Reason(BaseModel):
    """Why some files are still there."""

    why: str
    files: int
    events: int | None
    bytes: int | None


class Reasons(BaseModel):
    """Why the files of a stream, or one of them, are still there: what keeps most comes first."""

    reasons: list[Reason]


@router.get("/streams/{scope}/{name}/files")
def list_files(
    asked: Asked,
    scope: str,
    name: str,
    segment: Annotated[str, Query(max_length=40, description="only of this segment")] = "",
    after: Annotated[str, Query(max_length=80, description="`next` of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Files:
    """Return the files of a stream, by segment and offset. Three statements."""
    stream = f"{scope}/{name}"
    after_segment, _, offset = after.partition("@")
    if after and not (offset.isascii() and offset.isdigit() and len(offset) < 19):
        raise InvalidInput("argument_invalid", "after is not what `next` of a page before was.")

    def read(connection: Connection) -> Files:
        check_stream(connection, stream)
        found = rows(
            connection, _FILES, stream=stream, segment=segment, after_segment=after_segment,
            after_offset=int(offset or -1), limit=limit,
        )  # fmt: skip
        [(total,)] = rows(connection, _TOTAL, stream=stream, segment=segment)
        last = found[limit - 1] if len(found) > limit else None
        return Files(
            total=total if total <= MOST_FILES else None,
            files=[File(**row._mapping) for row in found[:limit]],
            next=f"{last.segment}@{last.start_offset}" if last else None,
        )

    return asked.snapshot(read)


@router.get("/streams/{scope}/{name}/compaction")
def show_compaction(
    request: Request, asked: Asked, scope: str, name: str, conn_id: str = ""
) -> Compaction:
    """Return what compaction would do with a stream, as far as its first files say. Three
    statements."""
    stream = f"{scope}/{name}"
    size = request.app.state.settings_of(conn_id).file_bytes

    def read(connection: Connection) -> Compaction:
        check_stream(connection, stream)
        [(total,)] = rows(connection, _TOTAL, stream=stream, segment="")
        found = find_small_files(
            connection, [stream_name(stream)], size, thorough=True, among=LOOKED_AT
        )
        groups = [g for one in found for g in groups_of(one.files, size, thorough=True)]
        files = [file for group in groups for file in group]
        return Compaction(
            among=LOOKED_AT if total > LOOKED_AT else None,
            files_before=len(files), files_after=len(groups),
            events=sum(file.events for file in files), bytes=sum(file.bytes for file in files),
        )  # fmt: skip

    return asked.snapshot(read)


@router.get("/streams/{scope}/{name}/why")
def why_kept(
    asked: Asked,
    scope: str,
    name: str,
    path: Annotated[str, Query(max_length=2000, description="of a file; empty: of all")] = "",
) -> Reasons:
    """Return why files are still there, as `weir why` says, within two seconds. Three
    statements."""
    stream = f"{scope}/{name}"

    def read(connection: Connection) -> Reasons:
        check_stream(connection, stream)
        limit_statements(connection, PATIENCE)
        try:
            found = rows(connection, _WHY, stream=stream, path=path)
        except OperationalError as error:
            if sqlstate(error) != CANCELLED:
                raise
            raise InvalidInput(
                "files_too_many",
                f"{stream} has too many files to say of all of them why they are still here; ask "
                "of one file, or read the function weir.why_kept.",
            ) from None
        return Reasons(reasons=[Reason(**row._mapping) for row in found])

    return asked.snapshot(read)
