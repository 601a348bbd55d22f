"""What an Airflow is to be told of. Made by `make queries` from sql/queries/controller/announcements.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

WATCH = text("""SELECT watch_streams(:airflow, CAST(:kinds AS text[]), CAST(:streams AS text[]))""")


def watch(
    connection: Connection, *, airflow: str, kinds: Sequence[str], streams: Sequence[str]
) -> None:
    """Begin to announce streams to an Airflow, or say that it still wants that."""
    result = connection.execute(
        WATCH, {"airflow": airflow, "kinds": list(kinds), "streams": list(streams)}
    )
    result.close()


TO_ANNOUNCE = text(
    """SELECT kind, stream, transactions, events, bytes, cut, epoch, runs
FROM to_announce(:airflow, CAST(:idle AS text[]))"""
)


class ToAnnounce(NamedTuple):
    """A row of `to_announce`."""

    kind: str
    stream: str
    transactions: list[int] | None
    events: int | None
    bytes: int | None
    cut: dict[str, int | str] | None
    epoch: int | None
    runs: list[str] | None


def to_announce(connection: Connection, *, airflow: str, idle: Sequence[str]) -> list[ToAnnounce]:
    """Return what is to be announced to an Airflow, but what is `idle`."""
    result = connection.execute(TO_ANNOUNCE, {"airflow": airflow, "idle": list(idle)})
    return [ToAnnounce._make(row) for row in result]


ANNOUNCED = text(
    """SELECT announced(:airflow, CAST(:streams AS text[]), CAST(:numbers AS bigint[]))"""
)


def announced(
    connection: Connection, *, airflow: str, streams: Sequence[str], numbers: Sequence[int]
) -> None:
    """Record that transactions are in the database of an Airflow."""
    result = connection.execute(
        ANNOUNCED, {"airflow": airflow, "streams": list(streams), "numbers": list(numbers)}
    )
    result.close()


FORGET = text(
    """WITH gone AS (
    DELETE FROM watch WHERE seen_at < clock_timestamp() - :after * interval '1 s'
    RETURNING airflow, kind, stream_name
), told AS (
    DELETE FROM announcement a USING gone g WHERE a.airflow = g.airflow
      AND a.kind = g.kind AND a.stream_name = g.stream_name
)
SELECT kind || ' of ' || stream_name || ' to ' || airflow
FROM gone ORDER BY stream_name, airflow, kind"""
)


def forget(connection: Connection, *, after: float) -> list[str]:
    """Stop announcing what no triggerer has seen for `after` seconds, and return it."""
    result = connection.execute(FORGET, {"after": after})
    return [row[0] for row in result]


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
    """SELECT kind, stream_name AS stream FROM watch WHERE airflow = :airflow AND kind <> 'events'"""
)


class WatchedPartition(NamedTuple):
    """A row of `watched_partitions`."""

    kind: str
    stream: str


def watched_partitions(connection: Connection, *, airflow: str) -> list[WatchedPartition]:
    """Return of which streams an Airflow wants hours or days."""
    result = connection.execute(WATCHED_PARTITIONS, {"airflow": airflow})
    return [WatchedPartition._make(row) for row in result]
