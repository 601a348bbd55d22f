"""Checkpoints: a group's positions under a name, and what they release to retention.

Positions move only when batches are committed. So an *instant* checkpoint is a snapshot in one
transaction: it waits for nobody and can't hang. A *barrier* checkpoint is where the group will
stand when the batches are committed that are open now; their bounds are recorded, so its cut is
known at once, and it is complete when they are committed. Readers go on meanwhile.
"""

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from weir.controller.locks import LockedGroup
from weir.controller.retention_queue import queueing
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, InvalidInput, NotFound, WeirError
from weir.model.bounds import Bound
from weir.model.names import reader_group_name
from weir.reader_groups.changes import lock_group_and_streams
from weir.reader_groups.positions import advance

log = logging.getLogger("weir.reader_groups")


def checkpoint(
    database: Database,
    group: str,
    *,
    name: str | None = None,
    barrier: bool = False,
    patience: float = 3600.0,
    request_id: str | None = None,
) -> dict[str, Any] | None:
    """Record where a group stands; a subscriber's cut is published to retention with it.

    Without a name it is automatic, and None is returned when nothing has moved since the last, or
    since the group was created. `barrier`: with the batches that are open now, waiting for them up
    to `patience` seconds. Raises Conflict when too many are waiting already.
    """
    reader_group_name(group)
    if name is not None and not (0 < len(name) <= 200 and name.isprintable()):
        raise InvalidInput(
            "checkpoint_name_invalid",
            f"{name!r} is not a checkpoint's name: use up to 200 characters.",
        )
    request = Request(request_id or "", "checkpoint", group, {"name": name, "barrier": barrier})

    def work(connection: Connection) -> dict[str, Any] | None:
        # Publishing moves what holds retention back, so the streams are locked, before the group.
        _, locked = lock_group_and_streams(connection, group)
        if request_id is not None and (before := request.result(connection)) is not None:
            return before
        waits_for = _open_batches(connection, locked) if barrier else []
        cuts = _cuts(connection, locked, waits_for)
        last, released, clock = _last(connection, locked, cuts)
        if name is None:
            connection.execute(
                text(
                    """UPDATE reader_group SET checkpointed_at = clock_timestamp()
                    WHERE group_id = :g"""
                ),
                {"g": locked.group_id},
            )
        # What was reset and read again stands where it stood, and has to be released again.
        if name is None and not waits_for and cuts == last and released:
            return None
        chosen = name or f"automatic-{clock}"
        ids = [batch_id for batch_id, _, _ in waits_for]
        if ids:
            settle(connection, locked)  # what is over does not count
            _check_outstanding(connection, locked)
        _record(connection, locked, chosen, name is None, cuts, ids, patience)
        result = {
            "reader_group": group,
            "checkpoint": chosen,
            "published": locked.releases_at_checkpoints and not ids,
        }
        if ids:
            result |= {"waits_for": [f"batch {b} of reader {r}" for b, r, _ in waits_for]}
        return request.done(connection, result) if request_id is not None else result

    return database.transaction(work)


def cancel_checkpoint(
    database: Database, group: str, name: str, *, request_id: str
) -> dict[str, Any]:
    """Give up a checkpoint that waits. Raises NotFound, and Conflict when it does not wait."""
    request = Request(request_id, "cancel_checkpoint", group, {"name": name})

    def work(connection: Connection) -> dict[str, Any]:
        _, locked = lock_group_and_streams(connection, group)
        if (before := request.result(connection)) is not None:
            return before
        state = connection.execute(
            text("SELECT state FROM checkpoint WHERE group_id = :g AND name = :name"),
            {"g": locked.group_id, "name": name},
        ).scalar_one_or_none()
        if state is None:
            raise NotFound("checkpoint_not_found", f"group {group} has no checkpoint {name!r}.")
        if state != "waiting":
            raise Conflict(
                "checkpoint_not_waiting",
                f"checkpoint {name!r} of group {group} is {state}; nothing to cancel.",
            )
        _end(connection, locked, [name], "cancelled")
        return request.done(connection, {"reader_group": group, "checkpoint": name})

    return database.transaction(work)


def is_waiting(connection: Connection, group: str) -> bool:
    """Whether a checkpoint of the group waits for batches."""
    found = connection.execute(
        text(
            """SELECT EXISTS (SELECT FROM checkpoint c JOIN reader_group g USING (group_id)
                WHERE g.name = :group AND c.state = 'waiting')"""
        ),
        {"group": group},
    ).scalar_one()
    return bool(found)


def settle_group(database: Database, group: str) -> None:
    """Settle what waits in a group of which a batch was committed. What fails here is done by the
    next run of `settle_all`."""
    try:
        database.transaction(partial(_settle_one, group=group))
    except (WeirError, DBAPIError) as error:
        log.warning("checkpoints of group %s are completed later: %s", group, error)


def settle(connection: Connection, group: LockedGroup) -> list[str]:
    """Complete and publish the waiting checkpoints whose batches are all committed, and give up
    those whose time is over. In a transaction that has locked the group's streams and the group.

    Returns the names of the complete ones.
    """
    rows = connection.execute(
        text(
            """SELECT name, cuts, expires_at < clock_timestamp() AS late,
                EXISTS (SELECT FROM reader_batch b WHERE b.group_id = c.group_id
                        AND b.batch_id = ANY(c.waits_for) AND b.state = 'open') AS waits,
                EXISTS (SELECT FROM reader_batch b WHERE b.group_id = c.group_id
                        AND b.batch_id = ANY(c.waits_for) AND b.state = 'abandoned') AS lost
            FROM checkpoint c WHERE group_id = :g AND state = 'waiting' ORDER BY created_at"""
        ),
        {"g": group.group_id},
    ).all()
    _end(connection, group, [r.name for r in rows if r.lost], "cancelled")
    _end(
        connection, group, [r.name for r in rows if r.waits and r.late and not r.lost], "timed out"
    )
    done = [r for r in rows if not (r.waits or r.lost)]
    _end(connection, group, [r.name for r in done], "complete")
    return [r.name for r in done]


def settle_all(database: Database) -> tuple[list[dict[str, Any]], list[str]]:
    """Complete, publish and give up what waits, in every group: the periodic part. Returns what is
    complete, and the sentences of the failures."""
    groups = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT DISTINCT g.name FROM checkpoint c JOIN reader_group g USING (group_id)
                WHERE c.state = 'waiting' ORDER BY g.name"""
            )
        ).all()
    )
    done: list[dict[str, Any]] = []
    failed: list[str] = []
    for (group,) in groups:
        try:
            done += database.transaction(partial(_settle_one, group=group))
        except NotFound:  # deleted meanwhile
            continue
        except (WeirError, DBAPIError) as error:
            failed.append(database.failure_of(f"group {group}", error))
    return done, failed


def checkpoint_all(database: Database) -> tuple[list[dict[str, Any]], list[str]]:
    """Checkpoint every group that has moved; one that fails does not stop the others.

    Returns what was made, and the sentences of the failures.
    """
    made, failed = settle_all(database)
    groups = database.transaction(
        lambda c: c.execute(
            text("SELECT name FROM reader_group WHERE moved_at > checkpointed_at ORDER BY group_id")
        ).all()
    )
    for (group,) in groups:
        try:
            if (result := checkpoint(database, group)) is not None:
                made.append(result)
        except NotFound:  # deleted meanwhile
            continue
        except (WeirError, DBAPIError) as error:
            failed.append(database.failure_of(f"group {group}", error))
    return made, failed


def forget_old(database: Database, older_than: float) -> int:
    """Delete checkpoints older than so many seconds: automatic ones, but never a group's newest,
    and those that were given up. Returns how many."""
    return database.transaction(
        lambda c: (
            c.execute(
                text(
                    """DELETE FROM checkpoint c
                WHERE created_at < clock_timestamp() - :age * interval '1 second'
                AND CASE WHEN state = 'complete' THEN kind = 'automatic' AND EXISTS (
                             SELECT FROM checkpoint n WHERE n.group_id = c.group_id
                             AND n.state = 'complete' AND n.created_at > c.created_at)
                         ELSE state <> 'waiting' END"""
                ),
                {"age": older_than},
            ).rowcount
        )
    )


def read_lag(database: Database, groups: Sequence[str]) -> list[dict[str, Any]]:
    """Per group and stream what is unread: events, bytes, by how many seconds it lags behind the
    newest event, and for how many the oldest has been `waiting`; and what was lost."""
    if not groups:
        return []
    rows = database.transaction(
        lambda c: (
            c.execute(
                text(
                    """SELECT reader_group, stream, unread_events, unread_bytes, lost_events,
                    extract(epoch FROM lag)::double precision AS seconds,
                    extract(epoch FROM waiting)::double precision AS waiting
                FROM lag WHERE reader_group = ANY(:groups) ORDER BY reader_group, stream"""
                ),
                {"groups": list(groups)},
            )
            .mappings()
            .all()
        )
    )
    return [dict(row) for row in rows]


def _settle_one(connection: Connection, group: str) -> list[dict[str, Any]]:
    _, locked = lock_group_and_streams(connection, group)
    published = locked.releases_at_checkpoints
    return [
        {"reader_group": group, "checkpoint": name, "published": published}
        for name in settle(connection, locked)
    ]


def _open_batches(
    connection: Connection, group: LockedGroup
) -> Sequence[tuple[int, str, list[Bound]]]:
    rows = connection.execute(
        text(
            """SELECT batch_id, reader_id, bounds FROM reader_batch
            WHERE group_id = :g AND state = 'open' ORDER BY batch_id"""
        ),
        {"g": group.group_id},
    )
    return [(r.batch_id, r.reader_id, [Bound.of(b) for b in r.bounds]) for r in rows]


def _cuts(
    connection: Connection,
    group: LockedGroup,
    waits_for: Sequence[tuple[int, str, list[Bound]]],
) -> dict[str, Any]:
    """Per stream id where the group stands, or will once these batches are committed."""
    if waits_for:
        # The very step that their commits will make, tried and taken back.
        attempt = connection.begin_nested()
        for _, reader_id, bounds in waits_for:
            advance(connection, group, bounds, reader_id)
        cuts = _cuts(connection, group, ())
        attempt.rollback()
        return cuts
    found = connection.execute(
        text(
            """SELECT jsonb_object_agg(gs.stream_id::text, group_cut(gs.group_id, gs.stream_id))
            FROM reader_group_stream gs JOIN stream s USING (stream_id)
            WHERE gs.group_id = :g AND s.state <> 'deleted'"""
        ),
        {"g": group.group_id},
    ).scalar_one()
    return dict(found or {})


def _last(
    connection: Connection, group: LockedGroup, cuts: dict[str, Any]
) -> tuple[dict[str, Any] | None, bool, int]:
    """The cuts of the newest checkpoint, else where the group began; whether all is released to
    retention up to `cuts` that should be at a checkpoint; and the time."""
    row = connection.execute(
        text(
            """SELECT coalesce((SELECT cuts FROM last_checkpoint(:g)),
                (SELECT jsonb_object_agg(gs.stream_id::text, gs.start_cut)
                    FROM reader_group_stream gs WHERE gs.group_id = :g)) AS cuts,
                NOT :releases OR NOT EXISTS (
                    SELECT FROM reader_group_stream gs WHERE gs.group_id = :g
                    AND gs.published_cut <> CAST(:cuts AS jsonb) -> gs.stream_id::text) AS released,
                time_clock(clock_timestamp()) AS clock"""
        ),
        {
            "g": group.group_id,
            "releases": group.releases_at_checkpoints,
            "cuts": json.dumps(cuts),
        },
    ).one()
    return row.cuts, row.released, int(row.clock)


def _check_outstanding(connection: Connection, group: LockedGroup) -> None:
    row = connection.execute(
        text(
            """SELECT count(c.name) AS waiting, g.max_outstanding AS most, min(c.name) AS name
            FROM reader_group g
            LEFT JOIN checkpoint c ON c.group_id = g.group_id AND c.state = 'waiting'
            WHERE g.group_id = :g GROUP BY g.max_outstanding"""
        ),
        {"g": group.group_id},
    ).one()
    if row.waiting >= row.most:
        raise Conflict(
            "too_many_checkpoints",
            f"{row.waiting} checkpoints of group {group.name} are waiting already (such as "
            f"{row.name!r}); wait for them, or cancel one.",
        )


def _record(
    connection: Connection,
    group: LockedGroup,
    name: str,
    automatic: bool,
    cuts: dict[str, Any],
    waits_for: Sequence[int],
    patience: float,
) -> None:
    made = connection.execute(
        text(
            """INSERT INTO checkpoint (group_id, name, kind, created_at, cuts, published, state,
                                       waits_for, expires_at, ended_at)
            SELECT :g, :name, :kind, t.now, CAST(:cuts AS jsonb), false,
                   CASE WHEN :waits THEN 'waiting' ELSE 'complete' END, CAST(:ids AS bigint[]),
                   CASE WHEN :waits THEN t.now + :patience * interval '1 second' END,
                   CASE WHEN NOT :waits THEN t.now END
            FROM (SELECT clock_timestamp() AS now) t
            ON CONFLICT (group_id, name) DO NOTHING RETURNING name"""
        ),
        {
            "g": group.group_id,
            "name": name,
            "kind": "automatic" if automatic else "manual",
            "cuts": json.dumps(cuts),
            "waits": bool(waits_for),
            "ids": list(waits_for),
            "patience": patience,
        },
    ).one_or_none()
    if made is None:
        raise InvalidInput(
            "checkpoint_exists",
            f"group {group.name} has a checkpoint {name!r} already; choose another name.",
        )
    if not waits_for:
        _publish(connection, group, name)


def _end(connection: Connection, group: LockedGroup, names: Sequence[str], state: str) -> None:
    if not names:
        return
    connection.execute(
        text(
            """UPDATE checkpoint SET state = :state, ended_at = clock_timestamp(),
                expires_at = NULL WHERE group_id = :g AND name = ANY(:names)"""
        ),
        {"g": group.group_id, "names": list(names), "state": state},
    )
    if state == "complete":
        for name in names:  # in the order in which they were asked for
            _publish(connection, group, name)


def _publish(connection: Connection, group: LockedGroup, name: str) -> None:
    """Release to retention what a complete checkpoint has passed, if the group is a subscriber
    that does not release by hand.

    One that waited may be complete after a later one: what either has passed is released.
    """
    if not group.releases_at_checkpoints:
        return
    connection.execute(
        text(
            f"""WITH published AS (
                UPDATE reader_group_stream gs
                SET published_at = clock_timestamp(), published_cut = j.cut
                FROM checkpoint c
                CROSS JOIN LATERAL jsonb_each(c.cuts) e (stream_id, cut)
                JOIN reader_group_stream b ON b.group_id = :g AND b.stream_id = e.stream_id::bigint
                CROSS JOIN LATERAL (  -- OFFSET 0: joined once
                    SELECT join_cuts(b.stream_id, b.published_cut, e.cut) AS cut OFFSET 0) j
                WHERE c.group_id = :g AND c.name = :name AND gs.group_id = :g
                  AND gs.stream_id = b.stream_id AND j.cut <> b.published_cut
                RETURNING gs.stream_id
            ), due AS (
                {queueing("published JOIN stream USING (stream_id) WHERE state = 'active'")}
            )
            UPDATE checkpoint SET published = true WHERE group_id = :g AND name = :name"""  # noqa: S608 - constants
        ),
        {"g": group.group_id, "name": name},
    )
