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
