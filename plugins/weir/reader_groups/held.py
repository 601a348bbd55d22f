"""Whether a batch is still one's own."""

from sqlalchemy import Connection, text

from weir.errors import Fenced
from weir.reader_groups.new_batch import Batch


def check_held(connection: Connection, batch: Batch) -> None:
    """Raises Fenced when the batch was taken over."""
    row = connection.execute(
        text(
            """SELECT token, state FROM reader_batch
            WHERE group_id = :group_id AND batch_id = :batch_id"""
        ),
        {"group_id": batch.group_id, "batch_id": batch.batch_id},
    ).one_or_none()
    if row is not None and row.state == "abandoned":
        raise Fenced(
            f"batch {batch.batch_id} was abandoned when group {batch.group} was reset; what this "
            "attempt wrote will be deleted."
        )
    if row is None or row.token != batch.token:
        raise Fenced(
            f"batch {batch.batch_id} of group {batch.group} was taken over from reader "
            f"{batch.reader_id!r}; what this attempt wrote will be deleted."
        )
