"""Where publication hangs on the core: upkeep publishes what is new, and a stream that is deleted
or recovered is no table any more."""

from weir.annex.publication.records import forget
from weir.annex.publication.run import publish
from weir.operations.steps import UpkeepStep
from weir.retention.delete_stream import Forgotten

FORGOTTEN = Forgotten(forget)
STEP = UpkeepStep("published", lambda job: publish(job.database, job.settings), first=True)
