"""Where publication hangs on the core: upkeep publishes what is new, and a deleted stream is no
table any more."""

from weir.annex.publication.records import delete
from weir.annex.publication.run import publish
from weir.operations.steps import UpkeepStep
from weir.retention.delete_stream import Deletion

DELETION = Deletion(delete)
STEP = UpkeepStep("published", lambda job: publish(job.database, job.settings), first=True)
