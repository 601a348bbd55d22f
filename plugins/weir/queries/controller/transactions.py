"""Append transactions. Made by `make queries` from sql/queries/controller/transactions.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.schema import Field

BEGIN_APPEND = text(
    """SELECT * FROM begin_append(:scope, :name, :writer_id, :batch_id, :fingerprint, :lease,
    :allow_repeated_files, :source, CAST(:paths AS text[]), CAST(:sizes AS bigint[]),
    CAST(:stated AS bigint))"""
)


class BeginAppend(NamedTuple):
    """A row of `begin_append`."""

    outcome: str
    stream_id: int | None
    state: str | None
    transaction_number: int | None
    attempt: int | None
    routing_key: str | None
    on_missing_key: str | None
    on_bad_rows: str | None
    schema_version: int | None
    fields: list[Field] | None
    ids: list[int] | None
    lows: list[float] | None
    highs: list[float] | None
    clock: int | None
    events: int | None
    rejected: int | None
    bytes: int | None
    files: int | None
    held: dict[str, str] | None
    durable: bool
    event_time: str | None
    min_event_time: int | None
    max_event_time: int | None
    untimed: int | None
    late: int | None
    complete_until: int | None
    on_new_column: str | None
    dropped: list[str] | None
    erased_salt: memoryview | None
    erased_hashes: list[str] | None


def begin_append(
    connection: Connection,
    *,
    scope: str,
    name: str,
    writer_id: str,
    batch_id: str,
    fingerprint: str,
    lease: float,
    allow_repeated_files: bool,
    source: str,
    paths: Sequence[str],
    sizes: Sequence[int],
    stated: int | None,
) -> BeginAppend:
    """Lock a stream and open the transaction of an append, or begin its next attempt. What an outcome does not have is null."""
    result = connection.execute(
        BEGIN_APPEND,
        {
            "scope": scope,
            "name": name,
            "writer_id": writer_id,
            "batch_id": batch_id,
            "fingerprint": fingerprint,
            "lease": lease,
            "allow_repeated_files": allow_repeated_files,
            "source": source,
            "paths": list(paths),
            "sizes": list(sizes),
            "stated": stated,
        },
    )
    row = result.one()
    return BeginAppend._make(row)


RENEW = text(
    """UPDATE transaction SET lease_until = clock_timestamp() + :lease * interval '1 second'
WHERE stream_id = :stream_id AND transaction_number = :number AND attempt = :attempt
  AND state = 'open' AND opened_at + :longest * interval '1 second'
                         >= clock_timestamp() + :lease * interval '1 second'"""
)


def renew(
    connection: Connection,
    *,
    lease: float,
    stream_id: int,
    number: int,
    attempt: int,
    longest: float,
) -> int:
    """Renew the lease of an open attempt by `lease` seconds, within `longest` seconds of its begin."""
    result = connection.execute(
        RENEW,
        {
            "lease": lease,
            "stream_id": stream_id,
            "number": number,
            "attempt": attempt,
            "longest": longest,
        },
    )
    return result.rowcount


STANDING = text(
    """SELECT state, attempt, opened_at + :longest * interval '1 second' > clock_timestamp() AS in_time
FROM transaction WHERE stream_id = :stream_id AND transaction_number = :number"""
)


class Standing(NamedTuple):
    """A row of `standing`."""

    state: str
    attempt: int
    in_time: bool


def standing(
    connection: Connection, *, longest: float, stream_id: int, number: int
) -> Standing | None:
    """Return what became of a transaction, and whether it began less than `longest` seconds ago."""
    result = connection.execute(
        STANDING, {"longest": longest, "stream_id": stream_id, "number": number}
    )
    row = result.one_or_none()
    return None if row is None else Standing._make(row)


IS_HELD = text(
    """SELECT EXISTS (SELECT FROM transaction WHERE stream_id = :stream_id
    AND transaction_number = :number AND attempt = :attempt AND state = 'open')"""
)


def is_held(connection: Connection, *, stream_id: int, number: int, attempt: int) -> bool:
    """Return whether an attempt still holds its open transaction."""
    result = connection.execute(
        IS_HELD, {"stream_id": stream_id, "number": number, "attempt": attempt}
    )
    value: bool = result.scalar_one()
    return value


ABORT = text(
    """UPDATE transaction SET state = 'aborted', ended_at = clock_timestamp(), staged = NULL
WHERE stream_id = :stream_id AND transaction_number = :number
  AND attempt = :attempt AND state = 'open'"""
)


def abort(connection: Connection, *, stream_id: int, number: int, attempt: int) -> int:
    """Abort an attempt of a locked stream."""
    result = connection.execute(
        ABORT, {"stream_id": stream_id, "number": number, "attempt": attempt}
    )
    return result.rowcount


DISCARD = text(
    """INSERT INTO garbage (root, path, stream_id, reason)
SELECT '', unnest(CAST(:folders AS text[])), :stream_id, 'aborted'
ON CONFLICT (root, path) DO NOTHING"""
)


def discard(connection: Connection, *, folders: Sequence[str], stream_id: int) -> None:
    """Make garbage of folders that attempts wrote."""
    result = connection.execute(DISCARD, {"folders": list(folders), "stream_id": stream_id})
    result.close()
