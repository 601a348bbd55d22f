"""What an Airflow is to be told of: which streams it watches, and what was committed to them that
is not known to be in its database (docs/decisions/0075).

Each function is one statement, however many streams there are, and a triggerer's login may do no
more than these.
"""

from collections.abc import Collection, Sequence

from weir.database.connection import Database
from weir.queries.controller import announcements as sql

FORGOTTEN = 30 * 86400.0  # seconds without a triggerer, then a stream is no longer watched


def watch(database: Database, airflow: str, wanted: Collection[tuple[str, str]]) -> None:
    """Begin to announce streams to an Airflow, or say that it still wants them to be announced.

    `wanted`: pairs of a kind (`events`, or what an annex announces) and the name of a stream, which
    need not exist yet. What was committed before is not announced.
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
