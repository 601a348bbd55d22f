"""The files of a stream: a page of them, and why any of them is still there."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.compaction.records import find_small_files
from weir.errors import InvalidInput
from weir.model.compaction import groups_of
from weir.model.names import stream_name
from weir.pages.answering import Asked, Tagged, check_stream, within
from weir.queries.pages import files as sql

router = APIRouter(route_class=Tagged, tags=["streams"])

MOST_REASONS = 100
MOST_FILES = 10_000  # that are counted
LOOKED_AT = 2000  # files, for what compaction would do
PATIENCE = 2.0  # seconds, for why the files of a stream are there


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
    files: list[sql.File]
    next: str | None


class Reasons(BaseModel):
    """Why the files of a stream, or one of them, are still there: what keeps most comes first."""

    reasons: list[sql.Reason]


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
        found = sql.files(
            connection, stream=stream, segment=segment, after_segment=after_segment,
            after_offset=int(offset or -1), limit=limit,
        )  # fmt: skip
        total = sql.total(connection, stream=stream, segment=segment, most=MOST_FILES + 1)
        last = found[limit - 1] if len(found) > limit else None
        return Files(
            total=total if total <= MOST_FILES else None,
            files=found[:limit],
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
        total = sql.total(connection, stream=stream, segment="", most=MOST_FILES + 1)
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
        refusal = InvalidInput(
            "answer_too_large",
            f"{stream} has too many files to say of all of them why they are still here; ask of "
            "one file, or read the function weir.why_kept.",
        )
        with within(connection, PATIENCE, refusal):
            return Reasons(reasons=sql.why(connection, stream=stream, path=path, most=MOST_REASONS))

    return asked.snapshot(read)
