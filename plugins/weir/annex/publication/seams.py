"""Where publication hangs on the core: upkeep publishes what is new, and a stream that is deleted
or recovered is no table any more."""

from sqlalchemy import Connection

from weir.annex.publication.records import forget
from weir.annex.publication.run import publish
from weir.operations.shown import MOST, Part, Table
from weir.operations.steps import UpkeepStep
from weir.queries.annex.publication import tables as sql
from weir.retention.delete_stream import Forgotten

FORGOTTEN = Forgotten(forget)
STEP = UpkeepStep("published", lambda job: publish(job.database, job.settings), first=True)


def _publications(connection: Connection, stream: str, after: str) -> Part:
    found = sql.publications(connection, stream=stream, after=after, most=MOST + 1)
    return Part(found[:MOST], found[MOST - 1].stream if len(found) > MOST else "")


PUBLICATIONS = Table(
    "publications", "Publications",
    "The streams that are published as tables, how far, and why the last run did not.",
    "No stream is published.", _publications,
)  # fmt: skip
