"""Where erasure hangs on the core: upkeep signs the certificates of which no file is left."""

from weir.annex.erasure.certificate import sign_waiting
from weir.operations.steps import UpkeepStep

STEP = UpkeepStep("signed", lambda job: sign_waiting(job.database, job.settings.grace_period))
