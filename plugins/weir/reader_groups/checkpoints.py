"""Checkpoints: a group's positions under a name, and what they release to retention.

Positions move only when batches are committed, so a checkpoint is a snapshot in one transaction:
it waits for nobody and can't hang.
"""

import json
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.locks import lock_group, lock_streams
from weir.controller.requests import Request
from weir.errors import InvalidInput, WeirError
from weir.names import reader_group_name
from weir.storage import Database


def checkpoint(
    database: Database, group: str, *, name: str | None = None, request_id: str | None = None
) -> dict[str, Any] | None:
    """Record where a group stands; a subscriber's cut is published to retention with it.

    Without a name it is automatic, and None is returned when nothing has moved since the last, or
    since the group was created.
    """
    reader_group_name(group)
    if name is not None and not (0 < len(name) <= 200 and name.isprintable()):
        raise InvalidInput(f"{name!r} is not a checkpoint's name: use up to 200 characters.")
    request = Request(request_id or "", "checkpoint", group, {"name": name})

    def work(connection: Connection) -> dict[str, Any] | None:
        # Publishing moves what holds retention back, so the streams are locked, before the group.
        ids = [
            row.stream_id
            for row in connection.execute(
                text(
                    """SELECT gs.stream_id FROM reader_group_stream gs
                    JOIN reader_group g USING (group_id)
                    JOIN stream s USING (stream_id) WHERE g.name = :name AND s.state <> 'deleted'"""
                ),
                {"name": group},
            )
        ]
        lock_streams(connection, ids=ids)
        locked = lock_group(connection, group)
        if request_id is not None and (before := request.result(connection)) is not None:
            return before
        row = connection.execute(
            text(
                """SELECT (SELECT coalesce(jsonb_object_agg(gs.stream_id::text,
                            group_cut(gs.group_id, gs.stream_id)), '{}')
                        FROM reader_group_stream gs JOIN stream s USING (stream_id)
                        WHERE gs.group_id = :g AND s.state <> 'deleted') AS cuts,
                    coalesce((SELECT c.cuts FROM checkpoint c WHERE c.group_id = :g
                            ORDER BY c.created_at DESC LIMIT 1),
                        (SELECT jsonb_object_agg(gs.stream_id::text, gs.start_cut)
                            FROM reader_group_stream gs WHERE gs.group_id = :g)) AS last,
                    time_clock(clock_timestamp()) AS clock"""
            ),
            {"g": locked.group_id},
        ).one()
        if name is None and row.cuts == row.last:
            return None
        chosen = name or f"automatic-{row.clock}"
        made = connection.execute(
            text(
                """WITH made AS (
                    INSERT INTO checkpoint (group_id, name, kind, created_at, cuts, published)
                    VALUES (:g, :name, :kind, clock_timestamp(), CAST(:cuts AS jsonb), :subscriber)
                    ON CONFLICT (group_id, name) DO NOTHING RETURNING name
                ), published AS (
                    UPDATE reader_group_stream gs SET published_at = clock_timestamp(),
                        published_cut = CAST(:cuts AS jsonb) -> gs.stream_id::text
                    FROM made WHERE gs.group_id = :g AND :subscriber
                      AND CAST(:cuts AS jsonb) ? gs.stream_id::text
                )
                SELECT name FROM made"""
            ),
            {
                "g": locked.group_id,
                "name": chosen,
                "kind": "automatic" if name is None else "manual",
                "cuts": json.dumps(row.cuts),
                "subscriber": locked.subscriber,
            },
        ).one_or_none()
        if made is None:
            raise InvalidInput(
                f"group {group} has a checkpoint {chosen!r} already; choose another name."
            )
        result = {"reader_group": group, "checkpoint": chosen, "published": locked.subscriber}
        return request.done(connection, result) if request_id is not None else result

    return database.transaction(work)


def checkpoint_all(database: Database) -> tuple[list[dict[str, Any]], list[str]]:
    """Checkpoint every group that has moved; one that fails does not stop the others.

    Returns what was made, and the sentences of the failures.
    """
    groups = database.transaction(
        lambda c: c.execute(text("SELECT name FROM reader_group ORDER BY group_id")).all()
    )
    made, failed = [], []
    for (group,) in groups:
        try:
            if (result := checkpoint(database, group)) is not None:
                made.append(result)
        except WeirError as error:
            failed.append(str(error))
    return made, failed


def read_lag(database: Database) -> list[dict[str, Any]]:
    """Per group and stream what is unread: events, bytes, seconds; and what was lost."""
    rows = database.transaction(
        lambda c: (
            c.execute(
                text(
                    """SELECT reader_group, stream, unread_events, unread_bytes, lost_events,
                    extract(epoch FROM lag)::double precision AS seconds
                FROM lag ORDER BY reader_group, stream"""
                )
            )
            .mappings()
            .all()
        )
    )
    return [dict(row) for row in rows]
