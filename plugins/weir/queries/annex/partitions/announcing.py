"""What is announced of hours and days. Made by `make queries` from sql/annex/partitions/queries/announcing.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

DUE_PARTITIONS = text(
    """SELECT * FROM due_partitions(:airflow, CAST(:kinds AS text[]), CAST(:streams AS text[]))"""
)


class DuePartitions(NamedTuple):
    """A row of `due_partitions`."""

    kind: str
    stream: str
    since: int
    until: int | None
    numbers: list[int]
    late: list[int] | None
    bound: int
    across: list[int] | None
    left_out: bool
    fresh: bool


def due_partitions(
    connection: Connection, *, airflow: str, kinds: Sequence[str], streams: Sequence[str]
) -> list[DuePartitions]:
    """Return which hours and days of streams may be announced to an Airflow. If nothing is complete (`until` is null), `since` and `bound` mean nothing."""
    result = connection.execute(
        DUE_PARTITIONS, {"airflow": airflow, "kinds": list(kinds), "streams": list(streams)}
    )
    return [DuePartitions._make(row) for row in result]


ANNOUNCED_PARTITIONS = text(
    """SELECT announced_partitions(:airflow, CAST(:kinds AS text[]), CAST(:streams AS text[]),
    CAST(:untils AS bigint[]), CAST(:numbers AS jsonb), CAST(:left_out AS text[]))"""
)


def announced_partitions(
    connection: Connection,
    *,
    airflow: str,
    kinds: Sequence[str],
    streams: Sequence[str],
    untils: Sequence[int],
    numbers: str,
    left_out: Sequence[str],
) -> None:
    """Record that hours and days are in the database of an Airflow."""
    result = connection.execute(
        ANNOUNCED_PARTITIONS,
        {
            "airflow": airflow,
            "kinds": list(kinds),
            "streams": list(streams),
            "untils": list(untils),
            "numbers": numbers,
            "left_out": list(left_out),
        },
    )
    result.close()


WATCHED_PARTITIONS = text(
    """SELECT kind, stream_name AS stream FROM watched_partition WHERE airflow = :airflow"""
)


class WatchedPartition(NamedTuple):
    """A row of `watched_partitions`."""

    kind: str
    stream: str


def watched_partitions(connection: Connection, *, airflow: str) -> list[WatchedPartition]:
    """Return of which streams an Airflow wants hours or days."""
    result = connection.execute(WATCHED_PARTITIONS, {"airflow": airflow})
    return [WatchedPartition._make(row) for row in result]
