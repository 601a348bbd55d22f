"""Open batches and commit them: a batch is what one reader reads at once, with recorded bounds.

A batch belongs to its group, not to its reader: another reader that takes it over reads the same
bounds, under a new token and as a new attempt. One transaction commits the batch and its output.
"""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from weir.controller.commit import commit_in
from weir.controller.locks import LockedStream
from weir.controller.queries import Cut
from weir.controller.streams import schema_by_id
from weir.controller.transactions import Committed
from weir.database.connection import Database
from weir.errors import Conflict
from weir.kernel.attempt import Staged
from weir.model.bounds import Bound
from weir.model.schema import Field, stored_name
from weir.queries.reader_groups.batches import lifecycle as sql
from weir.reader_groups.batch import Batch, hold
from weir.reader_groups.batches.alignment import check_closed
from weir.reader_groups.batches.data_loss import skip_gaps
from weir.reader_groups.batches.new import open_new
from weir.reader_groups.batches.plan import Wanted
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.batches.splits import open_parts
from weir.reader_groups.checkpoints.lifecycle import settle_group
from weir.reader_groups.groups.readers import release_expired, replaced
from weir.reader_groups.locks import LockedGroup, lock_group, lock_streams_and_group
from weir.reader_groups.outputs.records import discard_outputs
from weir.reader_groups.outputs.tables import StagedTable, publish_tables
from weir.reader_groups.positions import advance


class Function(NamedTuple):
    """The function that made the results of a batch: its name, module:function, and the version of
    its source."""

    name: str
    version: str


def open_in(
    connection: Connection,
    group: str,
    reader_id: str,
    token: int,
    reading: Reading,
    *,
    lease: float,
    until: dict[int, Cut] | None = None,
    closed: int | None = None,
    first: bool = False,
) -> Batch | None:
    """Return the reader's next batch, or None if there is nothing to read. The group stays locked
    until the transaction ends.

    The batch is, in this order: the reader's own open batch (of a retried task), the open batch of
    a reader whose lease has expired, or a new one within the budget of `reading`, over the reader's
    fair share of the group. `until`, `closed` and `first`: see `Wanted`. Raises Fenced; Truncated
    if positions lie below the head and the group's on_gap is fail; and Conflict if the group became
    aligned, or got another stream, since `closed` was taken.
    """
    locked = lock_group(connection, group)
    found = sql.standing(connection, group_id=locked.group_id, reader_id=reader_id, lease=lease)
    if found.token != token:
        raise replaced(group, reader_id)
    if (
        found.resumes
        and (resumed := _resume(connection, locked, reader_id, token, lease)) is not None
    ):
        return resumed
    if found.expired:
        release_expired(connection, locked, lease, alive=reader_id)
        found = sql.standing(connection, group_id=locked.group_id, reader_id=reader_id, lease=lease)
    if found.head_moved:
        skip_gaps(connection, locked)
    if locked.configuration.aligned:
        check_closed(connection, locked, closed, until or {})
    ends = {int(stream_id): cut for stream_id, cut in found.ends.items()}
    wanted = Wanted(reading, {**(until or {}), **ends}, closed, ends, first)
    return open_new(
        connection, locked, reader_id, token, wanted, found.labels, reading.expected_readers
    )


def _resume(
    connection: Connection, group: LockedGroup, reader_id: str, token: int, lease: float
) -> Batch | None:
    row = sql.resume(
        connection, group_id=group.group_id, reader_id=reader_id, token=token, lease=lease
    )
    if row is None:
        return None
    bounds = tuple(Bound.of(value) for value in row.bounds)
    return Batch(
        group.group_id, group.name, row.batch_id, reader_id, token, row.attempt, bounds, row.events,
        group.configuration.on_gap, row.up_to, row.complete_until,
    )  # fmt: skip


def commit_batch(
    database: Database,
    batch: Batch,
    *,
    lease: float,
    staged: Sequence[Staged] = (),
    tables: Sequence[StagedTable] = (),
    outputs: Sequence[Mapping[str, object]] = (),
    lost: dict[int, int] | None = None,
    rejected: int = 0,
    rejected_as: Mapping[int, Sequence[Field]] | None = None,
    function: Function | None = None,
) -> list[Committed]:
    """Move the positions to the end of the batch and publish its outputs, in one transaction.

    `staged`: appends to streams. `tables`: rows for tables of this database. `outputs`: the Parquet
    folders of this attempt. `lost`: by stream id, how many events were truncated after the batch
    was opened. `rejected`: how many of its events failed. `rejected_as`: by stream id, the columns
    with which these were written as text. `function`: what made the results, for lineage. If the
    batch has a rest, the next part of that is open afterwards. Doing it again changes nothing.
    Raises Fenced if the batch was taken over, and Conflict if a column of rejected events was
    widened meanwhile; then nothing of it is published.
    """
    appends = [
        {
            "kind": "stream",
            "output": str(one.attempt.stream),
            "stream_id": one.attempt.stream_id,
            "transaction_number": one.attempt.transaction_number,
        }
        for one in staged
    ]
    published = [*outputs, *(table.output() for table in tables), *appends]
    as_text = rejected_as or {}

    def work(connection: Connection) -> tuple[list[Committed], bool]:
        locked, group = lock_streams_and_group(
            connection, batch.group, ids=[*(s.attempt.stream_id for s in staged), *as_text]
        )
        # In the order of the thread that renews leases: the reader's row, then its transactions.
        record = hold(connection, batch)
        if record.state == "open":
            _check_types(connection, [one for one in locked if one.stream_id in as_text], as_text)
        written = [one for one in locked if one.stream_id not in as_text]
        committed = commit_in(connection, written, staged) if staged else []
        if record.state != "open":
            return committed, record.awaited
        if record.has_outputs:
            discard_outputs(connection, group.group_id, batch.batch_id, but=published)
        advance(connection, group, batch.bounds, batch.reader_id)
        sql.end(
            connection,
            group_id=group.group_id,
            batch_id=batch.batch_id,
            out=json.dumps(published),
            lost=json.dumps({str(s): n for s, n in (lost or {}).items()}),
            lease=lease,
            reader_id=batch.reader_id,
            token=batch.token,
            rejected=rejected,
            function=function.name if function else None,
            version=function.version if function else None,
        )
        if record.rest:
            rest = [list(map(Bound.of, part)) for part in record.rest]
            open_parts(connection, group, batch, rest)
        publish_tables(connection, tables, {"reader_group": batch.group, "batch": batch.identity})
        return committed, record.awaited

    done, settles = database.transaction(work)
    if settles:
        # A checkpoint that this batch completes releases events, for which the input streams are
        # locked. Not in the same transaction: appends to them would wait until the commit has put
        # all rows into tables.
        settle_group(database, batch.group)
    return done


def _check_types(
    connection: Connection,
    locked: Sequence[LockedStream],
    as_text: Mapping[int, Sequence[Field]],
) -> None:
    """Check that events were written as text with the types of now: by the time at which they are
    rejected they are read again (`weir.spark.consumers.put_back`)."""
    for stream in locked:
        types = {stored_name(one): one["type"] for one in as_text[stream.stream_id]}
        for one in schema_by_id(connection, stream.stream_id):
            if types.get(stored_name(one), one["type"]) != one["type"]:
                raise Conflict(
                    "schema_changed",
                    f"column {one['name']!r} of stream {stream.name} was widened since the batch "
                    "was read, of which an event is to be rejected; read the batch again.",
                )
