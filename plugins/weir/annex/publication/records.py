"""What the database keeps of publications: who publishes a stream, and the transaction that makes
a new snapshot the table.

A publication has a number like a transaction, so that its folder is its own, and a lease. Whoever
finds the lease expired makes garbage of the folder, and whoever commits must still hold it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from weir.annex.publication.plan import Plan
from weir.controller.locks import lock_streams
from weir.errors import Fenced
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
    before = connection.execute(
        text(
            """SELECT number, lease_until, token,
                greatest(lease_until, pg_postmaster_start_time()) > clock_timestamp() AS busy
            FROM publication WHERE stream_id = :s"""
        ),
        {"s": stream_id},
    ).one_or_none()
    if before is not None and before.busy:
        return before.number if token and before.token == token else None
    if before is not None and before.lease_until is not None:
        discard(connection, stream_id, before.number)
    return int(
        connection.execute(
            text(
                """WITH given AS (
                    UPDATE stream SET next_transaction_number = next_transaction_number + 1
                    WHERE stream_id = :s RETURNING next_transaction_number - 1 AS number
                )
                INSERT INTO publication (stream_id, number, lease_until, token)
                SELECT :s, number, clock_timestamp() + :lease * interval '1 second', :token
                FROM given
                ON CONFLICT (stream_id) DO UPDATE SET number = excluded.number,
                    lease_until = excluded.lease_until, token = excluded.token
                RETURNING number"""
            ),
            {"s": stream_id, "lease": lease, "token": token},
        ).scalar_one()
    )


def discard(connection: Connection, stream_id: int, number: int) -> None:
    """Make garbage of what a publication wrote."""
    connection.execute(
        text(
            """INSERT INTO garbage (root, path, stream_id, reason)
            VALUES ('', :folder, :s, 'aborted') ON CONFLICT (root, path) DO NOTHING"""
        ),
        {"s": stream_id, "folder": publication_folder(stream_id, number)},
    )


def end(connection: Connection, stream_id: int, number: int, problem: str | None) -> None:
    """End a publication that has made nothing of the table, and make garbage of what it wrote.
    `problem`: why; None: nothing was to be done. If another one has followed it, it stays."""
    lock_streams(connection, ids=[stream_id])
    ended = connection.execute(
        text(
            """UPDATE publication SET lease_until = NULL, problem = :problem
            WHERE stream_id = :s AND number = :n AND lease_until IS NOT NULL RETURNING number"""
        ),
        {"s": stream_id, "n": number, "problem": problem},
    ).all()
    if ended:
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
    state = connection.execute(
        text("SELECT number, lease_until, metadata FROM publication WHERE stream_id = :s"),
        {"s": stream_id},
    ).one_or_none()
    if state is not None and state.number == number and state.metadata == written.metadata:
        return  # the connection was lost while this was committed
    if state is None or state.number != number or state.lease_until is None:
        raise Fenced(
            "publication_fenced",
            f"publication {number} of the stream with number {stream_id} is over, because its "
            "lease has expired or the stream is not to be published any more; the next run "
            "publishes what is new.",
        )
    given = {"s": stream_id, "seq": written.sequence}
    gone = connection.execute(
        text(
            """SELECT EXISTS (SELECT FROM unnest(CAST(:segments AS bigint[]),
                CAST(:starts AS bigint[]), CAST(:paths AS text[])) AS n (segment, start, path)
            LEFT JOIN data_file f ON f.stream_id = :s AND f.segment_id = n.segment
                AND f.start_offset = n.start AND f.path = n.path WHERE f.path IS NULL)"""
        ),
        {
            **given, "segments": [file.segment_id for file in plan.added],
            "starts": [file.start_offset for file in plan.added],
            "paths": [file.path for file in plan.added],
        },
    ).scalar_one()  # fmt: skip
    if gone:
        raise Fenced(
            "publication_overtaken",
            f"files of the stream with number {stream_id} were truncated or compacted while it "
            "was published; the next run publishes what is there.",
        )
    removed = [path for some in plan.removed.values() for path in some]
    paths = [file.path for file in plan.added]
    connection.execute(
        text(
            """UPDATE published_file SET until = :seq
            WHERE stream_id = :s AND until IS NULL AND path = ANY (CAST(:ended AS text[]))"""
        ),
        {**given, "ended": [*removed, *written.ended]},
    )
    connection.execute(
        text(
            """UPDATE published_file p SET manifest = m.new
            FROM unnest(CAST(:old AS text[]), CAST(:new AS text[])) AS m (old, new)
            WHERE p.stream_id = :s AND p.manifest = m.old AND p.until IS NULL"""
        ),
        {**given, "old": list(written.moved), "new": list(written.moved.values())},
    )
    connection.execute(
        text(
            """INSERT INTO published_file (stream_id, path, manifest, since, until)
            SELECT :s, n.path, n.manifest, :seq, CASE WHEN n.once THEN :seq + 1 END
            FROM unnest(CAST(:paths AS text[]), CAST(:manifests AS text[]),
                        CAST(:only AS boolean[])) AS n (path, manifest, once)"""
        ),
        {
            **given, "paths": [*paths, *written.new, *written.only],
            "manifests": [written.manifest] * len(paths)
            + [None] * len([*written.new, *written.only]),
            "only": [False] * len([*paths, *written.new]) + [True] * len(written.only),
        },
    )  # fmt: skip
    connection.execute(
        text("SELECT expire_published(:s, :below, :grace, :compacted)"),
        {**given, "below": written.expires, "grace": graces[0], "compacted": graces[1]},
    )
    connection.execute(
        text(
            """UPDATE publication SET lease_until = NULL, sequence = :seq, root = :root,
                previous_metadata = metadata, metadata = :metadata, cut = CAST(:cut AS jsonb),
                clock = :clock, head = CAST(:head AS jsonb), events = :events, files = :files,
                compacted = :compacted, masked = CAST(:masked AS jsonb),
                schema_version = :version, published_at = clock_timestamp(), problem = NULL
            WHERE stream_id = :s"""
        ),
        {
            **given, "root": root, "metadata": written.metadata, "cut": json.dumps(plan.cut),
            "clock": plan.clock, "head": json.dumps(plan.head), "events": plan.events,
            "files": written.files, "compacted": plan.compacted,
            "masked": json.dumps(plan.masked), "version": plan.schema_version,
        },
    )  # fmt: skip


def end_all(connection: Connection, stream_id: int) -> None:
    """End the publication of a stream, if there is one. It locks the stream."""
    lock_streams(connection, ids=[stream_id])
    forget(connection, stream_id)


def forget(connection: Connection, stream_id: int) -> None:
    """End the publication of a locked stream, if there is one."""
    connection.execute(text("SELECT forget_publication(:s)"), {"s": stream_id})
