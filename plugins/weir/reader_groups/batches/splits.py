"""Split a failed batch: close it, and open batches with its halves in its place, one after another.

The halves are recorded before they are read, so that a reader that takes over continues with the
same. The rest of a batch belongs to its reader like the batch itself: its segments move to another
reader only together with the batch.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.model.bisection import halve
from weir.model.bounds import Bound, recorded
from weir.queries.reader_groups.batches import splits as sql
from weir.reader_groups.batch import Batch, held_or_split
from weir.reader_groups.batches.halves_by_rank import Ranks, halve_by_rank
from weir.reader_groups.locks import LockedGroup, lock_group
from weir.reader_groups.outputs.records import discard_outputs


def split_batch(database: Database, batch: Batch, error: str, ranks: Ranks | None = None) -> None:
    """Split a batch of two or more events that failed with `error`: open its first half, and record
    the second half as the rest. Makes garbage of what it wrote. Raises Fenced.

    `ranks`: the batch is read in write order, so the first half has what was written first; see
    `halve_by_rank`. Otherwise it has the first segments.
    """
    whole = batch.bounds
    halves = halve(whole) if ranks is None else halve_by_rank(database, whole, ranks)

    def work(connection: Connection) -> None:
        group = lock_group(connection, batch.group)
        record = held_or_split(connection, batch)
        if record.state != "open":  # an earlier try split it, and lost its connection at the COMMIT
            return
        discard_outputs(connection, group.group_id, batch.batch_id)
        sql.split(connection, group_id=group.group_id, batch_id=batch.batch_id, error=error)
        rest = [list(map(Bound.of, part)) for part in record.rest]
        open_parts(connection, group, batch, [*halves, *rest])

    database.transaction(work)


def open_parts(
    connection: Connection,
    group: LockedGroup,
    before: Batch,
    parts: Sequence[Sequence[Bound]],
) -> None:
    """Open the first of some parts for the reader of `before`, and record the others as its rest.

    A checkpoint that waits for `before` then waits for this one. In a transaction that has locked
    the group and ended `before`.
    """
    sql.open_part(
        connection,
        group_id=group.group_id,
        batch_id=group.next_batch,
        before=before.batch_id,
        reader_id=before.reader_id,
        token=before.token,
        bounds=recorded(parts[0]),
        rest="[" + ",".join(map(recorded, parts[1:])) + "]",
        later=recorded(bound for part in parts[1:] for bound in part),
        events=sum(bound.end - bound.start for bound in parts[0]),
    )
