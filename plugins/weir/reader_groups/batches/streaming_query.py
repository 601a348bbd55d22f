"""A streaming query of Spark as the reader of a group.

What a query wrote counts once only together with its checkpoint, and only a query that is started
again from the same checkpoint has that. So nobody takes over the batch of a query: its lease does
not expire, and it is the only reader of its group. The batches of the group are the query's micro-
batches, and its checkpoint has the reader and the number of the batch.
"""

from sqlalchemy import Connection

from weir.controller.queries import Cut
from weir.database.connection import Database
from weir.errors import Conflict
from weir.front_ends import do
from weir.queries.reader_groups.batches import streaming_query as sql
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.lifecycle import commit_batch, open_in
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.groups.readers import join
from weir.reader_groups.locks import lock_group


class StreamingQuery:
    """The reader that a query is. `group_id` and `reader_id` are those of its checkpoint, if it has
    them."""

    def __init__(self, database: Database, group: str, group_id: int, reader_id: str) -> None:
        self._database, self._group = database, group
        self._group_id, self.reader_id = group_id, reader_id
        self._token: int | None = None
        self._kept = False  # its lease does not expire: its checkpoint knows it
        self._batch: Batch | None = None  # the open one
        self.lost: dict[int, int] = {}  # by stream id, how many events of it were truncated

    def next(self, after: int, reading: Reading, until: dict[int, Cut] | None, lease: float) -> int:
        """Commit the batch `after`, unless that is done, open the next one, and return its number;
        `after` if there is nothing to read. `until`: by stream id, the cut to stop at.

        Raises Conflict if another reader is there, if the group was reset or the reader taken
        offline, and if later batches are committed than the checkpoint knows; Fenced if a query of
        the same checkpoint was started later.
        """
        if after == 0 and self._batch is None:
            # The checkpoint does not know the reader yet, so its lease is one like that of others.
            self._token = join(self._database, self._group, self.reader_id, lease, alone=True)
        else:
            self._keep(after)
        if self._batch is None:
            self._batch = self._open(reading, until, lease)
        if self._batch is not None and self._batch.batch_id <= after:
            self.commit(after, lease)
            self._batch = self._open(reading, until, lease)
        return after if self._batch is None else self._batch.batch_id

    def batch(self, number: int, reading: Reading, lease: float) -> Batch:
        """Return an open batch, which the checkpoint knows from now on. Raises as `next`."""
        self._keep(number - 1)
        batch = self._batch or self._open(reading, None, lease)
        if batch is None or batch.batch_id != number:
            raise self._differs(f"its batch {number} is not open")
        self._batch = batch
        return batch

    def commit(self, number: int, lease: float) -> None:
        """Commit a batch, unless that is done."""
        if self._batch is not None and self._batch.batch_id == number:
            commit_batch(self._database, self._batch, lease=lease, lost=self.lost)
            self._batch, self.lost = None, {}

    def _open(self, reading: Reading, until: dict[int, Cut] | None, lease: float) -> Batch | None:
        token = self._token
        assert token is not None
        return self._database.transaction(
            lambda c: open_in(
                c, self._group, self.reader_id, token, reading, lease=lease, until=until
            )
        )

    def _keep(self, after: int) -> None:
        """Make the lease infinite, once; first come back as the reader of the checkpoint, whose
        newest batch is `after` or the one that follows."""
        if self._kept:
            return

        def work(connection: Connection) -> int:
            group = lock_group(connection, self._group)
            row = sql.keep(
                connection,
                group_id=group.group_id if group.group_id == self._group_id else None,
                reader_id=self.reader_id,
                old=self._token,
                new=self._token or group.next_token,
                after=after,
            )
            if row is None:
                raise self._differs(
                    "it was taken offline, or the group was reset, or deleted and created again"
                )
            if row.newest is not None:
                raise self._differs(
                    f"its batch {row.newest} is committed, of which the checkpoint knows nothing"
                )
            return row.token

        token = self._database.transaction(work)
        self._token, self._kept = token, True

    def _differs(self, why: str) -> Conflict:
        again = do("reset_reader_group", reader_group=self._group, to="START")
        return Conflict(
            "checkpoint_differs",
            f"the checkpoint of this query belongs to reader {self.reader_id!r} of reader group "
            f"{self._group}, which is elsewhere now ({why}), so events would be missing from its "
            "output, or be in it twice; start the query with a new checkpoint, which begins at the "
            f"position of the group (to read events again, before that {again}).",
        )
