"""Reader groups and their checkpoints, for programs of your own."""

import time
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from weir.database.connection import Database
from weir.errors import Conflict, NotFound
from weir.model.names import stream_name
from weir.reader_groups.checkpoints import lifecycle as checkpoints
from weir.reader_groups.groups import lifecycle as groups

PAUSE = 0.5  # seconds between two looks at a checkpoint that waits


def create_group(
    database: Database, name: str, streams: Sequence[str], **given: Any
) -> dict[str, Any]:
    """Create a reader group over streams, under a request of its own."""
    return groups.create_reader_group(
        database, name, [stream_name(one) for one in streams],
        request_id=f"program {uuid.uuid4()}", **given,
    )  # fmt: skip


def checkpoint(
    database: Database,
    reader_group: str,
    name: str,
    *,
    barrier: bool = False,
    patience: float = 3600.0,
) -> dict[str, Any]:
    """Record the positions of a group under a name, and return them by stream. With `barrier`, wait
    up to `patience` seconds until the batches that are open now are committed.

    Raises NotFound for the group, also if it is deleted meanwhile; Conflict if the name is taken,
    too many checkpoints wait already, or this one is cancelled or times out; InvalidInput for the
    name.
    """
    checkpoints.checkpoint(
        database, reader_group, name=name, barrier=barrier, patience=patience,
        request_id=f"program {uuid.uuid4()}",
    )  # fmt: skip
    while (found := _look(database, reader_group, name)).state == "waiting":
        time.sleep(PAUSE)
        checkpoints.settle_group(database, reader_group)
    if found.state != "complete":
        raise Conflict(
            "checkpoint_not_reached",
            f"checkpoint {name!r} of reader group {reader_group} {found.outcome} while it waited "
            "for batches; make one under another name, with more patience if they take longer.",
        )
    return dict(found.cuts)


def _look(database: Database, group: str, name: str) -> Any:
    found = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT k.state, CASE k.state WHEN 'timed out' THEN 'timed out'
                    ELSE 'was ' || k.state END AS outcome,
                    (SELECT jsonb_object_agg(s.stream_name, x.value) FROM jsonb_each(k.cuts) x
                     JOIN stream s ON s.stream_id = x.key::bigint) AS cuts
                FROM checkpoint k JOIN reader_group g USING (group_id)
                WHERE g.name = :group AND k.name = :name"""
            ),
            {"group": group, "name": name},
        ).one_or_none()
    )
    if found is None:
        raise NotFound(
            "checkpoint_not_found",
            f"reader group {group} has no checkpoint {name!r} any more, because it or the group "
            "was deleted; make it again.",
        )
    return found
