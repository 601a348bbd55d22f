"""Commit the micro-batches of streaming queries, each once (semantics 12).

Spark plans the write of a micro-batch before it says which one it is. So its transaction begins as
the next one of its writer, and gets the number of the micro-batch when it commits. Another one that
the writer begins meanwhile takes it over, as of any append.
A writer id belongs to one query: another one numbers its micro-batches anew.
"""

from contextlib import suppress

from sqlalchemy import Connection

from weir.controller.commit import commit_in
from weir.controller.locks import lock_streams
from weir.controller.transactions import Committed, abort_in, begin
from weir.database.connection import Database
from weir.errors import Conflict, InvalidInput, NotFound
from weir.kernel.attempt import Attempt, Staged
from weir.model.names import StreamName
from weir.queries.controller import micro_batches as sql

_BATCH, _NEXT = "micro-batch ", "next micro-batch"


def begin_micro_batch(
    database: Database, name: StreamName, *, writer_id: str, lease: float, source: str
) -> Attempt:
    """Open the transaction of the next micro-batch of a writer, or take it over. Raises like
    `begin`."""
    begun = begin(
        database, name, writer_id=writer_id, batch_id=_NEXT, fingerprint=_NEXT, lease=lease,
        source=source,
    )  # fmt: skip
    assert isinstance(begun, Attempt), name  # a commit gives it another name
    return begun


def abort_micro_batch(database: Database, name: StreamName, writer_id: str) -> None:
    """Abort the micro-batch that a writer has begun, if it has."""

    def work(connection: Connection) -> None:
        [stream] = lock_streams(connection, names=[name])
        found = sql.open_one(connection, stream=str(name), writer_id=writer_id, batch_id=_NEXT)
        if found is not None:
            abort_in(connection, stream.stream_id, found.transaction_number, found.attempt)

    with suppress(NotFound):
        database.transaction(work)


def commit_micro_batch(
    database: Database, staged: list[Staged], *, writer_id: str, query: str, batch: int
) -> Committed | None:
    """Commit a micro-batch of a query, and its rejected rows with it. Return what was committed;
    None if the query has committed it before, and nothing is committed now.

    `query`: the id of the query, which its checkpoint keeps. Raises Conflict if the writer id
    belongs to another query, or if the checkpoint is older than what the query has committed, or if
    the stream has none of the micro-batches before this one; otherwise like `commit`.
    """
    attempt = staged[0].attempt
    fingerprint = f"query {query}"
    rows = sum(file.events for one in staged[:1] for file in (*one.files, *one.rejected_files))

    def work(connection: Connection) -> Committed | None:
        locked = lock_streams(connection, ids=[one.attempt.stream_id for one in staged])
        last = sql.last_committed(connection, stream=str(attempt.stream), writer_id=writer_id)
        if last is None and batch > 0:
            raise _unknown(attempt.stream, writer_id, batch)
        if last is not None and last.transaction_number != attempt.transaction_number:
            if last.fingerprint != fingerprint:
                raise _taken(attempt.stream, writer_id, batch)
            before = int(last.batch_id.removeprefix(_BATCH))
            if batch < before or (batch == before and rows != last.rows):
                raise _older(attempt.stream, writer_id, batch, before)
            if batch == before:
                return None
        sql.rename(
            connection, batch_id=f"{_BATCH}{batch}", fingerprint=fingerprint,
            stream_id=attempt.stream_id, number=attempt.transaction_number, attempt=attempt.attempt,
        )  # fmt: skip
        return commit_in(connection, locked, staged)[0]

    return database.transaction(work)


def _unknown(stream: StreamName, writer_id: str, batch: int) -> Conflict:
    return Conflict(
        "checkpoint_differs",
        f"the query of writer {writer_id!r} writes micro-batch {batch} to stream {stream}, which "
        "has none of its micro-batches before: the stream was deleted and made anew, or the "
        "checkpoint wrote elsewhere or with another writerId, so nothing was appended; begin a new "
        "checkpoint, whose query appends from its own first micro-batch on.",
    )


def _taken(stream: StreamName, writer_id: str, batch: int) -> Conflict:
    return Conflict(
        "checkpoint_differs",
        f"writer {writer_id!r} of stream {stream} is another query, or another checkpoint of this "
        f"one, so its micro-batch {batch} can't be told from what was appended before, and nothing "
        "was appended; set the option writerId to a new id for this checkpoint, and see to it that "
        "its first micro-batch begins after what the stream has.",
    )


def _older(stream: StreamName, writer_id: str, batch: int, before: int) -> Conflict:
    return Conflict(
        "checkpoint_differs",
        f"the query of writer {writer_id!r} has committed micro-batch {before} to stream {stream}, "
        f"and now writes micro-batch {batch} with other rows, as after its checkpoint was restored "
        "from a copy, so nothing was appended; restore the newest checkpoint, or begin a new one "
        "with a writerId of its own after what the stream has.",
    )


def check_micro_batch_options(writer_id: str | None, batch_id: str | None) -> str:
    """Return the writer id of a streaming query. Raises InvalidInput if it has none."""
    if not writer_id:
        raise InvalidInput(
            "argument_missing",
            "the query has no writer id; give .option('writerId', ...): a name of this query that "
            "no other one has, by which each of its micro-batches is appended once.",
        )
    if batch_id is not None:
        raise InvalidInput(
            "argument_invalid",
            f"batchId is {batch_id!r}, but Spark numbers the micro-batches of a query; leave it "
            "out.",
        )
    return writer_id
