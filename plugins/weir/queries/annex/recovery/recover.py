"""What makes a restored database go on beyond all that it may have handed out. Made by `make queries` from sql/annex/recovery/queries/recover.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

INCARNATION = text("""SELECT incarnation()""")


def incarnation(connection: Connection) -> str:
    """Return which incarnation of the database this is."""
    result = connection.execute(INCARNATION)
    value: str = result.scalar_one()
    return value


FORGET_APPENDS = text(
    """WITH input AS (
    DELETE FROM transaction_input i USING transaction t
    WHERE t.stream_id = :stream_id AND t.state <> 'committed' AND i.stream_id = t.stream_id
      AND i.transaction_number = t.transaction_number
)
DELETE FROM transaction WHERE stream_id = :stream_id AND state <> 'committed'
RETURNING transaction_number, attempt, state"""
)


class ForgetAppends(NamedTuple):
    """A row of `forget_appends`."""

    transaction_number: int
    attempt: int
    state: str


def forget_appends(connection: Connection, *, stream_id: int) -> list[ForgetAppends]:
    """Forget the appends of a stream that are not committed."""
    result = connection.execute(FORGET_APPENDS, {"stream_id": stream_id})
    return [ForgetAppends._make(row) for row in result]


FORGET_COMPACTIONS = text(
    """DELETE FROM compaction WHERE stream_id = :stream_id AND state <> 'done'"""
)


def forget_compactions(connection: Connection, *, stream_id: int) -> None:
    """Forget the compactions of a stream that are not done."""
    result = connection.execute(FORGET_COMPACTIONS, {"stream_id": stream_id})
    result.close()


KEEP_ABORTED = text(
    """DELETE FROM garbage WHERE stream_id = :stream_id AND root = '' AND reason IN ('aborted', 'fenced')"""
)


def keep_aborted(connection: Connection, *, stream_id: int) -> None:
    """Let no file be garbage that was aborted: it may have been committed before the restore."""
    result = connection.execute(KEEP_ABORTED, {"stream_id": stream_id})
    result.close()


SKIP = text(
    """UPDATE stream SET
    next_transaction_number = greatest(next_transaction_number, CAST(:transaction AS bigint) + 1)
        + CAST(:skipped AS bigint),
    last_clock = greatest(last_clock, CAST(CAST(:newest AS double precision) * 1000000 AS bigint))
WHERE stream_id = :stream_id"""
)


def skip(
    connection: Connection, *, transaction: int, skipped: int, newest: float, stream_id: int
) -> None:
    """Raise the numbers and the clock of a stream."""
    result = connection.execute(
        SKIP,
        {"transaction": transaction, "skipped": skipped, "newest": newest, "stream_id": stream_id},
    )
    result.close()


LOCK_GROUPS = text("""SELECT FROM reader_group ORDER BY group_id FOR NO KEY UPDATE""")


def lock_groups(connection: Connection) -> None:
    """Lock all reader groups."""
    result = connection.execute(LOCK_GROUPS)
    result.close()


LOCK_STORES = text("""SELECT FROM adjunct_store ORDER BY store_id FOR NO KEY UPDATE""")


def lock_stores(connection: Connection) -> None:
    """Lock all adjunct stores."""
    result = connection.execute(LOCK_STORES)
    result.close()


RAISE_IDS = text(
    """SELECT setval('weir_internal.stream_stream_id_seq', greatest(CAST(:highest AS bigint),
        (SELECT last_value FROM stream_stream_id_seq)) + CAST(:skipped AS bigint)),
    setval('weir_internal.reader_group_group_id_seq',
        (SELECT last_value FROM reader_group_group_id_seq) + CAST(:skipped AS bigint)),
    setval('weir_internal.adjunct_store_store_id_seq',
        (SELECT last_value FROM adjunct_store_store_id_seq) + CAST(:skipped AS bigint))"""
)


def raise_ids(connection: Connection, *, highest: int, skipped: int) -> None:
    """Raise the ids that new streams, groups and stores will get."""
    result = connection.execute(RAISE_IDS, {"highest": highest, "skipped": skipped})
    result.close()


SKIP_GROUPS = text(
    """WITH begun AS (
    UPDATE reader_batch SET attempt = attempt + CAST(:skipped AS integer) WHERE state = 'open'
), by_hand AS (
    UPDATE reader_group_stream SET released_at = clock_timestamp()
    WHERE released_at IS NOT NULL
)
UPDATE reader_group SET next_batch = next_batch + :skipped, next_token = next_token + :skipped,
    moved_at = clock_timestamp()"""
)


def skip_groups(connection: Connection, *, skipped: int) -> None:
    """Raise the numbers of groups. As old as the backup, the database says nothing of readers: they may have read all the time. They get the chance to come back before a time-out lets go of what is unread here. Another attempt at a batch may have been published before the restore."""
    result = connection.execute(SKIP_GROUPS, {"skipped": skipped})
    result.close()


SKIP_STORES = text(
    """WITH building AS (
    UPDATE adjunct_version SET attempt = attempt + CAST(:skipped AS integer)
    WHERE state = 'building'
)
UPDATE adjunct_store SET next_version = next_version + :skipped"""
)


def skip_stores(connection: Connection, *, skipped: int) -> None:
    """Raise the numbers of adjunct stores."""
    result = connection.execute(SKIP_STORES, {"skipped": skipped})
    result.close()


COUNT_SWEEPS = text(
    """UPDATE installation SET sweep_count = greatest(sweep_count, :swept) + CAST(:skipped AS bigint),
    warehouse = NULL, incarnation = :incarnation"""
)


def count_sweeps(connection: Connection, *, swept: int, skipped: int, incarnation: str) -> None:
    """Raise the count of sweeps, and let this database be the one that uses the warehouse: as it was found, because one that came since may know less."""
    result = connection.execute(
        COUNT_SWEEPS, {"swept": swept, "skipped": skipped, "incarnation": incarnation}
    )
    result.close()
