"""What the database keeps of publications: who publishes a stream, and the transaction that makes
a new snapshot the table.

A publication has a number like a transaction, so that its folder is its own, and a lease. Whoever
finds the lease expired makes garbage of the folder, and whoever commits must still hold it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.annex.publication.plan import Plan
from weir.controller.locks import lock_streams
from weir.errors import Fenced
from weir.queries.annex.publication import records as sql
from weir.warehouse.paths import publication_folder


@dataclass(frozen=True)
class Written:
    """What a publication has written: the next state of the table."""

    sequence: int
    metadata: str
    files: int
    manifest: str | None  # the one that lists the new data files
    moved: Mapping[str, str]  # manifests by those whose other entries they have now
    new: Sequence[str]  # metadata that the new snapshot names, and later ones
    only: Sequence[str]  # that only this snapshot names
    ended: Sequence[str]  # metadata that it names no more
    expires: int


def begin(
    connection: Connection, stream_id: int, lease: float, token: str | None = None
) -> int | None:
    """Begin a publication of a stream, and return its number; None if another one is at work.
    `token`: of this try, which gets the same number with it when its connection was lost. Raises
    NotFound if the stream is gone."""
    lock_streams(connection, ids=[stream_id])
    before = sql.before(connection, stream_id=stream_id)
    if before is not None and before.busy:
        return before.number if token and before.token == token else None
    if before is not None and before.lease_until is not None:
        discard(connection, stream_id, before.number)
    return sql.begin(connection, stream_id=stream_id, lease=lease, token=token)


def discard(connection: Connection, stream_id: int, number: int) -> None:
    """Make garbage of what a publication wrote."""
    folder = publication_folder(stream_id, number)
    sql.discard(connection, stream_id=stream_id, folder=folder)


def end(connection: Connection, stream_id: int, number: int, problem: str | None) -> None:
    """End a publication that has made nothing of the table, and make garbage of what it wrote.
    `problem`: why; None: nothing was to be done. If another one has followed it, it stays."""
    lock_streams(connection, ids=[stream_id])
    if sql.end(connection, stream_id=stream_id, number=number, problem=problem):
        discard(connection, stream_id, number)


def commit(
    connection: Connection, stream_id: int, number: int, root: str, plan: Plan, written: Written,
    graces: tuple[float, float],
) -> None:  # fmt: skip
    """Make what was written the table. A repetition changes nothing.

    Raises Fenced if another publication has begun meanwhile, or if a file was truncated or
    compacted that the new snapshot names, and NotFound if the stream was deleted.
    """
    lock_streams(connection, ids=[stream_id])
    held = sql.held(connection, stream_id=stream_id)
    if held is not None and held.number == number and held.metadata == written.metadata:
        return  # the connection was lost while this was committed
    if held is None or held.number != number or not held.goes_on:
        raise Fenced(
            "attempt_fenced",
            f"publication {number} of the stream with number {stream_id} is over, because its "
            "lease has expired or the stream is not to be published any more; the next run "
            "publishes what is new.",
        )
    paths = [file.path for file in plan.added]
    gone = sql.are_gone(
        connection, stream_id=stream_id, segments=[file.segment_id for file in plan.added],
        starts=[file.start_offset for file in plan.added], paths=paths,
    )  # fmt: skip
    if gone:
        raise Fenced(
            "attempt_fenced",
            f"files of the stream with number {stream_id} were truncated or compacted while it "
            "was published; the next run publishes what is there.",
        )
    removed, sequence = [path for some in plan.removed.values() for path in some], written.sequence
    sql.end_files(
        connection, stream_id=stream_id, sequence=sequence, paths=[*removed, *written.ended]
    )
    sql.move_files(
        connection, stream_id=stream_id, old=[*written.moved], new=[*written.moved.values()]
    )
    sql.add_files(
        connection, stream_id=stream_id, sequence=sequence, paths=paths, manifest=written.manifest,
        new=[*written.new], only=[*written.only],
    )  # fmt: skip
    sql.expire(
        connection, stream_id=stream_id, below=written.expires, grace=graces[0],
        compacted=graces[1],
    )  # fmt: skip
    state = plan.state
    sql.publish(
        connection, stream_id=stream_id, sequence=sequence, root=root, metadata=written.metadata,
        cut=json.dumps(state.cut), clock=state.clock, head=json.dumps(state.head),
        events=state.events, files=written.files, compacted=state.compacted,
        masked=json.dumps(plan.masked), version=state.schema_version,
    )  # fmt: skip


def end_all(connection: Connection, stream_id: int) -> None:
    """End the publication of a stream, if there is one. It locks the stream."""
    lock_streams(connection, ids=[stream_id])
    forget(connection, stream_id)


def forget(connection: Connection, stream_id: int) -> None:
    """End the publication of a locked stream, if there is one."""
    sql.forget(connection, stream_id=stream_id)
