"""What an Airflow is to be told of: which streams it watches, and what was committed to them that
is not known to be in its database (docs/decisions/0075).

Each function is one statement, however many streams there are, and a triggerer's login may do no
more than these.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from weir.database.connection import Database
from weir.queries.controller import announcements as sql

FORGOTTEN = 30 * 86400.0  # seconds without a triggerer, then a stream is no longer watched


def watch(database: Database, airflow: str, wanted: Collection[tuple[str, str]]) -> None:
    """Begin to announce streams to an Airflow, or say that it still wants them to be announced.

    `wanted`: pairs of a kind (`events`, `hours`, `days`) and the name of a stream, which need not
    exist yet. What was committed before is not announced.
    """
    if wanted:
        kinds, streams = [kind for kind, _ in wanted], [stream for _, stream in wanted]
        database.transaction(lambda c: sql.watch(c, airflow=airflow, kinds=kinds, streams=streams))


def to_announce(
    database: Database, airflow: str, idle: Collection[tuple[str, str]]
) -> list[sql.ToAnnounce]:
    """Return what is to be announced to an Airflow, one row per kind and stream.

    Of events a row has the transactions (1,000 at most; the others follow once these are
    announced), their events and bytes, the cut after them, the epoch, and who made them (`runs`).
    `idle`: the pairs of kind and stream that are left out, because nobody waits for them.
    """
    waits = [f"{kind} {stream}" for kind, stream in idle]
    return database.transaction(lambda c: sql.to_announce(c, airflow=airflow, idle=waits))


def announced(database: Database, airflow: str, told: Sequence[tuple[str, int]]) -> None:
    """Record that transactions are in the database of an Airflow: pairs of a stream's name and a
    transaction number. Repeating it changes nothing."""
    if told:
        streams, numbers = [stream for stream, _ in told], [number for _, number in told]
        database.transaction(
            lambda c: sql.announced(c, airflow=airflow, streams=streams, numbers=numbers)
        )


def forget(database: Database, after: float = FORGOTTEN) -> list[str]:
    """Stop announcing what no triggerer has seen for so many seconds, and return it, as sentences.

    What was to be announced of it is forgotten, too.
    """
    return database.transaction(lambda c: sql.forget(c, after=after))


def due_partitions(
    database: Database, airflow: str, wanted: Collection[tuple[str, str]]
) -> list[sql.DuePartitions]:
    """Return which hours and days of streams may be announced to an Airflow, one row per kind and
    stream: see the comment of the SQL function."""
    kinds, streams = [kind for kind, _ in wanted], [stream for _, stream in wanted]
    return database.transaction(
        lambda c: sql.due_partitions(c, airflow=airflow, kinds=kinds, streams=streams)
    )


def announced_partitions(
    database: Database, airflow: str, told: Sequence[Mapping[str, Any]]
) -> None:
    """Record that partitions are in the database of an Airflow: rows with kind, stream, `until` and
    the transactions that need no more announcing (`numbers`), and what was not announced
    (`left_out`: a sentence, or None). Repeating it changes nothing."""
    database.transaction(
        lambda c: sql.announced_partitions(
            c,
            airflow=airflow,
            kinds=[one["kind"] for one in told],
            streams=[one["stream"] for one in told],
            untils=[one["until"] for one in told],
            numbers=json.dumps([one["numbers"] for one in told]),
            left_out=[one["left_out"] for one in told],
        )
    )


def watched_partitions(database: Database, airflow: str) -> list[sql.WatchedPartition]:
    """Return the pairs of kind and stream of which an Airflow wants hours or days."""
    return database.transaction(lambda c: sql.watched_partitions(c, airflow=airflow))
