"""Remember which streams are being measured, because to compute their routing keys may kill the
process that measures: what ended without a word is measured last, alone, and rests in between. A
limit on the memory of each is not to be had, because a JVM has one heap; a process for each would
cost seconds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from weir.database.connection import Database
from weir.errors import WeirError
from weir.queries.scaling import measurements as sql


@contextmanager
def measuring(database: Database, streams: Sequence[int]) -> Iterator[None]:
    """Run a block that measures streams. Until it says how it ended, they count as those that may
    have killed the run."""
    ids = list(streams)
    database.transaction(partial(sql.begin, ids=ids))
    try:
        yield
    except WeirError:
        database.transaction(partial(sql.end, ids=ids))
        raise
    database.transaction(partial(sql.end, ids=ids))
