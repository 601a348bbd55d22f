"""Commit appends. Made by `make queries` from sql/queries/controller/commit.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

COMMIT_ALONE = text(
    """SELECT * FROM commit_append(:stream_id, :number, :attempt, :version, CAST(:segments AS bigint[]),
    CAST(:events AS bigint[]), CAST(:bytes AS bigint[]), CAST(:first AS bigint[]),
    CAST(:last AS bigint[]), CAST(:paths AS text[]), CAST(:fenced AS text[]),
    CAST(:rejected_files AS text[]), :rejected, CAST(:min_times AS bigint[]),
    CAST(:max_times AS bigint[]), :untimed, CAST(:event_time AS text), CAST(:late AS bigint),
    CAST(:complete_until AS bigint), CAST(:stated AS bigint), CAST(:hashes AS bigint[]),
    CAST(:end_hashes AS bigint[]), CAST(:file_hashes AS bigint[]), :erased_keys, :outside,
    CAST(:ahead AS bigint), CAST(:behind AS bigint), lock_for_commit(:stream_id))"""
)


class CommitAppend(NamedTuple):
    """A row of `commit_alone`."""

    outcome: str
    state: str | None
    attempt: int | None
    epoch: int | None
    clock: int | None
    events: int | None
    rejected: int | None
    bytes: int | None
    files: int | None
    held: dict[str, str] | None
    min_event_time: int | None
    max_event_time: int | None
    untimed: int | None
    late: int | None
    complete_until: int | None
    returned_writer: str | None
    not_before: int | None
    not_after: int | None
    ahead: int | None
    behind: int | None
    durable: bool


def commit_alone(
    connection: Connection,
    *,
    stream_id: int,
    number: int,
    attempt: int,
    version: int,
    segments: Sequence[int],
    events: Sequence[int],
    bytes: Sequence[int],
    first: Sequence[int],
    last: Sequence[int],
    paths: Sequence[str],
    fenced: Sequence[str],
    rejected_files: Sequence[str],
    rejected: int,
    min_times: Sequence[int | None],
    max_times: Sequence[int | None],
    untimed: int | None,
    event_time: str | None,
    late: int | None,
    complete_until: int | None,
    stated: int | None,
    hashes: Sequence[int | None],
    end_hashes: Sequence[int | None],
    file_hashes: Sequence[int | None],
    erased_keys: int,
    outside: bool,
    ahead: int | None,
    behind: int | None,
) -> CommitAppend:
    """Lock a stream and commit an append. What an outcome does not have is null."""
    result = connection.execute(
        COMMIT_ALONE,
        {
            "stream_id": stream_id,
            "number": number,
            "attempt": attempt,
            "version": version,
            "segments": list(segments),
            "events": list(events),
            "bytes": list(bytes),
            "first": list(first),
            "last": list(last),
            "paths": list(paths),
            "fenced": list(fenced),
            "rejected_files": list(rejected_files),
            "rejected": rejected,
            "min_times": list(min_times),
            "max_times": list(max_times),
            "untimed": untimed,
            "event_time": event_time,
            "late": late,
            "complete_until": complete_until,
            "stated": stated,
            "hashes": list(hashes),
            "end_hashes": list(end_hashes),
            "file_hashes": list(file_hashes),
            "erased_keys": erased_keys,
            "outside": outside,
            "ahead": ahead,
            "behind": behind,
        },
    )
    row = result.one()
    return CommitAppend._make(row)


COMMIT_LOCKED = text(
    """SELECT * FROM commit_append(:stream_id, :number, :attempt, :version, CAST(:segments AS bigint[]),
    CAST(:events AS bigint[]), CAST(:bytes AS bigint[]), CAST(:first AS bigint[]),
    CAST(:last AS bigint[]), CAST(:paths AS text[]), CAST(:fenced AS text[]),
    CAST(:rejected_files AS text[]), :rejected, CAST(:min_times AS bigint[]),
    CAST(:max_times AS bigint[]), :untimed, CAST(:event_time AS text), CAST(:late AS bigint),
    CAST(:complete_until AS bigint), CAST(:stated AS bigint), CAST(:hashes AS bigint[]),
    CAST(:end_hashes AS bigint[]), CAST(:file_hashes AS bigint[]), :erased_keys, :outside,
    CAST(:ahead AS bigint), CAST(:behind AS bigint), true)"""
)


def commit_locked(
    connection: Connection,
    *,
    stream_id: int,
    number: int,
    attempt: int,
    version: int,
    segments: Sequence[int],
    events: Sequence[int],
    bytes: Sequence[int],
    first: Sequence[int],
    last: Sequence[int],
    paths: Sequence[str],
    fenced: Sequence[str],
    rejected_files: Sequence[str],
    rejected: int,
    min_times: Sequence[int | None],
    max_times: Sequence[int | None],
    untimed: int | None,
    event_time: str | None,
    late: int | None,
    complete_until: int | None,
    stated: int | None,
    hashes: Sequence[int | None],
    end_hashes: Sequence[int | None],
    file_hashes: Sequence[int | None],
    erased_keys: int,
    outside: bool,
    ahead: int | None,
    behind: int | None,
) -> CommitAppend:
    """Commit an append to a locked stream, as `commit_alone`."""
    result = connection.execute(
        COMMIT_LOCKED,
        {
            "stream_id": stream_id,
            "number": number,
            "attempt": attempt,
            "version": version,
            "segments": list(segments),
            "events": list(events),
            "bytes": list(bytes),
            "first": list(first),
            "last": list(last),
            "paths": list(paths),
            "fenced": list(fenced),
            "rejected_files": list(rejected_files),
            "rejected": rejected,
            "min_times": list(min_times),
            "max_times": list(max_times),
            "untimed": untimed,
            "event_time": event_time,
            "late": late,
            "complete_until": complete_until,
            "stated": stated,
            "hashes": list(hashes),
            "end_hashes": list(end_hashes),
            "file_hashes": list(file_hashes),
            "erased_keys": erased_keys,
            "outside": outside,
            "ahead": ahead,
            "behind": behind,
        },
    )
    row = result.one()
    return CommitAppend._make(row)


REFERENCES = text(
    """SELECT epoch, reference_epoch FROM epoch WHERE stream_id = :stream_id AND epoch = ANY(:epochs)"""
)


class Reference(NamedTuple):
    """A row of `references`."""

    epoch: int
    reference_epoch: int


def references(connection: Connection, *, stream_id: int, epochs: Sequence[int]) -> list[Reference]:
    """Return which epochs some epochs copy: themselves, if they are no copies."""
    result = connection.execute(REFERENCES, {"stream_id": stream_id, "epochs": list(epochs)})
    return [Reference._make(row) for row in result]
