"""What an Airflow is to be told of hours and days of streams, and what it was told."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from weir.database.connection import Database
from weir.queries.annex.partitions import announcing as sql


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
