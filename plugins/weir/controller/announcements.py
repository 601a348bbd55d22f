"""What an Airflow is to be told of: which streams it watches, and what was committed to them that
is not known to be in its database (docs/decisions/0075).

Each function is one statement, however many streams there are, and a triggerer's login may do no
more than these.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import text

from weir.database.connection import Database

FORGOTTEN = 30 * 86400.0  # seconds without a triggerer, then a stream is no longer watched


def watch(database: Database, airflow: str, wanted: Collection[tuple[str, str]]) -> None:
    """Begin to announce streams to an Airflow, or say that it still wants them to be announced.

    `wanted`: pairs of a kind (`events`, `hours`, `days`) and the name of a stream, which need not
    exist yet. What was committed before is not announced.
    """
    if wanted:
        given = {"a": airflow, "kinds": [k for k, _ in wanted], "streams": [s for _, s in wanted]}
        database.transaction(
            lambda c: c.execute(
                text("SELECT watch_streams(:a, CAST(:kinds AS text[]), CAST(:streams AS text[]))"),
                given,
            )
        )


def to_announce(
    database: Database, airflow: str, idle: Collection[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return what is to be announced to an Airflow, one row per kind and stream.

    Of events a row has the transactions (1,000 at most; the others follow once these are
    announced), their events and bytes, the cut after them, the epoch, and who made them (`runs`).
    `idle`: the pairs of kind and stream that are left out, because nobody waits for them.
    """
    rows = database.transaction(
        lambda c: (
            c.execute(
                text("SELECT * FROM to_announce(:a, CAST(:idle AS text[]))"),
                {"a": airflow, "idle": [f"{kind} {stream}" for kind, stream in idle]},
            )
            .mappings()
            .all()
        )
    )
    return [dict(row) for row in rows]


def announced(database: Database, airflow: str, told: Sequence[tuple[str, int]]) -> None:
    """Record that transactions are in the database of an Airflow: pairs of a stream's name and a
    transaction number. Repeating it changes nothing."""
    if told:
        database.transaction(
            lambda c: c.execute(
                text("SELECT announced(:a, CAST(:s AS text[]), CAST(:n AS bigint[]))"),
                {"a": airflow, "s": [stream for stream, _ in told], "n": [n for _, n in told]},
            )
        )


def forget(database: Database, after: float = FORGOTTEN) -> list[str]:
    """Stop announcing what no triggerer has seen for so many seconds, and return it, as sentences.

    What was to be announced of it is forgotten, too.
    """
    rows = database.transaction(
        lambda c: c.execute(
            text(
                """WITH gone AS (
                    DELETE FROM watch WHERE seen_at < clock_timestamp() - :after * interval '1 s'
                    RETURNING airflow, kind, stream_name
                ), told AS (
                    DELETE FROM announcement a USING gone g WHERE a.airflow = g.airflow
                      AND a.kind = g.kind AND a.stream_name = g.stream_name
                )
                SELECT * FROM gone ORDER BY stream_name, airflow, kind"""
            ),
            {"after": after},
        ).all()
    )
    return [f"{row.kind} of {row.stream_name} to {row.airflow}" for row in rows]


def due_partitions(
    database: Database, airflow: str, wanted: Collection[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return which hours and days of streams may be announced to an Airflow, one row per kind and
    stream: see the comment of the SQL function."""
    rows = database.transaction(
        lambda c: (
            c.execute(
                text("SELECT * FROM due_partitions(:a, CAST(:k AS text[]), CAST(:s AS text[]))"),
                {"a": airflow, "k": [k for k, _ in wanted], "s": [s for _, s in wanted]},
            )
            .mappings()
            .all()
        )
    )
    return [dict(row) for row in rows]


def announced_partitions(
    database: Database, airflow: str, told: Sequence[Mapping[str, Any]]
) -> None:
    """Record that partitions are in the database of an Airflow: rows with kind, stream, `until` and
    the transactions that need no more announcing (`numbers`), and what was not announced
    (`left_out`: a sentence, or None). Repeating it changes nothing."""
    given = {
        "a": airflow,
        "k": [one["kind"] for one in told],
        "s": [one["stream"] for one in told],
        "u": [one["until"] for one in told],
        "n": json.dumps([one["numbers"] for one in told]),
        "l": [one["left_out"] for one in told],
    }
    database.transaction(
        lambda c: c.execute(
            text(
                """SELECT announced_partitions(:a, CAST(:k AS text[]), CAST(:s AS text[]),
                CAST(:u AS bigint[]), CAST(:n AS jsonb), CAST(:l AS text[]))"""
            ),
            given,
        )
    )


def watched_partitions(database: Database, airflow: str) -> list[tuple[str, str]]:
    """Return the pairs of kind and stream of which an Airflow wants hours or days."""
    rows = database.transaction(
        lambda c: c.execute(
            text("SELECT kind, stream_name FROM watch WHERE airflow = :a AND kind <> 'events'"),
            {"a": airflow},
        ).all()
    )
    return [(row.kind, row.stream_name) for row in rows]
